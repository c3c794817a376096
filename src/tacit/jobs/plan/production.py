"""From a population and a privacy target to a production recipe, in the seven steps of arXiv:2305.18465, Section 2.5.

`plan` walks the same steps with formulas. Here who takes part is simulated, and the end is a folder: the production
recipe with a reason beside each value, the planned statement, the simulated rounds. The search is in
`planning/production.py`.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from tacit.errors import InputError, ParticipationError, of_type
from tacit.files import PathLike, as_path, check_folder, write_whole
from tacit.jobs.plan import production_files as files
from tacit.jobs.plan.job import DrawnResult, chosen
from tacit.jobs.plan.simulate import write_simulation
from tacit.mechanisms.all_rounds import with_noise_of
from tacit.networks.model_files import read_files
from tacit.planning import AccountedPlan, Scenario
from tacit.planning.production import Production, production_plan
from tacit.planning.simulated_runs import DeviceSimulator
from tacit.planning.steps import PlanStep, PlanSteps, ProductionNotes
from tacit.planning.targets import Goal
from tacit.planning.tuning import Tuned
from tacit.population.settings import SimulationSettings
from tacit.privacy.encoding import Encoding
from tacit.privacy.encoding_choice import encoding_within
from tacit.progress import Progress, silent
from tacit.recipe import Recipe
from tacit.recipe.annotated import annotated_toml
from tacit.recipe.sections import AggregationSection
from tacit.reports.blocks import Block, Paragraph
from tacit.reports.figure import Figure
from tacit.reports.page import to_json
from tacit.reports.plan import goal_answer, goals_figure, step_blocks
from tacit.statements.statement import Statement

AUTO = ("tree-variance-reduced", "blt")  # those of the papers' production runs
SHOWN = (*AUTO, "lambda-cgd", "banded-toeplitz")  # beside the chosen one, with their memory
NoiseFrom = Literal["given", "tuning", "paper"]
PAPER = (
    "the paper's pair (arXiv:2305.18465, Section 2.2), not a measurement of this task; give "
    "--small-noise-multiplier and --small-report-goal from a simulation on public text like the task's"
)


@dataclass(frozen=True, kw_only=True)
class ProductionSettings:
    """What a production recipe builds on, and how who takes part is simulated.

    `mechanism` "auto" takes the one of least zCDP among those of the papers' production runs; `timer_hours` None tries
    timers of whole days. The recipe begins from `recipe`, or from defaults for `cache`. `noise_from` says where the
    scenario's noise was seen: it was given, it is the paper's pair, or the trials in `tuning` bore it, which is then
    read there. `simulation` is a file of settings, `seed` another population; `secure_sums` has updates
    encoded for secure aggregation where the recipe does not ask for it already. InputError for values that mean
    nothing.
    """

    mechanism: str = "auto"
    timer_hours: float | None = None
    acceptable_days: float = 14.0
    recipe: Path | None = None
    cache: Path | None = None
    model: Path | None = None
    tuning: Path | None = None
    noise_from: NoiseFrom = "given"
    simulation: Path | None = None
    seed: int = 0
    secure_sums: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.acceptable_days < float("inf"):
            raise InputError(f"--acceptable-days {self.acceptable_days:g} leaves no time for a run; give days above 0.")


@dataclass(frozen=True, kw_only=True)
class ProductionResult(DrawnResult):
    """The plan of a production run, its recipe and its planned statement; `out` is the folder that has them."""

    goal: Goal
    production: Production
    steps: tuple[PlanStep, ...]
    recipe: Recipe
    statement: Statement
    out: Path

    TITLE = "A production run in seven steps"

    def answer(self) -> str:
        """Which report goal, and what it promises."""
        return goal_answer(self.production.reached, self.goal)

    @property
    def plan(self) -> AccountedPlan:
        """Mechanism, report goal, guarantee."""
        return self.production.plan

    def to_record(self) -> dict[str, Any]:
        """What plan.json says."""
        goal, production = self.goal, self.production
        return {
            "schema": "tacit.plan.production",
            "version": 1,
            "target": {"zcdp": goal.zcdp, "delta": goal.delta, "report_goal_max": goal.max_goal},
            "plan": production.plan.to_record(goal.delta),
            "at_utility": production.reached.at_utility,
            "times_the_noise": production.reached.noisier,
            "simulated": production.simulated.to_record(),
            "tried": [each.to_record() for each in production.tried],
            "steps": [step.to_record() for step in self.steps],
            "files": ["production.toml", "statement.md", "statement.json", "plan.json", "report.html", "simulation/"],
            "out": str(self.out),
        }

    @property
    def columns(self) -> dict[str, list[Any]]:
        """A column for each figure of the runs that were tried, for a data frame."""
        rows = [each.to_record() for each in self.production.tried]
        return {name: [row[name] for row in rows] for name in self.production.simulated.to_record()}

    def blocks(self) -> list[Block]:
        """The steps as people read them."""
        return [
            *step_blocks(self.steps, simulated=True),
            Paragraph(
                f"production.toml, statement.md, statement.json, plan.json, report.html and simulation/ in {self.out}"
            ),
        ]

    def figure(self) -> Figure:
        """zCDP over the report goals that were simulated with the plan's timer, each at the utility that was asked."""
        seen = {each.report_goal: each for each in self.production.tried}
        scenario, mechanism = self.production.scenario, self.plan.mechanism
        plans = [
            replace(
                scenario,
                clients=replace(
                    scenario.clients,
                    min_separation=each.promised.min_separation,
                    max_participations=each.promised.max_participations,
                ),
            ).plan(mechanism, goal)
            for goal, each in sorted(seen.items())
        ]
        return goals_figure(plans, self.production.reached, self.goal)


