"""`tacit account run`: what a run of any kind promises, from its folder."""

from pathlib import Path
from typing import Annotated

import typer

from tacit.cli.blocks import say_blocks
from tacit.cli.console import say_loudly
from tacit.cli.options import Json, RunFolder, command
from tacit.files import check_file, write_whole


@command
def run(
    run: RunFolder,
    delta: Annotated[
        float | None, typer.Option(help="The delta at which epsilon is given; left out, the run's own.")
    ] = None,
    statement_file: Annotated[
        Path | None,
        typer.Option("--statement", help="Also write the statement here, as JSON with all that `tacit verify` needs."),
    ] = None,
    as_json: Json = False,
) -> None:
    """What a run promises as realised, from its ledger and its log; a mixture also what each part of it does."""
    from tacit.jobs.account.run import account_run, stated

    if statement_file is not None:
        check_file("--statement", statement_file)
    made = account_run(run, delta=delta)
    if statement_file is not None:
        write_whole(statement_file, stated(run, delta=delta))
    say_blocks(made, as_json)
    if not as_json:
        for warning in made.warnings:
            say_loudly(warning)
