"""A worker's sums: reports are added in memory as they come, and what was added is written when there are several.

A single report is never written anywhere, nor two sums that differ by one. A sum is written as a blob when its round
closes, and every few seconds before the round is nearly full, if FEWEST reports or more are new in it; the rows of its
reports become `counted` in the same transaction (`assignments.flush`). A report that is alone in a worker when its
round is full is given up, so that another may come in its place, here or where there are more. What a dead worker had
not written is lost, and its devices count as dropped.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from tacit.aggregation import Counted, ReportSum
from tacit.errors import StoreError
from tacit.federation.report_sums import sums_of
from tacit.protocol.bodies import ReportBody, sha256
from tacit.protocol.messages import RoundTask
from tacit.protocol.served_bodies import sum_body
from tacit.server.store import assignments, round_states
from tacit.server.store.assignments import FEWEST, NEARLY_FULL, ArrivedReport, Flushed, OpenRound, ReportAnswer
from tacit.server.store.blobs import BlobStore, partial_name
from tacit.server.store.store import Store

EVERY = 5.0  # seconds between two writings of a sum that grows
MANY = 5_000  # new reports: a sum with so many is written at once, since a transaction names each of them

log = logging.getLogger("tacit.server")


@dataclass
class Coming:
    """A report that waits for the store's word."""

    report: ReportBody
    arrived: ArrivedReport
    answer: ReportAnswer | None = None


@dataclass
class Sum:
    """The sum of one round's reports in this worker."""

    sums: ReportSum
    total: Counted  # in order of arrival
    since: float  # when it was last written, or began
    alone: ReportBody | None = None  # the first since then, which is added with the second
    new: list[str] = field(default_factory=list)  # assignments that were added since
    generation: int = 0
    tries: int = 0  # of writing it: each has a name of its own, since one that failed may have been taken
    lock: threading.Lock = field(default_factory=threading.Lock)
    coming: deque[Coming] = field(default_factory=deque)  # of threads that wait for the lock

    @classmethod
    def of_nothing(cls, task: RoundTask, now: float) -> "Sum":
        """Of a round's first report."""
        sums = sums_of(task.asks.shape())
        return cls(sums=sums, total=sums.zero(), since=now)

    def add(self, report: ReportBody, assignment: str) -> None:
        """One more, after those that came before."""
        self.new.append(assignment)
        if len(self.new) == 1:
            self.alone = report
            return
        if self.alone is not None:
            self._add(self.alone)
            self.alone = None
        self._add(report)

    def is_due(self, now: float) -> bool:
        """Whether it is long since it was written, or much came."""
        return now - self.since >= EVERY or len(self.new) >= MANY

    def drop_alone(self) -> None:
        """The report that is alone is in no sum."""
        self.alone, self.new = None, []

    def _add(self, report: ReportBody) -> None:
        self.total = self.sums.add(self.total, Counted.one(report.values, report.short, report.bounded_loss))


class PartialSums:
    """The sums of a worker, one for each round that it has a report of. Threads may share it."""

    def __init__(self, store: Store, blobs: BlobStore, worker: str, *, evicted: Callable[[], None]) -> None:
        """buried: called when others took this worker for dead and gave up what it holds; it then has to end."""
        self._store, self._blobs, self._worker, self._evicted = store, blobs, worker, evicted
        self._sums: dict[str, Sum] = {}
        self._lock = threading.Lock()  # of the table

    def take(self, report: ReportBody, task: RoundTask, assignment: str, body_digest: str) -> ReportAnswer:
        """Have the store decide whether this report is the assignment's first, and add it if it is.

        Raises: StoreError.
        """
        if not report.usable:
            return assignments.receive_nothing(
                self._store, assignment, task=task.task, worker=self._worker, body_digest=body_digest
            )
        sum, mine = self._sum(task), Coming(report, ArrivedReport(assignment, body_digest))
        sum.coming.append(mine)
        with sum.lock:  # nothing is written or given up between the store's word and the addition
            if mine.answer is None:
                self._receive(sum, task.task, mine)
        assert mine.answer is not None  # whoever had the lock asked for all that waited
        return mine.answer

    def _receive(self, sum: Sum, task: str, mine: Coming) -> None:
        """All reports that wait, in one transaction; what cannot be said of them, each of their threads asks again.

        Raises: StoreError.
        """
        now = [sum.coming.popleft() for _ in range(len(sum.coming))]
        try:
            answers = assignments.receive_all(
                self._store, [each.arrived for each in now], task=task, worker=self._worker
            )
        except StoreError:
            sum.coming.extend(each for each in now if each is not mine)
            raise
        for each, answer in zip(now, answers, strict=True):
            each.answer = answer
            if answer is ReportAnswer.RECEIVED:
                sum.add(each.report, each.arrived.assignment)

    def write_what_is_due(self, rounds: Iterable[OpenRound], now: float) -> None:
        """Write the sums that are to be written now, and forget those of rounds that are over.

        rounds: all that take reports or sums, as read after the last `take` that matters. Raises: StoreError; nothing
        is lost by it, and the next call tries again.
        """
        known = {each.task: each for each in rounds}
        for task, sum in list(self._sums.items()):
            with sum.lock:
                here = known.get(task)
                if here is None:
                    self._forget_if_over(task)
                    continue
                left = here.goal - here.received - here.counted
                if here.state == round_states.CLOSING or (left >= NEARLY_FULL and sum.is_due(now)):
                    self._write(task, sum, now)
                if sum.alone is not None and here.flushes:
                    self._give_up(task, sum)

    def write_all(self, now: float) -> None:
        """Before the worker ends: write what can be written, give up what cannot. Raises: StoreError."""
        for task, sum in list(self._sums.items()):
            with sum.lock:
                self._write(task, sum, now)
                if sum.alone is not None:
                    self._give_up(task, sum)

    @property
    def held(self) -> int:
        """Reports in memory alone."""
        return sum(len(each.new) for each in list(self._sums.values()))

    def _sum(self, task: RoundTask) -> Sum:
        with self._lock:
            if task.task not in self._sums:
                self._sums[task.task] = Sum.of_nothing(task, self._store.now())
            return self._sums[task.task]

    def _write(self, task: str, sum: Sum, now: float) -> None:
        if len(sum.new) < FEWEST:
            return
        body = sum_body(sum.total.values)
        name = f"{partial_name(task, self._worker, sum.generation)}-{sum.tries}"
        sum.tries += 1
        self._blobs.put(name, body)
        written = Flushed(
            task=task,
            worker=self._worker,
            generation=sum.generation,
            blob=name,
            digest=sha256(body),
            reports=sum.total.reports,
            new=tuple(sum.new),
            short_updates=sum.total.short_updates,
            losses=sum.total.losses,
        )
        try:
            older = assignments.flush(self._store, written)
        except StoreError:
            self._forget_if_over(task, refused=True)
            raise
        sum.new, sum.generation, sum.since = [], sum.generation + 1, now
        if older is not None:
            self._blobs.delete(older)

    def _give_up(self, task: str, sum: Sum) -> None:
        count = assignments.give_up(self._store, task, self._worker)
        log.info("%d report was alone in this worker when its round was full or over, and is lost", count)
        sum.drop_alone()

    def _forget_if_over(self, task: str, *, refused: bool = False) -> None:
        """Raises: StoreError where the store does not say."""
        if round_states.attempt_of(self._store, task).state not in round_states.FLUSHING:
            self._forget(task)
        elif refused:  # the round goes on, and what this worker holds is not its own any more
            self._forget(task)
            self._evicted()

    def _forget(self, task: str) -> None:
        with self._lock:
            self._sums.pop(task, None)
