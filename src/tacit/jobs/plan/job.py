"""Privacy, participations and days of a run before any is spent: forwards from a configuration, back from a target.

Each function gives a result with `to_record()`, `blocks()` for people and `figure()` of its own numbers. Nothing is
trained.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.design.catalogue import MECHANISMS
from tacit.design.mechanism import Mechanism
from tacit.errors import InputError, of_type
from tacit.files import as_path
from tacit.jobs.result import ReportedResult
from tacit.planning import (
    AccountedPlan,
    Goal,
    ParticipationCost,
    Scenario,
    mechanism_named,
    report_goal_for,
    rounds_for,
)
from tacit.planning.steps import PlanStep, PlanSteps, seven_steps
from tacit.planning.targets import Reached
from tacit.privacy.delta import default_delta
from tacit.privacy.gaussian import epsilon
from tacit.progress import Progress, counted, silent
from tacit.reports import plan as read
from tacit.reports.blocks import Block
from tacit.reports.figure import Figure
from tacit.reports.figure_files import save_figure

if TYPE_CHECKING:  # numba would come with them
    from tacit.planning.production import Production
    from tacit.population.settings import SimulationSettings

SEARCHED = tuple(name for name, each in MECHANISMS.items() if each.searched)
CURVE = 17  # points of a figure's curve
NO_COST = ParticipationCost()


class DrawnResult(ReportedResult):
    """A result that shows itself in a notebook, and draws its numbers."""

    KIND = "plan, before anything is run"

    @abstractmethod
    def figure(self) -> Figure:
        """Its numbers, drawn."""

    def figures(self) -> tuple[Figure, ...]:
        """Those of its page, the first of which is `figure()`."""
        return (self.figure(),)

    def save_figure(self, path: str | Path) -> None:
        """Write the figure to a file whose name ends in .png or .svg, in a folder that is made if it is not there."""
        file = as_path("path", path)
        file.parent.mkdir(parents=True, exist_ok=True)
        save_figure(self.figure(), file)


# -- the seven steps ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class PlanResult(DrawnResult):
    """The plan for a goal, and the seven steps that lead to it; `production` is the simulation that it counts on."""

    scenario: Scenario
    goal: Goal
    reached: Reached
    steps: tuple[PlanStep, ...]
    production: "Production | None" = None

    TITLE = "A run in seven steps"

    def answer(self) -> str:
        """Which report goal, and what it promises."""
        return read.goal_answer(self.reached, self.goal)

    @property
    def plan(self) -> AccountedPlan:
        """Mechanism, report goal, guarantee."""
        return self.reached.plan

    def to_record(self) -> dict[str, Any]:
        """The plan and its steps as plain values for JSON."""
        return {
            "schema": "tacit.plan",
            "version": 1,
            "plan": _answer(self.reached, self.goal.delta),
            "steps": [step.to_record() for step in self.steps],
        }

    def blocks(self) -> list[Block]:
        """The steps as people read them."""
        return read.step_blocks(self.steps, simulated=self.production is not None)

    def figure(self) -> Figure:
        """zCDP over the report goal, around this plan."""
        middle = self.plan.report_goal
        most = min(self.scenario.clients.reachable // (self.scenario.clients.min_separation or 1), 4 * middle)
        goals = np.unique(np.geomspace(max(1, middle // 8), max(most, middle), CURVE).astype(int))
        plans = [self.scenario.plan(self.plan.mechanism, int(goal)) for goal in goals]
        return read.goals_figure(plans, self.reached, self.goal)


def plan(
    scenario: Scenario,
    mechanism: str,
    goal: Goal,
    *,
    simulate: "SimulationSettings | None" = None,
    progress: Progress = silent,
) -> PlanResult:
    """The plan for `goal` in the seven steps of arXiv:2305.18465, Section 2.5.

    scenario: the population, its devices and the noise that the model bears. mechanism: its name in the catalogue.
    goal: the privacy to reach, and at most how many reports. simulate: the simulated devices.

    Who takes part is estimated by formulas; with `simulate` it is simulated, with timers of whole days, in runs that
    end within its `rules.most_days`. Raises: InputError, and ParticipationError where no simulated run ends in time.
    """
    of_type("scenario", scenario, Scenario)
    of_type("mechanism", mechanism, str)
    of_type("goal", goal, Goal)
    chosen = mechanism_named(mechanism)
    if simulate is None:
        reached, steps = seven_steps(scenario, chosen, goal, progress=progress)
        return PlanResult(scenario=scenario, goal=goal, reached=reached, steps=steps)
    from tacit.planning.production import production_plan
    from tacit.planning.simulated_runs import DeviceSimulator

    check_same_size(scenario, simulate)
    days = simulate.rules.most_days
    simulator = DeviceSimulator(settings=simulate, acceptable_days=days, progress=progress)
    found = production_plan(
        scenario, [chosen], goal, simulate=simulator.small, check=simulator.whole, progress=progress
    )
    steps = PlanSteps(
        scenario=found.scenario, reached=found.reached, goal=goal, production=found, acceptable_days=days
    ).steps()
    return PlanResult(scenario=found.scenario, goal=goal, reached=found.reached, steps=steps, production=found)


def check_same_size(scenario: Scenario, settings: "SimulationSettings") -> None:
    """Refuse a simulation of another population, or of other rounds, than those that are planned."""
    for name, planned, simulated in (
        ("devices", scenario.clients.devices, settings.population.devices),
        ("rounds", scenario.rounds, settings.rounds),
    ):
        if planned != simulated:
            raise InputError(
                f"the simulation has {simulated} {name} and the plan has {planned}; simulate what is planned."
            )


# -- forwards ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class ForwardsResult(DrawnResult):
    """One configuration with several mechanisms, all at the same utility."""

    scenario: Scenario
    plans: tuple[AccountedPlan, ...]
    cost: ParticipationCost
    delta: float

    TITLE = "One configuration, every mechanism"

    def answer(self) -> str:
        """Which mechanism promises the most."""
        return read.forwards_answer(self.plans, self.delta)

    def to_record(self) -> dict[str, Any]:
        """The plans as plain values for JSON."""
        clients = self.scenario.clients
        return {
            "schema": "tacit.plan.run",
            "version": 1,
            "population": clients.devices,
            "reachable": clients.reachable,
            "plans": [{**each.to_record(self.delta), **self.cost.of(each.participations)} for each in self.plans],
        }

    @property
    def columns(self) -> dict[str, list[Any]]:
        """A column for each figure of the plans, for a data frame."""
        return columns_of(self.to_record()["plans"])

    def blocks(self) -> list[Block]:
        """The table as people read it."""
        return read.forwards_blocks(self.scenario, self.plans, self.cost, self.delta)

    def figure(self) -> Figure:
        """Epsilon of each mechanism."""
        values = {each.mechanism.name: each.guarantee.epsilon(self.delta) for each in self.plans}
        return read.mechanisms_figure(values, f"epsilon at delta {self.delta:g}", "At the same utility")


def forwards(
    scenario: Scenario,
    report_goal: int,
    mechanisms: Sequence[str] = (),
    *,
    cost: ParticipationCost = NO_COST,
    delta: float | None = None,
    progress: Progress = silent,
) -> ForwardsResult:
    """What a run with this report goal promises and takes, with each mechanism at the same utility; without any,
    with all that are no matrices, which take minutes to design. delta: left out, that of so many devices."""
    delta = _delta_of(scenario, delta)
    epsilon(1.0, delta)  # a delta that is none is refused before anything is designed
    wanted = chosen(mechanisms or [name for name, each in MECHANISMS.items() if each.matrix is None])
    plans = tuple(
        scenario.plan(each, report_goal) for each in counted(wanted, "designing", progress, total=len(wanted))
    )
    return ForwardsResult(scenario=scenario, plans=plans, cost=cost, delta=delta)


# -- back from a target ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class TargetResult(DrawnResult):
    """For each mechanism the least report goal that reaches a target, or the noise that it takes."""

    scenario: Scenario
    goal: Goal
    answers: tuple[Reached, ...]
    cost: ParticipationCost
    target_epsilon: float | None = None  # None: a zCDP was asked for

    TITLE = "What a target takes"

    def answer(self) -> str:
        """Which mechanism takes the fewest reports."""
        return read.target_answer(self.answers, self.goal)

    def to_record(self) -> dict[str, Any]:
        """The answers as plain values for JSON."""
        return {
            "schema": "tacit.plan.target",
            "version": 1,
            "target_zcdp": self.goal.zcdp,
            "delta": self.goal.delta,
            "answers": [
                {**_answer(each, self.goal.delta), **self.cost.of(each.plan.participations)} for each in self.answers
            ],
        }

    @property
    def columns(self) -> dict[str, list[Any]]:
        """A column for each figure of the answers, for a data frame."""
        return columns_of(self.to_record()["answers"])

    def blocks(self) -> list[Block]:
        """The table as people read it."""
        goal = self.goal
        target = (
            f"zCDP {goal.zcdp:.6g}"
            if self.target_epsilon is None
            else f"epsilon {self.target_epsilon:g} at {goal.delta:g}"
        )
        return read.target_blocks(self.scenario, self.answers, goal, self.cost, target)

    def figure(self) -> Figure:
        """The report goal that each mechanism takes."""
        values = {each.plan.mechanism.name: float(each.plan.report_goal) for each in self.answers}
        return read.mechanisms_figure(values, "report goal", f"For zCDP {self.goal.zcdp:.4g}", log=True)


def backwards(
    scenario: Scenario,
    goal: Goal,
    mechanisms: Sequence[str] = (),
    *,
    cost: ParticipationCost = NO_COST,
    target_epsilon: float | None = None,
    progress: Progress = silent,
) -> TargetResult:
    """Which report goal and noise reach the goal at this utility: the least, for each mechanism.

    target_epsilon: the target as it was asked for, to be told again.
    """
    answers = tuple(
        report_goal_for(scenario, each, goal.zcdp, most=goal.max_goal, progress=progress)
        for each in chosen(mechanisms or SEARCHED)
    )
    return TargetResult(scenario=scenario, goal=goal, answers=answers, cost=cost, target_epsilon=target_epsilon)


@dataclass(frozen=True, kw_only=True)
class RoundsResult(DrawnResult):
    """For each mechanism how many rounds a budget affords; None where not even one."""

    scenario: Scenario
    report_goal: int
    zcdp: float
    delta: float
    answers: Mapping[str, AccountedPlan | None]

    TITLE = "How many rounds a budget affords"

    def answer(self) -> str:
        """Which mechanism affords the most."""
        return read.rounds_answer(self.answers, self.delta)

    def to_record(self) -> dict[str, Any]:
        """The answers as plain values for JSON."""
        return {
            "schema": "tacit.plan.rounds",
            "version": 1,
            "target_zcdp": self.zcdp,
            "planned_rounds": self.scenario.rounds,
            "answers": [
                {"mechanism": name, "rounds": 0} if each is None else each.to_record(self.delta)
                for name, each in self.answers.items()
            ],
        }

    @property
    def columns(self) -> dict[str, list[Any]]:
        """A column for each figure of the answers, for a data frame."""
        return columns_of(self.to_record()["answers"])

    def blocks(self) -> list[Block]:
        """The table as people read it."""
        return read.rounds_blocks(self.scenario, self.report_goal, self.answers, self.delta, self.zcdp)

    def figure(self) -> Figure:
        """The rounds that each mechanism affords."""
        values = {name: 0.0 if each is None else float(each.rounds) for name, each in self.answers.items()}
        return read.mechanisms_figure(values, "rounds", f"What zCDP {self.zcdp:.4g} affords")


def affordable_rounds(
    scenario: Scenario,
    report_goal: int,
    zcdp: float,
    mechanisms: Sequence[str] = (),
    *,
    delta: float | None = None,
    progress: Progress = silent,
) -> RoundsResult:
    """How many rounds `zcdp` affords, with strategy and noise as planned for its rounds; delta: as `forwards`."""
    delta = _delta_of(scenario, delta)
    wanted = chosen(mechanisms or SEARCHED)
    answers = {
        each.name: rounds_for(scenario, each, report_goal, zcdp)
        for each in counted(wanted, "searching", progress, total=len(wanted))
    }
    return RoundsResult(scenario=scenario, report_goal=report_goal, zcdp=zcdp, delta=delta, answers=answers)


def _delta_of(scenario: Scenario, delta: float | None) -> float:
    return default_delta(scenario.clients.devices) if delta is None else delta


def chosen(names: Sequence[str]) -> list[Mechanism]:
    """The mechanisms of those names, each once, in the order given."""
    return [mechanism_named(name) for name in dict.fromkeys(names)]


def _answer(reached: Reached, delta: float) -> dict[str, Any]:
    return {**reached.plan.to_record(delta), "at_utility": reached.at_utility, "times_the_noise": reached.noisier}


def columns_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """A column for each name that any row has, None where a row has not."""
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}
