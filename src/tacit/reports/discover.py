"""The report of a discovery: the words that were found, how often they are typed, and what that promises.

Two parts that are never mixed: what randomized reports say, with the guarantee of the statement, and what only a
simulation knows. The page that may be published has the first alone.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from tacit.reports.blocks import Block, FigureOf, Heading, Labels, Paragraph, StatementOf, Table, Tiles
from tacit.reports.figure import Axis, ErrorBars, Figure, Panel, Points
from tacit.reports.page import Page
from tacit.reports.record_files import statement_file, statement_from
from tacit.reports.release import simulation_blocks

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


def page(record: Mapping[str, Any]) -> Page:
    """Everything, what only a simulation knows among it.

    record: `figures` (those of result.json), `found` (the words in the order found, as in words.csv), `statement`.
    """
    figures, found = record["figures"], record["found"]
    known = figures["simulation"]
    simulated = [] if known is None else [*simulation_blocks(EXACT), Table(_simulated(known))]
    return Page(
        kind=KIND,
        title=_title(figures),
        blocks=(*_labels(record), *_shown(figures, found), *simulated, *_stated(record)),
        record={**figures, "found": found},
        headline=figures,
    )


def released_page(record: Mapping[str, Any]) -> Page:
    """The same with nothing exact in it, which may be published; the record has nothing else."""
    figures, found = record["figures"], record["found"]
    return Page(
        kind=f"{KIND}, released",
        title=_title(figures),
        blocks=(*_labels(record), *_shown(figures, found), *_stated(record)),
        record={**figures, "found": found},
        headline=figures,
    )


def published(record: Mapping[str, Any]) -> dict[str, Any]:
    """What of the record of everything may be published."""
    return {**record, "figures": {name: record["figures"][name] for name in PUBLISHED_KEYS}}


def released_files(record: Mapping[str, Any]) -> dict[str, bytes]:
    """The statement in its two forms."""
    stated = statement_from(record["statement"])
    assert stated is not None  # every discovery has released something
    return {**statement_file(record), "statement.md": stated.markdown().encode()}


def _title(figures: Mapping[str, Any]) -> str:
    return f"{figures['words']:,} new words"


def _stated(record: Mapping[str, Any]) -> list[Block]:
    stated = statement_from(record["statement"])
    assert stated is not None  # every discovery has released something
    return [StatementOf(stated)]


def _labels(record: Mapping[str, Any]) -> list[Block]:
    """What is weaker than it looks stands above the words, too: the statement is below hundreds of them."""
    stated = statement_from(record["statement"])
    return [Labels(stated.labels)] if stated is not None and stated.labels else []


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
    asked = "users asked, drawn anew from fewer people" if figures["resampled_users"] else "users asked, each once"
    tiles = [("words found", f"{figures['words']:,}"), (asked, f"{figures['users']:,}")]
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
