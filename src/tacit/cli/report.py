"""`tacit report` and `tacit compare`: what a run folder says, for people (HTML, Markdown) and programs (JSON).

Only the folder is read, so a report can be written again anywhere and at any time, while the run trains too.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from tacit.cli.console import complaints, console, plain, print_json, speaks_plainly
from tacit.errors import InputError
from tacit.files import write_whole
from tacit.jobs.evaluation_promise import must_train
from tacit.privacy.rounding import rounded_up
from tacit.reports.comparison import Comparison, Row, comparison, rows_record
from tacit.reports.figure import Drawing, draw_comparison, draw_run
from tacit.reports.training import RunSummary, summarise
from tacit.runs import Run
from tacit.statements.accounts import figures_of

Json = Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")]


@dataclass(frozen=True, kw_only=True)
class ReportPaths:
    """What `write_report` wrote."""

    html: Path
    markdown: Path
    json: Path
    figures: tuple[Path, ...]


@speaks_plainly
def report(run: Annotated[Path, typer.Argument(help="A run folder, finished or not.")], as_json: Json = False) -> None:
    """Write RUN/report: report.html, report.md, report.json, statement.json (for `tacit verify`) and the figures."""
    with Run.open(run) as found:
        must_train(found, "its report is {run}/report/report.md, which the same `{command}` writes again")
        summary = summarise(found)
        paths = _write_report(summary)
    if as_json:
        files = {"html": paths.html, "markdown": paths.markdown, "json": paths.json}
        shown: dict[str, Any] = {name: str(path) for name, path in files.items()}
        shown["figures"] = [str(path) for path in paths.figures]
        print_json({**headline(summary), "files": shown})
        return
    for label in summary.labels:
        console.print(f"[bold red]{label.name}[/]: {label.meaning}", soft_wrap=True)
    table = Table(box=None, show_header=False, pad_edge=False)
    for name, value in tiles(summary).items():
        table.add_row(name, value)
    console.print(table)
    console.print(f"report: {paths.html}", soft_wrap=True)


@speaks_plainly
def compare(
    a: Annotated[Path, typer.Argument(help="A run folder.")],
    b: Annotated[Path, typer.Argument(help="Another run folder.")],
    out: Annotated[
        Path | None, typer.Option(help="The folder for the figure; left out, the report folder of A.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Two runs side by side: accuracy, privacy, settings that differ, and a figure of both curves."""
    with Run.open(a) as first, Run.open(b) as second:
        for each in (first, second):
            must_train(each, "compare models on clients' text with `tacit evaluate A B --data CACHE`")
        left, right = summarise(first), summarise(second)
    both = comparison(left, right)
    folder = a / "report" if out is None else out
    name = f"compare-{b.resolve().name}.png"
    _write(folder, {name: draw_comparison(left, right).png})
    if as_json:
        print_json({"a": str(a), "b": str(b), **_comparison_record(both), "figure": str(folder / name)})
        return
    _print_comparison(both)
    console.print(f"figure: {folder / name}", soft_wrap=True)


def write_report(run: Run) -> ReportPaths:
    """Write the report of a run, whatever state it is in, into its folder, and say where.

    Raises: RunError where the folder is damaged, UnknownRelease where the ledger cannot be accounted.
    """
    return _write_report(summarise(run))


def headline(summary: RunSummary) -> dict[str, Any]:
    """What one wants to know first, as plain values; realised figures are None while nothing is released."""
    accounts = summary.accounts
    return {
        "run": str(summary.path),
        "name": summary.name,
        "finished": summary.finished,
        "private": summary.private,
        "rounds": summary.released,
        "rounds_planned": summary.planned_rounds,
        "labels": [label.name for label in summary.labels],
        "test": dict(summary.test),
        "validation": summary.last_validation,
        "planned": figures_of(accounts.planned, accounts.delta),
        "realised": figures_of(accounts.realised, accounts.delta),
        "extrapolated": summary.statement.figures.get("extrapolated") if summary.statement else None,
        **summary.rounds.totals,
    }


