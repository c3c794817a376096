"""In which rounds canaries come: as often as the run lets anybody, where that costs most; the others as ever."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError, ParticipationError
from tacit.mechanisms import stream_for
from tacit.population.cohorts import ParticipationClock, check_population, draw_cohort, start_clock
from tacit.privacy import Guarantee, Participation

SHARE = 2  # at most one in so many of a round's clients is a canary, so that the run stays that of its recipe
Numbers = NDArray[np.float64]


def rounds_from(start: int, limits: Participation) -> NDArray[np.int64]:
    """As often as may be, from a round on."""
    return np.arange(start, limits.rounds, limits.min_separation)[: limits.max_participations]


def whitening(guarantee: Guarantee) -> tuple[Numbers, Numbers]:
    """(weights (starts, rounds) of noised sums, mu (starts,)): for each first round the best linear test of who came.

    With the noise's covariance K = B B^T of rounds, in clip norms, and p the rounds of a client who comes from there
    on: weights K^-1 p / sqrt(p^T K^-1 p), so that the noise of the weighted sum is 1 in each coordinate, and a client
    that adds a vector of clip norm in each round of p moves it by mu = sqrt(p^T K^-1 p) (Neyman & Pearson, of known
    normal laws).
    """
    assert guarantee.strategy is not None  # `audit_run` refused a run without noise
    limits = guarantee.participation
    noise = stream_for(guarantee.strategy).dense(limits.rounds) * guarantee.noise_multiplier
    came = np.zeros((limits.rounds, starts_of(limits)))
    for start in range(came.shape[1]):
        came[rounds_from(start, limits), start] = 1
    solved = np.linalg.solve(noise @ noise.T, came).astype(np.float64)
    mu = np.sqrt((came * solved).sum(axis=0))
    return (solved / mu).T / guarantee.clip_norm, mu


def starts_of(limits: Participation) -> int:
    """How many first rounds there are: who comes from two of them, as often as may be, meets nobody of the other."""
    return min(limits.min_separation, limits.rounds)


def places(guarantee: Guarantee, blocks: Sequence[int], *, report_goal: int) -> tuple[tuple[int, int], ...]:
    """(first round, how many canaries) in the order of canaries: the dearest rounds first, up to half of a cohort.

    blocks: how many of them come together, each in turn. Raises: InputError naming how many would fit.
    """
    limits, most = guarantee.participation, report_goal // SHARE
    cost = whitening(guarantee)[1] if guarantee.private else np.zeros(starts_of(limits))
    found: list[tuple[int, int]] = []
    waiting = deque(blocks)
    for start in map(int, np.argsort(-cost, kind="stable")):
        coming = 0
        while waiting and coming + waiting[0] <= most:
            coming += waiting.popleft()
        found += [(start, coming)] if coming else []
    if waiting:
        raise InputError(
            f"{sum(blocks):,} canaries do not fit: half of a cohort of {report_goal:,}, from {len(cost)} rounds on, "
            f"has room for {sum(blocks) - sum(waiting):,}, users of random sentences among them; give fewer "
            "(--canaries, --sentences), or a larger rounds.report_goal."
        )
    return tuple(found)


@dataclass(frozen=True)
class CanaryCohorts:
    """A CohortSampler: canaries, the last of the clients, come by their places; the others are drawn for what is left.

    A report goal is one whether canaries come or not, so each takes the place of somebody in its rounds.
    """

    participation: Participation
    places: tuple[tuple[int, int], ...]  # (first round, how many), in the order of the canaries

    @property
    def starts(self) -> NDArray[np.int64]:
        """The first round of each canary, (canaries,)."""
        return np.repeat(*np.array(self.places, np.int64).reshape(-1, 2).T)

    def init(self, clients: int, *, report_goal: int) -> ParticipationClock:
        """See CohortSampler. Raises: ParticipationError where rounds without canaries find too few."""
        people = clients - len(self.starts)
        if people < 1:
            raise ParticipationError(f"of {clients} clients all are canaries; give data with people in it.")
        check_population(self.participation, clients=people, report_goal=report_goal)
        return start_clock(people)

    def draw(
        self, clock: ParticipationClock, *, round: int, report_goal: int, generator: np.random.Generator
    ) -> tuple[NDArray[np.int64], ParticipationClock]:
        """See CohortSampler. Raises: ParticipationError when too few are free."""
        due = self._due(round)
        people, after = draw_cohort(
            clock, self.participation, round=round, report_goal=report_goal - len(due), generator=generator
        )
        cohort = np.concatenate([people, len(clock.times) + due])
        return generator.permutation(cohort), after

    def _due(self, round: int) -> NDArray[np.int64]:
        """The numbers of the canaries that come in a round, from 0 on."""
        late = round - self.starts
        times, rest = np.divmod(late, self.participation.min_separation)
        return np.flatnonzero((late >= 0) & (rest == 0) & (times < self.participation.max_participations))
