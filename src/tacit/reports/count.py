"""The report of a count: what was released and what that promises, then what only a simulation knows; never mixed."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from tacit.evaluation.counts.histograms import Histogram
from tacit.evaluation.intervals import NORMAL
from tacit.reports.blocks import Block, Paragraph, Table
from tacit.reports.page import Page
from tacit.reports.record_files import content_of
from tacit.reports.release import asked_of, promise_blocks, said, simulation_blocks

PUBLISHED_KEYS = ("data", "split_name", "population", "asked", "promise", "released")
BESIDE = ("statement",)  # of a record, what report.json does not repeat
TITLE = "What clients' text is like"
QUANTILES = {"10%": "0.1", "median": "0.5", "90%": "0.9"}


def page(record: Mapping[str, Any]) -> Page:
    """Everything, with the exact numbers of the simulation. record: what was found."""
    blocks = [*_released(record), *_exact(record["simulation_only"])]
    return Page(kind="report of a count", title=TITLE, blocks=tuple(blocks), record=content_of(record, *BESIDE))


def released_page(record: Mapping[str, Any]) -> Page:
    """What may be published; the record has nothing else."""
    said = content_of(record, *BESIDE)
    return Page(kind="report of a count, released", title=TITLE, blocks=tuple(_released(record)), record=said)


def published(record: Mapping[str, Any]) -> dict[str, Any]:
    """What of the record of everything may be published."""
    return {name: record[name] for name in (*PUBLISHED_KEYS, "statement") if name in record}


def tables(record: Mapping[str, Any]) -> list[Block]:
    """What was released of each statistic, and what is exact where clients were simulated, apart."""
    exact, released = record["simulation_only"], record["released"]
    shown: list[Block] = [] if released is None else [_summary(released["statistics"])]
    return shown if exact is None else [*shown, Paragraph(exact["what"]), _summary(exact["statistics"])]


def _released(record: Mapping[str, Any]) -> list[Block]:
    asked = (
        f"{asked_of(record)} were asked. Each is in one cell of each histogram. Means are of values clipped to the "
        "cuts. Intervals are 95%; those of released numbers cover the noise, too."
    )
    blocks: list[Block] = [Paragraph(asked), *promise_blocks(record["promise"], about_models=False)]
    return blocks if record["released"] is None else [*blocks, *_all_of(record["released"]["statistics"])]


def _exact(found: Mapping[str, Any] | None) -> list[Block]:
    """found: None where real devices were asked, of whom nothing is exact."""
    return [] if found is None else [*simulation_blocks(found["what"]), *_all_of(found["statistics"])]


def _all_of(statistics: Mapping[str, Any]) -> list[Block]:
    """Means and quantiles of all, then each histogram bin by bin."""
    return [_summary(statistics), *(_bins(name, each["histogram"]) for name, each in statistics.items())]


def _summary(statistics: Mapping[str, Any]) -> Table:
    """A row of all clients, and one of each slice."""
    rows = []
    for name, each in statistics.items():
        rows.append((name, "", *_row(each)))
        if len(each["slices"]) > 1:
            rows += [(name, part["slice"], *_row(part)) for part in each["slices"]]
    return Table(tuple(rows), ("statistic", "slice", "mean", *QUANTILES))


def _row(found: Mapping[str, Any]) -> list[str]:
    return [said(each, form=".4g") for each in (found["mean"], *(found["quantiles"][q] for q in QUANTILES.values()))]


def _bins(name: str, record: Mapping[str, Any]) -> Table:
    """How many clients are in each cell, with what the noise leaves open of each."""
    histogram = Histogram.from_record(record)
    margins = NORMAL * np.sqrt(histogram.variance)
    rows = [
        (slice_, bin_, _count(histogram.counts[at, place], margins[at, place]))
        for at, slice_ in enumerate(histogram.cells.slices.labels())
        for place, bin_ in enumerate(histogram.cells.bins.labels())
    ]
    rows.append(("", "no report", _count(histogram.silent, NORMAL * histogram.silent_variance**0.5)))
    return Table(tuple(rows), ("slice", name, f"clients of {histogram.asked:,}"))


def _count(count: float, margin: float) -> str:
    return f"{round(count):,}" + (f" ± {margin:,.0f}" if margin else "")
