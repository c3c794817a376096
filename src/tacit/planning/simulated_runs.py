"""Runs that are simulated, not estimated, with any report goal and timer: small to search with, whole to count on.

A small simulation divides devices and report goal by the same number; rounds hardly feel that (docs/populations.md).
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

from tacit.design.mechanism import Mechanism
from tacit.errors import ParticipationError
from tacit.planning.clients import HOURS_PER_DAY
from tacit.planning.scenario import AccountedPlan, Record, Scenario
from tacit.privacy.participation import Participation
from tacit.progress import Progress, silent

if TYPE_CHECKING:  # numba would come with them
    from tacit.population.devices import RoundRules
    from tacit.population.settings import SimulationSettings
    from tacit.population.simulation import Simulation

LONGEST_TIMER = 60 * HOURS_PER_DAY  # of those that are tried; a run of two months is slower than anybody waits for
REPORTS = 50  # of a round in a small simulation: their MinS is within about 2% of that of all devices
DEVICES = 10_000  # at least so many there
SEARCH_START = 0.97  # of the acceptable days, in small simulations: those of all devices may be a little slower


@dataclass(frozen=True, kw_only=True)
class SimulatedRun:
    """A run that was simulated with this report goal and timer.

    `promised` is what the timer promises in the simulated times of the rounds, `realised` what the devices did: never
    more often nor sooner. `underfilled` counts the rounds with too few reports although every device was asked.
    `simulation` has every round, where it was of all devices.
    """

    report_goal: int
    timer_hours: float
    promised: Participation
    realised: Participation
    days: float
    underfilled: int = 0
    simulation: "Simulation | None" = field(default=None, compare=False, repr=False)

    @classmethod
    def from_simulation(cls, run: "Simulation", report_goal: int, hours: float) -> "SimulatedRun":
        """What a simulation showed, for the report goal that it stands for."""
        return cls(
            report_goal=report_goal,
            timer_hours=hours,
            promised=run.promised,
            realised=run.realised,
            days=run.days,
            underfilled=int(run.underfilled.size),
        )

    @property
    def rounds_per_day(self) -> float:
        """Rounds a day, on average over the run."""
        return self.promised.rounds / self.days

    def to_record(self) -> Record:
        """The run as plain values for JSON."""
        return {
            "report_goal": self.report_goal,
            "timer_hours": self.timer_hours,
            "rounds_between": self.promised.rounds_between,
            "max_participations": self.promised.max_participations,
            "realised_rounds_between": self.realised.rounds_between,
            "realised_max_participations": self.realised.max_participations,
            "days": self.days,
            "rounds_per_day": self.rounds_per_day,
            "starved_rounds": self.underfilled,
        }


# (report goal, timer in hours) -> the run; None where it does not end in the days that are acceptable.
Simulate: TypeAlias = Callable[[int, float], SimulatedRun | None]


class Promising(Protocol):
    """Whatever says which participation its timer promises."""

    @property
    def promised(self) -> Participation:
        """MinS and MaxP, whoever comes."""
        ...


Run = TypeVar("Run", bound=Promising)


def timers_worth_trying(run: Callable[[int], Run | None], rounds: int) -> Iterator[Run]:
    """The runs with timers of one, two, three ... days, as long as they end in time and a longer one may separate
    further: up to the first that lets nobody come twice, or whose MinS fell.
    """
    last = 0
    for hours in range(HOURS_PER_DAY, LONGEST_TIMER + 1, HOURS_PER_DAY):
        found = run(hours)
        if found is None:
            return
        yield found
        separation = found.promised.min_separation
        if separation >= rounds or separation < last:
            return
        last = separation


# -- with the timers that a plan may have ------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class TimerOutcome:
    """A timer, the simulated run behind it, and the plan with the participation that the timer promises there."""

    hours: int
    run: "Simulation"
    plan: AccountedPlan

    @property
    def promised(self) -> Participation:
        """What the timer promises in the simulated times of the rounds."""
        return self.run.promised

    def to_record(self, delta: float) -> Record:
        """The outcome as plain values for JSON."""
        realised = self.run.realised
        return {
            "timer_hours": self.hours,
            **self.plan.to_record(delta),
            "realised_rounds_between": realised.rounds_between,
            "realised_max_participations": realised.max_participations,
            "starved_rounds": int(self.run.underfilled.size),
            "wasted_visits_share": self.run.wasted_share,
        }


def simulated_timers(
    scenario: Scenario,
    mechanism: Mechanism,
    settings: "SimulationSettings",
    *,
    progress: Progress = silent,
) -> Iterator[TimerOutcome]:
    """Timers of whole days, as long as the run ends in `settings.rules.most_days` and a longer one may separate
    further: up to the first that is too slow, that lets nobody come twice, or whose MinS fell.

    `settings` are those of the shortest, a day. Raises: ParticipationError where not even that lets the run end.
    """
    from tacit.population.simulation import simulate

    def outcome(hours: int) -> TimerOutcome | None:
        changed = settings.changed(timer_hours=float(hours))
        try:
            run = simulate(changed, progress=progress, stage=f"timer of {hours} hours")
        except ParticipationError:
            if hours == HOURS_PER_DAY:
                raise
            return None
        plan = counting_on(scenario, run.promised, run.rounds_per_day).plan(mechanism, settings.rules.report_goal)
        return TimerOutcome(hours=hours, run=run, plan=plan)

    yield from timers_worth_trying(outcome, scenario.rounds)


def counting_on(scenario: Scenario, participation: Participation, rounds_per_day: float | None) -> Scenario:
    """The scenario with a participation that was simulated; `availability` is the simulation's business then."""
    clients = replace(
        scenario.clients,
        availability=1.0,
        timer_hours=None,
        min_separation=participation.min_separation,
        max_participations=participation.max_participations,
        rounds_per_day=rounds_per_day,
    )
    return replace(scenario, clients=clients)


