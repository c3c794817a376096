"""`tacit report` and `tacit compare`: what a run folder says, for people (HTML, Markdown) and programs (JSON).

Only the folder is read, so a report can be written again anywhere and at any time, while the run trains too.
"""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from tacit.cli.console import complaints, console, print_json, speaks_plainly
from tacit.reports.comparison import Comparison, comparison
from tacit.reports.summary import summarise
from tacit.runs import Run, TrainingMetadata

Json = Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")]


@speaks_plainly
def report(run: Annotated[Path, typer.Argument(help="A run folder, finished or not.")], as_json: Json = False) -> None:
    """Write RUN/report: report.html, report.md, report.json, statement.json (for `tacit verify`) and the figures."""
    from tacit.reports.training import headline, tiles, write_report

    with Run.open(run) as found:
        found.of_kind(TrainingMetadata, "its report is {run}/report/report.md, which the same `{command}` writes again")
        summary = summarise(found)
        files = write_report(summary)
    if as_json:
        print_json({**headline(summary), "files": files.to_record()})
        return
    for label in summary.labels:
        console.print(f"[bold red]{label.name}[/]: {label.meaning}", soft_wrap=True)
    table = Table(box=None, show_header=False, pad_edge=False)
    for name, value in tiles(summary).items():
        table.add_row(name, value)
    console.print(table)
    console.print(f"report: {files.html}", soft_wrap=True)


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
            each.of_kind(TrainingMetadata, "compare models on clients' text with `tacit evaluate A B --data CACHE`")
        left, right = summarise(first), summarise(second)
    both = comparison(left, right)
    from tacit.reports.drawing import render
    from tacit.reports.page import write_files

    folder = a / "report" if out is None else out
    name = f"compare-{b.resolve().name}.png"
    write_files(folder, {name: render(both.figure, "png")})
    if as_json:
        print_json({**both.to_record(), "figure": str(folder / name)})
        return
    _print_comparison(both)
    console.print(f"figure: {folder / name}", soft_wrap=True)


def _print_comparison(both: Comparison) -> None:
    for warning in both.warnings:
        complaints.print(f"[bold yellow]note:[/] {warning}", soft_wrap=True)
    table = Table("", *both.names, box=None, pad_edge=False)
    for title, rows in both.parts.items():
        table.add_row(f"[bold]{title}[/]" if rows else f"[bold]{title}[/]: none")
        for row in rows:
            name, left, right = row.cells
            table.add_row(f"  {name}", left, right)
    console.print(table)