def tiles(summary: RunSummary) -> dict[str, str]:
    """The headline for people: a name and a figure each. Privacy figures are rounded up."""
    quality, whose = (summary.test, "test") if summary.test else (summary.last_validation, "validation")
    shown = {"rounds": f"{summary.released:,} of {summary.planned_rounds:,}"}
    if quality:
        shown[f"top-1 accuracy, {whose} clients"] = f"{quality['top1_accuracy']:.2%}"
        shown[f"top-3 accuracy, {whose} clients"] = f"{quality['top3_accuracy']:.2%}"
    realised, delta = summary.accounts.realised, summary.accounts.delta
    if realised is not None:
        shown["zCDP, realised"] = rounded_up(realised.zcdp)
        shown[f"epsilon at delta {delta:g}, realised"] = rounded_up(realised.epsilon(delta))
    totals = summary.rounds.totals
    if totals:
        shown["clients per second"] = f"{totals['clients_per_second']:,.1f}"
    return shown


def _write_report(summary: RunSummary) -> ReportPaths:
    from tacit.reports.page import html_page, markdown_page  # Jinja only where a page is made

    drawings = draw_run(summary)
    shown = tiles(summary)
    record = json.dumps(plain(_record(summary, drawings)), indent=1, ensure_ascii=False, allow_nan=False)
    folder = summary.path / "report"
    figures = {f"{drawing.name}.png": drawing.png for drawing in drawings}
    pages = {
        "report.md": markdown_page(summary, shown, drawings).encode(),
        "report.json": (record + "\n").encode(),
        "report.html": html_page(summary, shown, drawings).encode(),
    }
    if summary.statement:  # a file of its own, because `tacit verify` reads nothing else
        pages["statement.json"] = summary.statement.to_json().encode()
    _write(folder, {**figures, **pages})
    return ReportPaths(
        html=folder / "report.html",
        markdown=folder / "report.md",
        json=folder / "report.json",
        figures=tuple(folder / name for name in figures),
    )


def _write(folder: Path, files: Mapping[str, bytes]) -> None:
    if folder.exists() and not folder.is_dir():
        raise InputError(f"'{folder}' is a file, and figures go into a folder; name another.")
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        write_whole(folder / name, content)


def _record(summary: RunSummary, drawings: Sequence[Drawing]) -> dict[str, Any]:
    """The report as one JSON object: the headline, and everything that the page shows."""
    rounds = summary.rounds
    return {
        **headline(summary),
        "facts": dict(summary.facts),
        "settings": dict(summary.settings),
        "curves": {
            name: [{"round": at, "value": value} for at, value in sorted(series.items())]
            for name, series in summary.curves.items()
        },
        "spent": [asdict(each) for each in summary.spent],
        "per_round": {  # index 0 is the first round
            "seconds": rounds.seconds.tolist(),
            "participants": rounds.participants.tolist(),
            "dropped": rounds.dropped.tolist(),
            "loss": rounds.loss.tolist(),
            "clipped": rounds.clipped.tolist(),
            "clip_norm": rounds.clip_norm.tolist(),
            **({} if rounds.clip_estimate is None else {"clip_estimate": rounds.clip_estimate.tolist()}),
        },
        "warnings": [{"name": label.name, "meaning": label.meaning} for label in summary.labels],
        "statement": summary.statement.to_record() if summary.statement else None,
        "figures": [f"{drawing.name}.png" for drawing in drawings],
    }


def _comparison_record(both: Comparison) -> dict[str, Any]:
    parts = {
        "accuracy": both.accuracy,
        "privacy": both.privacy,
        "speed": both.speed,
        "settings": both.settings,
    }
    return {"warnings": list(both.warnings), **{name: rows_record(rows) for name, rows in parts.items()}}


def _print_comparison(both: Comparison) -> None:
    for warning in both.warnings:
        complaints.print(f"[bold yellow]note:[/] {warning}", soft_wrap=True)
    table = Table("", *both.names, box=None, pad_edge=False)
    for title, rows in (
        ("accuracy", both.accuracy),
        ("privacy", both.privacy),
        ("speed", both.speed),
        ("settings that differ", both.settings),
    ):
        table.add_row(f"[bold]{title}[/]" if rows else f"[bold]{title}[/]: none")
        for row in rows:
            table.add_row(f"  {row.name}", _cell(row, row.a), _cell(row, row.b))
    console.print(table)


def _cell(row: Row, value: Any) -> str:
    if value is None:
        return "-"
    if row.percent:
        return f"{value:.2%}"
    if row.name == "clients per second":
        return f"{value:.1f}"
    if isinstance(value, float):
        return rounded_up(value) if row.name.startswith(("zCDP", "epsilon")) else f"{value:.6g}"
    return str(value)
