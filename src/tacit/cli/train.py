"""`tacit train` and `tacit resume`: rounds until the recipe is done.

JAX is imported by the functions that train, not by this file: `tacit account` must not wait for it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from tacit.cli.account_run import say_if_weaker
from tacit.cli.console import console, say
from tacit.cli.display import display
from tacit.cli.options import Json, Seed, command
from tacit.compute import Hardware
from tacit.privacy.rounding import rounded_up

if TYPE_CHECKING:
    from tacit.jobs.train import TrainingResult

Workers = Annotated[int, typer.Option(help="CPU cores to use; 0 is all. Changes the speed, never the result.")]
Chunk = Annotated[
    int, typer.Option(help="Clients that an accelerator trains side by side; 0: as many as its memory holds.")
]
Multiply = Annotated[
    str,
    typer.Option(help="How an accelerator multiplies float32 matrices: tensorfloat32, or float32 to the last digit."),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        help="Train the clients on a Ray cluster: 'auto' for the one of this machine, or HOST:PORT. "
        "Changes the speed, never the result (docs/cluster.md)."
    ),
]
Profiled = Annotated[bool, typer.Option("--profile", help="Say at the end where the time went (docs/speed.md).")]


@dataclass(frozen=True)
class HardwareOptions:
    """On what it runs."""

    workers: Workers = 0
    chunk: Chunk = 0
    products: Multiply = "tensorfloat32"

    @property
    def value(self) -> Hardware:
        """The settings. Raises: InputError."""
        return Hardware(workers=self.workers, chunk=self.chunk, products=self.products)  # type: ignore[arg-type]


@command
def train(
    recipe: Annotated[Path, typer.Argument(help="A recipe in TOML; the shipped ones are in recipes/.")],
    out: Annotated[Path, typer.Option(help="The run folder to make.")],
    hardware: HardwareOptions,
    data: Annotated[Path | None, typer.Option(help="A cache in place of the recipe's data.cache.")] = None,
    init: Annotated[
        Path | None,
        typer.Option(help="Begin from this model of `tacit pretrain`, in place of the recipe's model.init."),
    ] = None,
    seed: Seed = None,
    cluster: Cluster = None,
    profile: Profiled = False,
    json: Json = False,
) -> None:
    """Train a model by the recipe and leave a run folder."""
    from tacit.jobs.train import train as job

    with display(quiet=json) as progress:
        result = job(
            recipe, out, data=data, init=init, seed=seed, hardware=hardware.value, cluster=cluster, progress=progress
        )
    say(result, json, partial(show, profile=profile))


@command
def resume(
    run: Annotated[Path, typer.Argument(help="A run folder that was interrupted.")],
    hardware: HardwareOptions,
    cluster: Cluster = None,
    profile: Profiled = False,
    json: Json = False,
) -> None:
    """Carry an interrupted run to its end; the result is bit for bit that of an uninterrupted one."""
    from tacit.jobs.resume import resume as job

    with display(quiet=json) as progress:
        result = job(run, hardware=hardware.value, cluster=cluster, progress=progress)
    say(result, json, partial(show, profile=profile) if result.run.kind == "train" else shows(result.run.kind))


def shows(kind: str) -> Callable[[Any], None]:
    """What prints the result of a kind of run for people: `show` of the file that has its command."""
    found: Callable[[Any], None] = import_module(f"tacit.cli.{kind}").show
    return found


def show(result: "TrainingResult", *, profile: bool = False) -> None:
    """Accuracy, price, where the time went if that was asked, and where the report is."""
    summary, test = result.summary(), result.test
    console.print(
        f"accuracy on {test['clients']:.0f} clients never trained on: top-1 {test['top1_accuracy']:.2%}, "
        f"top-3 {test['top3_accuracy']:.2%} (in-vocabulary words; {test['oov_rate']:.1%} of words are not)"
    )
    stated = summary.statement
    if not summary.private:
        console.print("privacy: NON-PRIVATE, no noise was added")
    elif stated is not None:
        figures = stated.figures
        console.print(
            f"privacy: {_price(figures)} at delta {figures['delta']:g}, per client, under what happened in "
            f"{result.rounds} rounds"
        )
        say_if_weaker(stated)
        if further := figures.get("extrapolated"):
            console.print(
                f"EXTRAPOLATED to {further['report_goal']:,} reports a round, a run that was not made: "
                f"{_price(further)}"
            )
    if profile and result.profile is not None:
        console.print(profile_table(result.profile))
    if result.report is not None:
        console.print(f"report: {result.report.html}", soft_wrap=True)  # a path that is cut in two cannot be clicked


def _price(of: Mapping[str, Any]) -> str:
    realised = of.get("in_all", of)["realised"]  # of everything together, where updates are not all
    return f"zCDP {rounded_up(realised['zcdp'])}, epsilon {rounded_up(realised['epsilon'])}"


def profile_table(spent: Mapping[str, Any]) -> Table:
    """Where the time went, from `Profile.to_record`: the phases of the rounds, then what ran beside them."""
    from tacit.compute.profile import PHASES

    table = Table(box=None, pad_edge=False, title=f"where {spent['seconds']:.1f} seconds went", title_justify="left")
    for name, justify in (("", "left"), ("seconds", "right"), ("share", "right"), ("", "left")):
        table.add_column(name, justify=justify)  # type: ignore[arg-type]
    for name, seconds in spent["phases"].items():
        meaning = PHASES.get(name, "between these")
        table.add_row(name, f"{seconds:.2f}", f"{seconds / spent['seconds']:.1%}", meaning)
    workers = dict(spent.get("workers", {"count": 0}))  # none of a cluster's
    capacity = workers.pop("count") * spent["seconds"]
    for name, seconds in workers.items():
        table.add_row(f"workers {name}", f"{seconds:.2f}", f"{seconds / capacity:.1%}", "of all workers' time")
    writing = spent["disk"]["writing"]
    table.add_row("disk writing", f"{writing:.2f}", f"{writing / spent['seconds']:.1%}", "beside the next round")
    return table
