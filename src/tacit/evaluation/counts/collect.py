"""The question of a group of devices: what they count, histogram by histogram; and clients who answer it.

`count`, `evaluate`, `personalize` and `type_ab` know no more of the devices than the sum. What one device sends,
`federation/report_layout.py` says; what it computes, `device_part.py` and,
of models, `evaluation/on_device.py`; what a collector owes, `federation/collector.py`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.aggregation import Counted
from tacit.errors import InputError
from tacit.evaluation.counts.histograms import Histogram, HistogramCells, HistogramQuery
from tacit.evaluation.counts.release import (
    THE_AGGREGATOR,
    AddNoise,
    NoiseBy,
    from_file,
    guarantee_for,
    release,
    release_locally,
    summed,
    to_file,
    votes_of,
)
from tacit.evaluation.release_cost import ReleaseCost
from tacit.federation.collector import Answered
from tacit.federation.report_layout import BoundedLayout, Opened, ReportLayout
from tacit.federation.report_shape import ReportShape
from tacit.randomizers import SubsetSelection
from tacit.secure_aggregation.simulated_protocol import SimulatedProtocol
from tacit.statements.ledger import Release

if TYPE_CHECKING:  # networks come with it
    from tacit.evaluation.counts.device_part import StatisticsQuestion
    from tacit.evaluation.device_part import ModelsQuestion, StrategiesQuestion

IntArray = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class CellsQuestion(ABC):
    """What questions to a group of devices share whose reports are whole numbers, cell by cell: all of them answer."""

    devices: int  # how many are asked

    @property
    @abstractmethod
    def layout(self) -> ReportLayout | BoundedLayout:
        """How a device's report lies in a vector."""

    @property
    def goal(self) -> int:
        """See Question."""
        return self.devices

    min_reports = goal

    def shape(self) -> ReportShape:
        """See Question."""
        return self.layout.shape

    def answered(self, total: Counted, clients: IntArray | int) -> Answered:
        """See Question."""
        return Answered(total.values.astype(np.int64), total.reports, clients)

    def check(self, answered: Answered) -> None:
        """See Question. Raises: InputError for a sum that no honest reports have."""
        self.layout.check_sum(answered.values, answered.reports)


@dataclass(frozen=True, kw_only=True)
class CountQuestion(CellsQuestion):
    """What a group of devices is asked in one round, a step of the run; no device is in two. See
    `federation.collector.Question`.
    """

    suffix: ClassVar[str] = ".json"  # of the file with what is released
    step: int
    steps: int  # of the run
    histograms: Mapping[str, HistogramCells]  # that are made, in the order in which a report has them
    # What a device computes; None: what only a simulation can.
    computation: "ModelsQuestion | StrategiesQuestion | StatisticsQuestion | None"
    local_epsilon: float | None = None  # each device randomises its report itself; None: it reports counts

    @property
    def kind(self) -> str:
        """Of run; see Question."""
        return "type" if self.computation is None else self.computation.kind

    @property
    def round(self) -> int:
        """See Question."""
        return self.step

    @property
    def layout(self) -> ReportLayout:
        """See CellsQuestion."""
        return ReportLayout(
            sizes=tuple(each.size for each in self.histograms.values()), local_epsilon=self.local_epsilon
        )

    def opened(self, answered: Answered) -> Opened:
        """The answer taken apart."""
        return self.layout.opened(answered.values, answered.reports)

    def released(
        self,
        answered: Answered,
        cost: ReleaseCost,
        *,
        add_noise: AddNoise,
        first_user: int,
        noise: NoiseBy = THE_AGGREGATOR,
    ) -> tuple[Mapping[str, Histogram], tuple[Release, ...]]:
        """The histograms as they may leave the aggregator, and their rows of the ledger.

        first_user: how many were asked in earlier steps. noise: who adds it to sums of counts. Raises: as `release` and
        `release_locally`.
        """
        opened, local = self.opened(answered), self.local_epsilon
        if local is not None:
            return release_locally(
                self.histograms,
                opened.counts,
                opened.answered,
                lambda cells: SubsetSelection(domain=cells, epsilon=local),
                step=self.step,
                first_user=first_user,
            )
        histograms, row = release(
            self.histograms,
            opened.counts,
            guarantee_for(len(self.histograms), zcdp=cost.rho, steps=self.steps),
            step=self.step,
            reports=answered.reports,
            dropped=answered.dropped,
            add_noise=add_noise,
            noise=noise,
        )
        return histograms, (row,)

    def to_file(self, released: Mapping[str, Histogram]) -> bytes:
        """What was released, as the run folder has it."""
        return to_file(released)

    def from_file(self, content: bytes) -> Mapping[str, Histogram]:
        """What `to_file` wrote. Raises: ValueError, KeyError."""
        return from_file(self.histograms, content)


@dataclass(frozen=True, kw_only=True)
class SimulatedCollector:
    """Clients whose answers are at hand, each as its device would count them.

    answers: of a task, the cell of each client in each histogram. clients: of a task, the numbers of those in it.
    secure: how reports are added up so that nobody sees one; None: in the clear. randomness: of devices that randomise
    their reports; it has to be bound to what they answer.
    """

    answers: Callable[[CountQuestion], Sequence[HistogramQuery]]
    clients: Callable[[CountQuestion], IntArray]
    randomness: Callable[[float, int, Sequence[HistogramQuery]], np.random.Generator]  # epsilon, round, answers
    secure: SimulatedProtocol | None = None

    def init(self) -> Any:
        """See Collector: nothing is carried."""
        return ()

    def collect(self, state: Any, question: CountQuestion, *, seed: bytes = b"") -> tuple[Answered, Any]:
        """The counts of these very clients; of local reports a draw from the joint law of their votes.

        seed: not used, for `randomness` is bound to the answers. Raises: InputError where the answers are to other
        histograms than the question's.
        """
        queries = self.answers(question)
        if {each.name: each.cells for each in queries} != dict(question.histograms):
            raise InputError(f"step {question.step} asks for other histograms than clients have answers to.")
        numbers, epsilon = np.sort(self.clients(question)), question.local_epsilon
        if epsilon is None:
            return Answered(summed(queries, self.secure), question.devices, numbers), state
        votes, answered = votes_of(
            queries,
            lambda cells: SubsetSelection(domain=cells, epsilon=epsilon),
            generator=self.randomness(epsilon, question.step, queries),
            secure=self.secure,
        )
        return Answered(np.concatenate([votes, answered]), int(answered.sum()), numbers), state
