"""Where many differences are looked at, some miss by chance: p values that hold for all of them together.

    python benchmarks/utility/many_comparisons.py docs/results/utility.md "Eight seeds"

prints them for the table under this heading of a page, from its intervals (Student's t over the seeds of each line).
"""

import argparse
import re
from collections.abc import Sequence
from pathlib import Path

from scipy.stats import t as student
from scipy.stats import ttest_1samp

COMPARISON = re.compile(r"\| [^|]+ - [^|]+ \| \d+ \|")
INTERVAL = re.compile(r"([+-][\d.]+) \(([+-][\d.]+) to ([+-][\d.]+)\)")


def differs_by_chance(differences: Sequence[float]) -> float:
    """The two-sided p value of paired differences (n,), n > 1: is their mean nought (Student's t)?"""
    return float(ttest_1samp(differences, 0.0).pvalue)


def holm(p_values: Sequence[float]) -> list[float]:
    """What each is worth among all: below alpha, it is rejected with at most alpha chance of any false rejection.

    Valid however they depend on one another. Source: Holm 1979, Scandinavian Journal of Statistics 6, page 67.
    """
    order = sorted(range(len(p_values)), key=lambda at: p_values[at])
    adjusted, least = [0.0] * len(p_values), 0.0
    for done, at in enumerate(order):
        least = max(least, min(1.0, (len(p_values) - done) * p_values[at]))
        adjusted[at] = least
    return adjusted


def in_digits(p_value: float) -> str:
    """To four digits; what is less is said to be."""
    return f"{p_value:.4f}" if p_value >= 0.0001 else "< 0.0001"


def of_interval(printed: str, seeds: int) -> float:
    """The p value of "+0.17 (+0.01 to +0.34)", a mean of so many seeds and its 95% interval, rounded as unluckily as
    its digits allow: the true one is below.
    """
    matched = INTERVAL.search(printed)
    assert matched is not None, printed
    middle, low, high = map(float, matched.groups())
    digit = 0.5 * 10.0 ** -len(matched[1].partition(".")[2])
    reach = student.ppf(0.975, seeds - 1)
    return float(2 * student.sf(reach * max(abs(middle) - digit, 0.0) / ((high - low) / 2 + digit), seeds - 1))


def of_table(table: str) -> str:
    """The lines "| this - that | seeds | interval | interval |" of a table, with a p value after each interval."""
    lines = [line for line in table.splitlines() if COMPARISON.match(line)]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    places = [(row, at) for row in rows for at, cell in enumerate(row) if INTERVAL.search(cell)]
    p_values = holm([of_interval(row[at], int(row[1])) for row, at in places])
    for (row, at), p_value in zip(places, p_values, strict=True):
        found = INTERVAL.search(row[at])
        assert found is not None
        row[at] = f"{found[0]}, p {in_digits(p_value)}"
    return "\n".join("| " + " | ".join(row) + " |" for row in rows) + f"\n\n{len(places)} comparisons."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page", type=Path)
    parser.add_argument("heading")
    given = parser.parse_args()
    _, _, after = given.page.read_text(encoding="utf-8").partition(f"# {given.heading}\n")
    print(of_table(after.partition("\n#")[0]))


if __name__ == "__main__":
    main()
