"""The report of a count: what was released and what that promises, then what only a simulation knows; never mixed."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from tacit.evaluation.counts.histograms import Histogram
from tacit.evaluation.intervals import NORMAL
from tacit.reports.blocks import Block, Paragraph, Table
from tacit.reports.page import Page
from tacit.reports.record_files import content_of
from tacit.reports.release import participants_text, promise_blocks, said, simulation_blocks

PUBLISHED_KEYS = ("data", "split_name", "population", "asked", "promise", "released")
BESIDE = ("statement",)  # of a record, what report.json does not repeat
TITLE = "What clients' text is like"
OF_HISTOGRAMS = (
    "Each is in one cell of each histogram. Means are of values clipped to the cuts. Intervals are 95%; those of "
    "released numbers cover the noise, too."
)
OF_SUMS = (
    "Each adds whole numbers to the cells of each sum, scaled down to its norm. Words of a cell are of the vocabulary."
)
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
    shown: list[Block] = [] if released is None else _short(released)
    return shown if exact is None else [*shown, Paragraph(exact["what"]), *_short(exact)]


def _short(found: Mapping[str, Any]) -> list[Block]:
    """found: released, or exact."""
    return of_sums(found) if "sums" in found else [_summary(found["statistics"])]


def _released(record: Mapping[str, Any]) -> list[Block]:
    released = record["released"]
    part = record.get("simulation_only") if released is None else released
    how = "" if part is None else OF_SUMS if "sums" in part else OF_HISTOGRAMS
    blocks: list[Block] = [
        Paragraph(f"{participants_text(record)} were asked. {how}".rstrip()),
        *promise_blocks(record["promise"], about_models=False),
    ]
    return blocks if released is None else [*blocks, *_all_of(released)]


def _exact(found: Mapping[str, Any] | None) -> list[Block]:
    """found: None where real devices were asked, of whom nothing is exact."""
    return [] if found is None else [*simulation_blocks(found["what"]), *_all_of(found)]


def _all_of(found: Mapping[str, Any]) -> list[Block]:
    """Of sums their largest cells; else means and quantiles of all, then each histogram bin by bin."""
    if "sums" in found:
        return of_sums(found)
    statistics = found["statistics"]
    return [_summary(statistics), *(_bins(name, each["histogram"]) for name, each in statistics.items())]


def of_sums(found: Mapping[str, Any]) -> list[Block]:
    """Of each sum how much was counted, and its largest cells by their words. found: released, or exact."""
    blocks: list[Block] = []
    for name, each in found["sums"].items():
        blocks.append(Paragraph(_counted(name, each)))
        rows = tuple(
            (row["cell"], _count(row["count"], NORMAL * row.get("stddev", each.get("stddev", 0.0))))
            for row in each["largest"]
        )
        blocks.append(Table(rows, (name, "count")))
    if "file" in found:
        file = found["file"]
        blocks.append(
            Paragraph(f"All cells are in the run's `report/{file['name']}` (SHA-256 {file['sha256'][:16]}...).")
        )
    return blocks


def _counted(name: str, each: Mapping[str, Any]) -> str:
    """A sum in a few sentences: released with its noise, or exact with what clipping took."""
    if "list" in each:
        chosen = f"a list (SHA-256 {each['list'][:16]}..., {each['source']})"
        cells = f"{name}: {each['cells']:,} n-grams of {chosen}, norm {each['norm']:g} in units of the list."
    else:
        unit = f", unit {each['unit']}" if each["unit"] > 1 else ""
        cells = f"{name}: {each['cells']:,} cells of the first {each['words']:,} words, norm {each['norm']:g}{unit}."
    if "stddev" not in each:
        return (
            f"{cells} {each['typed']:,} occurrences, {each['sent']:,} of them sent: {each['clients_scaled_down']:,} "
            "clients were scaled down."
        )
    clear, most = each["clear"], each.get("most_stddev", each["stddev"])
    noise = f"{each['stddev']:.4g}" + (f" to {most:.4g}" if most > each["stddev"] else "")
    high = (
        f"{clear['above']:,} or more, 4 standard deviations" if "list" not in each else "4 standard deviations or more"
    )
    return (
        f"{cells} {each['reports']:,} reports; the noise of a cell has standard deviation {noise}. "
        f"{clear['cells']:,} cells hold {high}; noise alone lifts about {clear['by_noise_alone']:.3g} of them that "
        "high."
    )


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
    return Table(tuple(rows), ("slice", name, f"clients of {histogram.devices:,}"))


def _count(count: float, margin: float) -> str:
    return f"{round(count):,}" + (f" ± {margin:,.0f}" if margin else "")
