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
from tacit.errors import InputError
from tacit.evaluation.type_ab.settings import TypingSettings


@command
def type_ab(
    a: Annotated[str, typer.Argument(help="A run, a model folder, an exported folder, or trigram:CACHE.")],
    data: Annotated[
        str, typer.Option(help="The text: a source as of `tacit data import`, or a cache as far as it spells words.")
    ],
    options: Annotated[Options[TypingSettings], Named(split="split_name")],
    cost: ReleaseOptions,
    secure: SecureOptions,
    b: Annotated[str | None, typer.Argument(help="The model that may take its place, the same way.")] = None,
    out: Annotated[Path | None, typer.Option(help="The run folder to make, or to go on with.")] = None,
    engine: Annotated[
        str | None,
        typer.Option(help="In place of B a keyboard engine: a command that speaks lines (docs/dictionary.md)."),
    ] = None,
    dictionary: Annotated[Path | None, typer.Option(help="What the engine reads: a .dict file, or a folder.")] = None,
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
    settings, release = options.settings(typist=TypingSettings.on(layout).typist), cost.release(secure.protocol())
    if engine is not None:
        if b is not None or out is not None or release is not None or population is not None:
            raise InputError(
                "with --engine there is no B, no --out and no release: the engine is compared with A, and nothing is "
                "written; leave them out."
            )
        if dictionary is None:
            raise InputError("the engine has no dictionary; give --dictionary, `tacit export --dictionary` writes one.")
        with display(json) as progress:
            compared = tacit.type_engine(a, engine, dictionary, data, settings=settings, seed=seed, progress=progress)
        say_blocks(compared, json)
        return
    if b is None or out is None or dictionary is not None:
        raise InputError("two keyboards are typed on; give A, B and --out, or A, --engine and --dictionary.")
    with display(json, out) as progress:
        result = tacit.type_ab(
            a,
            b,
            data,
            out,
            settings=settings,
            release=release,
            population=population,
            seed=seed,
            noise_seed=noise_seed,
            hardware=Hardware(workers=workers),
            progress=progress,
        )
    say_blocks(result, json)
