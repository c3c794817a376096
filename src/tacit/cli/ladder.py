"""`tacit ladder`: what a model has to beat, every baseline as well tuned, and whether it does."""

from pathlib import Path
from typing import Annotated

import typer

import tacit
from tacit.cli.blocks import say_blocks
from tacit.cli.display import display
from tacit.cli.options import Json, command
from tacit.jobs.ladder import LadderSettings


@command
def ladder(
    data: Annotated[
        Path,
        typer.Argument(
            help="A finished run of `tacit train`, mixtures too, from which all but --model follows; a cache."
        ),
    ],
    model: Annotated[
        list[Path] | None, typer.Option(help="A finished run or model folder besides; may be given several times.")
    ] = None,
    public: Annotated[
        list[Path] | None, typer.Option(help="A cache of public text, for free n-grams; may be given several times.")
    ] = None,
    network: Annotated[
        Path | None, typer.Option(help="What `tacit pretrain` made: the free network, mixed with those.")
    ] = None,
    *,
    settings: LadderSettings,
    declared_public: Annotated[
        bool, typer.Option("--declared-public", help="The caches have clients, whose text is public all the same.")
    ] = False,
    json: Json = False,
) -> None:
    """Models beside every baseline on the same simulated clients: what is free, and n-grams of clients' text."""
    with display(json) as progress:
        found = tacit.ladder(
            data,
            public=public or (),
            network=network,
            models=model or (),
            settings=None if settings == LadderSettings() else settings,
            declared_public=declared_public,
            progress=progress,
        )
    say_blocks(found, json)
