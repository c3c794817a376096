"""What does it cost to design a mechanism for other rounds, another separation or more participations than come?

A design is made for a guess, used at what came, and its loss there (error x exact sensitivity) divided by that of the
same mechanism designed for what came: 1.05 is 5% more noise at equal privacy, or a zCDP 1.05^2 as large at equal noise.
BandMF is a matrix for the rounds of its guess and says nothing beyond them; where clients come sooner than its bands
its sensitivity is exact down to half as many. Guesses are those of arXiv:2408.08868: 2000 rounds and a separation of
400 (its default in production), and of 100 with ten participations (pt-PT).

    python benchmarks/papers/wrong_guesses.py                     by the rms loss, two or three minutes
    python benchmarks/papers/wrong_guesses.py --objective max     by the max loss; BandMF takes longer
    ... --mechanism blt --mechanism lambda-cgd             some mechanisms alone
    ... --markdown                                         tables for a page
    python benchmarks/papers/wrong_guesses.py --smoke             seconds: ten times fewer rounds

Prints one JSON line for each mechanism and number.
"""

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache

from tacit.design.blt import design_robust_blt
from tacit.design.catalogue import MECHANISMS
from tacit.design.losses import losses
from tacit.design.objective import Objective
from tacit.privacy import Participation
from tacit.privacy.strategy import Matrix, Strategy

FACTORS = (0.5, 1 / 1.25, 1.25, 2.0)  # what came, over what was guessed
BUFFERS = 4
ROBUST = "blt, for half to twice the guess"
NAMES = ("blt", ROBUST, "banded", "banded-toeplitz", "lambda-cgd", "tree-variance-reduced")


@dataclass(frozen=True)
class Wrong:
    """One thing guessed wrongly: the number, the participation that was guessed, and those that came, by theirs."""

    what: str
    guessed: int
    guess: Participation
    came: dict[int, Participation]


@dataclass(frozen=True)
class Row:
    """A mechanism at one number that came: its loss, that of the right design, their ratio; None where it says nothing
    there.
    """

    what: str
    mechanism: str
    guessed: int
    came: int
    loss: float | None
    right: float | None
    ratio: float | None
    exact: bool


def guesses(shrunk: int = 1) -> list[Wrong]:
    """What is guessed wrongly, with all rounds divided by `shrunk`."""
    n, b, soon, often = 2000 // shrunk, 400 // shrunk, 100 // shrunk, 10
    usual = Participation.worst_case(n, b)
    thrice = replace(usual, max_participations=3)
    frequent = Participation(rounds=n, min_separation=soon, max_participations=often)
    return [
        Wrong(
            f"separation, guessed {b}, {n} rounds, clients as often as it allows",
            b,
            usual,
            {at: Participation.worst_case(n, at) for at in _times(b)},
        ),
        Wrong(
            f"separation, guessed {b}, {n} rounds, 3 participations",
            b,
            thrice,
            {at: replace(thrice, min_separation=at).effective for at in _times(b)},
        ),
        Wrong(
            f"rounds, guessed {n}, separation {b}, clients as often as it allows",
            n,
            usual,
            {at: Participation.worst_case(at, b) for at in _times(n)},
        ),
        Wrong(
            f"participations, guessed {often}, {n} rounds, separation {soon}",
            often,
            frequent,
            {at: replace(frequent, max_participations=at) for at in _times(often)},
        ),
    ]


def _times(guess: int) -> list[int]:
    return [round(guess * factor) for factor in FACTORS]


@lru_cache(maxsize=64)
def _banded(rounds: int, bands: int, objective: Objective) -> Strategy:
    """BandMF, whose columns have norm 1 whoever comes: the participations do not matter for it."""
    served = Participation.worst_case(rounds, bands)
    return MECHANISMS["banded"].strategy(served, objective)


def designed(name: str, served: Participation, objective: Objective) -> Strategy:
    """The mechanism of that name for one participation."""
    if name == "banded":
        return _banded(served.rounds, served.min_separation, objective)
    return MECHANISMS["blt" if name == ROBUST else name].strategy(served, objective)


def rows(wrong: Wrong, name: str, objective: Objective) -> Iterator[Row]:
    """One row for each number that came. The robust BLT is compared with the BLT for what came."""
    if name == ROBUST:
        ends = [wrong.came[min(wrong.came)], wrong.guess, wrong.came[max(wrong.came)]]
        strategy: Strategy = design_robust_blt(ends, buffers=BUFFERS, objective=objective)
    else:
        strategy = designed(name, wrong.guess, objective)
    for came, served in wrong.came.items():
        row = Row(wrong.what, name, wrong.guessed, came, loss=None, right=None, ratio=None, exact=True)
        if not isinstance(strategy, Matrix) or served.rounds <= wrong.guess.rounds:
            found, right = losses(strategy, served), losses(designed(name, served, objective), served)
            loss, least = found.of(objective), right.of(objective)
            row = replace(row, loss=loss, right=least, ratio=loss / least, exact=found.exact and right.exact)
        yield row


def table(wrong: Wrong, found: Sequence[Row]) -> str:
    """Markdown: the ratio to the right design, and in brackets the loss itself."""
    lines = [
        f"**{wrong.what[0].upper()}{wrong.what[1:]}**; what came:",
        "",
        "| designed for the guess | " + " | ".join(str(came) for came in wrong.came) + " |",
        "|---|" + "--:|" * len(wrong.came),
    ]
    for name in dict.fromkeys(each.mechanism for each in found):
        mine = [each for each in found if each.mechanism == name]
        lines.append(f"| {name} | " + " | ".join(map(cell, mine)) + " |")
    return "\n".join(lines)


def cell(row: Row) -> str:
    return "–" if row.ratio is None else f"{'' if row.exact else '≤ '}{row.ratio:.3f} ({row.loss:.2f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objective", choices=("rms", "max"), default="rms")
    parser.add_argument("--mechanism", action="append", choices=NAMES, help="may be given several times")
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--smoke", action="store_true")
    options = parser.parse_args()
    for wrong in guesses(shrunk=10 if options.smoke else 1):
        found = [row for name in options.mechanism or NAMES for row in rows(wrong, name, options.objective)]
        if options.markdown:
            print(table(wrong, found), end="\n\n", flush=True)
            continue
        for row in found:
            print(json.dumps({"figure": "wrong_guess", "objective": options.objective, **asdict(row)}), flush=True)


if __name__ == "__main__":
    main()
