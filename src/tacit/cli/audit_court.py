"""`tacit audit court`: historic faults that must be found, and peers' code as it is installed."""

from pathlib import Path
from typing import Annotated

import typer

from tacit.cli.blocks import say_blocks
from tacit.cli.display import display
from tacit.cli.options import Json, command

BROKEN = 1  # the exit code where a fault was missed, or a promise broken that was not known to be


@command
def court(
    peers: Annotated[
        str, typer.Option(help="Peers to run as well, by commas: opendp,opacus; each from its environment.")
    ] = "",
    environments: Annotated[
        Path | None, typer.Option(help="The folder of their environments: FOLDER/NAME/bin/python.")
    ] = None,
    install: Annotated[
        str, typer.Option(help="Peers whose environment is made first: pip downloads what they need.")
    ] = "",
    seed: Annotated[int, typer.Option(help="Of the museum's runs.")] = 0,
    as_json: Json = False,
) -> None:
    """Twelve historic faults, found, and their mended versions, kept; and what peers' code leaks beside its claim."""
    from tacit.audit.court.job import audit_court

    with display(quiet=as_json) as progress:
        found = audit_court(
            peers=_names(peers), environments=environments, install=_names(install), seed=seed, progress=progress
        )
    say_blocks(found, as_json)
    if not found.as_expected:
        raise typer.Exit(BROKEN)


def _names(listed: str) -> list[str]:
    return [name.strip() for name in listed.split(",") if name.strip()]
