"""`tacit strategy`: the seven steps of arXiv:2305.18465, Section 2.5, from a population and a target to a recipe.

`tacit plan` walks the same steps with formulas. Here who comes is simulated, and the end is a folder: the production
recipe, the planned statement, the simulated rounds. The search itself is `planning/production.py`.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.console import complaints, console, print_json, speaks_plainly
from tacit.cli.options import with_options
from tacit.cli.plan_options import Delta, Json, Target, whole
from tacit.design.catalogue import MECHANISMS
from tacit.errors import InputError, ParticipationError
from tacit.planning import Clients, Mechanism, Scenario, Utility, mechanism_named
from tacit.planning.production import Production, SimulatedRun, production_plan
from tacit.planning.production_tuning import Tuned
from tacit.planning.steps import Goal, Step
from tacit.privacy.encoding import Encoding
from tacit.privacy.strategy import Record
from tacit.records import json_ready

if TYPE_CHECKING:
    from tacit.jobs.production_files import Origin
    from tacit.planning.production_simulation import Simulator
    from tacit.recipe import Recipe
from tacit.recipe.annotated import annotated_toml

AUTO = ("tree-variance-reduced", "blt")  # those of the papers' production runs
SHOWN = (*AUTO, "lambda-cgd", "banded-toeplitz")  # beside the chosen one, with their memory
SMALL_GOAL, SMALL_NOISE = 500, 0.54  # arXiv:2305.18465, Section 2.2


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """From whom, how many at a time, for how long."""

    population: Annotated[str, typer.Option(help="Devices in the population: 4210000, 4.21M or 4.21e6.")]
    report_goal_max: Annotated[int, typer.Option(help="Most reports a round that the system supports.")]
    rounds: Annotated[int, typer.Option(help="Rounds of the whole run.")] = 2000
    target_epsilon: Annotated[float | None, typer.Option(help="The epsilon to reach at --delta;")] = None
    target_zcdp: Annotated[float | None, typer.Option(help="or the rho to reach.")] = None
    delta: Delta = 1e-10
    timer_hours: Annotated[
        str, typer.Option(help="How long a device stays away after it took part; auto tries whole days.")
    ] = "auto"
    acceptable_days: Annotated[float, typer.Option(help="How long the run may take.")] = 14.0
    mechanism: Annotated[
        str, typer.Option(help=f"auto (the lesser zCDP of {' and '.join(AUTO)}), or one of {', '.join(MECHANISMS)}.")
    ] = "auto"

    def goal(self) -> Goal:
        """Raises: InputError where no target is given, or two, or one that makes no sense."""
        if self.target_epsilon is not None and self.target_zcdp is not None:
            raise InputError(
                f"both --target-epsilon {self.target_epsilon:g} and --target-zcdp {self.target_zcdp:g} given; give one "
                "of them."
            )
        if self.target_epsilon is None and self.target_zcdp is None:
            raise InputError("no target given; give --target-epsilon (at --delta) or --target-zcdp.")
        if not 0 < self.delta < 1:
            raise InputError(f"--delta {self.delta:g} is not a probability between 0 and 1; give for example 1e-10.")
        if self.target_epsilon is not None and not self.target_epsilon > 0:
            raise InputError(
                f"--target-epsilon {self.target_epsilon:g} is out of reach of any noise; give a number above 0."
            )
        if self.target_zcdp is not None and not 0 < self.target_zcdp < float("inf"):
            raise InputError(f"--target-zcdp {self.target_zcdp:g} is no target; give a finite number above 0.")
        target = Target(epsilon=self.target_epsilon, zcdp=self.target_zcdp, delta=self.delta)
        return target.goal(self.report_goal_max)

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

    def mechanisms(self) -> list[Mechanism]:
        """To choose from."""
        return [mechanism_named(name) for name in (AUTO if self.mechanism == "auto" else (self.mechanism,))]

    def check(self) -> None:
        """InputError for values that contradict each other."""
        devices = whole(self.population, "population")
        if self.report_goal_max < 1 or self.rounds < 1:
            raise InputError(
                f"--report-goal-max {self.report_goal_max} and --rounds {self.rounds} must both be at least 1."
            )
        if self.report_goal_max > devices:
            raise InputError(
                f"--report-goal-max {self.report_goal_max} exceeds the {devices} devices of --population, and a device "
                f"reports once in a round; give at most {devices}."
            )
        if not 0 < self.acceptable_days < float("inf"):
            raise InputError(f"--acceptable-days {self.acceptable_days:g} leaves no time for a run; give days above 0.")


@dataclass(frozen=True, kw_only=True)
class Small:
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

    def utility(self, tuned: Tuned | None) -> tuple[Utility, str]:
        """The utility, and where its pair is from."""
        goal, noise = self.small_report_goal, self.small_noise_multiplier
        if (goal is None) != (noise is None):
            raise InputError("--small-report-goal and --small-noise-multiplier are one pair; give both, or neither.")
        if goal is not None and noise is not None:
            source = "as given"
        elif tuned is not None and tuned.noise_multiplier > 0:
            goal, noise, source = tuned.report_goal, tuned.noise_multiplier, f"what the trials in {tuned.folder} bore"
        else:
            goal, noise = SMALL_GOAL, SMALL_NOISE
            source = (
                "the paper's pair (arXiv:2305.18465, Section 2.2), not a measurement of this task; give "
                "--small-noise-multiplier and --small-report-goal from a simulation on public text like the task's"
            )
        mechanism = mechanism_named(self.small_mechanism)
        return Utility(noise_multiplier=noise, report_goal=goal, mechanism=mechanism), source


@dataclass(frozen=True, kw_only=True)
class From:
    """What the production recipe builds on, and how who comes is simulated."""

    recipe: Annotated[Path | None, typer.Option(help="A recipe to build on: network, learning rates, clip norm.")] = (
        None
    )
    cache: Annotated[Path | None, typer.Option(help="The clients' text: data.cache of production.toml.")] = None
    model: Annotated[Path | None, typer.Option(help="A pre-trained model to begin from.")] = None
    settings: Annotated[Path | None, typer.Option(help="A TOML file of settings, as `tacit simulate` takes.")] = None
    seed: Annotated[int, typer.Option(help="Of the simulation: another seed, another population.")] = 0
    secagg: Annotated[
        bool, typer.Option("--secagg", help="Count what encoding for secure aggregation does to the clip norm.")
    ] = False


@speaks_plainly
@with_options
def strategy(
    wanted: Wanted,
    small: Small,
    given: From,
    out: Annotated[Path, typer.Option(help="A folder for production.toml, statement, strategy.json, simulation.")],
    as_json: Json = False,
) -> None:
    """From a population and a privacy target to a production recipe, in the seven steps of arXiv:2305.18465."""
    from tacit.jobs.production_files import Origin
    from tacit.planning.production_steps import Given, ProductionStory

    wanted.check()
    goal, tuned = wanted.goal(), None if small.tuning is None else Tuned.read(small.tuning)
    utility, pair_from = small.utility(tuned)
    origin = Origin(
        recipe=given.recipe,
        cache=given.cache,
        model=given.model,
        tuned=tuned,
        chosen=wanted.mechanism == "auto",
        timed=wanted.timer() is not None,
    )
    base = origin.with_what_is_known(origin.base())
    encoding = _encoding(base) if given.secagg else None
    task = Scenario(
        clients=Clients(devices=whole(wanted.population, "population")),
        rounds=wanted.rounds,
        utility=utility,
        clip_inflation=1.0 if encoding is None else encoding.inflation,
    )
    simulator = _simulator(wanted, given, task)
    out.mkdir(parents=True, exist_ok=True)  # before the work, in case it cannot be
    production = _planned(task, wanted, goal, simulator)
    story = ProductionStory(
        production,
        goal,
        Given(
            model=base.model.init,
            recipe=given.recipe,
            out=out,
            pair_from=pair_from,
            tuned=tuned,
            encoding=encoding,
            acceptable_days=wanted.acceptable_days,
            others=production.others_at_this_noise([mechanism_named(name) for name in SHOWN]),
        ),
    )
    steps = story.steps()
    record = _written(out, steps, production, simulator, base, origin, goal, encoding)
    if as_json:
        print_json(record)
        return
    _show(steps, out, production)


def _simulator(wanted: Wanted, given: From, task: Scenario) -> "Simulator":
    """Raises: InputError for settings that make no simulation, or that say otherwise than the options."""
    from tacit.planning.production_simulation import Simulator
    from tacit.population.settings import settings_from

    asked = settings_from(
        given.settings,
        {
            ("population", "devices"): task.clients.devices,
            ("rules", "report_goal"): wanted.report_goal_max,
            ("rules", "timer_hours"): wanted.timer() or 24.0,
            ("rounds",): task.rounds,
            ("seed",): given.seed,
        },
    )
    return Simulator(asked, wanted.acceptable_days)


def _encoding(base: "Recipe") -> Encoding:
    """Of the base's network; of the default vocabulary where its cache is not there."""
    from tacit.data import Manifest
    from tacit.keyboard.cifg import Cifg
    from tacit.keyboard.language_model import parameter_count

    cache = base.data.cache
    words = Manifest.load(cache).vocabulary.size if cache.exists() else Cifg().vocabulary
    return Encoding.within(parameter_count(base.model.settings(words)), base.privacy.clip_norm)