def plan_production(
    scenario: Scenario,
    goal: Goal,
    out: PathLike,
    settings: ProductionSettings,
    *,
    progress: Progress = silent,
) -> ProductionResult:
    """The production recipe that reaches `goal`, in a folder with its planned statement and the simulated rounds.

    scenario: the population, its devices and the noise that the model bears. goal: the privacy to reach, and at most
    how many reports. out: the folder to write. settings: the cache, the model and what a simulation may take.

    Raises: InputError, RecipeError for what contradicts itself; ParticipationError where no run ends in the acceptable
    days, with what would fit. Nothing is written then.
    """
    of_type("scenario", scenario, Scenario)
    of_type("goal", goal, Goal)
    of_type("settings", settings, ProductionSettings)
    folder = as_path("out", out)
    tuned = None if settings.tuning is None else Tuned.read(settings.tuning)
    origin = _origin(settings, tuned)
    base = origin.with_what_is_known(origin.base())
    files.vocabulary_of(base.data.cache)  # refuses what is no cache before the work
    if base.model.init is not None and base.model.init.exists():  # it need not be there yet, no more than the cache
        read_files(base.model.init)
    if settings.secure_sums and base.aggregation is None:
        base = base.model_copy(update={"aggregation": AggregationSection(kind="secure")})
    encoding, secure = _encoding(base), base.secure_updates()
    scenario, noise_from = _with_noise(scenario, settings.noise_from, tuned)
    if base.aggregation is not None and secure is not None:
        noises, honest = max(1, secure.decryptors), secure.honest_decryptors
        scenario = replace(scenario, clip_inflation=base.aggregation.inflation, noises=noises, honest=honest)
    simulator = _simulator(scenario, goal, settings, progress)
    check_folder("out", folder)  # before the work
    production = _planned(scenario, goal, settings, simulator)
    if encoding is not None:
        encoding = _for_report_goal(encoding, base, production, scenario)
    notes = ProductionNotes(
        model=base.model.init,
        recipe=settings.recipe,
        out=folder,
        tuned=tuned,
        encoding=encoding,
        others=production.others_at_this_noise(chosen(SHOWN)),
    )
    steps = PlanSteps(
        scenario=production.scenario,
        reached=production.reached,
        goal=goal,
        noise_from=noise_from,
        production=production,
        acceptable_days=settings.acceptable_days,
        notes=notes,
    ).steps()
    recipe = files.production_recipe(base, production, goal.delta, simulator.settings.rules)
    result = ProductionResult(
        goal=goal,
        production=production,
        steps=steps,
        recipe=recipe,
        statement=files.statement_of_plan(
            recipe, production, folder / "statement.json", delta=goal.delta, encoding=encoding, tuned=tuned
        ),
        out=folder,
    )
    _write(result, files.reasons_for(production, origin, encoding, goal.delta))
    return result


def _origin(settings: ProductionSettings, tuned: Tuned | None) -> files.Origin:
    """Where the recipe's values come from."""
    return files.Origin(
        recipe=settings.recipe,
        cache=settings.cache,
        model=settings.model,
        tuned=tuned,
        chosen=settings.mechanism == "auto",
        timed=settings.timer_hours is not None,
    )


