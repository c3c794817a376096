"""`tacit tune`: a few small trials, then the recipe for production, over `tacit.jobs.tune.job`."""

from pathlib import Path
from typing import Annotated

import typer

from tacit.cli.blocks import say_blocks
from tacit.cli.display import display
from tacit.cli.options import Json, Population, Sets, command
from tacit.compute import Hardware
from tacit.errors import TrainingError
from tacit.planning.tuning import TuningSettings


@command
def tune(
    recipe: Annotated[Path, typer.Argument(help="The recipe of the run that is wanted in the end.")],
    out: Annotated[
        Path, typer.Option(help="The folder; the same command continues it, another grid adds trials to it.")
    ],
    settings: TuningSettings,
    hardware: Hardware,
    population: Population = None,
    sets: Sets = None,
    as_json: Json = False,
) -> None:
    """Try server learning rates and clipping quantiles small, then write the production recipe."""
    from tacit.jobs.changed_recipe import changed_rounds
    from tacit.jobs.tune.job import tune as job

    wanted = changed_rounds(recipe, sets or ())
    with display(as_json, out) as progress:
        result = job(wanted, out, settings, population=population, hardware=hardware, progress=progress)
    if result.choice is not None or not as_json:
        say_blocks(result, as_json)
    if result.choice is None:
        raise TrainingError(result.why_nothing())
