"""`tacit plan`: privacy, participations and days of a run before any is spent, over `tacit.jobs.plan.job`.

Forwards (`run`), back from a target (`target`, `timer`, `rounds`), the seven steps of arXiv:2305.18465, Section 2.5
(`steps`, which is meant where no command is named), what noise leaves of a recipe (`recipe`), which epsilon a
population affords (`epsilon`), and the steps to a production recipe (`production`).
"""

from pathlib import Path
from typing import Annotated, Any

import typer

from tacit.cli import values
from tacit.cli.groups import LateGroup, late_app
from tacit.cli.options import Json, OwnDelta, ReleaseOptions, Sets, command
from tacit.cli.plan_options import CostOptions, ScenarioOptions, SimulationOptions, TargetOptions
from tacit.cli.plan_production import plan_production
from tacit.cli.plan_show import FigureFile, ReportFolder, listening, show, show_reported
from tacit.design.catalogue import MECHANISMS
from tacit.errors import InputError

ReportGoal = Annotated[int, typer.Option(help="Reports that a round waits for.")]
Chosen = Annotated[
    list[str] | None, typer.Option("--mechanism", help=f"One of {', '.join(MECHANISMS)}; may be given several times.")
]
One = Annotated[str, typer.Option("--mechanism", help=f"One of {', '.join(MECHANISMS)}.")]
Public = Annotated[
    Path | None,
    typer.Option(help="A cache of public text, whose best free model is measured: what has to be beaten."),
]
Most = Annotated[int | None, typer.Option(help="Most reports a round that the system can take.")]


class StepsByDefault(LateGroup):
    """`tacit plan --population ...` means `tacit plan steps --population ...`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the command where an option stands first."""
        named = not args or not args[0].startswith("-") or args[0] in ctx.help_option_names
        return super().parse_args(ctx, args if named else ["steps", *args])


app = late_app(
    cls=StepsByDefault,
    help="Plan a run before it is run: privacy, client visits and days. Without a command: `steps`.",
)


@app.command("steps")
@command
def plan_steps(
    options: ScenarioOptions,
    target: TargetOptions,
    mechanism: One = "blt",
    most_reports: Most = None,
    figure: FigureFile = None,
    report: ReportFolder = None,
    as_json: Json = False,
) -> None:
    """From population and target to a plan, in the seven steps of arXiv:2305.18465, Section 2.5."""
    from tacit.jobs.plan.job import plan

    scenario = options.scenario()
    goal = target.goal(scenario, most_reports)
    with listening(as_json, figure, report) as progress:
        result = plan(scenario, mechanism, goal, progress=progress)
    show(result, figure, report, as_json)


@app.command("run")
@command
def plan_run(
    options: ScenarioOptions,
    report_goal: ReportGoal,
    cost: CostOptions,
    delta: OwnDelta = None,
    mechanism: Chosen = None,
    figure: FigureFile = None,
    report: ReportFolder = None,
    as_json: Json = False,
) -> None:
    """One configuration, every mechanism at the same utility: guarantee, visits, days, memory."""
    from tacit.jobs.plan.job import forwards

    scenario, each = options.scenario(), cost.cost()
    with listening(as_json, figure, report) as progress:
        result = forwards(scenario, report_goal, mechanism or (), cost=each, delta=delta, progress=progress)
    show(result, figure, report, as_json)


@app.command("target")
@command
def plan_target(
    options: ScenarioOptions,
    target: TargetOptions,
    cost: CostOptions,
    most_reports: Most = None,
    mechanism: Chosen = None,
    figure: FigureFile = None,
    report: ReportFolder = None,
    as_json: Json = False,
) -> None:
    """Which report goal and noise reach an epsilon at this utility: the least, for each mechanism."""
    from tacit.jobs.plan.job import backwards

    scenario, each = options.scenario(), cost.cost()
    goal = target.goal(scenario, most_reports)
    with listening(as_json, figure, report) as progress:
        result = backwards(scenario, goal, mechanism or (), cost=each, target_epsilon=target.epsilon, progress=progress)
    show(result, figure, report, as_json)


@app.command("timer")
@command
def plan_timer(
    options: ScenarioOptions,
    report_goal: ReportGoal,
    target: TargetOptions,
    simulated: SimulationOptions,
    mechanism: One = "blt",
    figure: FigureFile = None,
    report: ReportFolder = None,
    as_json: Json = False,
) -> None:
    """What each timer buys, in whole days up to what the population gives; and the shortest that reaches a target."""
    from tacit.jobs.plan.timers import plan_timers

    scenario = options.scenario()
    rho = None if target.epsilon is None and target.zcdp is None else target.goal(scenario).zcdp
    settings = simulated.to_settings(scenario, report_goal)
    with listening(as_json, figure, report) as progress:
        result = plan_timers(
            scenario, mechanism, report_goal, zcdp=rho, delta=target.delta, simulate=settings, progress=progress
        )
    show(result, figure, report, as_json)


