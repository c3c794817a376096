"""The report of a discovery: the words that were found, how often they are typed, and what that promises.

Two parts that are never mixed: what randomized reports say, with the guarantee of the statement, and what only a
simulation knows. The page that may be published has the first alone.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tacit.errors import RunError
from tacit.reports.blocks import Block, FigureOf, Heading, Paragraph, StatementOf, Table, Tiles
from tacit.reports.figure import Axis, ErrorBars, Figure, Panel, Points
from tacit.reports.page import Page, ReportFiles, write_both
from tacit.reports.release import simulation_blocks
from tacit.runs import Run
from tacit.statements import Statement
from tacit.statements.run_facts import statement_of

EXACT = (
    "SIMULATION ONLY: counted in the text of simulated users; no server would have these numbers, and nothing is "
    "promised for them."
)
PUBLISHED_KEYS = (
    "words",
    "users",
    "counting_users",
    "resampled_users",
    "coverage",
    "confidence",
    "guarantee",
    "anonymity",
)
RESULT = "result.json"  # of a run folder: what was found
KIND = "report of a discovery"
MOST = 100  # words in the table of a page; words.csv has all


def write_report(run: Run, out: Path | None = None) -> ReportFiles:
    """Write the report of a finished run into the folders `report` and `simulation` of `out` (left out: of the run).

    Raises: RunError where nothing was found yet, or the folder is damaged; UnknownRelease.
    """
    try:
        figures = json.loads(run.kept(RESULT))
        rows = figures.pop("found")
    except FileNotFoundError:
        raise RunError(
            f"'{run.path}' has no {RESULT} yet, so there are no words to report; go on with `tacit resume {run.path}`."
        ) from None
    except (ValueError, KeyError) as error:
        raise RunError(f"'{run.path / RESULT}' is damaged ({error}); restore it from a copy.") from error
    delta = figures["guarantee"]["central_delta"]
    return write_pages(run.path if out is None else out, figures, rows, statement_of(run, delta))


def write_pages(
    folder: Path, figures: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], statement: Statement
) -> ReportFiles:
    """Write what may be published, the statement with it, and everything where more is known, as in a simulation."""
    return write_both(
        folder,
        published=released_page(figures, rows, statement),
        whole=None if figures["simulation"] is None else page(figures, rows, statement),
        files={"statement.json": statement.to_json().encode(), "statement.md": statement.markdown().encode()},
    )


def page(figures: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], statement: Statement) -> Page:
    """Everything; `figures` are those of result.json, `rows` the words in the order found, as in words.csv."""
    known = figures["simulation"]
    simulated = [] if known is None else [*simulation_blocks(EXACT), Table(_simulated(known))]
    return Page(
        kind=KIND,
        title=f"{figures['words']:,} new words",
        blocks=(*_shown(figures, rows), *simulated, StatementOf(statement)),
        record={**figures, "found": rows},
        headline=figures,
    )


def released_page(figures: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], statement: Statement) -> Page:
    """The same with nothing exact in it, which may be published."""
    public = {name: figures[name] for name in PUBLISHED_KEYS}
    return Page(
        kind=f"{KIND}, released",
        title=f"{figures['words']:,} new words",
        blocks=(*_shown(figures, rows), StatementOf(statement)),
        record={**public, "found": rows},
        headline=public,
    )


def figure(figures: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> Figure | None:
    """How often each word is typed, the most frequent first; None where nothing was found.

    Where no users were kept apart for counting, the votes that found each word, which a threshold has passed.
    """
    if not rows:
        return None
    at, of = range(1, len(rows) + 1), rows[0].get("of_reports")
    if of is None:
        votes = Points(x=at, y=sorted((row["votes"] for row in rows), reverse=True), size=3.5)
        return Figure(
            name="words-released",
            title="Votes for each word",
            alt="The votes that found each word, the most voted for first.",
            panels=(Panel(marks=(votes,), x=Axis("word, by its votes", whole=True), y=Axis("votes", low=0)),),
        )
    counted = sorted(rows, key=lambda row: (-row["count"], row["word"]))
    bars = ErrorBars(
        x=at,
        y=[row["count"] for row in counted],
        low=[row["low"] for row in counted],
        high=[row["high"] for row in counted],
        mark="o",
        size=3.5,
    )
    return Figure(
        name="words-released",
        title="How often each word is typed",
        alt=f"The estimated count of each word among {of:,} reports with its {figures['confidence']:.0%} interval, the "
        "most frequent first.",
        panels=(Panel(marks=(bars,), x=Axis("word, by its count", whole=True), y=Axis(f"of {of:,} reports", low=0)),),
    )


def _shown(figures: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> list[Block]:
    drawn = figure(figures, rows)
    return [Tiles(_tiles(figures)), *([FigureOf(drawn)] if drawn else []), Heading("The words"), *_words(rows)]


def _tiles(figures: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    tiles = [("words found", f"{figures['words']:,}"), ("users asked, each once", f"{figures['users']:,}")]
    if figures["coverage"] is not None:
        covered = figures["coverage"]
        name = f"of unknown words typed, {covered['low']:.1%} to {covered['high']:.1%}"
        tiles.append((name, f"{covered['value']:.1%}"))
    return tuple(tiles)


def _words(rows: Sequence[Mapping[str, Any]]) -> list[Block]:
    if not rows:
        return [Paragraph("None was found.")]
    counted = rows[0].get("of_reports") is not None
    best = sorted(rows, key=lambda row: (-row["count" if counted else "votes"], row["word"]))[:MOST]
    head = ("word", "pass", "layer", "votes", *(("count", "interval") if counted else ()))
    cells = [
        (
            row["word"],
            f"{row['pass']}",
            f"{row['layer']}",
            f"{row['votes']:,.0f}",
            *((f"{row['count']:,.0f}", f"{row['low']:,.0f} to {row['high']:,.0f}") if counted else ()),
        )
        for row in best
    ]
    rest = len(rows) - len(best)
    more = [Paragraph(f"And {rest:,} more, in words.csv.", soft=True)] if rest else []
    return [Table(tuple(cells), head), *more]


def _simulated(found: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    return (
        ("clients", f"{found['clients']:,}"),
        ("of all unknown words typed are found", f"{found['coverage']:.1%}"),
        ("the same, had the most typed been known", f"{found['largest_coverage']:.1%}"),
        ("words found that nobody typed", f"{found['words_nobody_typed']:,}"),
        *((f"left out: words typed that are {name}", f"{count:,}") for name, count in found["words_left_out"].items()),
    )
