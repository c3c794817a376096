"""`tacit plan production`: from a population and a target to a production recipe, over `tacit.jobs.plan.production`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from tacit.cli import values
from tacit.cli.options import Json, OwnDelta, command
from tacit.cli.plan_show import FigureFile, listening, show
from tacit.design.catalogue import MECHANISMS
from tacit.errors import InputError
from tacit.planning import Clients, Goal, Scenario, Utility

SMALL_GOAL, SMALL_NOISE = 500, 0.54  # arXiv:2305.18465, Section 2.2


@dataclass(frozen=True, kw_only=True)
class ProductionOptions:
    """From whom, how many at a time, for how long."""

    population: Annotated[str, typer.Option(help="Devices in the population: 4210000, 4.21M or 4.21e6.")]
    report_goal_max: Annotated[int, typer.Option(help="Most reports a round that the system supports.")]
    rounds: Annotated[int, typer.Option(help="Rounds of the whole run.")] = 2000
    target_epsilon: Annotated[float | None, typer.Option(help="The epsilon to reach at --delta;")] = None
    target_zcdp: Annotated[float | None, typer.Option(help="or the rho to reach.")] = None
    delta: OwnDelta = None
    timer_hours: Annotated[
        str, typer.Option(help="How long a device stays away after it took part; auto tries whole days.")
    ] = "auto"
    acceptable_days: Annotated[float, typer.Option(help="How long the run may take.")] = 14.0
    mechanism: Annotated[
        str,
        typer.Option(
            help=f"auto (the lesser zCDP of tree-variance-reduced and blt), or one of {', '.join(MECHANISMS)}."
        ),
    ] = "auto"

    def devices(self) -> int:
        """Devices of the population. InputError for values that contradict each other."""
        devices = values.count(self.population, "population")
        if self.report_goal_max < 1 or self.rounds < 1:
            raise InputError(
                f"--report-goal-max {self.report_goal_max} and --rounds {self.rounds} must both be at least 1."
            )
        if self.report_goal_max > devices:
            raise InputError(
                f"--report-goal-max {self.report_goal_max} exceeds the {devices} devices of --population, and a device "
                f"reports once in a round; give at most {devices}."
            )
        return devices

    def goal(self) -> Goal:
        """InputError where no target is given, or two, or one that makes no sense."""
        if self.target_epsilon is not None and self.target_zcdp is not None:
            raise InputError(
                f"both --target-epsilon {self.target_epsilon:g} and --target-zcdp {self.target_zcdp:g} given; give one "
                "of them."
            )
        if self.target_epsilon is None and self.target_zcdp is None:
            raise InputError("no target given; give --target-epsilon (at --delta) or --target-zcdp.")
        if self.delta is not None and not 0 < self.delta < 1:
            raise InputError(f"--delta {self.delta:g} is not a probability between 0 and 1; give for example 1e-10.")
        if self.target_epsilon is not None and not self.target_epsilon > 0:
            raise InputError(
                f"--target-epsilon {self.target_epsilon:g} is out of reach of any noise; give a number above 0."
            )
        if self.target_zcdp is not None and not 0 < self.target_zcdp < float("inf"):
            raise InputError(f"--target-zcdp {self.target_zcdp:g} is no target; give a finite number above 0.")
        return Goal.from_target(
            epsilon=self.target_epsilon,
            zcdp=self.target_zcdp,
            delta=self.delta,
            population=self.devices(),
            most=self.report_goal_max,
        )

    def timer(self) -> float | None:
        """Hours; None for auto."""
        if self.timer_hours == "auto":
            return None
        try:
            hours = float(self.timer_hours)
        except ValueError:
            hours = 0.0
        if not 0 < hours < float("inf"):
            raise InputError(f"--timer-hours {self.timer_hours!r} is neither 'auto' nor a number of hours above 0.")
        return hours


@dataclass(frozen=True, kw_only=True)
class SmallOptions:
    """What a small simulation, or a tuning, showed that the model bears."""

    small_report_goal: Annotated[
        int | None, typer.Option(help=f"Report goal of a small simulation that met the utility target [{SMALL_GOAL}],")
    ] = None
    small_noise_multiplier: Annotated[
        float | None, typer.Option(help=f"and the largest noise multiplier with which it did [{SMALL_NOISE}],")
    ] = None
    small_mechanism: Annotated[str, typer.Option(help="with this mechanism.")] = "tree-variance-reduced"
    tuning: Annotated[
        Path | None, typer.Option(help="The folder of a `tacit tune`: its pair, learning rate and clip norm.")
    ] = None

    @property
    def given(self) -> bool:
        """Whether the pair was given. InputError where half of it was."""
        if (self.small_report_goal is None) != (self.small_noise_multiplier is None):
            raise InputError("--small-report-goal and --small-noise-multiplier are one pair; give both, or neither.")
        return self.small_report_goal is not None

    def utility(self) -> Utility:
        """The pair that was given, else the paper's."""
        return Utility.from_scenario(
            self.small_mechanism,
            noise_multiplier=SMALL_NOISE if self.small_noise_multiplier is None else self.small_noise_multiplier,
            report_goal=SMALL_GOAL if self.small_report_goal is None else self.small_report_goal,
        )


@dataclass(frozen=True, kw_only=True)
class OriginOptions:
    """What the production recipe builds on, and how who comes is simulated."""

    recipe: Annotated[Path | None, typer.Option(help="A recipe to build on: network, learning rates, clip norm.")] = (
        None
    )
    cache: Annotated[Path | None, typer.Option(help="The clients' text: data.cache of production.toml.")] = None
    model: Annotated[Path | None, typer.Option(help="A pre-trained model to begin from.")] = None
    settings: Annotated[Path | None, typer.Option(help="A TOML file of settings, as `tacit simulate` takes.")] = None
    seed: Annotated[int, typer.Option(help="Of the simulation: another seed, another population.")] = 0
    secagg: Annotated[
        bool, typer.Option("--secagg", help="Have updates encoded for secure aggregation; counted in everything.")
    ] = False


@command
def plan_production(
    wanted: ProductionOptions,
    small: SmallOptions,
    origin: OriginOptions,
    out: Annotated[
        Path, typer.Option(help="A folder for production.toml, statement, plan.json, its page, simulation.")
    ],
    figure: FigureFile = None,
    as_json: Json = False,
) -> None:
    """From a population and a privacy target to a production recipe, in the seven steps of arXiv:2305.18465."""
    from tacit.jobs.plan.production import ProductionSettings
    from tacit.jobs.plan.production import plan_production as plan

    clients, goal = Clients(devices=wanted.devices()), wanted.goal()
    noise_from = "given" if small.given else "paper" if small.tuning is None else "tuning"
    scenario = Scenario(clients=clients, rounds=wanted.rounds, utility=small.utility())
    settings = ProductionSettings(
        mechanism=wanted.mechanism,
        timer_hours=wanted.timer(),
        acceptable_days=wanted.acceptable_days,
        recipe=origin.recipe,
        cache=origin.cache,
        model=origin.model,
        tuning=small.tuning,
        noise_from=noise_from,  # type: ignore[arg-type]  # one of the three
        simulation=origin.settings,
        seed=origin.seed,
        secure_sums=origin.secagg,
    )
    with listening(as_json, figure, None) as progress:
        result = plan(scenario, goal, out, settings, progress=progress)
    show(result, figure, None, as_json)