# -- with any report goal and timer ------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class DeviceSimulator:
    """A population of devices, simulated with any report goal and timer; what was simulated small is remembered.

    `acceptable_days` is how long a run may take.
    """

    settings: "SimulationSettings"
    acceptable_days: float
    progress: Progress = silent
    _searched: dict[tuple[int, float], SimulatedRun | None] = field(default_factory=dict)
    _seen: dict[tuple[int, int, float, float], SimulatedRun | None] = field(default_factory=dict)

    @property
    def devices(self) -> int:
        """Devices in the whole population."""
        return self.settings.population.devices

    def small(self, report_goal: int, hours: float) -> SimulatedRun | None:
        """The run of a part of the devices; None where it does not end in 97% of the acceptable days."""
        found = self._part(report_goal, hours, self.acceptable_days * SEARCH_START)
        self._searched.setdefault((report_goal, hours), found)
        return found

    def whole(self, report_goal: int, hours: float) -> SimulatedRun | None:
        """The run of all devices, with its simulation; None where it does not end in the acceptable days."""
        from tacit.population.simulation import simulate

        changed = self.settings.changed(rules=self._rules(report_goal, hours, self.acceptable_days))
        stage = f"all {self.devices:,} devices, timer of {hours:g} hours"
        try:
            run = simulate(changed, progress=self.progress, stage=stage)
        except ParticipationError:
            return None
        return replace(SimulatedRun.from_simulation(run, report_goal, hours), simulation=run)

    def too_slow(self, timer: float | None, largest_feasible: int | None) -> ParticipationError:
        """Why the first run that did not end in time does not, which rounds starve, and what would fit.

        timer: as requested; None: of all timers even a day was too long. largest_feasible: the largest report goal that
        ends in time, None where none does.
        """
        from tacit.population.supply import check_supply, longest_timer

        report_goal, hours = 1, timer or float(HOURS_PER_DAY)
        slow_ones = [searched for searched, found in self._searched.items() if found is None]
        if timer is not None and largest_feasible is not None and slow_ones:
            report_goal, hours = slow_ones[0]
        rules = self._rules(report_goal, hours, self.acceptable_days)
        try:
            check_supply(self.settings.population, rules, self.settings.rounds, self.settings.seed)
        except ParticipationError as error:
            return error
        shorter = longest_timer(
            lambda timer: self.small(report_goal, timer) is not None, at_most=math.nextafter(hours, 0)
        )
        most_days = self.settings.rules.most_days
        slow = self._part(report_goal, hours, most_days)
        ways = [
            *([] if largest_feasible is None else [f"--report-goal-max {largest_feasible} with a weaker target"]),
            *([] if shorter is None else [f"--timer-hours {shorter:g}"]),
            *([] if slow is None else [f"--acceptable-days {math.ceil(slow.days / SEARCH_START)}"]),
            *([] if largest_feasible is None else ["more devices"]),
            "fewer --rounds",
        ]
        takes = (
            f"not even {most_days:g} days are enough"
            if slow is None
            else f"they take {slow.days:.3g}, and {slow.underfilled} of them starve"
        )
        return ParticipationError(
            f"{self.settings.rounds} rounds of {report_goal} reports with a timer of {hours:g} hours do not end in "
            f"{self.acceptable_days:g} days in a simulation of {self.devices} devices: {takes}; use "
            f"{', '.join(ways[:-1])} or {ways[-1]}."
        )

    def _part(self, report_goal: int, hours: float, days: float) -> SimulatedRun | None:
        from tacit.population.simulation import simulate

        scale = max(1.0, min(report_goal / REPORTS, self.devices / DEVICES))
        goal = max(1, round(report_goal / scale))
        devices = self.devices * goal // report_goal  # rounded down: b rounds then need no more clients than there are
        key = (devices, goal, hours, days)
        if key not in self._seen:
            changed = self.settings.changed(devices=devices, rules=self._rules(goal, hours, days))
            try:
                self._seen[key] = SimulatedRun.from_simulation(simulate(changed), report_goal, hours)
            except ParticipationError:
                self._seen[key] = None
        found = self._seen[key]
        return None if found is None else replace(found, report_goal=report_goal)

    def _rules(self, report_goal: int, hours: float, days: float) -> "RoundRules":
        rules = self.settings.rules
        return replace(rules, report_goal=report_goal, timer_hours=hours, most_days=min(rules.most_days, days))
