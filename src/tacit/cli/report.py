"""`tacit report` and `tacit compare`: what a run folder says, for people (HTML, Markdown) and programs (JSON)."""

from pathlib import Path
from typing import Annotated

import typer

from tacit.cli.blocks import say_blocks
from tacit.cli.options import Json, RunFolder, command


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
    runs: Annotated[list[Path], typer.Argument(help="Two or more runs that train or mix; the first is compared with.")],
    out: Annotated[
        Path | None, typer.Option(help="The folder for page and figure; left out, `simulation` of the first.")
    ] = None,
    json: Json = False,
) -> None:
    """Runs side by side: accuracy of known words, privacy at one delta, what differs, a page with all curves.

    Below a mixture stand its parts.
    """
    from tacit.jobs.report import compare as laid_beside

    say_blocks(laid_beside(*runs, out=out), json)
