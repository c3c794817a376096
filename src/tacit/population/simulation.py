"""Many rounds of a simulated population: what happened, how long it took, and how often devices took part."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.population.availability import DAY, HOUR
from tacit.population.devices import Population, RoundRules
from tacit.population.settings import SimulationSettings
from tacit.population.simulated_cohorts import SimulatedCohorts, SimulatedRound
from tacit.population.supply import check_supply
from tacit.population.work_model import SECOND
from tacit.privacy import Participation
from tacit.privacy.measured_participation import realised_participation, timed_participation
from tacit.progress import Advanced, Progress, StageBegan, StageEnded, silent

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
    """A simulated run: its settings, and what happened in each of its rounds."""

    settings: SimulationSettings
    happened: tuple[SimulatedRound, ...]

    @property
    def population(self) -> Population:
        """The devices that were simulated."""
        return self.settings.population

    @property
    def rules(self) -> RoundRules:
        """The server's rules, and the timer."""
        return self.settings.rules

    @property
    def rounds(self) -> int:
        """The number of rounds."""
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
        """Rounds a day, on average over the run."""
        return self.rounds / self.days

    @cached_property
    def realised(self) -> Participation:
        """The least separation and the most participations of any device: exact, from all that took part."""
        clients = np.concatenate([each.clients for each in self.happened])
        return realised_participation(self.rounds, np.repeat(np.arange(self.rounds), self.rules.report_goal), clients)

    @cached_property
    def promised(self) -> Participation:
        """What the timer and the times of the rounds promise, whoever came: never more than `realised` kept."""
        return timed_participation(self.finished, timer=self.rules.timer, clock=self.rules.clock)

    @cached_property
    def underfilled(self) -> NDArray[np.int64]:
        """Numbers of the rounds for which every device was asked once and still too few could be selected."""
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

    @property
    def wasted_share(self) -> float:
        """The share of the selected devices whose work was not used."""
        return sum(each.wasted for each in self.happened) / sum(each.selected for each in self.happened)

    @cached_property
    def participations_per_device(self) -> NDArray[np.int64]:
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

    def to_record(self) -> dict[str, Any]:
        """The figures of the run as plain values for JSON."""
        lasted = (self.finished - np.array([each.opened for each in self.happened])) / (60 * SECOND)
        minutes = np.percentile(lasted, [50, 99, 100]).tolist()
        return {
            "devices": self.population.devices,
            "report_goal": self.rules.report_goal,
            "rounds": self.rounds,
            "timer_hours": self.rules.timer_hours,
            "clock": self.rules.clock,
            "seed": self.settings.seed,
            "realised": _limits(self.realised),
            "promised_by_timer": _limits(self.promised),
            "days": self.days,
            "rounds_per_day": self.rounds_per_day,
            "round_minutes": dict(zip(("median", "p99", "max"), minutes, strict=True)),
            "starved_rounds": int(self.underfilled.size),
            "starved": spans(self.underfilled.tolist()),
            "selected": sum(each.selected for each in self.happened),
            "dropped": sum(each.dropped for each in self.happened),
            "late": sum(each.late for each in self.happened),
            "wasted_visits_share": self.wasted_share,
            "used_device_hours": self.used_hours,
            "wasted_device_hours": self.wasted_hours,
            "participations_per_device": self.participations_per_device.tolist(),
        }

    def rows(self) -> Iterator[tuple[int | float, ...]]:
        """One for each round, under COLUMNS; times in seconds since the first round opened."""
        underfilled = set(self.underfilled.tolist())
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
                int(number in underfilled),
            )


def _limits(participation: Participation) -> dict[str, int]:
    return {
        "min_separation": participation.min_separation,
        "rounds_between": participation.rounds_between,
        "max_participations": participation.max_participations,
    }


def spans(numbers: list[int]) -> list[str]:
    """Whole numbers that never fall, as "3", "7-12", ..."""
    found: list[list[int]] = []
    for number in numbers:
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return [f"{first}" if first == last else f"{first}-{last}" for first, last in found]


def simulate(settings: SimulationSettings, *, progress: Progress = silent, stage: str = "simulating") -> Simulation:
    """The simulation that `settings` describe; the same settings give the same rounds, on every machine.

    Takes 8 bytes a device and 8 a report; the time grows with the devices that are asked, not with all devices times
    the rounds. `progress` is told of each round under the name `stage`. Raises ParticipationError, before the first
    round where that is certain, when the rounds do not end within `rules.most_days`.
    """
    cohorts = SimulatedCohorts(settings.population, settings.rules, seed=settings.seed)
    check_supply(settings.population, settings.rules, settings.rounds, settings.seed)
    clock, happened = cohorts.start(), []
    progress(StageBegan(stage, settings.rounds))
    try:
        for number in range(settings.rounds):
            each, clock = cohorts.play(clock.ready, int(clock.opens), number)
            happened.append(each)
            progress(Advanced(stage, number + 1, {"day": each.finished / DAY}))
    finally:
        progress(StageEnded(stage))
    return Simulation(settings=settings, happened=tuple(happened))