@app.command("rounds")
@command
def plan_rounds(
    options: ScenarioOptions,
    report_goal: ReportGoal,
    target: TargetOptions,
    mechanism: Chosen = None,
    figure: FigureFile = None,
    report: ReportFolder = None,
    as_json: Json = False,
) -> None:
    """How many rounds the budget affords, with strategy and noise as planned for --rounds."""
    from tacit.jobs.plan.job import affordable_rounds

    scenario = options.scenario()
    goal = target.goal(scenario)
    with listening(as_json, figure, report) as progress:
        result = affordable_rounds(
            scenario, report_goal, goal.zcdp, mechanism or (), delta=goal.delta, progress=progress
        )
    show(result, figure, report, as_json)


@app.command("recipe")
@command
def plan_recipe(
    recipe: Annotated[Path, typer.Argument(help="A recipe in TOML.")],
    data: Annotated[Path | None, typer.Option(help="A cache in place of the recipe's data.cache.")] = None,
    init: Annotated[Path | None, typer.Option(help="Begin from this model of `tacit pretrain`.")] = None,
    public: Public = None,
    sets: Sets = None,
    figure: FigureFile = None,
    report: ReportFolder = None,
    as_json: Json = False,
) -> None:
    """What the noise of a recipe will leave of its model: the noise against the signal, and what would work."""
    from tacit.jobs.changed_recipe import changed_rounds
    from tacit.jobs.train.noise_forecast import noise_forecast

    with listening(as_json, figure, report) as progress:
        result = noise_forecast(
            changed_rounds(recipe, sets or ()), data=data, init=init, public=public, progress=progress
        )
    show(result, figure, report, as_json)


@app.command("epsilon")
@command
def plan_epsilon(
    population: Annotated[str, typer.Option(help="Clients, of one population or several: 3000,30k,3M.")],
    rounds: Annotated[int, typer.Option(help="Rounds of the whole run.")] = 200,
    parameters: Annotated[int, typer.Option(help="Parameters of the network.")] = 80_000,
    step: Annotated[float, typer.Option(help="Server learning rate / (1 - momentum) x clip norm.")] = 10.0,
    availability: Annotated[float, typer.Option(help="Share of the clients that can be reached.")] = 1.0,
    most_reports: Annotated[int, typer.Option(help="Most reports a round that the system can take.")] = 10_000,
    mechanism: One = "blt",
    delta: OwnDelta = None,
    public: Public = None,
    init: Annotated[Path | None, typer.Option(help="A model of `tacit pretrain` of that text.")] = None,
    figure: FigureFile = None,
    report: ReportFolder = None,
    as_json: Json = False,
) -> None:
    """Which epsilon a population affords: the least at which the noise leaves half, 90% or 95% of the accuracy."""
    from tacit.jobs.plan.epsilon import plan_epsilon as job
    from tacit.planning.affordable import PlannedTraining

    training = PlannedTraining(rounds=rounds, parameters=parameters, step=step)
    populations = [values.count(each, "population") for each in values.parts(population)]
    with listening(as_json, figure, report) as progress:
        result = job(
            populations,
            training=training,
            mechanism=mechanism,
            availability=availability,
            most_reports=most_reports,
            delta=delta,
            public=public,
            init=init,
            progress=progress,
        )
    show(result, figure, report, as_json)


@app.command("counts")
@command
def plan_counts(
    public: Annotated[Path, typer.Option(help="A cache of public text over the clients' vocabulary.")],
    clients: Annotated[int, typer.Option(help="How many will be asked.")],
    cost: ReleaseOptions,
    cells: Annotated[
        Path | None, typer.Option(help="Write a list of chosen n-grams here; left out, sums over the first words.")
    ] = None,
    report: ReportFolder = None,
    as_json: Json = False,
) -> None:
    """What to count of clients' text at a price, and within which norm, each setting with its reason."""
    from tacit.jobs.plan.counts import plan_counts as job

    release = cost.release(None)
    if release is None:
        raise InputError("which counts suit a population follows from their price; give --epsilon or --zcdp.")
    with listening(as_json, None, report) as progress:
        result = job(public, clients=clients, release=release, cells=cells, progress=progress)
    show_reported(result, report, as_json)


app.command("production")(plan_production)
