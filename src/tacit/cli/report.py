"""`tacit report` and `tacit compare`: what a run folder says, for people (HTML, Markdown) and programs (JSON)."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from tacit.cli.console import complaints, console, escaped, say
from tacit.cli.options import Json, RunFolder, command
from tacit.reports.comparison import Comparison
from tacit.reports.page import Labels, ReportFiles, Tiles


@command
def report(run: RunFolder, json: Json = False) -> None:
    """Write RUN/report: report.html, report.md, report.json, statement.json (for `tacit verify`) and the figures."""
    from tacit.jobs.report import report as write

    say(write(run), json, _show)


@command
def compare(
    a: RunFolder,
    b: Annotated[Path, typer.Argument(help="Another run folder.")],
    out: Annotated[
        Path | None, typer.Option(help="The folder for the figure; left out, the report folder of A.")
    ] = None,
    json: Json = False,
) -> None:
    """Two runs side by side: accuracy, privacy, settings that differ, and a figure of both curves."""
    from tacit.jobs.report import compare as laid_beside

    say(laid_beside(a, b, out=out), json, _show_both)


def _show(files: ReportFiles) -> None:
    """The warnings and the tiles of the page."""
    table = Table(box=None, show_header=False, pad_edge=False)
    for block in files.page.blocks:
        if isinstance(block, Labels):
            for label in block.labels:
                console.print(f"[bold red]{escaped(label.name)}[/]: {escaped(label.meaning)}")
        elif isinstance(block, Tiles):
            for name, value in block.tiles:
                table.add_row(name, value)
    console.print(table)
    console.print(f"report: {files.html}", markup=False)


def _show_both(both: Comparison) -> None:
    for warning in both.warnings:
        complaints.print(f"[bold yellow]note:[/] {escaped(warning)}")
    table = Table("", *both.names, box=None, pad_edge=False)
    for title, rows in both.parts.items():
        table.add_row(f"[bold]{title}[/]" if rows else f"[bold]{title}[/]: none")
        for row in rows:
            name, left, right = row.cells
            table.add_row(f"  {name}", left, right)
    console.print(table)
    console.print(f"figure: {both.drawn}", markup=False)
