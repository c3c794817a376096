"""What experiments came to, remembered as small lines of JSON, and the tables of result pages that follow from them.

A row says what an arm of an experiment came to with a seed. Whoever has the file can print the page's table again,
add seeds, or see that a figure of a page is no cell's. In a page a table stands between two comments; the first names
a function, a file of remembered/ and what else the function is given, quoted as in a shell:

    <!-- remembered: by_arm people.jsonl commits-en-15000 top1 top3 nats "top-1, points=top1_less_public" -->
    <!-- end -->

    python benchmarks/utility/remembered_rows.py docs/results/people.md    # writes the tables of these pages anew

A function of another benchmark is named with its file: `local_steps.pairs`. It is given the path of the file and the
other words, and it gives Markdown. tests/test_results.py holds every page to its tables.
"""

import importlib
import json
import re
import shlex
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

BENCHMARKS = Path(__file__).parents[1]
REMEMBERED = Path(__file__).parent / "remembered"
TABLE = re.compile(r"(<!-- remembered: (?P<asked>[^\n]+) -->\n)(?P<shown>.*?)(<!-- end -->)", re.DOTALL)

ONLY = "only:"

Fact = float | str | Sequence[float]  # three numbers are a value and its interval


class Row(NamedTuple):
    """What an arm came to."""

    experiment: str
    arm: str
    seed: int | None  # None: of all seeds together, as an interval is
    facts: Mapping[str, Fact]  # shares of one, not percent


class Shown(NamedTuple):
    """How a measure is shown: its title, times what, with how many digits."""

    title: str
    scale: float
    digits: int


MEASURES = {  # by how the name of a fact begins
    "top1": Shown("top-1", 100.0, 2),
    "top3": Shown("top-3", 100.0, 2),
    "saved": Shown("keystrokes saved", 100.0, 2),
    "nats": Shown("nats", 1.0, 3),
}


def remember_row(file: str, experiment: str, arm: str, seed: int | None, facts: Mapping[str, Fact]) -> None:
    """Add a row to a file of remembered/, to six digits; nothing where it stands there already.

    Raises: ValueError where it stands there with other facts.
    """
    row = Row(experiment, arm, seed, {name: _short(fact) for name, fact in facts.items()})
    path = REMEMBERED / file
    for other in remembered_rows(path) if path.is_file() else ():
        if other[:3] == row[:3]:
            if other.facts != row.facts:
                raise ValueError(
                    f"'{file}' says {dict(other.facts)} of {experiment}, {arm}, seed {seed}, not {dict(row.facts)}; "
                    "delete its line if what was measured has changed."
                )
            return
    path.parent.mkdir(exist_ok=True)
    with open(path, "a", encoding="utf-8") as lines:
        lines.write(json.dumps(row._asdict()) + "\n")


def _short(fact: Fact) -> Fact:
    if isinstance(fact, str):
        return fact
    if isinstance(fact, Sequence):
        return [float(f"{each:.6g}") for each in fact]
    return float(f"{fact:.6g}")


def remembered_rows(path: Path, experiment: str | None = None) -> list[Row]:
    """In the order in which they were remembered; of one experiment, or of all."""
    rows = [Row(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]
    return [row for row in rows if experiment in (None, row.experiment)]


# -- tables --------------------------------------------------------------------------------------------------------


def by_arm(path: Path, experiment: str, *columns: str) -> str:
    """Markdown: a line an arm, a column a fact, "fact" or "title=fact"; "only:GLOB" leaves out the other arms.

    A number is the mean over seeds ± their standard deviation. Three numbers, of one row, are a difference and its
    interval. How a fact is scaled follows from how its name begins (MEASURES).
    """
    rows = remembered_rows(path, experiment)
    only = [column.removeprefix(ONLY) for column in columns if column.startswith(ONLY)] or ["*"]
    named = [_column(column) for column in columns if not column.startswith(ONLY)]
    lines = [["", "seeds", *(title for title, _ in named)]]
    for arm in dict.fromkeys(row.arm for row in rows if any(fnmatch(row.arm, glob) for glob in only)):
        mine = [row for row in rows if row.arm == arm]
        seeds = len([row for row in mine if row.seed is not None])
        facts = [[row.facts[fact] for row in mine if fact in row.facts] for _, fact in named]
        cells = [_said(fact, values) for (_, fact), values in zip(named, facts, strict=True)]
        lines.append([arm, str(seeds) if seeds else "", *cells])
    return markdown(lines, numbers=len(named) + 1)


def _column(column: str) -> tuple[str, str]:
    title, _, fact = column.rpartition("=")
    measure = measure_of(fact)
    unit = ", %" if measure.scale == 100 else ""
    return title or f"{measure.title or fact}{unit}", fact


def measure_of(fact: str) -> Shown:
    """How it is shown; as it is where nothing is said of it."""
    return next((shown for name, shown in MEASURES.items() if fact.startswith(name)), Shown("", 1.0, 3))


def _said(fact: str, values: Sequence[Fact]) -> str:
    if numbers := [value for value in values if isinstance(value, int | float)]:
        return level(fact, numbers)
    words = [
        value if isinstance(value, str) else interval(fact, value) for value in values if not isinstance(value, float)
    ]
    return "; ".join(words)


def level(fact: str, values: Sequence[float]) -> str:
    """The mean over seeds ± their standard deviation; one value where seeds make no difference."""
    _, scale, digits = measure_of(fact)
    middle = f"{scale * statistics.mean(values):.{digits}f}"
    return f"{middle} ± {scale * statistics.stdev(values):.{digits}f}" if len(set(values)) > 1 else middle


def interval(fact: str, values: Sequence[float]) -> str:
    """A difference and the interval around it."""
    _, scale, digits = measure_of(fact)
    middle, low, high = (f"{scale * value:+.{digits}f}" for value in values)
    return f"{middle} ({low} to {high})"


def markdown(lines: Sequence[Sequence[str]], *, numbers: int) -> str:
    """A table, its head first; so many columns at the right are set to the right."""
    words = len(lines[0]) - numbers
    rule = "|" + "---|" * words + "--:|" * numbers
    head, *rest = ["| " + " | ".join(cells) + " |" for cells in lines]
    return "\n".join([head, rule, *rest])


# -- pages ---------------------------------------------------------------------------------------------------------


def rendered(page: str) -> str:
    """The text of a page with its remembered tables made anew."""
    return TABLE.sub(lambda found: f"{found[1]}\n{made(found['asked'])}\n\n{found[4]}", page)


def made(asked: str) -> str:
    """The Markdown of what the comment before a table asks for."""
    function, file, *words = shlex.split(asked)
    return function_of(function)(REMEMBERED / file, *words)


def function_of(name: str) -> Callable[..., str]:
    """Of this file, or of the benchmark that stands before the point."""
    *module, function = name.split(".")
    if not module:
        return {"by_arm": by_arm}[function]
    (path,) = BENCHMARKS.glob(f"*/{module[0]}.py")
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))  # where it finds what it imports, as when it is run
    found: Callable[..., str] = getattr(importlib.import_module(module[0]), function)
    return found


def asked_in(page: str) -> Iterator[str]:
    """What the comments before its tables ask for."""
    return (found["asked"] for found in TABLE.finditer(page))


def main() -> None:
    for name in sys.argv[1:]:
        path = Path(name)
        path.write_text(rendered(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
