"""`tacit evaluate`: how one or several models do on clients' text, client by client, and who fares worst."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import tacit
from tacit.cli.blocks import say_blocks
from tacit.cli.display import display
from tacit.cli.options import Json, Population, Price, SecureOptions, command
from tacit.compute import Hardware

if TYPE_CHECKING:
    pass


@command
def evaluate(
    models: Annotated[list[Path], typer.Argument(help="Finished runs or model folders; the first is compared with.")],
    data: Annotated[Path, typer.Option(help="A cache of clients' text, with the models' vocabulary.")],
    price: Price,
    secure: SecureOptions,
    clients: Annotated[int, typer.Option(help="Clients to ask; 0 is all of the split.")] = 0,
    split_name: Annotated[str, typer.Option(help="Which clients: test, validation or train.")] = "test",
    sentences: Annotated[int, typer.Option(help="Sentences of a client, evenly spread over its text.")] = 64,
    words: Annotated[int, typer.Option(help="Words of a sentence; the rest of a longer one is not used.")] = 20,
    out: Annotated[
        Path | None, typer.Option(help="The run folder to make, or to go on with; a release needs one.")
    ] = None,
    population: Population = None,
    seed: Annotated[int | None, typer.Option(help="Fix the noise: who knows the seed can take it away.")] = None,
    workers: Annotated[int, typer.Option(help="CPU cores to use; 0 is all. Never changes the result.")] = 0,
    json: Json = False,
) -> None:
    """Accuracy of models over clients: quantiles, the worst decile, and who gains from one model over another."""
    from tacit.evaluation.settings import EvaluationSettings

    settings = EvaluationSettings(split_name=split_name, clients=clients, sentences=sentences, words=words)
    with display(json, out) as progress:
        result = tacit.evaluate(
            models,
            data,
            settings=settings,
            release=price.release(secure.of()),
            out=out,
            population=population,
            seed=seed,
            hardware=Hardware(workers=workers),
            progress=progress,
        )
    say_blocks(result, json)