def _with_noise(scenario: Scenario, noise_from: NoiseFrom, tuned: Tuned | None) -> tuple[Scenario, str]:
    """The scenario with the noise that the model bears, and where that was seen."""
    if noise_from == "given":
        return scenario, "as given"
    if noise_from == "paper" or tuned is None or not tuned.noise_multiplier > 0:
        return scenario, PAPER
    utility = replace(scenario.utility, report_goal=tuned.report_goal, noise_multiplier=tuned.noise_multiplier)
    return replace(scenario, utility=utility), f"what the trials in {tuned.folder} bore"


def _encoding(base: Recipe) -> Encoding | None:
    """Of the base's network, of the default vocabulary where its cache is not there; the report goal is to be planned.
    None where updates are not encoded.

    What it does to a clip norm does not depend on the report goal.
    """
    from tacit.data import CacheManifest
    from tacit.jobs.import_data import DEFAULT_SIZE
    from tacit.networks.language_model import parameter_count

    if base.aggregation is None:
        return None
    cache = base.data.cache
    words = CacheManifest.load(cache).vocabulary.size if cache.exists() else DEFAULT_SIZE
    aggregation = base.aggregation
    parameters = parameter_count(base.model.settings(words))
    return encoding_within(
        parameters, base.privacy.clip_norm, report_goal=1, inflation=aggregation.inflation, sigmas=aggregation.sigmas
    )


def _for_report_goal(encoding: Encoding, base: Recipe, production: Production, scenario: Scenario) -> Encoding:
    """The same for sums of the planned number of reports, and for the noise of decryptors where they add it."""
    encoding = replace(encoding, report_goal=production.plan.report_goal).checked()
    if scenario.noises == 1:
        return encoding
    updates = replace(production.plan.guarantee, clip_norm=base.privacy.clip_norm)
    return with_noise_of(scenario.noises, encoding, updates, honest=scenario.honest)


def _simulator(scenario: Scenario, goal: Goal, settings: ProductionSettings, progress: Progress) -> DeviceSimulator:
    """Raises: InputError for settings that make no simulation, or that say otherwise than the scenario."""
    simulation = SimulationSettings.read(
        settings.simulation,
        {
            ("population", "devices"): scenario.clients.devices,
            ("rules", "report_goal"): scenario.clients.devices if goal.max_goal is None else goal.max_goal,
            ("rules", "timer_hours"): settings.timer_hours or 24.0,
            ("rounds",): scenario.rounds,
            ("seed",): settings.seed,
        },
    )
    return DeviceSimulator(settings=simulation, acceptable_days=settings.acceptable_days, progress=progress)


def _planned(scenario: Scenario, goal: Goal, settings: ProductionSettings, simulator: DeviceSimulator) -> Production:
    """The plan. Raises: ParticipationError where the timer that was asked for makes training never end, or nothing
    ends, and what would fit.
    """
    timer = settings.timer_hours
    mechanisms = AUTO if settings.mechanism == "auto" else (settings.mechanism,)
    try:
        production = production_plan(
            scenario,
            chosen(mechanisms),
            goal,
            simulate=simulator.small,
            check=simulator.whole,
            timer_hours=timer,
            progress=simulator.progress,
        )
    except ParticipationError as error:
        raise simulator.too_slow(timer, None) from error
    if timer is not None and production.largest_feasible is not None:
        raise simulator.too_slow(timer, production.largest_feasible)
    return production


def _write(result: ProductionResult, reasons: dict[str, str]) -> None:
    """All files of the folder, each whole or not at all."""
    simulation = result.production.simulated.simulation
    assert simulation is not None  # the plan counts on it
    folder = result.out / "simulation"
    folder.mkdir(parents=True, exist_ok=True)
    write_simulation(simulation, folder)
    contents = {
        "production.toml": annotated_toml(result.recipe, reasons, _head(result.production)).encode(),
        "statement.md": result.statement.markdown().encode(),
        "statement.json": result.statement.to_json().encode(),
        "plan.json": to_json(result.to_record()),
    }
    for name, content in contents.items():
        write_whole(result.out / name, content)
    result.write_report(result.out)


def _head(production: Production) -> list[str]:
    """The first lines of production.toml."""
    clients = production.scenario.clients.devices
    lines = [f"Production, as `tacit plan production` planned it for {clients:,} devices; plan.json has all numbers."]
    if not production.reached.at_utility:
        lines.append(f"The privacy target takes {production.reached.noisier:.3g} times the noise that the model bears.")
    return lines
