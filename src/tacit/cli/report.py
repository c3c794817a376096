"""`tacit report` and `tacit compare`: what a run folder says, for people (HTML, Markdown) and programs (JSON)."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from tacit.cli.console import complaints, console, say, say_blocks, styled
from tacit.cli.options import Json, RunFolder, command
from tacit.reports.comparison import Comparison


@command
def report(
    run: RunFolder,
    out: Annotated[
        Path | None,
        typer.Option(help="The folder to write both into, say of a run on read-only media; left out, RUN."),
    ] = None,
    json: Json = False,
) -> None:
    """Write RUN/report, which may be published (the statement is in it), and RUN/simulation, which has all numbers."""
    from tacit.jobs.report import report as write

    say_blocks(write(run, out=out), json)


@command
def compare(
    a: RunFolder,
    b: Annotated[Path, typer.Argument(help="Another run folder.")],
    out: Annotated[
        Path | None, typer.Option(help="The folder for the figure; left out, the folder `simulation` of A.")
    ] = None,
    json: Json = False,
) -> None:
    """Two runs side by side: accuracy, privacy, settings that differ, and a figure of both curves."""
    from tacit.jobs.report import compare as laid_beside

    say(laid_beside(a, b, out=out), json, _show_both)


def _show_both(both: Comparison) -> None:
    for warning in both.warnings:
        complaints.print(styled("note:", "bold yellow"), warning)
    table = Table("", *both.names, box=None, pad_edge=False)
    for title, rows in both.parts.items():
        table.add_row(styled(title if rows else f"{title}: none", "bold"))
        for row in rows:
            name, left, right = row.cells
            table.add_row(f"  {name}", left, right)
    console.print(table)
    console.print(f"figure: {both.drawn}")
