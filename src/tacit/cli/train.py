"""`tacit train`, `tacit resume` and `tacit finish`: rounds until the recipe is done, or until it is enough.

JAX is imported by the functions that train, not by this file: `tacit account` must not wait for it.
"""

from pathlib import Path
from typing import Annotated

import typer

from tacit.cli.blocks import print_blocks
from tacit.cli.console import say
from tacit.cli.display import display
from tacit.cli.options import Json, LogOptions, Population, Seed, Sets, command
from tacit.compute import Hardware
from tacit.progress import together

Cluster = Annotated[
    str | None,
    typer.Option(
        help="Train the clients on a Ray cluster: 'auto' for the one of this machine, or HOST:PORT. "
        "Changes the speed, never the result (docs/cluster.md)."
    ),
]
Diverged = Annotated[
    bool,
    typer.Option("--stop-if-diverged", help="Stop when the model does worse than one that knows nothing; resumable."),
]
Profiled = Annotated[bool, typer.Option("--profile", help="Say at the end where the time went (docs/speed.md).")]


@command
def train(
    recipe: Annotated[Path, typer.Argument(help="A recipe in TOML, or the name of a shipped one (docs/recipes.md).")],
    out: Annotated[Path, typer.Option(help="The run folder to make.")],
    hardware: Hardware,
    logs: LogOptions,
    data: Annotated[Path | None, typer.Option(help="A cache in place of the recipe's data.cache.")] = None,
    init: Annotated[
        Path | None,
        typer.Option(help="Begin from this model of `tacit pretrain`, in place of the recipe's model.init."),
    ] = None,
    population: Population = None,
    seed: Seed = None,
    sets: Sets = None,
    until: Annotated[
        int | None,
        typer.Option(help="Stop after so many rounds: `tacit resume` goes on, `tacit finish` ends it."),
    ] = None,
    cluster: Cluster = None,
    anyway: Annotated[bool, typer.Option("--anyway", help="Train a recipe that the noise leaves nothing of.")] = False,
    stop_if_diverged: Diverged = False,
    profile: Profiled = False,
    json: Json = False,
) -> None:
    """Train a model by the recipe and leave a run folder.

    A recipe with [mixture] makes private counts, rounds if it has any, and one model of all (docs/mixture.md). Where
    --set names several values, KEY=A,B,C, OUT gets a run with each, and a page that compares them.
    """
    from tacit.jobs.train.sweep import SweepResult
    from tacit.jobs.train.sweep import train_with as job

    with logs.logs(out) as told, display(json, out) as progress:
        result = job(
            recipe,
            out,
            sets or (),
            data=data,
            init=init,
            population=population,
            seed=seed,
            hardware=hardware,
            cluster=cluster,
            until=until,
            anyway=anyway,
            stop_if_diverged=stop_if_diverged,
            progress=together(progress, told),
        )
    options = {} if isinstance(result, SweepResult) else {"profile": profile}
    say(result, json, lambda each: print_blocks(each.blocks(**options)))


@command
def resume(
    run: Annotated[Path, typer.Argument(help="A run folder that was interrupted.")],
    hardware: Hardware,
    logs: LogOptions,
    cluster: Cluster = None,
    stop_if_diverged: Diverged = False,
    profile: Profiled = False,
    json: Json = False,
) -> None:
    """Carry an interrupted run to its end; the result is bit for bit that of an uninterrupted one."""
    from tacit.jobs.resume import resume as job
    from tacit.jobs.train.job import TrainingResult
    from tacit.jobs.train.mixture import MixtureResult

    with logs.logs(run) as told, display(json, run) as progress:
        result = job(
            run,
            hardware=hardware,
            cluster=cluster,
            stop_if_diverged=stop_if_diverged or None,  # of a training alone
            progress=together(progress, told),
        )
    options = {"profile": profile} if isinstance(result, TrainingResult | MixtureResult) else {}
    say(result, json, lambda each: print_blocks(each.blocks(**options)))


@command
def finish(
    run: Annotated[Path, typer.Argument(help="A run of `tacit train` with rounds left to do.")],
    hardware: Hardware,
    json: Json = False,
) -> None:
    """End an unfinished training with the rounds that it has: its last model is released, with its statement."""
    from tacit.jobs.finish import finish as job

    with display(json, run) as progress:
        result = job(run, hardware=hardware, progress=progress)
    say(result, json, lambda each: print_blocks(each.blocks()))
