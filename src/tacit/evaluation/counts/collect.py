"""Who asks the devices about models: a task goes out to a group of them, the sum of what they count comes back.

`evaluate`, `personalize` and `type_ab` know no more of the devices than that. A simulation has everybody's answers at
hand (`SimulatedCollector`); a server with real devices is another `Collector`, and so is anything that takes a task and
brings counts. What one device sends, `report_layout.py` says; what it computes, `on_device.py`.

Two attributes of a collector are optional. `devices` (a `tacit.jobs.devices.RealDevices`) says whom a collector of real
devices asks; there are no exact numbers then, and only what was released is reported. `released(step)` is called when
the step's row of the ledger is on disk; after a kill once more.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError
from tacit.evaluation.counts.histograms import Cells, HistogramQuery
from tacit.evaluation.counts.release import summed, votes_of
from tacit.evaluation.counts.report_layout import ReportLayout
from tacit.randomizers import SubsetSelection
from tacit.secure_aggregation.simulated_protocol import SimulatedProtocol

if TYPE_CHECKING:  # networks come with it
    from tacit.evaluation.device_part import ModelsAsked, StrategiesAsked

Whole = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class HistogramTask:
    """What a group of devices is asked in one step; no device is in two steps of a run."""

    step: int
    steps: int  # of the run
    devices: int  # how many are asked
    histograms: Mapping[str, Cells]  # that are made, in the order in which a report has them
    asks: "ModelsAsked | StrategiesAsked | None"  # what a device computes; None: what only a simulation can
    local_epsilon: float | None = None  # each device randomises its report itself; None: it reports counts

    @property
    def layout(self) -> ReportLayout:
        """How a device's report lies in a vector."""
        return ReportLayout(
            sizes=tuple(each.size for each in self.histograms.values()), local_epsilon=self.local_epsilon
        )


class Counted(NamedTuple):
    """What comes back of a step's devices."""

    counts: Whole  # (cells of all histograms,): devices in each cell; of local reports, votes for it
    answered: Whole  # (H,) how many devices' reports are in each histogram
    # Who took part, for the log: each once, or how many, where they have no identities; some may have sent nothing.
    clients: Whole | int

    @property
    def dropped(self) -> int:
        """Devices that took part and are in no count, of counts that each device is in."""
        came = self.clients if isinstance(self.clients, int) else len(self.clients)
        return came - int(self.answered.max())


class Collector(Protocol):
    """Puts a task to a group of devices and sums what they send."""

    def collect(self, task: HistogramTask) -> Counted:
        """The sum of all reports of the group."""
        ...


def tell_released(collector: Collector, step: int) -> None:
    """The step's ledger row is on disk; told again after a kill. Collectors that have no use for it have no method."""
    released: Any = getattr(collector, "released", None)
    if released is not None:
        released(step)


@dataclass(frozen=True, kw_only=True)
class SimulatedCollector:
    """Clients whose answers are at hand, each as its device would count them.

    answers: of a task, the cell of each client in each histogram. clients: of a task, the numbers of those in it.
    secure: how reports are added up so that nobody sees one; None: in the clear. randomness: of devices that randomise
    their reports; it has to be bound to what they answer.
    """

    answers: Callable[[HistogramTask], Sequence[HistogramQuery]]
    clients: Callable[[HistogramTask], Whole]
    randomness: Callable[[float, int, Sequence[HistogramQuery]], np.random.Generator]  # epsilon, step, answers
    secure: SimulatedProtocol | None = None

    def collect(self, task: HistogramTask) -> Counted:
        """The counts of these very clients; of local reports a draw from the joint law of their votes.

        Raises: InputError where the answers are to other histograms than the task's.
        """
        queries = self.answers(task)
        if {each.name: each.cells for each in queries} != dict(task.histograms):
            raise InputError(f"step {task.step} asks for other histograms than clients have answers to.")
        numbers, epsilon = np.sort(self.clients(task)), task.local_epsilon
        if epsilon is None:
            return Counted(summed(queries, self.secure), np.full(len(queries), task.devices), numbers)
        votes, answered = votes_of(
            queries,
            lambda cells: SubsetSelection(domain=cells, epsilon=epsilon),
            generator=self.randomness(epsilon, task.step, queries),
            secure=self.secure,
        )
        return Counted(votes, answered, numbers)
