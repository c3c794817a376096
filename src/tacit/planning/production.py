"""Report goal, timer and noise of a run, by simulating who would come: steps 2 to 4 of arXiv:2305.18465, Section 2.5.

Timer and report goal decide how often a client comes (MinS, MaxP), which decides the sensitivity, hence the noise that
a target takes, hence, at equal utility, the report goal. `production_plan` repeats that until the report goal stays as
it is. Who comes is told by a function that simulates a run; the plan is accounted forwards from what it says.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tacit.design.mechanism import Mechanism
from tacit.errors import InputError, ParticipationError
from tacit.planning.scenario import AccountedPlan, Scenario
from tacit.planning.simulated_runs import Simulate, SimulatedRun, counting_on, timers_worth_trying
from tacit.planning.targets import Goal, Reached, noise_for
from tacit.privacy.participation import Participation
from tacit.progress import Advanced, Progress, StageBegan, StageEnded, silent

FINE = 200  # report goals above this are searched in steps of half a percent to one: simulations are not sharper
CHECKS = 3  # at the size of production, each a simulation of all devices
SEARCHING = "simulating"  # the stage of the search


@dataclass(frozen=True, kw_only=True)
class Production:
    """The plan that came out, the simulated run that it counts on, and what was tried on the way.

    scenario: with the participation of that run. largest_feasible: the report goal above which no run ended in time,
    or None. exhausted: whether no larger report goal was left to try. Where that is False and the target is not met,
    the checks ended first.
    """

    reached: Reached
    scenario: Scenario
    simulated: SimulatedRun
    tried: tuple[SimulatedRun, ...]
    largest_feasible: int | None
    exhausted: bool

    @property
    def plan(self) -> AccountedPlan:
        """Mechanism, report goal, guarantee."""
        return self.reached.plan

    def others_at_this_noise(self, mechanisms: Sequence[Mechanism]) -> tuple[AccountedPlan, ...]:
        """Plans of the other mechanisms among these, with the same participation and the same noise on the mean."""
        goal, noisier = self.plan.report_goal, self.reached.noisier
        quiet = [self.scenario.plan(each, goal) for each in mechanisms if each.name != self.plan.mechanism.name]
        return tuple(
            self.scenario.plan(each.mechanism, goal, noise_multiplier=each.guarantee.noise_multiplier * noisier)
            for each in quiet
        )

    @property
    def other_timers(self) -> tuple[SimulatedRun, ...]:
        """The other timers at the same report goal, as the search saw them."""
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
    progress: Progress = silent,
) -> Production:
    """The least report goal whose plan is at most `goal.zcdp`-zCDP at this utility, with the timer of largest MinS.

    "Least" among those of `grid_above`, and as far as a simulation tells: exact where MinS never grows with the report
    goal. Of `mechanisms` each time the one of least zCDP. `simulate` may be coarse; `check`, if given, is asked in the
    end, and the plan counts on its answer alone: where it promises less than the search saw, the search goes on with
    that correction, `CHECKS` times at most. Without `timer_hours`, timers of whole days are tried.

    Where no report goal up to `goal.max_goal` reaches the target: the largest that ends in time, with just the noise
    for the target (step 3 of the paper). Raises: ParticipationError where nothing ends in time.
    """
    if not mechanisms:
        raise InputError("no mechanism to choose from; give one.")
    reachable = scenario.clients.reachable
    largest = reachable if goal.max_goal is None else min(goal.max_goal, reachable)
    if largest < 1:
        raise InputError(f"a report goal of at most {goal.max_goal} is none; give at least 1.")
    search = _Search(scenario, mechanisms, goal, simulate, timer_hours, progress)
    first, correction = 1, _Correction()
    feasible: int | None = None
    for left in reversed(range(CHECKS)):
        found = search.least(first, largest, correction)
        largest, feasible = (
            (largest, feasible) if found.largest_feasible is None else (found.largest_feasible, found.largest_feasible)
        )
        run = found.run
        seen = (check or simulate)(run.report_goal, run.timer_hours)
        if seen is None:  # fewer reports, by a step
            first = largest = feasible = max(1, min(run.report_goal - 1, math.floor(run.report_goal * 0.98)))
            search.tried[:] = [each for each in search.tried if each.report_goal <= largest]
            continue
        reached, counted_on = search.settled(seen)
        if reached.at_utility or left == 0 or found.exhausted:
            return Production(
                reached=reached,
                scenario=counted_on,
                simulated=seen,
                tried=tuple(search.tried),
                largest_feasible=feasible,
                exhausted=found.exhausted,
            )
        correction, first = correction.learned(run, seen), grid_above(search.needed(seen, reached))
    raise ParticipationError(
        f"{CHECKS} simulations of all devices did not end in time, although those of a part of them did; allow a "
        "few more days, or fewer reports."
    )


def grid_above(report_goal: int) -> int:
    """The least report goal of the search at or above this one: whole numbers up to FINE, then fewer and fewer."""
    step = 1
    while report_goal > FINE * step:
        step = {1: 2, 2: 5, 5: 10}[int(str(step)[0])] * 10 ** (len(str(step)) - 1)
    return -(-report_goal // step) * step


@dataclass(frozen=True)
class _Correction:
    """What checks left of the separations that the search saw, and what they added to its participations."""

    separation: float = 1.0
    participations: int = 0

    def of(self, seen: SimulatedRun) -> SimulatedRun:
        """The run as a check would see it, by what earlier checks saw."""
        promised = seen.promised
        separation = max(1, math.floor(promised.min_separation * self.separation))
        most = promised.max_participations + self.participations
        less = Participation(rounds=promised.rounds, min_separation=separation, max_participations=most)
        return replace(seen, promised=less.effective)

    def learned(self, found: SimulatedRun, seen: SimulatedRun) -> "_Correction":
        """From a check that promised less than the search."""
        more = seen.promised.max_participations - found.promised.max_participations
        return _Correction(
            self.separation * min(1.0, seen.promised.min_separation / found.promised.min_separation),
            self.participations + max(0, more),
        )


@dataclass(frozen=True)
class _Found:
    """The run that a search ended with. `largest_feasible`: the largest report goal that ends in time, where larger
    ones do not. `exhausted`: no larger one was left to try.
    """

    run: SimulatedRun
    largest_feasible: int | None
    exhausted: bool


@dataclass(frozen=True)
class _Search:
    """The search for a plan; `tried` are the simulated runs, in their order."""

    scenario: Scenario
    mechanisms: Sequence[Mechanism]
    goal: Goal
    simulate: Simulate
    timer: float | None
    progress: Progress
    tried: list[SimulatedRun] = field(default_factory=list)

    def least(self, first: int, largest: int, correction: _Correction) -> _Found:
        """The first run from report goal `first` on that reaches the target; where none up to `largest` does, the last
        one, or, where that does not end in time, the one below it that takes the least noise.
        """
        report_goal = min(max(first, self._at_least(largest)), largest)
        self.progress(StageBegan(SEARCHING, done=len(self.tried)))
        while (seen := self._best(report_goal, correction)) is not None:
            reached, _ = self.settled(seen)
            if reached.at_utility or report_goal >= largest:
                self.progress(StageEnded(SEARCHING))
                return _Found(seen, None, exhausted=report_goal >= largest)
            report_goal = min(grid_above(self.needed(seen, reached)), largest)
        found = self._largest_feasible(report_goal, correction)
        self.progress(StageEnded(SEARCHING))
        return found

    def settled(self, seen: SimulatedRun) -> tuple[Reached, Scenario]:
        """The plan with the participation of a run: as it is where it reaches the target, else with more noise."""
        plan, scenario = self._plan(seen.report_goal, seen.promised, seen.rounds_per_day)
        return noise_for(scenario, plan.mechanism, seen.report_goal, self.goal.zcdp), scenario

    def needed(self, seen: SimulatedRun, reached: Reached) -> int:
        """A lower bound on any larger report goal that does it: more reports never make clients come later."""
        return max(seen.report_goal + 1, _scaled(seen.report_goal, reached.noisier**2))

    def _at_least(self, largest: int) -> int:
        """A report goal below which nothing reaches the target, on the grid: clients would have to come in turn."""
        report_goal, rounds = 1, self.scenario.rounds
        while report_goal < largest:
            longest = self.scenario.clients.longest_separation(report_goal)
            in_turn = Participation.worst_case(rounds=rounds, min_separation=min(longest, rounds))
            plan, _ = self._plan(report_goal, in_turn, None)
            if plan.zcdp <= self.goal.zcdp:
                break
            report_goal = grid_above(max(report_goal + 1, _scaled(report_goal, plan.zcdp / self.goal.zcdp)))
        return min(report_goal, largest)

    def _best(self, report_goal: int, correction: _Correction) -> SimulatedRun | None:
        """The run of largest MinS, the shortest timer of equals; None where none ends in time."""
        if self.timer is not None:
            return self._run(report_goal, self.timer, correction)
        runs = timers_worth_trying(lambda hours: self._run(report_goal, hours, correction), self.scenario.rounds)
        return max(runs, key=lambda each: (each.promised.min_separation, -each.timer_hours), default=None)

    def _run(self, report_goal: int, hours: float, correction: _Correction) -> SimulatedRun | None:
        self.progress(Advanced(SEARCHING, len(self.tried), {"report_goal": report_goal, "timer_hours": hours}))
        seen = self.simulate(report_goal, hours)
        if seen is None:
            return None
        self.tried.append(correction.of(seen))
        return self.tried[-1]

    def _largest_feasible(self, too_many: int, correction: _Correction) -> _Found:
        """Below `too_many`, which do not end in time, the run that takes the least noise; ParticipationError if none.

        Reports that cost separation, and force a shorter timer, are not always worth it.
        """
        least, most = max((each.report_goal for each in self.tried), default=0), too_many
        while most - least > max(1, most // FINE):
            middle = (least + most) // 2
            least, most = (least, middle) if self._best(middle, correction) is None else (middle, most)
        if not self.tried:
            raise ParticipationError(
                f"not even rounds of 1 report end in time with {self.scenario.clients.reachable} devices; allow more "
                "days, a shorter timer or fewer rounds."
            )
        least_noise = min(self.tried, key=lambda each: self.settled(each)[0].noisier)
        return _Found(least_noise, least, exhausted=True)

    def _plan(
        self, report_goal: int, participation: Participation, speed: float | None
    ) -> tuple[AccountedPlan, Scenario]:
        """Of least zCDP among the mechanisms, all at the same utility."""
        scenario = counting_on(self.scenario, participation, speed)
        plans = (scenario.plan(each, report_goal) for each in self.mechanisms)
        return min(plans, key=lambda plan: plan.zcdp), scenario


def _scaled(report_goal: int, ratio: float) -> int:
    """report goal * sqrt(ratio of zCDPs), rounded up, not fooled by the last bit."""
    return math.ceil(report_goal * math.sqrt(ratio) * (1 - 1e-12))
