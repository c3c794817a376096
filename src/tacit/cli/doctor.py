"""`tacit doctor`: what to put into a bug report, and whether what tacit stands on works here."""

import typer

from tacit.cli.blocks import say_blocks
from tacit.cli.display import display
from tacit.cli.options import Json, command

BROKEN = 1  # the exit code where a check fails


@command
def doctor(json: Json = False) -> None:
    """Versions, processors, memory, and whether what tacit stands on works here; nothing private, for bug reports."""
    from tacit.jobs.doctor import doctor as job

    with display(quiet=json) as progress:
        found = job(progress=progress)
    say_blocks(found, json)
    if not found.healthy:
        raise typer.Exit(BROKEN)
