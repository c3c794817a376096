"""`tacit tune`: a few small trials, then the recipe for production, over `tacit.jobs.tune.job`."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from tacit.cli import values
from tacit.cli.blocks import say_blocks
from tacit.cli.display import display
from tacit.cli.options import Json, Population, command
from tacit.cli.train import HardwareOptions
from tacit.errors import TrainingError

if TYPE_CHECKING:  # NumPy would come with it
    from tacit.planning.tuning import TuningSettings

LARGE = 6500  # paper 1's report goal in production


@dataclass(frozen=True, kw_only=True)
class TrialOptions:
    """What is tried, and how small."""

    server_learning_rates: Annotated[
        str, typer.Option(help="With commas; left out: half, once and twice the recipe's.")
    ] = ""
    quantiles: Annotated[
        str, typer.Option(help="Shares of clients whose update is not clipped, with commas; left out: the recipe's.")
    ] = ""
    seeds: Annotated[int, typer.Option(help="Trials of each pair; their mean counts.")] = 1
    report_goal: Annotated[
        int | None, typer.Option(help="Clients of a trial's round; left out: the recipe's. The noise goes with it.")
    ] = None
    rounds: Annotated[int | None, typer.Option(help="Rounds of a trial; left out: the recipe's.")] = None
    min_separation: Annotated[int | None, typer.Option(help="Of a trial; left out: the recipe's.")] = None
    initial_clip_norm: Annotated[
        float | None,
        typer.Option(help="Where the estimates begin; left out: clipping.initial, or a tenth of privacy.clip_norm."),
    ] = None
    data: Annotated[Path | None, typer.Option(help="A cache to tune on, in place of the recipe's.")] = None
    choose_by: Annotated[
        Literal["accuracy", "cross-entropy"], typer.Option(help="Of validation clients, after the last round.")
    ] = "accuracy"
    large_report_goal: Annotated[int, typer.Option(help="Clients of a round in production.")] = LARGE
    public: Annotated[
        str | None,
        typer.Option(
            help="Why the trials cost the production clients nothing, in your words ('docstrings, public text', "
            "'another population: ...'); left out, they are taken to be the same clients."
        ),
    ] = None

    def settings(self) -> "TuningSettings":
        """InputError for options that mean nothing."""
        from tacit.planning.tuning import TuningSettings

        rates, quantiles = self.server_learning_rates, self.quantiles
        return TuningSettings(
            server_learning_rates=values.numbers(rates, "server-learning-rates") if rates else None,
            quantiles=values.numbers(quantiles, "quantiles") if quantiles else None,
            seeds=self.seeds,
            report_goal=self.report_goal,
            rounds=self.rounds,
            min_separation=self.min_separation,
            initial_clip_norm=self.initial_clip_norm,
            data=self.data,
            choose_by=self.choose_by,
            large_report_goal=self.large_report_goal,
            public=self.public,
        )


@command
def tune(
    recipe: Annotated[Path, typer.Argument(help="The recipe of the run that is wanted in the end.")],
    out: Annotated[
        Path, typer.Option(help="The folder; the same command continues it, another grid adds trials to it.")
    ],
    tried: TrialOptions,
    hardware: HardwareOptions,
    population: Population = None,
    as_json: Json = False,
) -> None:
    """Try server learning rates and clipping quantiles small, then write the production recipe."""
    from tacit.jobs.tune.job import tune as job

    with display(as_json, out) as progress:
        result = job(recipe, out, tried.settings(), population=population, hardware=hardware.value, progress=progress)
    if result.choice is not None or not as_json:
        say_blocks(result, as_json)
    if result.choice is None:
        raise TrainingError(result.why_nothing())
