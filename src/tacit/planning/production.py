"""Report goal, timer and noise of a run, by simulating who would come: steps 2 to 4 of arXiv:2305.18465, Section 2.5.

They hang together in a circle. The timer and the report goal decide how often a client comes (MinS, MaxP), which
decides the sensitivity, hence the noise that a target takes, hence, at equal utility, the report goal, which decides
how fast rounds are and how soon clients must come again. `production_plan` goes round until nothing changes. Who comes
is told by a function that simulates a run; the plan is accounted forwards from what it says.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias, TypeVar

from tacit.design.mechanism import Mechanism
from tacit.errors import InputError, ParticipationError
from tacit.planning.clients import HOURS_PER_DAY
from tacit.planning.scenario import Plan, Record, Scenario
from tacit.planning.steps import Goal
from tacit.planning.targets import Progress, Reached, noise_for
from tacit.privacy.participation import Participation

LONGEST_TIMER = 60 * HOURS_PER_DAY  # of those that are tried; a run of two months is slower than anybody waits for
FINE = 200  # report goals above this are searched in steps of half a percent to one: simulations are not sharper
CHECKS = 3  # at the size of production, each a simulation of all devices


@dataclass(frozen=True, kw_only=True)
class SimulatedRun:
    """A run that was simulated with this report goal and timer.

    `promised` is what the timer promises in the simulated times of the rounds, `realised` what the devices did: never
    more often nor sooner. `starved` counts the rounds that every device was asked for and too few came.
    """

    report_goal: int
    timer_hours: float
    promised: Participation
    realised: Participation
    days: float
    starved: int = 0

    @property
    def rounds_per_day(self) -> float:
        """On average."""
        return self.promised.rounds / self.days

    def to_record(self) -> Record:
        """Plain values for JSON."""
        return {
            "report_goal": self.report_goal,
            "timer_hours": self.timer_hours,
            "rounds_between": self.promised.rounds_between,
            "max_participations": self.promised.max_participations,
            "realised_rounds_between": self.realised.rounds_between,
            "realised_max_participations": self.realised.max_participations,
            "days": self.days,
            "rounds_per_day": self.rounds_per_day,
            "starved_rounds": self.starved,
        }


# (report goal, timer in hours) -> the run; None where it does not end in the days that are acceptable.
Simulate: TypeAlias = Callable[[int, float], SimulatedRun | None]


@dataclass(frozen=True, kw_only=True)
class Production:
    """The plan that came out, the simulated run that it counts on, and what was tried on the way.

    `scenario` has the participation of that run. `fed` is None, or the report goal above which no run ended in time.
    `exhausted` says that no larger report goal was left to try; where neither that nor the target is met, the checks
    ended first.
    """

    reached: Reached
    scenario: Scenario
    simulated: SimulatedRun
    tried: tuple[SimulatedRun, ...]
    fed: int | None
    exhausted: bool

    @property
    def plan(self) -> Plan:
        """Mechanism, report goal, guarantee."""
        return self.reached.plan

    def others_at_this_noise(self, mechanisms: Sequence[Mechanism]) -> tuple[Plan, ...]:
        """Plans of the other mechanisms among these, with the same participation and the same noise on the mean."""
        goal, noisier = self.plan.report_goal, self.reached.noisier
        quiet = [self.scenario.plan(each, goal) for each in mechanisms if each.name != self.plan.mechanism.name]
        return tuple(
            self.scenario.plan(each.mechanism, goal, noise_multiplier=each.guarantee.noise_multiplier * noisier)
            for each in quiet
        )

    @property
    def other_timers(self) -> tuple[SimulatedRun, ...]:
        """With the same report goal, as the search saw them."""
        mine = self.simulated
        return tuple(
            each for each in self.tried if each.report_goal == mine.report_goal and each.timer_hours != mine.timer_hours
        )


def production_plan(
    scenario: Scenario,
    mechanisms: Sequence[Mechanism],
    goal: Goal,
    *,
    simulate: Simulate,
    check: Simulate | None = None,
    timer_hours: float | None = None,
    progress: Progress | None = None,
) -> Production:
    """The least report goal whose plan is at most `goal.zcdp`-zCDP at this utility, with the timer of largest MinS.

    "Least" among those of `grid_above`, and as far as a simulation tells: exact where MinS never grows with the report
    goal. Of `mechanisms` each time the one of least zCDP. `simulate` may be coarse; `check`, if given,
    is asked in the end, and the plan counts on its answer alone. Without `timer_hours`, timers of whole days are tried.

    Where no report goal up to `goal.most` does it, the largest that ends in time, with just the noise for the target
    (step 3 of the paper). Raises: ParticipationError where nothing ends in time.
    """
    search = _Search(scenario, mechanisms, goal, simulate, timer_hours, progress)
    return search.checked(simulate if check is None else check)


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
        seen = run(hours)
        if seen is None:
            return
        yield seen
        separation = seen.promised.min_separation
        if separation >= rounds or separation < last:
            return
        last = separation


class _Search:
    """The way round the circle. `_largest` is the largest report goal that may still end in time, `_fed` the same where
    it was found by trying, and `_exhausted` whether no larger one is left to try. `_discount` is what checks left of
    the separations that the search saw, and `_more_visits` what they added to its participations.
    """

    def __init__(
        self,
        scenario: Scenario,
        mechanisms: Sequence[Mechanism],
        goal: Goal,
        simulate: Simulate,
        timer_hours: float | None,
        progress: Progress | None,
    ) -> None:
        if not mechanisms:
            raise InputError("no mechanism to choose from; give one.")
        self._scenario, self._mechanisms, self._goal = scenario, mechanisms, goal
        self._simulate, self._timer, self._progress = simulate, timer_hours, progress
        self._tried: list[SimulatedRun] = []
        self._largest = scenario.clients.reachable if goal.most is None else min(goal.most, scenario.clients.reachable)
        self._fed: int | None = None
        self._exhausted = False
        self._discount, self._more_visits = 1.0, 0
        if self._largest < 1:
            raise InputError(f"a report goal of at most {goal.most} is none; give at least 1.")

    def checked(self, check: Simulate) -> Production:
        """The plan that `check` confirms: more reports, else more noise where it promises less than the search did."""
        found = self._least_from(1)
        for left in reversed(range(CHECKS)):
            seen = check(found.report_goal, found.timer_hours)
            if seen is None:
                found = self._smaller(found)
                continue
            reached, scenario = self._settled(seen)
            if reached.at_utility or left == 0 or self._exhausted:
                return Production(
                    reached=reached,
                    scenario=scenario,
                    simulated=seen,
                    tried=tuple(self._tried),
                    fed=self._fed,
                    exhausted=self._exhausted,
                )
            self._learn(found, seen)
            found = self._least_from(grid_above(self._needed(seen, reached)))
        raise ParticipationError(
            f"{CHECKS} simulations of all devices did not end in time, although those of a part of them did; allow a "
            "few more days, or fewer reports."
        )

    def _least_from(self, first: int) -> SimulatedRun:
        """The first seen from this report goal on that reaches the target; the last one where none does."""
        report_goal = min(max(first, self._at_least()), self._largest)
        while True:
            seen = self._best(report_goal)
            if seen is None:
                return self._largest_fed(report_goal)
            reached, _ = self._settled(seen)
            self._exhausted = report_goal >= self._largest
            if reached.at_utility or self._exhausted:
                return seen
            report_goal = min(grid_above(self._needed(seen, reached)), self._largest)

    def _at_least(self) -> int:
        """A report goal below which nothing reaches the target, on the grid: clients would have to come in turn."""
        report_goal = 1
        while report_goal < self._largest:
            longest = self._scenario.clients.longest_separation(report_goal)
            participation = Participation.worst_case(
                rounds=self._scenario.rounds, min_separation=min(longest, self._scenario.rounds)
            )
            plan, _ = self._plan(report_goal, participation, None)
            if plan.zcdp <= self._goal.zcdp:
                break
            report_goal = grid_above(max(report_goal + 1, _scaled(report_goal, plan.zcdp / self._goal.zcdp)))
        return min(report_goal, self._largest)

    def _needed(self, seen: SimulatedRun, reached: Reached) -> int:
        """A lower bound on any larger report goal that does it: more reports never make clients come later."""
        return max(seen.report_goal + 1, _scaled(seen.report_goal, reached.noisier**2))

    def _best(self, report_goal: int) -> SimulatedRun | None:
        """The seen of largest MinS, the shortest timer of equals; None where none ends in time."""
        if self._timer is not None:
            return self._run(report_goal, self._timer)
        runs = timers_worth_trying(lambda hours: self._run(report_goal, hours), self._scenario.rounds)
        return max(runs, key=lambda each: (each.promised.min_separation, -each.timer_hours), default=None)

    def _run(self, report_goal: int, hours: float) -> SimulatedRun | None:
        if self._progress is not None:
            self._progress(f"report goal {report_goal:,}, timer of {hours:g} hours")
        seen = self._simulate(report_goal, hours)
        if seen is not None:
            seen = self._discounted(seen)
            self._tried.append(seen)
        return seen

    def _learn(self, found: SimulatedRun, seen: SimulatedRun) -> None:
        """From a check that promised less than the search."""
        self._discount *= min(1.0, seen.promised.min_separation / found.promised.min_separation)
        self._more_visits += max(0, seen.promised.max_participations - found.promised.max_participations)

    def _discounted(self, seen: SimulatedRun) -> SimulatedRun:
        """As a check would see it, by what earlier checks saw."""
        participation = seen.promised
        separation = max(1, math.floor(participation.min_separation * self._discount))
        visits = participation.max_participations + self._more_visits
        less = Participation(rounds=participation.rounds, min_separation=separation, max_participations=visits)
        return replace(seen, promised=less.effective)

    def _largest_fed(self, too_many: int) -> SimulatedRun:
        """Below `too_many`, which do not end in time, the seen that takes the least noise; ParticipationError if none.

        Reports that cost separation, and force a shorter timer, are not always worth it.
        """
        least, most = max((each.report_goal for each in self._tried), default=0), too_many
        while most - least > max(1, most // FINE):
            middle = (least + most) // 2
            if self._best(middle) is None:
                most = middle
            else:
                least = middle
        if not self._tried:
            raise ParticipationError(
                f"not even rounds of 1 report end in time with {self._scenario.clients.reachable} devices; allow more "
                "days, a shorter timer or fewer rounds."
            )
        self._largest = self._fed = least
        self._exhausted = True
        return min(self._tried, key=lambda each: self._settled(each)[0].noisier)

    def _smaller(self, found: SimulatedRun) -> SimulatedRun:
        """What remains where the check did not end in time: fewer reports, by a step."""
        self._largest = self._fed = max(1, min(found.report_goal - 1, math.floor(found.report_goal * 0.98)))
        self._tried = [each for each in self._tried if each.report_goal <= self._largest]
        return self._least_from(self._largest)

    def _settled(self, seen: SimulatedRun) -> tuple[Reached, Scenario]:
        """The plan with the participation of a seen: as is where it reaches the target, else with more noise."""
        plan, scenario = self._plan(seen.report_goal, seen.promised, seen.rounds_per_day)
        return noise_for(scenario, plan.mechanism, seen.report_goal, self._goal.zcdp), scenario

    def _plan(self, report_goal: int, participation: Participation, speed: float | None) -> tuple[Plan, Scenario]:
        """Of least zCDP among the mechanisms, all at the same utility."""
        clients = replace(
            self._scenario.clients,
            availability=1.0,  # the simulation's business
            timer_hours=None,
            min_separation=participation.min_separation,
            max_participations=participation.max_participations,
            rounds_per_day=speed,
        )
        scenario = replace(self._scenario, clients=clients)
        plans = (scenario.plan(each, report_goal) for each in self._mechanisms)
        return min(plans, key=lambda plan: plan.zcdp), scenario


def _scaled(report_goal: int, ratio: float) -> int:
    """report goal * sqrt(ratio of zCDPs), rounded up, not fooled by the last bit."""
    return math.ceil(report_goal * math.sqrt(ratio) * (1 - 1e-12))


def grid_above(report_goal: int) -> int:
    """The least report goal of the search at or above this one: whole numbers up to FINE, then fewer and fewer."""
    step = 1
    while report_goal > FINE * step:
        step = {1: 2, 2: 5, 5: 10}[int(str(step)[0])] * 10 ** (len(str(step)) - 1)
    return -(-report_goal // step) * step
