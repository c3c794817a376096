r"""How soon does what people taught grow old? Learnt from the text of one year, judged by another.

    python benchmarks/utility/how_learning_ages.py ages-near --clients DATA/commits-en --public caches/docs \
        --ngrams pb/docs --network net-docs --runs runs/ages-near
    ... --table                  prints what is remembered and measures nothing

So many training authors who wrote in a year, with their text of that year alone, teach; validation authors'
text of the same year sets the weights, also of what is free; and the same test authors judge all years, by their text
from JUDGED on. So between two years all that differs is the text that was learnt from. The arms, the noise, the recipe
of the rounds and the people's own epsilon are those of `from_how_many_people.py`.
"""

import argparse
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import from_how_many_people as people
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from from_how_many_people import Cell, Rows
from remembered_rows import REMEMBERED, interval, level, markdown, remember_row, remembered_rows

from tacit.evaluation.comparison_models import FREE

YEARS = (2013, 2016, 2019, 2022, 2024, 2025)
JUDGED = 2025  # and what came after
PEOPLE = 2_400  # in every year; 2,453 wrote in 2013
FILE = "ages.jsonl"


@dataclass(frozen=True)
class CellOfYear(Cell):
    """People who wrote in a year."""

    year: int

    @property
    def folder(self) -> Path:
        return self.runs / f"{self.year}-{self.seed}"

    def text(self, clients: str, split: str) -> pa.Table:
        table = pq.read_table(f"{clients}.{split}.parquet")
        years = pc.year(pc.cast(table["timestamp"], pa.timestamp("s")))
        within = pc.greater_equal(years, JUDGED) if split == "test" else pc.equal(years, self.year)
        number, seed = {
            "train": (self.people, self.seed),
            "validation": (people.VALIDATION, 0),
            "test": (people.TEST, 0),  # all, where there are fewer
        }[split]
        return people.drawn(table.filter(within), number, seed)


def remember(asked: argparse.Namespace, found: Mapping[CellOfYear, Mapping[str, Rows]]) -> None:
    """A row an arm, a year and a seed; the difference to what is free, and of the newest year to each."""
    years = {year: [rows for cell, rows in found.items() if cell.year == year] for year in asked.years}
    newest = years[max(asked.years)]
    for year, of_seeds in years.items():
        experiment = f"{asked.name} {year}"
        for arm in of_seeds[0]:
            for seed, rows in enumerate(of_seeds, 1):
                remember_row(FILE, experiment, arm, seed, people.values(rows[arm]))
            ours, free, later = (
                np.stack([rows[each] for rows in of]) for of, each in ((of_seeds, arm), (of_seeds, FREE), (newest, arm))
            )
            facts = people.less(ours, free) if arm != FREE else {}
            if year != max(asked.years):
                facts |= people.less(later, ours, "of_the_year")
            if facts:
                remember_row(FILE, experiment, arm, None, facts)


def table(path: Path, name: str, measure: str = "top3", against: str = "free", *chosen: str) -> str:
    """Markdown: a line an arm, a column a year that was learnt from. against: "free", the gain over what is free, whose
    own value is the first line; "of_the_year", what the newest year has more than this one. chosen: arms, or all.
    """
    of: dict[int, dict[str, list[float]]] = {}
    free: dict[int, list[float]] = {}
    for row in remembered_rows(path):
        experiment, _, year = row.experiment.rpartition(" ")
        if experiment != name:
            continue
        if row.seed is not None and row.arm == FREE:
            free.setdefault(int(year), []).append(float(row.facts[measure]))  # type: ignore[arg-type]
        elif (found := row.facts.get(f"{measure}_less_{against}")) is not None:
            of.setdefault(int(year), {})[row.arm] = [*found]  # type: ignore[misc]
    years = sorted(of)
    lines = [["", *map(str, years)]]
    if against == "free":
        lines.append([FREE, *(level(measure, free[year]) for year in years)])
    for arm in chosen or dict.fromkeys(arm for year in years for arm in of[year]):
        lines.append([arm, *(interval(measure, of[year][arm]) for year in years)])
    return markdown(lines, numbers=len(years))


def main() -> None:
    parser = people.parser_of(__doc__)
    parser.add_argument("--years", type=int, nargs="+", default=YEARS, help="whose text is learnt from")
    parser.set_defaults(rounds_at=[8.0], counts_at=[1.0, 8.0])
    asked = parser.parse_args()
    if asked.table:
        print(table(REMEMBERED / FILE, asked.name))
        return
    asked.texts, asked.rounds = asked.texts or [asked.public], [PEOPLE]
    found = {}
    for seed in range(1, asked.seeds + 1):
        for year in asked.years:
            cell = CellOfYear(PEOPLE, seed, asked.runs, year)
            people.population(asked, cell)
            found[cell] = people.judged(asked, cell)
            gained = {arm: people.values(rows)["top3"] for arm, rows in found[cell].items()}
            print(cell.folder, gained, file=sys.stderr, flush=True)
    remember(asked, found)


if __name__ == "__main__":
    main()
