"""The shipped device on one text, with a clock by which every touch of text takes time, and all that is seen of it.

Session, handlers, policy, record and transport are those of `run_device`. Only what a child process would do is done
here (`isolated.py`), within the same limits by another clock: reading that takes longer is ended.
"""

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.audit.device.operator import KEY, Operator
from tacit.audit.device.questions import POPULATION, Asked
from tacit.audit.device.strategies import QUICKLY, Strategy
from tacit.audit.device.texts import TEXTS
from tacit.audit.device.transcript import Transcript
from tacit.audit.device.virtual_clock import VirtualClock
from tacit.data.mapped_sentences import MappedSentences
from tacit.device.device import Device
from tacit.device.isolated import ChildEnded, Children
from tacit.device.own_handlers import task_handlers
from tacit.device.own_text import OwnText
from tacit.device.policy import Policy
from tacit.device.record import DeviceRecord, opened
from tacit.device.session import Machine, Session
from tacit.device.task_handler import Draw, PreparedTask, TaskHandler
from tacit.device.train import ByJax
from tacit.protocol.bodies import ReportBody
from tacit.protocol.bounded_http import Server, connected
from tacit.protocol.messages import Plan, RoundTask
from tacit.secure_aggregation.secrets import seeded

SERVER = Server("http://127.0.0.1:9")
A_SENTENCE = 1e-3  # seconds that touching one takes
SILENT = "Its report says nothing"  # of a session, to its owner
STARTED_AGAIN = 1.0  # seconds after it ended, by its owner's system
TURNS = 3  # of which an operator has a task for two
WILLING: Mapping[str, Any] = {
    "largest_zcdp": 1e4,
    "largest_epsilon": 1e5,
    "budget_zcdp": 1e4,
    "largest_local_epsilon": 9.0,
    "largest_operations": 1e16,
}
MEMORY = Path("/dev/shm")  # where records wait for no disk, on machines that have it


class WatchedSentences(MappedSentences):
    """A cache whose every reading takes time, by how many sentences there are."""

    clock: VirtualClock

    @classmethod
    def watched_by(cls, clock: VirtualClock) -> Callable[[Path], MappedSentences]:
        """How to open one."""

        def opened(path: Path) -> MappedSentences:
            found = cls.open(path)
            found.clock = clock
            return found

        return opened

    def sentences(self, client: int) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """See MappedSentences."""
        self._touched(client)
        return super().sentences(client)

    def padded(self, client: int, chosen: NDArray[np.int64], length: int) -> NDArray[np.int32]:
        """See MappedSentences."""
        self._touched(client)
        return super().padded(client, chosen, length)

    def timestamps(self, client: int) -> NDArray[np.int64]:
        """See MappedSentences."""
        self._touched(client)
        return super().timestamps(client)

    def sentence_count(self, client: int) -> int:
        """See MappedSentences."""
        self._touched(client)
        return super().sentence_count(client)

    def _touched(self, client: int) -> None:
        self.clock.works(A_SENTENCE * super().sentence_count(client))


class TimedChildren(Children):
    """What a child does, done here, by the clock of an audit; see Children."""

    def __init__(
        self,
        make: Callable[[], Mapping[str, TaskHandler]],
        policy: Policy,
        clock: VirtualClock,
        takes: float,
        set_by: float,
    ) -> None:
        """takes: seconds that reading takes. set_by: by which the device's clock is set meanwhile."""
        super().__init__(make, policy, clock.wall)
        self._virtual, self._takes, self._set_by = clock, takes, set_by

    def prepare(self, handler: TaskHandler, plan: Plan, task: RoundTask, content: bytes) -> PreparedTask:
        """See Children: by handlers of its own, as a child makes them."""
        prepared = self._make()[plan.kind].prepare(plan, task, content)

        def read(draw: Draw) -> ReportBody:
            clock = self._virtual
            within = self._policy.reads_within_s(task, clock.wall(), handler.reading_s(task))
            began = clock.steady()
            clock.is_set_by(self._set_by)
            clock.works(self._takes)
            if self._takes <= within:
                report = prepared.read(draw)
            if clock.steady() - began > within:
                clock.ended_at(began + within)
                raise ChildEnded(f"its process took longer than {within:.3g} s.")
            return report

        return replace(prepared, read=read)


