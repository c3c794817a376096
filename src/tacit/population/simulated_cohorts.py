"""Who comes this round, from the simulator: state in, cohort and state out.

The state is two arrays, so that it can be saved with a model; everything else about a device is a hash of the seed. A
run that is resumed from a saved state sees the same cohorts at the same simulated times, bit for bit.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.errors import ParticipationError
from tacit.population.availability import DAY, NEVER
from tacit.population.check_ins import NOBODY, count_eligible, fill_round
from tacit.population.devices import Population, RoundRules, loop_settings

SAMPLED = 1 << 14  # eligible devices are counted among at least so many, where there are so many


class SimulatedClock(NamedTuple):
    """What is carried from round to round; times in milliseconds since the first round opened."""

    ready: NDArray[np.int64]  # (devices,) a moment before which the device is not eligible
    opens: NDArray[np.int64]  # () when the next round opens


@dataclass(frozen=True, kw_only=True)
class SimulatedRound:
    """What happened in one round; times in milliseconds since the first round opened."""

    clients: NDArray[np.int64]  # (report goal,) whose reports were used, in the order of their uploads
    opened: int
    filled: int  # when the last device was selected
    finished: int
    selected: int
    dropped: int  # of the selected: failed, interrupted or too slow, before or after the finish
    late: int  # of the selected: uploaded when the round was over
    eligible: int  # devices when the round opened: counted up to 32,767 devices, else in every k-th, times k
    used_work: int  # device milliseconds of the reports used
    wasted_work: int  # device milliseconds of all others

    @property
    def wasted(self) -> int:
        """Devices that were selected and not used."""
        return self.dropped + self.late


class SimulatedCohorts:
    """The cohorts of a population under a server's rules; the same seed, the same cohorts.

    `examples` (devices,) gives the devices' data where it is known, in the unit of `WorkModel.examples`. Raises
    ParticipationError where the population has fewer devices than a round needs.
    """

    def __init__(
        self, population: Population, rules: RoundRules, *, seed: int, examples: ArrayLike | None = None
    ) -> None:
        self.population, self.rules, self.seed = population, rules, seed
        self.settings = loop_settings(population, rules, seed, examples=examples)
        self._stride = max(1, population.devices // SAMPLED)
        self._order = np.empty(self.settings.runs, np.int32)
        self._cursor = np.full(3, NOBODY, np.int64)  # the order belongs to no period yet

    def start(self) -> SimulatedClock:
        """Every timer is over, and it is midnight in UTC."""
        return SimulatedClock(np.zeros(self.population.devices, np.int64), np.zeros((), np.int64))

    def next_cohort(self, clock: SimulatedClock, round: int) -> tuple[SimulatedRound, SimulatedClock]:
        """Who reports in this round, and the clock after it; a pure function of (seed, clock).

        `round` is named in complaints. Raises ParticipationError when the report goal is not met before
        `RoundRules.most_days`; the clock that was given is as it was.
        """
        ready = clock.ready.copy()
        return self.play(ready, int(clock.opens), round)

    def play(self, ready: NDArray[np.int64], opens: int, round: int) -> tuple[SimulatedRound, SimulatedClock]:
        """`next_cohort` that writes into `ready`, for those who run millions of devices and need no clock twice."""
        rules, settings = self.rules, self.settings
        eligible = count_eligible(settings, ready, opens, self._stride)
        attempts, uploads, finish = fill_round(settings, ready, self._order, self._cursor, opens, rules.until)
        if finish == NEVER or finish > rules.until:
            raise ParticipationError(
                f"round {round} opened on day {opens / DAY:.1f} and had {int(uploads.sum())} of "
                f"{rules.report_goal} reports on day {rules.most_days:g}, when the run must end: its devices are on "
                f"their timer of {rules.timer_hours:g} hours or not available; use a shorter timer, a smaller report "
                "goal, more devices or more days."
            )
        device, selected_at, ended_at = attempts.T
        by_upload = np.flatnonzero(uploads)[np.argsort(ended_at[uploads], kind="stable")]
        used, late = by_upload[: rules.report_goal], by_upload[rules.report_goal :]
        if rules.clock == "finish":
            ready[device[used]] = finish + rules.timer
        else:
            ready[device[used]] = np.maximum(ended_at[used] + rules.timer, finish)
        ready[device[late]] = ended_at[late] + rules.timer
        worked = ended_at - selected_at
        used_work = int(worked[used].sum())
        happened = SimulatedRound(
            clients=device[used].copy(),
            opened=opens,
            filled=int(selected_at[-1]),
            finished=int(finish),
            selected=len(device),
            dropped=len(device) - len(by_upload),
            late=len(late),
            eligible=min(self.population.devices, eligible * self._stride),
            used_work=used_work,
            wasted_work=int(worked.sum()) - used_work,
        )
        return happened, SimulatedClock(ready, np.array(finish + rules.pause, np.int64))
