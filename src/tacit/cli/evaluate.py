"""`tacit evaluate`: how one or several models do on clients' text, client by client, and who fares worst."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from tacit.cli.console import console, print_json, speaks_plainly
from tacit.cli.options import with_options
from tacit.cli.personalize import client_progress
from tacit.errors import InputError
from tacit.jobs.evaluation_promise import Price, say_promise

if TYPE_CHECKING:  # JAX would come with it
    from tacit.jobs.evaluate import Work


@speaks_plainly
@with_options
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
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")] = False,
) -> None:
    """Accuracy of models over clients: quantiles, the worst decile, and who gains from one model over another."""
    promise = price.promise()
    if promise.kind != "nothing" and out is None:
        raise InputError("a release is kept in a run folder with its ledger row, or not made; name one with --out.")
    if clients < 0 or sentences < 1 or words < 1 or (seed is not None and seed < 0):
        raise InputError("--clients and --seed must be 0 or more, --sentences and --words 1 or more.")
    if len(set(models)) < len(models):
        raise InputError("a model was named twice, and comparing it with itself says nothing; name each once.")
    from tacit.jobs.evaluate import Work

    work = Work(
        models=tuple(models),
        data=data,
        split_name=split_name,
        clients=clients,
        sentences=sentences,
        words=words,
        promise=promise,
        seed=seed,
    )
    record = _carry_out(work, out, workers, quiet=as_json)
    if as_json:
        print_json(record)
        return
    _show(record)
    if out is not None:
        console.print(f"report: {out / 'report' / 'report.md'}", soft_wrap=True)


def _carry_out(work: "Work", out: Path | None, workers: int, *, quiet: bool) -> dict[str, Any]:
    from tacit.compute import Hardware
    from tacit.jobs.evaluate import (
        COUNTS,
        ask,
        count_clients,
        found_without_folder,
        open_or_begin,
        release_and_report,
    )
    from tacit.jobs.histograms import Lines

    hardware = Hardware(workers=workers)
    hardware.apply(processor_only=True)
    asked = ask(work)
    if out is None:
        with client_progress(quiet=quiet) as told:
            return found_without_folder(work, asked, count_clients(work, asked, hardware, told))
    with open_or_begin(work, asked, out) as run, run.locked():
        with client_progress(quiet=quiet) as told:
            counted = count_clients(work, asked, hardware, told, kept=Lines(run.path / COUNTS))
        record = release_and_report(work, asked, run, counted)
        run.finish()
        run.destroy_noise_key()
    return record


def _show(record: dict[str, Any]) -> None:
    exact, released = record["simulation_only"], record["released"]
    say_promise(record["promise"])
    if released is not None:
        _show_part(released)
    console.print(f"{exact['what']} ({record['asked']:,} clients asked)")
    _show_part(exact)


def _show_part(found: dict[str, Any]) -> None:
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
