"""The way back: from a zCDP to the report goal, the noise, the timer or the rounds that reach it.

Every answer is a plan that was accounted forwards. "Least" and "most" are exact where the loss never falls when
clients may come more often: true for every strategy held fixed (there are only more patterns) and for designs that
reach their optimum.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tacit.design.mechanism import Mechanism
from tacit.errors import InputError
from tacit.planning.clients import HOURS_PER_DAY
from tacit.planning.scenario import AccountedPlan, Scenario
from tacit.privacy.delta import default_delta
from tacit.privacy.gaussian import noise_multiplier_for, zcdp_for_epsilon
from tacit.progress import Advanced, Progress, StageBegan, StageEnded, silent

MOST_DAYS = 3_650  # of a timer
MOST_ROUNDS = 1_000_000  # beyond this nobody plans, and exact tree accounting takes seconds


@dataclass(frozen=True, kw_only=True)
class Goal:
    """A target: at most `zcdp`, with at most `max_goal` reports a round; epsilon is stated at `delta`."""

    zcdp: float
    delta: float
    max_goal: int | None = None

    def __post_init__(self) -> None:
        if not self.zcdp > 0:
            raise InputError(f"zcdp={self.zcdp:g} is no target; give a number above 0.")
        if not 0 < self.delta < 1:
            raise InputError(f"delta={self.delta} is not a probability between 0 and 1; give for example 1e-10.")

    @classmethod
    def from_target(
        cls,
        *,
        epsilon: float | None = None,
        zcdp: float | None = None,
        delta: float | None = None,
        population: int | None = None,
        most: int | None = None,
    ) -> "Goal":
        """The goal for an epsilon at `delta`, or for a zCDP: one of the two. InputError for both, or neither.

        delta: left out, that of so large a `population`; one of the two is given.
        """
        if delta is None:
            if population is None:
                raise InputError("epsilon is given at a delta; give that, or the population that it follows from.")
            delta = default_delta(population)
        if (epsilon is None) == (zcdp is None):
            raise InputError(f"epsilon={epsilon} and zcdp={zcdp}: a goal is one of the two; give one.")
        rho = zcdp_for_epsilon(epsilon, delta) if epsilon is not None else zcdp
        assert rho is not None  # one of the two was given
        return cls(zcdp=rho, delta=delta, max_goal=most)


@dataclass(frozen=True, kw_only=True)
class Reached:
    """The plan that meets a target, and at what price.

    `noisier` is its noise of the mean over what the utility bears: 1 where the target is met at this utility, else
    the plan is that of a model with more noise than it should have.
    """

    plan: AccountedPlan
    noisier: float

    @property
    def at_utility(self) -> bool:
        """Whether the target is met without more noise on the mean."""
        return self.noisier == 1.0


def report_goal_for(
    scenario: Scenario, mechanism: Mechanism, zcdp: float, *, most: int | None = None, progress: Progress = silent
) -> Reached:
    """The least report goal, noise in proportion, whose plan is at most `zcdp`-zCDP.

    For one report goal m the separation, hence rho m^2, is known; a smaller rho needs m sqrt(rho / zcdp) reports at
    least, because more reports mean a shorter separation and no smaller rho m^2. So the search jumps from one lower
    bound to the next and never over an answer.

    Where no report goal up to `most` (and what the population can give) reaches the target, the answer has more noise
    than the utility bears, just enough (arXiv:2305.18465, Section 2.5, step 3), at the report goal of least zCDP among
    `most` and the largest ones for some separations: with reports that cost separation, more are not always better.
    """
    _check_target(zcdp)
    largest = scenario.clients.reachable // (scenario.clients.min_separation or 1)
    if largest < 1:
        scenario.clients.separation(1)  # says why
    if most is not None:
        if most < 1:
            raise InputError(f"a report goal of at most {most} is none; give at least 1.")
        largest = min(largest, most)
    found = _least(scenario, mechanism, zcdp, largest, progress)
    if found is not None:
        return Reached(plan=found, noisier=1.0)
    plans = (scenario.plan(mechanism, goal) for goal in _worth_trying(scenario, largest))
    return _louder(scenario, min(plans, key=lambda plan: plan.zcdp), zcdp)


def _least(
    scenario: Scenario, mechanism: Mechanism, zcdp: float, largest: int, progress: Progress
) -> AccountedPlan | None:
    """The plan of the least report goal up to `largest` that is at most `zcdp`-zCDP; None where none is."""
    stage, report_goal, tried = f"searching with {mechanism.name}", 1, 0
    progress(StageBegan(stage))
    found = None
    while report_goal <= largest:
        plan = scenario.plan(mechanism, report_goal)
        tried += 1
        progress(Advanced(stage, tried, {"report_goal": report_goal, "zcdp": plan.zcdp}))
        if plan.zcdp <= zcdp:
            found = plan
            break
        report_goal = max(report_goal + 1, math.ceil(report_goal * math.sqrt(plan.zcdp / zcdp) * (1 - 1e-12)))
    progress(StageEnded(stage))
    return found


def noise_for(scenario: Scenario, mechanism: Mechanism, report_goal: int, zcdp: float) -> Reached:
    """The plan at this report goal with just the noise that makes it `zcdp`-zCDP; less than the utility bears is not
    taken off.
    """
    _check_target(zcdp)
    plan = scenario.plan(mechanism, report_goal)
    return Reached(plan=plan, noisier=1.0) if plan.zcdp <= zcdp else _louder(scenario, plan, zcdp)


def rounds_for(scenario: Scenario, mechanism: Mechanism, report_goal: int, zcdp: float) -> AccountedPlan | None:
    """How long the planned run may go on, its strategy and noise as planned: the most rounds at most `zcdp`-zCDP.

    None where not even one round is. Ends at MOST_ROUNDS, or where the strategy says nothing more.
    """
    _check_target(zcdp)
    planned = scenario.plan(mechanism, report_goal)
    fixed = Mechanism.fixed(mechanism.name, planned.strategy, mechanism.says)
    noise = planned.guarantee.noise_multiplier

    def of(rounds: int) -> AccountedPlan:
        return replace(scenario, rounds=rounds).plan(fixed, report_goal, noise_multiplier=noise)

    most = planned.strategy.rounds_defined or MOST_ROUNDS
    met, missed = 0, most + 1  # rho never falls with the rounds
    rounds = min(scenario.rounds, most)
    while missed - met > 1:
        if of(rounds).zcdp <= zcdp:
            met = rounds
        else:
            missed = rounds
        rounds = min(2 * met, most) if missed > most else (met + missed) // 2
    return of(met) if met else None


def timers(scenario: Scenario, mechanism: Mechanism, report_goal: int) -> Iterator[tuple[int, AccountedPlan]]:
    """(hours, plan) for timers of one, two, three ... days, up to the first that asks all that the population has."""
    fast = replace(scenario.clients, min_separation=None, timer_hours=None)
    longest = fast.longest_separation(report_goal)
    most = fast.timer_for(min(longest, scenario.rounds))
    if most > MOST_DAYS * HOURS_PER_DAY:
        raise InputError(
            f"timers of up to {most // HOURS_PER_DAY:,} days would have to be planned, and {MOST_DAYS:,} are the most; "
            "give more rounds a day, or fewer rounds."
        )
    for hours in range(HOURS_PER_DAY, most + 1, HOURS_PER_DAY):
        yield hours, replace(scenario, clients=fast.with_timer(hours)).plan(mechanism, report_goal)


def timer_for(
    scenario: Scenario, mechanism: Mechanism, report_goal: int, zcdp: float
) -> tuple[int, AccountedPlan] | None:
    """The shortest timer in whole days, in hours, whose plan is at most `zcdp`-zCDP; None where none is."""
    _check_target(zcdp)
    return next(((hours, plan) for hours, plan in timers(scenario, mechanism, report_goal) if plan.zcdp <= zcdp), None)


def _worth_trying(scenario: Scenario, largest: int) -> list[int]:
    """The largest report goals for separations of 1, 2, 3, 4, 6, 8, 12 ... rounds, and the largest of all."""
    grid = sorted({round(2 ** (half / 2)) for half in range(2 * scenario.rounds.bit_length())})
    return sorted(
        {largest, *(goal for goal in (scenario.clients.reachable // each for each in grid) if 0 < goal < largest)}
    )


def _louder(scenario: Scenario, plan: AccountedPlan, zcdp: float) -> Reached:
    """The same run with just the noise for `zcdp`."""
    needed = noise_multiplier_for(zcdp, plan.guarantee.sensitivity)
    while replace(plan.guarantee, noise_multiplier=needed).zcdp > zcdp:  # the last bit
        needed = math.nextafter(needed, math.inf)
    louder = scenario.plan(plan.mechanism, plan.report_goal, noise_multiplier=needed)
    return Reached(plan=louder, noisier=louder.noise_of_mean / plan.noise_of_mean)


def _check_target(zcdp: float) -> None:
    if not 0 < zcdp < math.inf:
        raise InputError(f"a target of zcdp={zcdp} asks for infinite noise or for none; give a finite number above 0.")
