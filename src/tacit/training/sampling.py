"""Who is asked to take part in a round of a simulation: a rule, and the state that it carries from round to round."""

from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError
from tacit.population.cohorts import ParticipationClock, check_population, draw_cohort, start_clock
from tacit.population.simulated_cohorts import SimulatedClock, SimulatedCohorts
from tacit.population.supply import check_supply
from tacit.privacy import Participation
from tacit.training.randomness import generator_for

Clock = Any  # what a sampler carries from round to round: NumPy arrays in any nesting


class CohortSampler(Protocol):
    """A rule for who takes part. What was promised of participation is held against what the log says happened."""

    def init(self, clients: int, *, report_goal: int) -> Clock:
        """What is carried before the first round; it is saved with the model.

        Raises: ParticipationError or InputError for what would fail in a later round.
        """
        ...

    def draw(
        self, clock: Clock, *, round: int, report_goal: int, generator: np.random.Generator
    ) -> tuple[NDArray[np.int64], Clock]:
        """Who trains, as different positions from 0 to clients - 1, and the clock after them.

        A pure function of its arguments, which leaves `clock` as it was; the generator is the round's own.
        """
        ...


@dataclass(frozen=True)
class UniformCohorts:
    """Uniformly drawn among those whom the promised participation leaves free."""

    participation: Participation

    def init(self, clients: int, *, report_goal: int) -> ParticipationClock:
        """See CohortSampler."""
        check_population(self.participation, clients=clients, report_goal=report_goal)
        return start_clock(clients)

    def draw(
        self, clock: ParticipationClock, *, round: int, report_goal: int, generator: np.random.Generator
    ) -> tuple[NDArray[np.int64], ParticipationClock]:
        """See CohortSampler. Raises: ParticipationError when too few clients are free."""
        return draw_cohort(clock, self.participation, round=round, report_goal=report_goal, generator=generator)


@dataclass(frozen=True)
class DeviceCohorts:
    """Whom a simulated population of devices sends in `rounds` rounds; its randomness is its own seed's."""

    devices: SimulatedCohorts
    rounds: int

    def init(self, clients: int, *, report_goal: int) -> SimulatedClock:
        """See CohortSampler."""
        simulated, goal = self.devices.population.devices, self.devices.rules.report_goal
        if (simulated, goal) != (clients, report_goal):
            raise InputError(
                f"{simulated} simulated devices with report_goal={goal} are not the {clients} clients with "
                f"report_goal={report_goal} that train; simulate those."
            )
        check_supply(self.devices.population, self.devices.rules, self.rounds, self.devices.seed)
        return self.devices.start()

    def draw(
        self, clock: SimulatedClock, *, round: int, report_goal: int, generator: np.random.Generator
    ) -> tuple[NDArray[np.int64], SimulatedClock]:
        """See CohortSampler. Raises: ParticipationError when the report goal is not met in time."""
        happened, after = self.devices.next_cohort(clock, round)
        return happened.clients, after


class Cohorts:
    """The clients of a run, and who of them trains in each round, by a sampler and the run's key."""

    def __init__(self, clients: NDArray[np.int64], sampler: CohortSampler, *, report_goal: int, key: bytes) -> None:
        """clients: as numbers in the cache."""
        self._clients, self._sampler, self._goal = clients, sampler, report_goal
        self._generator = partial(generator_for, key, "cohort")

    def init(self) -> Clock:
        """The sampler's state before the first round. Raises: what `CohortSampler.init` does."""
        return self._sampler.init(len(self._clients), report_goal=self._goal)

    def draw(self, clock: Clock, round: int) -> tuple[NDArray[np.int64], Clock]:
        """Who trains in this round, as numbers in the cache, and the sampler's state after it.

        Raises: ParticipationError when too few are free; InputError where the sampler names nobody of these.
        """
        drawn, after = self._sampler.draw(clock, round=round, report_goal=self._goal, generator=self._generator(round))
        positions = np.asarray(drawn)
        inside = (positions >= 0) & (positions < len(self._clients))
        if positions.dtype.kind not in "iu" or not len(positions) or not inside.all():
            raise InputError(
                f"round {round}: the sampler drew {positions.tolist()[:5]} ..., which are no positions from 0 to "
                f"{len(self._clients) - 1}; mend its `draw`."
            )
        return self._clients[positions], after
