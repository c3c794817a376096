"""`tacit evaluate`: how one or several models do on clients' text, client by client, and who fares worst."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

import tacit
from tacit.cli.account_run import say_promise
from tacit.cli.console import console, say
from tacit.cli.display import display
from tacit.cli.options import Json, Price, command
from tacit.compute import Hardware

if TYPE_CHECKING:
    from tacit.jobs.evaluate import EvaluationResult


@command
def evaluate(
    models: Annotated[list[Path], typer.Argument(help="Finished runs or model folders; the first is compared with.")],
    data: Annotated[Path, typer.Option(help="A cache of clients' text, with the models' vocabulary.")],
    price: Price,
    clients: Annotated[int, typer.Option(help="Clients to ask; 0 is all of the split.")] = 0,
    split_name: Annotated[str, typer.Option(help="Which clients: test, validation or train.")] = "test",
    sentences: Annotated[int, typer.Option(help="Sentences of a client, evenly spread over its text.")] = 64,
    words: Annotated[int, typer.Option(help="Words of a sentence; the rest of a longer one is not used.")] = 20,
    out: Annotated[
        Path | None, typer.Option(help="The run folder to make, or to go on with; a release needs one.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Fix the noise: who knows the seed can take it away.")] = None,
    workers: Annotated[int, typer.Option(help="CPU cores to use; 0 is all. Never changes the result.")] = 0,
    json: Json = False,
) -> None:
    """Accuracy of models over clients: quantiles, the worst decile, and who gains from one model over another."""
    from tacit.evaluation.settings import EvaluationSettings

    settings = EvaluationSettings(split_name=split_name, clients=clients, sentences=sentences, words=words)
    with display(quiet=json) as progress:
        result = tacit.evaluate(
            models,
            data,
            settings=settings,
            release=price.release(),
            out=out,
            seed=seed,
            hardware=Hardware(workers=workers),
            progress=progress,
        )
    say(result, json, show)


def show(result: "EvaluationResult") -> None:
    found = result.found
    say_promise(found["promise"])
    if result.released is not None:
        _show_part(result.released)
    console.print(f"{result.exact['what']} ({found['asked']:,} clients asked)")
    _show_part(result.exact)
    if result.report is not None:
        console.print(f"report: {result.report.markdown}", soft_wrap=True)


def _show_part(found: Mapping[str, Any]) -> None:
    from tacit.reports.evaluation import SHOWN
    from tacit.reports.release import said

    table = Table("top-1 accuracy over clients", "mean", "worst decile", *SHOWN, box=None, pad_edge=False)
    for name, row in found["models"].items():
        cells = [row["mean"], row["worst_decile"], *(row["quantiles"][q] for q in SHOWN.values())]
        table.add_row(name, *map(said, cells))
    console.print(table)
    first = next(iter(found["models"]))
    for name, row in found["against_the_first"].items():
        console.print(
            f"{name} against {first}: accuracy {said(row['mean'], form='+.4f')}; better for "
            f"{said(row['better'], form='.0%')} of clients, worse for {said(row['worse'], form='.0%')}"
        )
