"""`tacit audit attack`: words and sentences that people typed, read from what a server sees of training."""

from pathlib import Path
from typing import Annotated

import typer

from tacit.audit.attack.settings import AttackSettings
from tacit.cli.blocks import say_blocks
from tacit.cli.display import display
from tacit.cli.options import Json, command

BROKEN = 1  # the exit code where a promise is refuted


@command
def attack(
    data: Annotated[
        Path | None, typer.Option(help="A cache of clients, no text of which is shown; left out, the chat tacit ships.")
    ] = None,
    public: Annotated[
        Path | None,
        typer.Option(help="A cache of public text in the same words; left out, the novels that tacit ships."),
    ] = None,
    *,
    settings: AttackSettings,
    views: Annotated[
        str, typer.Option(help="Names of views, by commas, such as upload,sum-100,release; left out, all of them.")
    ] = "",
    seed: Annotated[int, typer.Option(help="Of all randomness, so that the figures can be made again.")] = 0,
    json: Json = False,
) -> None:
    """The published attack on keyboards' models (arXiv:2210.16947), with defences off and on, beside guessing."""
    from tacit.audit.attack.job import audit_attack

    with display(quiet=json) as progress:
        found = audit_attack(
            data,
            public=public,
            settings=settings,
            only=[name.strip() for name in views.split(",") if name.strip()] or None,
            seed=seed,
            progress=progress,
        )
    say_blocks(found, json)
    if found.findings.broken:
        raise typer.Exit(BROKEN)
