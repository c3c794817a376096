"""How devices are asked: a question goes out, a bounded sum comes back. The caller learns nothing else of the devices.

A simulation is a collector, a server with real devices is another, and so is anything that takes a question and brings
a sum. Three things about a collector are optional. `broadcasts = True` says that its questions leave this machine: a
round is then asked about only when the ledger row of the one before is on disk. A method `released(round)` is called
when that row is there, and once more for the last round when a run is resumed. `devices` (a
`tacit.jobs.devices.RealDevices`) describes the devices of a collector that asks each of them once; nothing exact is
known of them.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from numpy.typing import NDArray

from tacit.aggregation import Counted
from tacit.federation.report_shape import ReportShape

NOTHING: Mapping[str, float] = MappingProxyType({})


def participants(clients: NDArray[Any] | int) -> int:
    """The number of participants, given the participants themselves or their number."""
    return clients if isinstance(clients, int) else len(clients)


class Answered(NamedTuple):
    """What comes back of a round's devices."""

    values: Any  # (length,) of NumPy or JAX: the sum of the reports, in the clear or decoded from a secure sum
    reports: int  # in the sum
    # Who took part, for the log: each once, pseudonyms where devices are real; how many, where they have no identities.
    clients: NDArray[Any] | int
    beside: Mapping[str, float] = NOTHING  # sums of what the reports say beside, by name: `ReportShape.beside`
    diagnostics: Any = None  # what a simulation sees of single clients, and no server of real devices

    @property
    def participants(self) -> int:
        """How many took part."""
        return participants(self.clients)

    @property
    def dropped(self) -> int:
        """Devices that took part and are not in the sum: what they sent was not usable, or they vanished."""
        return self.participants - self.reports


class Question(Protocol):
    """What the devices of one round are asked."""

    @property
    def kind(self) -> str:
        """A name of `KINDS`."""
        ...

    @property
    def round(self) -> int:
        """Of the run, from 0."""
        ...

    @property
    def goal(self) -> int:
        """How many reports are wanted."""
        ...

    @property
    def min_reports(self) -> int:
        """No sum of fewer reports may be opened."""
        ...

    def shape(self) -> ReportShape:
        """What a report may be."""
        ...

    def answered(self, total: Counted, clients: NDArray[Any] | int) -> Answered:
        """What a sum of reports in that shape says. Raises: InputError for a sum that cannot be opened."""
        ...

    def check(self, answered: Answered) -> None:
        """Raises: InputError, TrainingError for an answer that no honest reports give, or no promise covers."""
        ...


class Collector(Protocol):
    """Asks devices. Each takes part at most once in a round, and its report is one that the question's shape allows.

    The guarantee of a run rests on these two, and on what its log says of who took part when; where devices have no
    identities, on the separation that each of them keeps by itself.
    """

    def init(self) -> Any:
        """What is carried from round to round, before the first: arrays in any nesting.

        Training saves it with the model. Where devices are asked once in a run nothing is saved.
        """
        ...

    def collect(self, state: Any, question: Any, *, seed: bytes) -> tuple[Answered, Any]:
        """The answer of the round's devices, and the state after it; `state` is left as it was.

        question: a `Question` of a kind that it asks. seed: of simulated devices' own randomness in this round; real
        ones draw their own. Neither the noise nor the choice of devices follows from it.
        """
        ...


def broadcasts(collector: Collector) -> bool:
    """Whether its questions leave this machine: then a model is asked about only once its release is on disk."""
    return bool(getattr(collector, "broadcasts", False))


def released(collector: Collector, round: int) -> None:
    """The round's ledger row is on disk; told again after a kill. Collectors that have no use for it have no method."""
    told = getattr(collector, "released", None)
    if told is not None:
        told(round)
