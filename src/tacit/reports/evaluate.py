"""The report of an evaluation: what was released and what that promises, then what only a simulation knows.

Two parts that are never mixed, as in a personalization's report; the page that may be published has the first alone,
and of real devices there is no other.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tacit.evaluation.counts.histograms import Histogram, representatives
from tacit.evaluation.counts.model_queries import accuracy_query, change_query
from tacit.evaluation.intervals import NORMAL
from tacit.networks.metrics import OF_KNOWN, OVER_CLIENTS
from tacit.reports.blocks import Block, FigureOf, Paragraph, Table
from tacit.reports.figure import HUES, Axis, ErrorBars, Figure, Mark, Panel, Steps
from tacit.reports.page import Page
from tacit.reports.record_files import content_of
from tacit.reports.release import participants_text, promise_blocks, said, simulation_blocks

ACCURACY_CUTS = tuple(step / 100 for step in range(2, 61, 2))
CHANGE_CUTS = tuple(step / 100 for step in range(-20, 21))
PUBLISHED_KEYS = (
    "models",
    "data",
    "split_name",
    "population",
    "sentences",
    "words",
    "asked",
    "promise",
    "released",
)
BESIDE = ("histograms", "statement")  # of a record, what report.json does not repeat
SHOWN = {"5%": "0.05", "median": "0.5", "95%": "0.95"}
TITLE = "How models do on clients' text"


def page(record: Mapping[str, Any]) -> Page:
    """Everything, with the exact numbers of the simulation.

    record: what was found, `released` beside `simulation_only`, never mixed; `histograms` of both by query (see
    `evaluation.fairness`), from which figures are drawn.
    """
    simulated = record["simulation_only"]
    blocks: list[Block] = [*_released(record), *simulation_blocks(simulated["what"]), *_tables(simulated)]
    blocks.append(Paragraph(by_word(record, simulated), answer=True))
    blocks += map(FigureOf, figures(record["models"], record["histograms"]["exact"], source="simulation"))
    said = content_of(record, *BESIDE)
    return Page(kind="report of an evaluation", title=TITLE, blocks=tuple(blocks), record=said)


def released_page(record: Mapping[str, Any]) -> Page:
    """What may be published; the record has nothing else."""
    said = content_of(record, *BESIDE)
    return Page(kind="report of an evaluation, released", title=TITLE, blocks=tuple(_released(record)), record=said)


def published(record: Mapping[str, Any]) -> dict[str, Any]:
    """What of the record of everything may be published."""
    histograms = {"released": record["histograms"]["released"]}
    public = {name: record[name] for name in PUBLISHED_KEYS if name in record}
    return {**public, "histograms": histograms, "statement": record["statement"]}


def _released(record: Mapping[str, Any]) -> list[Block]:
    """The promise, and what was released under it."""
    blocks: list[Block] = [Paragraph(_clients_and_limits(record)), *promise_blocks(record["promise"])]
    if record["released"] is not None:
        blocks += _tables(record["released"])
        blocks += map(FigureOf, figures(record["models"], record["histograms"]["released"], source="released"))
    return blocks


def shown(record: Mapping[str, Any]) -> list[Block]:
    """Promise and tables of the same record, without figures, for a notebook."""
    released, simulated = record["released"], record["simulation_only"]
    blocks: list[Block] = [Paragraph(_clients_and_limits(record)), *promise_blocks(record["promise"])]
    blocks += [] if released is None else _tables(released)
    if simulated is not None:
        blocks += [
            *simulation_blocks(simulated["what"]),
            *_tables(simulated),
            Paragraph(by_word(record, simulated)),
        ]
    return blocks


def by_word(record: Mapping[str, Any], exact: Mapping[str, Any]) -> str:
    """The accuracy as `tacit train` counts it, and why it says another: by word, on some of these clients."""
    pooled = ", ".join(f"{name} {row['pooled']:.2%}" for name, row in exact["models"].items())
    return (
        f"Here each client counts alike. Counted by word, as `tacit train` counts: {pooled}. "
        f"All are top-1 {OF_KNOWN}. What it prints is of the "
        f"first clients of the test split alone (`test_clients` of the recipe); these are {record['asked']:,} of the "
        f"{record['split_name']} split, with at most {record['sentences']:,} sentences each."
    )


def _clients_and_limits(record: Mapping[str, Any]) -> str:
    return (
        f"{participants_text(record)} were asked, each with at most "
        f"{record['sentences']:,} sentences of at most {record['words']:,} words. Accuracy is top-1 {OF_KNOWN}. "
        "Intervals are 95%; those of released numbers cover the noise, too, and that of the worst decile the "
        "width of its buckets."
    )


def _tables(found: Mapping[str, Any]) -> list[Table]:
    """Accuracy over clients of each model, and what each changes against the first."""
    rows = [
        (name, *map(said, [row["mean"], row["worst_decile"], *(row["quantiles"][q] for q in SHOWN.values())]))
        for name, row in found["models"].items()
    ]
    tables = [Table(tuple(rows), ("model", OVER_CLIENTS, "worst decile", *SHOWN))]
    if found["against_the_first"]:
        first = next(iter(found["models"]))
        against = [
            (name, said(row["mean"], form="+.4f"), said(row["better"], form=".1%"), said(row["worse"], form=".1%"))
            for name, row in found["against_the_first"].items()
        ]
        tables.append(
            Table(tuple(against), (f"against {first}", f"accuracy, {OVER_CLIENTS}", "better for", "worse for"))
        )
    return tables


def figures(names: Sequence[str], histograms: Mapping[str, Any], *, source: str) -> tuple[Figure, ...]:
    """Accuracy of every model, and the change by each against the first; `source` is in names and titles."""
    found = {name: Histogram.from_record(each) for name, each in histograms.items()}
    accuracy = {name: found[accuracy_query(at)].coarser(ACCURACY_CUTS) for at, name in enumerate(names)}
    change = {name: found[change_query(at)].coarser(CHANGE_CUTS) for at, name in enumerate(names) if at}
    drawn = [
        Figure(
            name=f"accuracy-{source}",
            title=f"Accuracy over users ({source})",
            alt="Share of users by top-1 accuracy, one line per model, with 95% intervals.",
            panels=(_distribution(accuracy, "top-1 accuracy of the user"),),
            legend="below",
        )
    ]
    if change:
        drawn.append(
            Figure(
                name=f"change-{source}",
                title=f"Change of accuracy against {names[0]} ({source})",
                alt="Share of users by change of top-1 accuracy against the first model, with 95% intervals.",
                panels=(_distribution(change, f"change of top-1 accuracy against {names[0]}"),),
                legend="below",
            )
        )
    return tuple(drawn)


def _distribution(histograms: Mapping[str, Histogram], label: str) -> Panel:
    """Shares of the asked by bin; the bars cover sampling and noise. Open bins are drawn at the ends."""
    marks: list[Mark] = []
    for number, (name, histogram) in enumerate(histograms.items()):
        centres, hue = representatives(histogram.cells.bins), number % HUES
        shares = histogram.counts[0] / histogram.devices
        typical = np.clip(shares, 0, 1)
        variance = typical * (1 - typical) / histogram.devices + histogram.variance[0] / histogram.devices**2
        margin = NORMAL * np.sqrt(variance)
        marks.append(Steps(x=centres, y=shares, hue=hue, label=name))
        low, high = np.clip(shares - margin, 0, 1), np.clip(shares + margin, 0, 1)  # a share is nowhere else
        marks.append(ErrorBars(x=centres, y=shares, low=low, high=high, hue=hue, faint=True))
    return Panel(marks=tuple(marks), x=Axis(label, percent=True), y=Axis("share of the users asked", percent=True))
