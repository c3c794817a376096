"""Many rounds of a simulated population: what happened, how long it took, and who came how often."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError
from tacit.population.availability import DAY, HOUR
from tacit.population.devices import Population, RoundRules
from tacit.population.simulated_cohorts import SimulatedCohorts, SimulatedRound
from tacit.population.supply import check_supply
from tacit.population.work_model import SECOND
from tacit.privacy import Participation

COLUMNS = (
    "round",
    "started",
    "finished",
    "selected",
    "reported",
    "dropped",
    "late",
    "wasted",
    "eligible",
    "select_seconds",
    "starved",
)


@dataclass(frozen=True, kw_only=True)
class Simulation:
    """A simulated run: its settings and its rounds."""

    population: Population
    rules: RoundRules
    seed: int
    happened: tuple[SimulatedRound, ...]

    @property
    def rounds(self) -> int:
        """How many."""
        return len(self.happened)

    @cached_property
    def finished(self) -> NDArray[np.int64]:
        """(rounds,) when each round finished, in milliseconds."""
        return np.array([each.finished for each in self.happened], np.int64)

    @property
    def days(self) -> float:
        """From the first round's opening to the last one's finish."""
        return float(self.finished[-1]) / DAY

    @property
    def rounds_per_day(self) -> float:
        """On average over the run."""
        return self.rounds / self.days

    @cached_property
    def realised(self) -> Participation:
        """The least separation and the most participations of any device: exact, from all that took part."""
        clients = np.concatenate([each.clients for each in self.happened])
        return Participation.realised(self.rounds, np.repeat(np.arange(self.rounds), self.rules.report_goal), clients)

    @cached_property
    def promised(self) -> Participation:
        """What the timer and the times of the rounds promise, whoever came: never more than `realised` kept."""
        return Participation.from_round_times(self.finished, timer=self.rules.timer, clock=self.rules.clock)

    @cached_property
    def starved(self) -> NDArray[np.int64]:
        """Numbers of the rounds that every device was asked for once, and still too few came to select."""
        period = round(self.rules.check_in_minutes * 60 * SECOND)
        return np.array([i for i, each in enumerate(self.happened) if each.filled - each.opened >= period], np.int64)

    @property
    def used_hours(self) -> float:
        """Device hours of work that were used."""
        return sum(each.used_work for each in self.happened) / HOUR

    @property
    def wasted_hours(self) -> float:
        """Device hours of work that were not: drop-outs, and reports that came late."""
        return sum(each.wasted_work for each in self.happened) / HOUR

    @cached_property
    def times_came(self) -> NDArray[np.int64]:
        """Entry k: how many devices took part k times."""
        return self._returns[0]

    @cached_property
    def separations(self) -> NDArray[np.int64]:
        """Entry d: how often a device took part again after d rounds, (rounds + 1,)."""
        return self._returns[1]

    @cached_property
    def _returns(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        last = np.full(self.population.devices, -1, np.int32)
        times = np.zeros(self.population.devices, np.int32)
        gaps = np.zeros(self.rounds + 1, np.int64)
        for number, each in enumerate(self.happened):
            before = last[each.clients]
            np.add.at(gaps, number - before[before >= 0], 1)
            last[each.clients] = number
            times[each.clients] += 1
        return np.bincount(times), gaps

    def rows(self) -> Iterator[tuple[int | float, ...]]:
        """One for each round, under COLUMNS; times in seconds since the first round opened."""
        starved = set(self.starved.tolist())
        for number, each in enumerate(self.happened):
            yield (
                number,
                each.opened / SECOND,
                each.finished / SECOND,
                each.selected,
                len(each.clients),
                each.dropped,
                each.late,
                each.wasted,
                each.eligible,
                (each.filled - each.opened) / SECOND,
                int(number in starved),
            )


def simulate(
    population: Population,
    rules: RoundRules,
    *,
    rounds: int,
    seed: int = 0,
    progress: Callable[[SimulatedRound], None] | None = None,
) -> Simulation:
    """So many rounds; the same seed gives the same rounds, on every machine.

    Takes 8 bytes a device and 8 a report; the time grows with the devices that are asked, not with all devices times
    the rounds. Raises ParticipationError, before the first round where that is certain, when the rounds do not end
    within `rules.most_days`.
    """
    if isinstance(rounds, bool) or not hasattr(rounds, "__index__") or rounds < 1:
        raise InputError(f"rounds={rounds!r} is not a whole number of at least 1; give one.")
    if isinstance(seed, bool) or not hasattr(seed, "__index__") or seed < 0:
        raise InputError(f"seed={seed!r} is not a whole number of 0 or more; give one.")
    cohorts = SimulatedCohorts(population, rules, seed=seed)
    check_supply(population, rules, rounds, seed)
    clock, happened = cohorts.start(), []
    for number in range(rounds):
        each, clock = cohorts.play(clock.ready, int(clock.opens), number)
        happened.append(each)
        if progress is not None:
            progress(each)
    return Simulation(population=population, rules=rules, seed=seed, happened=tuple(happened))
