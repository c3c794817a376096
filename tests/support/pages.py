"""What pages show: fenced blocks, the commands of `console` blocks, and what is printed under a command.

A command begins with `$ ` and goes on after a backslash; what stands under it is its output. A line `...` stands for
any lines, `...` in a line for any text, and a JSON object may leave keys and decimals out.
"""

import json
import re
import shlex
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from tests.conftest import REPOSITORY

PAGES = [
    REPOSITORY / "README.md",
    REPOSITORY / "CHANGELOG.md",
    REPOSITORY / "CONTRIBUTING.md",
    *sorted((REPOSITORY / "docs").rglob("*.md")),
]
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"[-−]?\d[\d,.]*(?:e[-+]?\d+)?")
REFUSED, FAILED_LINE, FINE = 2, 1, 0


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, and the line its text begins at."""

    language: str
    text: str
    line: int


@dataclass(frozen=True)
class Command:
    """One `$ ` line of a page with the lines it goes on in, and what the page shows under it."""

    page: Path
    line: int
    text: str
    shown: str

    @property
    def words(self) -> list[str]:
        """As the shell splits it, without the remark behind `#`."""
        return shlex.split(self.text, comments=True)

    @property
    def place(self) -> str:
        """For a failure: where it stands, and what it is."""
        return f"{self.page.relative_to(REPOSITORY)}:{self.line}: $ {self.text}"

    @property
    def code(self) -> int:
        """The exit code that the shown output tells of."""
        shown = self.shown.splitlines()
        if any(line.startswith("FAILS ") for line in shown):
            return FAILED_LINE
        return REFUSED if any(line.startswith("error: ") for line in shown) else FINE


def blocks(page: Path, *languages: str) -> list[Block]:
    """The blocks of a page in these languages, in their order."""
    text = page.read_text(encoding="utf-8")
    found = [Block(match[1], match[2], text.count("\n", 0, match.start(2)) + 1) for match in FENCE.finditer(text)]
    return [block for block in found if block.language in languages]


def commands_of(page: Path, block: Block) -> list[Command]:
    """The commands of one `console` block."""
    found: list[Command] = []
    lines = iter(enumerate(block.text.splitlines(), start=block.line))
    for number, line in lines:
        if line.startswith("$ "):
            text = line.removeprefix("$ ")
            while text.endswith("\\"):
                text = text.removesuffix("\\").rstrip() + " " + next(lines)[1].lstrip()
            found.append(Command(page, number, text, ""))
        elif not found:
            raise ValueError(f"{page.name}:{number}: a console block begins with a line `$ COMMAND`, not {line!r}")
        else:
            last = found.pop()
            found.append(Command(page, last.line, last.text, f"{last.shown}{line}\n"))
    return found


def commands(page: Path) -> list[Command]:
    """All commands of a page, in their order."""
    return [each for block in blocks(page, "console") for each in commands_of(page, block)]


def differs(shown: str, printed: str, *, exactly: bool) -> str | None:
    """How what a command printed is not what its page shows; None where it is.

    exactly: to the last shown digit; else any number stands for any other: it was another machine or another size.
    """
    if not shown.strip():
        return None
    if shown.lstrip().startswith("{"):
        return _keys_differ(json.loads(shown, parse_float=Decimal), json.loads(printed, parse_float=Decimal), exactly)
    if _pattern(shown, exactly).fullmatch(_plain(printed, exactly)):
        return None
    return f"the page shows\n{shown}\nand it printed\n{printed}"


def _keys_differ(shown: dict[str, Any], printed: dict[str, Any], exactly: bool) -> str | None:
    for key, wanted in shown.items():
        if key not in printed or (exactly and _as_precise_as(wanted, printed[key]) != wanted):
            return f"{key} is {printed.get(key)}, not {wanted}"
    return None


def _as_precise_as(wanted: Any, printed: Any) -> Any:
    """The printed value with as many decimals as the page shows."""
    both_numbers = isinstance(wanted, Decimal) and isinstance(printed, Decimal | int)
    return Decimal(printed).quantize(wanted) if both_numbers else printed


def _plain(text: str, exactly: bool) -> str:
    """Lines without what terminals differ in: trailing blanks; where numbers may differ, digits and columns too."""
    lines = [line.rstrip() for line in text.strip().splitlines()]
    if not exactly:
        lines = [re.sub(r"\s+", " ", NUMBER.sub("0", line)).strip() for line in lines]
    return "\n".join(lines) + "\n"


def _pattern(shown: str, exactly: bool) -> re.Pattern[str]:
    parts = []
    for line in shown.strip().splitlines():
        if line.strip() == "...":
            parts.append(r"(?:.*\n)*?")
        else:
            plain = [
                _plain(f"|{piece}|", exactly)[1:-2]
                for piece in (line.rstrip() if exactly else line.strip()).split("...")
            ]
            parts.append(".*?".join(re.escape(piece) for piece in plain) + r"\n")
    return re.compile("".join(parts))


NOT_RUN_PAGES = {"results": "what was done once, on corpora that are not shipped"}

WITH_COMMANDS = [page for page in PAGES if commands(page) and page.parent.name not in NOT_RUN_PAGES]
