"""A privacy filter: rounds are released as long as what they really cost stays within what is reserved for the run.

Planned participation is an assumption, and who really comes may be another matter: a sampler that fails, a round that
takes long. So the cost of all rounds so far and the one at hand is computed by the log of participations, after its
devices answered and before noise is added, the model moves or anything is written. Beyond what can be reserved the
answers are dropped and the run stops.

Why stopping so is private (privacy filter: Rogers, Roth, Ullman & Vadhan 2016, arXiv:1605.08294; for zCDP and adaptive
choices: Feldman & Zrnic 2021, arXiv:2008.11193; Whitehouse, Ramdas, Rogers & Wu 2023, arXiv:2203.05481). Row i of the
strategy C, a lower-triangular matrix, is a Gaussian release of one client's contributions X with
rho_i = ||(C X)_i||^2 / (2 sigma^2), and who came until then may depend on all releases before it. The cost that is held
against the reservation is a bound on rho_0 + ... + rho_i for every client and whatever it sent, by the participations
until round i; round i is released only if that is within the reservation. So the sum stays within it on every path,
which is what the theorems ask for. The reservation itself is on disk before the release. Whether a run stops follows
from who took part and from clocks; neighbours (zero-out) differ in neither.
"""

from collections.abc import Callable
from typing import Any

from tacit.errors import BudgetError
from tacit.federation.collector import Answered, Collector, broadcasts, released
from tacit.privacy import Participation
from tacit.privacy.composition import Composition
from tacit.training.collect import TrainQuestion
from tacit.training.participation_so_far import SoFar, TimesSoFar

Reserve = Callable[[float], None]  # of a rho that a run is going to have cost; BudgetError where it is not free


class PrivacyFilter:
    """A collector that asks its devices through another one, and keeps a round back that would cost too much."""

    def __init__(self, collector: Collector, log: SoFar, planned: Composition, reserve: Reserve, *, run: str) -> None:
        """log: of the rounds that are on disk. planned: what the run reserved from the beginning. run: for messages."""
        self._collector, self._log, self._planned, self._reserve, self._run = collector, log, planned, reserve, run
        # Exact sensitivities never fall with a participation more, so what is within the plan need not be computed.
        self._monotone = all(each.guarantee.exact for each in planned.sequences)

    @property
    def broadcasts(self) -> bool:
        """See `federation.collector`."""
        return broadcasts(self._collector)

    @property
    def finished(self) -> float | None:
        """When the last round finished by which its cost was computed, in Unix seconds; None where no clock counts."""
        return self._log.finished if isinstance(self._log, TimesSoFar) else None

    def released(self, round: int) -> None:
        """See `federation.collector`."""
        released(self._collector, round)

    def init(self) -> Any:
        """See Collector."""
        return self._collector.init()

    def collect(self, state: Any, question: TrainQuestion, *, seed: bytes) -> tuple[Answered, Any]:
        """See Collector. Raises: BudgetError for a round that costs more than can be reserved: nothing of it is
        released, and where the devices' own rule says so before it, nobody is asked.
        """
        counted = isinstance(self._log, TimesSoFar)  # devices that name nobody
        if isinstance(self._log, TimesSoFar):
            self._check(question.round, self._log.at_least(question.round + 1))
        answered, after = self._collector.collect(state, question, seed=seed)
        if isinstance(answered.clients, int) == counted:  # or whoever asks refuses it
            self._log.add(question.round, answered.clients)
            self._check(question.round, self._log.participation(question.round + 1))
        return answered, after

    def _check(self, round: int, happened: Participation) -> None:
        planned = self._planned.sequences[0].guarantee.participation
        if self._monotone and _within(happened, planned):
            return
        zcdp = self._planned.with_participation(happened).zcdp
        try:
            self._reserve(zcdp)
        except BudgetError as error:
            raise BudgetError(
                f"'{self._run}' stops before round {round} is released: its zCDP would be {zcdp:.6g}, and "
                f"{self._planned.zcdp:.6g} was planned, because {_said(happened)}, and the plan says at most "
                f"{planned.effective.max_participations} times, {planned.min_separation} apart. {error} The rounds "
                f"before it are whole: `tacit resume {self._run}` goes on once other runs are settled for less, and "
                "`tacit finish` releases the model of the last one."
            ) from error


def _within(happened: Participation, planned: Participation) -> bool:
    """Whether every pattern of participation that happened was planned for."""
    once = happened.max_participations == 1
    seldom = happened.max_participations <= planned.effective.max_participations
    return once or (seldom and happened.min_separation >= planned.min_separation)


def _said(happened: Participation) -> str:
    if happened.max_participations == 1:
        return "nobody came twice"
    return f"somebody may have come {happened.max_participations} times, {happened.min_separation} rounds apart"
