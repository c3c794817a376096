"""`tacit type`: what a model changes for somebody who types, against another, on the same text with the same slips."""

from pathlib import Path
from typing import Annotated

import typer

import tacit
from tacit.cli.blocks import say_blocks
from tacit.cli.display import display
from tacit.cli.from_settings import Named, Options
from tacit.cli.options import Json, Population, ReleaseOptions, SecureOptions, Workers, command
from tacit.compute import Hardware
from tacit.evaluation.type_ab.settings import TypingSettings


@command
def type_ab(
    a: Annotated[str, typer.Argument(help="A run, a model folder, an exported folder, or trigram:CACHE.")],
    b: Annotated[str, typer.Argument(help="The model that may take its place, the same way.")],
    data: Annotated[
        str, typer.Option(help="The text: a source as of `tacit data import`, or a cache as far as it spells words.")
    ],
    out: Annotated[Path, typer.Option(help="The run folder to make, or to go on with.")],
    options: Annotated[Options[TypingSettings], Named(split="split_name")],
    cost: ReleaseOptions,
    secure: SecureOptions,
    layout: Annotated[str, typer.Option(help="The keys: qwerty or qwerty-es.")] = "qwerty",
    seed: Annotated[int, typer.Option(help="Of the users and their slips, the same on A and on B.")] = 0,
    population: Population = None,
    noise_seed: Annotated[
        int | None, typer.Option(help="Fix the noise of the release: who knows the seed can take it away.")
    ] = None,
    workers: Workers = 0,
    json: Json = False,
) -> None:
    """Have simulated users type held-out text on two keyboards, and say whether B is improved, neutral or worse."""
    with display(json, out) as progress:
        result = tacit.type_ab(
            a,
            b,
            data,
            out,
            settings=options.settings(typist=TypingSettings.on(layout).typist),
            release=cost.release(secure.protocol()),
            population=population,
            seed=seed,
            noise_seed=noise_seed,
            hardware=Hardware(workers=workers),
            progress=progress,
        )
    say_blocks(result, json)