def _planned(task: Scenario, wanted: Wanted, goal: Goal, simulator: "Simulator") -> Production:
    """The plan. Raises: ParticipationError where the timer that was asked for makes training never end, or nothing
    ends, and what would fit.
    """
    timer = wanted.timer()
    with complaints.status("simulating") as status:

        def check(report_goal: int, hours: float) -> SimulatedRun | None:
            status.stop()  # a bar of its own
            found = simulator.whole(report_goal, hours)
            status.start()
            return found

        try:
            production = production_plan(
                task,
                wanted.mechanisms(),
                goal,
                simulate=simulator.small,
                check=check,
                timer_hours=timer,
                progress=lambda line: status.update(f"simulating: {line}"),
            )
        except ParticipationError as error:
            raise simulator.too_slow(timer, None) from error
        if timer is not None and production.fed is not None:
            raise simulator.too_slow(timer, production.fed)
    return production


def _written(
    out: Path,
    steps: tuple[Step, ...],
    production: Production,
    simulator: "Simulator",
    base: "Recipe",
    origin: "Origin",
    goal: Goal,
    encoding: Encoding | None,
) -> Record:
    """All files; what strategy.json says."""
    import json

    from tacit.cli.simulate import record_of, write_simulation
    from tacit.jobs import production_files as files

    recipe = files.production_recipe(base, production, goal.delta, simulator.asked.rules)
    reasons = files.reasons_for(production, origin, encoding, goal.delta)
    statement = files.statement_of_plan(
        recipe, production, out / "statement.json", delta=goal.delta, encoding=encoding, tuned=origin.tuned
    )
    assert simulator.last is not None  # the plan counts on it
    folder = out / "simulation"
    folder.mkdir(exist_ok=True)
    simulated = record_of(simulator.last)
    write_simulation(simulator.last, simulator.settings_of(simulator.last), simulated, folder)
    record: Record = {
        "target": {"zcdp": goal.zcdp, "delta": goal.delta, "report_goal_max": goal.most},
        "plan": production.plan.to_record(goal.delta),
        "at_utility": production.reached.at_utility,
        "times_the_noise": production.reached.noisier,
        "simulated": production.simulated.to_record(),
        "tried": [each.to_record() for each in production.tried],
        "steps": [step.to_record() for step in steps],
        "files": ["production.toml", "statement.md", "statement.json", "strategy.json", "simulation/"],
        "out": str(out),
    }
    files.write_files(
        out,
        {
            "production.toml": annotated_toml(recipe, reasons, _head(production)),
            "statement.md": statement.markdown(),
            "statement.json": statement.to_json(),
            "strategy.json": json.dumps(json_ready(record), indent=1, ensure_ascii=False) + "\n",
        },
    )
    return record


def _head(production: Production) -> list[str]:
    """The first lines of production.toml."""
    clients = production.scenario.clients.devices
    lines = [f"Production, as `tacit strategy` planned it for {clients:,} devices; strategy.json has all numbers."]
    if not production.reached.at_utility:
        lines.append(f"The privacy target takes {production.reached.noisier:.3g} times the noise that the model bears.")
    return lines


def _show(steps: tuple[Step, ...], out: Path, production: Production) -> None:
    for step in steps:
        console.print(f"[bold]{step.number}. {step.title}[/]")
        for sentence in step.sentences:
            console.print(f"   {sentence}", markup=False)
    console.print(
        "A plan, not a promise: the hypothesis that utility sees only the noise of the mean is no theorem, and devices "
        "are simulated."
    )
    console.print(
        f"production.toml, statement.md, statement.json, strategy.json and simulation/ in {out}", markup=False
    )
