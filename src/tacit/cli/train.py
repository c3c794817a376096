"""`tacit train` and `tacit resume`: rounds until the recipe is done.

JAX is imported by the functions that train, not by this file: `tacit account` must not wait for it.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.console import complaints, console, print_json, speaks_plainly
from tacit.cli.progress import TrainingProgress
from tacit.cli.report import write_report
from tacit.cli.statement import statement_of
from tacit.errors import RecipeError
from tacit.privacy.rounding import rounded_up
from tacit.runs import Run

if TYPE_CHECKING:
    from tacit.training import Hardware

Workers = Annotated[int, typer.Option(help="CPU cores to use; 0 is all. Changes the speed, never the result.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]


@speaks_plainly
def train(
    recipe: Annotated[Path, typer.Argument(help="A recipe in TOML; the shipped ones are in recipes/.")],
    out: Annotated[Path, typer.Option(help="The run folder to make.")],
    data: Annotated[Path | None, typer.Option(help="A cache in place of the recipe's data.cache.")] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            help="Fix all randomness: whoever knows the seed can take the noise away (the statement says so first)."
        ),
    ] = None,
    workers: Workers = 0,
    json: Json = False,
) -> None:
    """Train a model by the recipe and leave a run folder."""
    from tacit.cli.trainer import begin, use_cores
    from tacit.recipe import Recipe
    from tacit.training import Hardware

    asked = Recipe.load(recipe)
    if data is not None:
        asked = asked.model_copy(update={"data": asked.data.model_copy(update={"cache": data})})
    if seed is not None:
        if seed < 0:
            raise RecipeError(f"--seed {seed} must be 0 or more.")
        asked = asked.model_copy(update={"run": asked.run.model_copy(update={"seed": seed})})
    hardware = Hardware(workers=workers)
    use_cores(hardware)
    with begin(asked, out) as run:
        finish(run, hardware, json=json)


@speaks_plainly
def resume(
    run: Annotated[Path, typer.Argument(help="A run folder that was interrupted.")],
    workers: Workers = 0,
    json: Json = False,
) -> None:
    """Carry an interrupted run to its end; the result is bit for bit that of an uninterrupted one."""
    from tacit.cli.trainer import use_cores
    from tacit.training import Hardware

    hardware = Hardware(workers=workers)
    use_cores(hardware)
    with Run.open(run) as found:
        if found.fact("finished"):
            complaints.print(f"'{run}' is finished already; its report is written again.", soft_wrap=True)
        finish(found, hardware, json=json)


def finish(run: Run, hardware: "Hardware", *, json: bool) -> None:
    """Do what the run lacks, write its report and say how it went."""
    from tacit.cli.trainer import carry_on
    from tacit.recipe import Recipe

    recipe = Recipe.from_toml(run.recipe, where=str(run.path / "recipe.toml"))
    with TrainingProgress(run, recipe.guarantee(), recipe.privacy.delta, quiet=json) as progress:
        carry_on(run, hardware=hardware, watcher=progress)
    paths = write_report(run)
    print_outcome(run, paths.html, json=json)


def print_outcome(run: Run, report: Path, *, json: bool) -> None:
    """Accuracy, price, and where the report is."""
    metrics = {m.name: m.value for m in run.metrics() if m.split == "test"}
    figures = statement_of(run).figures

    def price(of: dict[str, Any]) -> str:
        return f"zCDP {rounded_up(of['zcdp'])}, epsilon {rounded_up(of['epsilon'])}"

    if json:
        print_json({"run": str(run.path), "report": str(report), "test": metrics, "privacy": figures})
        return
    console.print(
        f"accuracy on {metrics['clients']:.0f} clients never trained on: top-1 {metrics['top1_accuracy']:.2%}, "
        f"top-3 {metrics['top3_accuracy']:.2%} (in-vocabulary words; {metrics['oov_rate']:.1%} of words are not)"
    )
    if run.fact("guarantee")["strategy"] is None:
        console.print("privacy: NON-PRIVATE, no noise was added")
    else:
        console.print(
            f"privacy: {price(figures['realised'])} at delta {figures['delta']:g}, per client, under what happened in "
            f"{run.rounds_done} rounds"
        )
        if further := figures.get("extrapolated"):
            console.print(
                f"EXTRAPOLATED to {further['report_goal']:,} reports a round, a run that was not made: "
                f"{price(further['realised'])}"
            )
    console.print(f"report: {report}", soft_wrap=True)  # a path that is cut in two cannot be clicked or copied
