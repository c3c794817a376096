"""`tacit train` and `tacit resume`: rounds until the recipe is done.

JAX is imported by the functions that train, not by this file: `tacit account` must not wait for it.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from tacit.cli.account_run import say_if_weaker
from tacit.cli.console import complaints, console, print_json, speaks_plainly
from tacit.cli.progress import TrainingProgress
from tacit.errors import RecipeError
from tacit.privacy.rounding import rounded_up
from tacit.reports.summary import summarise
from tacit.reports.training import write_report
from tacit.runs import Run, TrainingMetadata
from tacit.runs.folder import SETTINGS
from tacit.statements.accounts import trained
from tacit.statements.run_facts import statement_of

if TYPE_CHECKING:
    from tacit.compute import Hardware

Workers = Annotated[int, typer.Option(help="CPU cores to use; 0 is all. Changes the speed, never the result.")]
Cluster = Annotated[
    str | None,
    typer.Option(
        help="Train the clients on a Ray cluster: 'auto' for the one of this machine, or HOST:PORT. "
        "Changes the speed, never the result (docs/cluster.md)."
    ),
]
Chunk = Annotated[
    int, typer.Option(help="Clients that an accelerator trains side by side; 0: as many as its memory holds.")
]
Multiply = Annotated[
    str,
    typer.Option(help="How an accelerator multiplies float32 matrices: tensorfloat32, or float32 to the last digit."),
]
Profiled = Annotated[bool, typer.Option("--profile", help="Say at the end where the time went (docs/speed.md).")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]


@speaks_plainly
def train(
    recipe: Annotated[Path, typer.Argument(help="A recipe in TOML; the shipped ones are in recipes/.")],
    out: Annotated[Path, typer.Option(help="The run folder to make.")],
    data: Annotated[Path | None, typer.Option(help="A cache in place of the recipe's data.cache.")] = None,
    init: Annotated[
        Path | None,
        typer.Option(help="Begin from this model of `tacit pretrain`, in place of the recipe's model.init."),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            help="Fix all randomness: whoever knows the seed can take the noise away (the statement says so first)."
        ),
    ] = None,
    workers: Workers = 0,
    chunk: Chunk = 0,
    products: Multiply = "tensorfloat32",
    cluster: Cluster = None,
    profile: Profiled = False,
    json: Json = False,
) -> None:
    """Train a model by the recipe and leave a run folder."""
    from tacit.compute import Hardware
    from tacit.jobs.train import begin
    from tacit.recipe import Recipe

    asked = Recipe.load(recipe)
    if data is not None:
        asked = asked.model_copy(update={"data": asked.data.model_copy(update={"cache": data})})
    if init is not None:
        asked = asked.model_copy(update={"model": asked.model.model_copy(update={"init": init})})
    if seed is not None:
        if seed < 0:
            raise RecipeError(f"--seed {seed} must be 0 or more.")
        asked = asked.model_copy(update={"run": asked.run.model_copy(update={"seed": seed})})
    hardware = Hardware(workers=workers, chunk=chunk, products=products)  # type: ignore[arg-type]
    hardware.apply()
    if cluster is not None:
        from tacit.training.workers_ray import must_answer

        must_answer(cluster)  # now, while there is no run folder to be left empty
    with begin(asked, out) as run:
        finish(run, hardware, cluster=cluster, profile=profile, json=json)


@speaks_plainly
def resume(
    run: Annotated[Path, typer.Argument(help="A run folder that was interrupted.")],
    workers: Workers = 0,
    chunk: Chunk = 0,
    products: Multiply = "tensorfloat32",
    cluster: Cluster = None,
    profile: Profiled = False,
    json: Json = False,
) -> None:
    """Carry an interrupted run to its end; the result is bit for bit that of an uninterrupted one."""
    from tacit.compute import Hardware

    hardware = Hardware(workers=workers, chunk=chunk, products=products)  # type: ignore[arg-type]
    hardware.apply()
    with Run.open(run) as found:
        found.of_kind(
            TrainingMetadata, "the `{command}` that began it goes on with it, given the same options and --out {run}"
        )
        if found.finished:
            complaints.print(f"'{run}' is finished already; its report is written again.", soft_wrap=True)
        finish(found, hardware, cluster=cluster, profile=profile, json=json)


def finish(
    run: Run, hardware: "Hardware", *, cluster: str | None = None, profile: bool = False, json: bool = False
) -> None:
    """Do what the run lacks, write its report and say how it went."""
    from tacit.jobs.train import carry_on
    from tacit.recipe import Recipe

    recipe = Recipe.from_toml(run.settings, where=str(run.path / SETTINGS))
    with TrainingProgress(recipe.privacy.delta, quiet=json) as progress:
        carry_on(run, hardware=hardware, progress=progress, cluster=cluster)
    paths = write_report(summarise(run))
    print_outcome(run, paths.html, profile=profile, json=json)


def print_outcome(run: Run, report: Path, *, profile: bool = False, json: bool = False) -> None:
    """Accuracy, price, where the time went if that was asked, and where the report is."""
    metrics = {m.name: m.value for m in run.metrics() if m.split == "test"}
    stated = statement_of(run)
    figures = stated.figures

    def price(of: dict[str, Any]) -> str:
        realised = of.get("in_all", of)["realised"]  # of everything together, where updates are not all
        return f"zCDP {rounded_up(realised['zcdp'])}, epsilon {rounded_up(realised['epsilon'])}"

    spent = run.notes.get("profile", [None])[-1] if profile else None  # a finished run may have none
    if json:
        counted = {} if spent is None else {"profile": spent}
        print_json({"run": str(run.path), "report": str(report), "test": metrics, "privacy": figures, **counted})
        return
    console.print(
        f"accuracy on {metrics['clients']:.0f} clients never trained on: top-1 {metrics['top1_accuracy']:.2%}, "
        f"top-3 {metrics['top3_accuracy']:.2%} (in-vocabulary words; {metrics['oov_rate']:.1%} of words are not)"
    )
    if trained(run).guarantee["strategy"] is None:
        console.print("privacy: NON-PRIVATE, no noise was added")
    else:
        console.print(
            f"privacy: {price(figures)} at delta {figures['delta']:g}, per client, under what happened in "
            f"{run.steps_done} rounds"
        )
        say_if_weaker(stated)
        if further := figures.get("extrapolated"):
            console.print(
                f"EXTRAPOLATED to {further['report_goal']:,} reports a round, a run that was not made: {price(further)}"
            )
    if spent is not None:
        console.print(profile_table(spent))
    console.print(f"report: {report}", soft_wrap=True)  # a path that is cut in two cannot be clicked or copied


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