class TimedSession(Session):
    """A session in which making the bytes of a report takes time, the same whatever they are."""

    def __init__(self, *, clock: VirtualClock, seals_s: float, **made_of: Any) -> None:
        super().__init__(**made_of)
        self._virtual, self._seals_s = clock, seals_s

    def body(self, plan: Plan, task: RoundTask, report: ReportBody, assignment: str) -> bytes:
        """See Session."""
        self._virtual.works(self._seals_s)
        return super().body(plan, task, report, assignment)


def handlers_of(
    cache: Path, policy: Policy, open_cache: Callable[[Path], MappedSentences] = MappedSentences.open
) -> Mapping[str, TaskHandler]:
    """Those of the shipped device (`own_handlers`)."""
    own = OwnText(cache, None, policy.temporal_split, open_cache)
    return task_handlers(own, ByJax(own))


def watched(
    asked: Asked, strategy: Strategy, text: str, cache: Path, *, seed: bytes, session: type[TimedSession] = TimedSession
) -> Transcript:
    """All that is seen of a device with this text. seed: 32 bytes, of its private randomness; retries draw their own.

    text: a name in TEXTS, which `cache` has. session: a test's may have a fault.
    """
    clock = VirtualClock()
    policy = Policy(**{**WILLING, **strategy.policy})
    operator = Operator(asked, strategy, clock)
    takes = strategy.slowly if TEXTS[text].has_secret else QUICKLY
    make = partial(handlers_of, cache, policy, WatchedSentences.watched_by(clock))
    children = TimedChildren(make, policy, clock, takes, strategy.set_by)
    with (
        tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder,
        connected(SERVER, through=operator) as connection,
        opened(Path(folder) / "state", Path(folder) / "journal", now=clock.wall(), first_time=True) as record,
    ):
        record.pin(KEY.public)
        made = session(
            clock=clock,
            seals_s=strategy.seals_s,
            record=record,
            policy=policy,
            handlers=children.handlers,
            population=POPULATION,
            machine=Machine(clock=clock.wall, steady=clock.steady, sleep=clock.sleep, draw=seeded(seed)),
        )
        ended, silent = _turns(Device(made, connection, children), clock, strategy.begins)
        rows = _rows(record)
    return Transcript(
        requests=tuple(operator.seen),
        times=tuple(round(each, 6) for each in operator.times),
        record=rows,
        accepted=tuple(operator.accepted),
        ended=ended,
        silent=silent,
    )


def _turns(
    device: Device, clock: VirtualClock, begins: Callable[[int], float]
) -> tuple[tuple[tuple[str, float, float], ...], int]:
    """(How each turn ended, and between which seconds another follows; how many reports said nothing).

    A device that ended of itself is started again. begins: seconds from the start at which a turn begins, unless the
    device has to wait longer.
    """
    ended: list[tuple[str, float, float]] = []
    silent = 0
    for turn in range(TURNS):
        try:
            outcome = device.session()
        except Exception as error:  # whatever ends a device, shows that it did, and when
            ended.append((f"ended by {type(error).__name__}", STARTED_AGAIN, STARTED_AGAIN))
            clock.works(STARTED_AGAIN)
            continue
        ended.append((outcome.what, *outcome.wait))
        silent += SILENT in outcome.says
        clock.works(max(outcome.wait[0], begins(turn + 1) - clock.steady()))
    return tuple(ended), silent


def _rows(record: DeviceRecord) -> tuple[tuple[Any, ...], ...]:
    """What the record has of participations, without the times that `times` has."""
    return tuple(tuple(said for name, said in sorted(each.items()) if name != "at") for each in record.participations())
