"""`tacit evaluate`: how one or several models do on clients' text, client by client, and who fares worst."""

from pathlib import Path
from typing import Annotated

import typer

import tacit
from tacit.cli.blocks import say_blocks
from tacit.cli.display import display
from tacit.cli.options import Json, Population, ReleaseOptions, SecureOptions, Workers, command
from tacit.compute import Hardware
from tacit.evaluation.settings import EvaluationSettings


@command
def evaluate(
    models: Annotated[
        list[Path], typer.Argument(help="Finished runs, model folders, or trigram:CACHE; the first is compared with.")
    ],
    data: Annotated[Path, typer.Option(help="A cache of clients' text, with the models' vocabulary.")],
    settings: EvaluationSettings,
    cost: ReleaseOptions,
    secure: SecureOptions,
    out: Annotated[
        Path | None, typer.Option(help="The run folder to make, or to go on with; a release needs one.")
    ] = None,
    population: Population = None,
    seed: Annotated[int | None, typer.Option(help="Fix the noise: who knows the seed can take it away.")] = None,
    workers: Workers = 0,
    json: Json = False,
) -> None:
    """Accuracy of models over clients: quantiles, the worst decile, and who gains from one model over another."""
    with display(json, out) as progress:
        result = tacit.evaluate(
            models,
            data,
            settings=settings,
            release=cost.release(secure.protocol()),
            out=out,
            population=population,
            seed=seed,
            hardware=Hardware(workers=workers),
            progress=progress,
        )
    say_blocks(result, json)
