"""What separation each timer gives, in whole days: by an estimate, or in a simulated population."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tacit.jobs.plan.job import DrawnResult, check_same_size, columns_of
from tacit.planning import AccountedPlan, Scenario, mechanism_named
from tacit.planning.targets import timers
from tacit.privacy.delta import default_delta
from tacit.privacy.gaussian import epsilon
from tacit.progress import Progress, counted, silent
from tacit.reports import plan as read
from tacit.reports.blocks import Block
from tacit.reports.figure import Figure

if TYPE_CHECKING:  # numba would come with them
    from tacit.planning.simulated_runs import TimerOutcome
    from tacit.population.settings import SimulationSettings


@dataclass(frozen=True, kw_only=True)
class TimersResult(DrawnResult):
    """What each timer of whole days buys: by an estimate (`estimated`), or in a simulated population (`simulated`)."""

    scenario: Scenario
    delta: float
    zcdp: float | None  # the target, where there is one
    estimated: tuple[tuple[float, AccountedPlan], ...] = ()
    simulated: "tuple[TimerOutcome, ...]" = ()

    TITLE = "What each timer buys"

    def answer(self) -> str:
        """The shortest timer that reaches the target; without one, what the best promises."""
        return read.timers_answer(self.timers, self.delta, targeted=self.zcdp is not None, reaching=self.shortest)

    @property
    def timers(self) -> tuple[tuple[float, AccountedPlan], ...]:
        """Hours, and the plan behind that timer."""
        return self.estimated or tuple((each.hours, each.plan) for each in self.simulated)

    @property
    def shortest(self) -> float | None:
        """The shortest timer that reaches the target, in hours; None where none does, or none was asked for."""
        if self.zcdp is None:
            return None
        return next((hours for hours, each in self.timers if each.zcdp <= self.zcdp), None)

    @property
    def best(self) -> "TimerOutcome | None":
        """The simulated timer of the largest MinS, the shortest of equals."""
        return max(self.simulated, key=lambda each: (each.promised.min_separation, -each.hours), default=None)

    def to_record(self) -> dict[str, Any]:
        """The timers as plain values for JSON."""
        record: dict[str, Any] = {"schema": "tacit.plan.timer", "version": 1}
        if self.best is None:
            record["timers"] = [{"timer_hours": hours, **each.to_record(self.delta)} for hours, each in self.estimated]
        else:
            record["timers"] = [each.to_record(self.delta) for each in self.simulated]
            record["largest_separation_timer_hours"] = self.best.hours
        return {**record, "target_zcdp": self.zcdp, "shortest_timer_hours": self.shortest}

    @property
    def columns(self) -> dict[str, list[Any]]:
        """A column for each figure of the timers, for a data frame."""
        return columns_of(self.to_record()["timers"])

    def blocks(self) -> list[Block]:
        """The table as people read it."""
        if self.best is None:
            return read.timer_blocks(
                self.scenario, self.estimated, self.delta, target=self.zcdp, reaching=self.shortest
            )
        return read.simulated_timer_blocks(
            self.scenario, self.simulated, self.delta, best=self.best, target=self.zcdp, reaching=self.shortest
        )

    def figure(self) -> Figure:
        """Epsilon, MinS and days over the timer."""

        return read.timers_figure(
            self.timers, self.delta, None if self.zcdp is None else epsilon(self.zcdp, self.delta)
        )


def plan_timers(
    scenario: Scenario,
    mechanism: str,
    report_goal: int,
    *,
    zcdp: float | None = None,
    delta: float | None = None,
    simulate: "SimulationSettings | None" = None,
    progress: Progress = silent,
) -> TimersResult:
    """What each timer buys, in whole days up to what the population gives; and the shortest that reaches `zcdp`.

    With `simulate` the population is simulated behind each, in runs that end within its `rules.most_days`; the timer
    in its rules does not count. delta: left out, that of so many devices. Raises: ParticipationError where not even a
    timer of a day lets a run end.
    """
    delta = default_delta(scenario.clients.devices) if delta is None else delta
    each = mechanism_named(mechanism)
    if simulate is None:
        found = tuple(
            (hours, plan) for hours, plan in counted(timers(scenario, each, report_goal), "designing", progress)
        )
        return TimersResult(scenario=scenario, delta=delta, zcdp=zcdp, estimated=found)
    from tacit.planning.simulated_runs import simulated_timers

    check_same_size(scenario, simulate)
    outcomes = tuple(simulated_timers(scenario, each, simulate, progress=progress))
    return TimersResult(scenario=scenario, delta=delta, zcdp=zcdp, simulated=outcomes)
