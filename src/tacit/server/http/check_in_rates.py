"""What a worker answers devices without work: when to come back, by how many there are (`pace_steering.py`).

Nothing is asked of the store for an answer. Every few seconds workers tell each other there how many they sent away, in
a row for each worker and population.
"""

import math
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from sqlalchemy import and_, delete, insert, select

from tacit.protocol.messages import ComeBack
from tacit.server.http.pace_steering import MOST_S, OVER, WRONG, PaceSteering, SharedRates, period_of, window_of
from tacit.server.store.schema import paces
from tacit.server.store.store import Store

TIMED_OUT_S = 15.0  # after which a worker is not reckoned with
TELL_S = 2.0  # between two times that a worker writes its rows
KEPT_S = OVER * MOST_S  # a row of one that ended: how many there were is worth a guess as long as that


class CheckInRates:
    """One worker's, for all populations that it knows."""

    def __init__(self, store: Store, worker: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._store, self._worker, self._clock = store, worker, clock
        self.known = dict[str, PaceSteering]()
        self._answers = dict[str, tuple[float, bytes]]()  # with the T that it says
        self._told = -float("inf")
        self._unknown = come_back(period_of(0))

    def answer(self, population: str) -> bytes:
        """The answer to a device without work: a ComeBack, as it is sent. It is counted."""
        pace = self.known.get(population)
        if pace is None:
            return self._unknown
        pace.sent += 1
        return self._answers[population][1]

    def look(self, sizes: Mapping[str, int]) -> None:
        """Set the answers anew. sizes: populations and about how many devices each has, as recipes say; 0: they do not.

        One thread at a time. Raises: StoreError, and the answers are those of what this worker saw itself.
        """
        now = self._clock()
        for population in sizes.keys() - self.known.keys():
            rows, at = told(self._store, population), self._store.now()
            guess = guessed(rows, now=at, otherwise=sizes[population])
            pace = PaceSteering(now, guess, others=others(rows, now=at))
            self._answers[population] = pace.period, come_back(pace.period)
            self.known[population] = pace
        for population, size in sizes.items():
            self.known[population].most = WRONG * size or math.inf
        shared = {population: pace.look(now) for population, pace in self.known.items()}
        for population, pace in self.known.items():
            if pace.period != self._answers[population][0]:
                self._answers[population] = pace.period, come_back(pace.period)
        if now - self._told >= TELL_S:
            self._told = now
            tell(self._store, self._worker, {name: (each, self.known[name].devices) for name, each in shared.items()})
            for population, pace in self.known.items():
                rows = told(self._store, population)
                pace.others = others(rows, now=self._store.now(), worker=self._worker)


def come_back(period: float) -> bytes:
    """To come back in about so many seconds."""
    after, before = window_of(period)
    return ComeBack(answer="come_back", after_s=after, before_s=before).to_json().encode()


class WorkerRate(NamedTuple):
    """A row of a worker."""

    worker: str
    away: float
    unseen: float
    devices: float  # that there were, in its eyes
    at: float  # the store's clock


def told(store: Store, population: str) -> list[WorkerRate]:
    """The rows of all workers, of those that ended too."""
    columns = [paces.c[name] for name in WorkerRate._fields]
    with store.reading() as connection:
        found = connection.execute(select(*columns).where(paces.c.population == population))
        return [WorkerRate._make(row) for row in found]


def others(rows: list[WorkerRate], *, now: float, worker: str = "") -> SharedRates:
    """What the others see who work now: each has sent away other devices, and was told of the same unseen ones."""
    live = [row for row in rows if row.worker != worker and abs(now - row.at) <= TIMED_OUT_S]
    return SharedRates(sum(row.away for row in live), max((row.unseen for row in live), default=0.0))


def guessed(rows: list[WorkerRate], *, now: float, otherwise: float) -> float:
    """Devices that a worker which begins should expect beside those that others have sent away: as many as there were
    for whoever looked last, and `otherwise` where nobody did.
    """
    last = max(rows, key=lambda row: row.at, default=None)
    return otherwise if last is None else max(0.0, last.devices - others(rows, now=now).away)


def tell(store: Store, worker: str, seen: Mapping[str, tuple[SharedRates, float]]) -> None:
    """Write this worker's rows, by population what it shares and how many devices there are in its eyes."""
    now = store.now()
    rows = [
        {"worker": worker, "population": name, "devices": devices, "at": now, **shared._asdict()}
        for name, (shared, devices) in seen.items()
    ]
    old = paces.c.at < now - KEPT_S
    with store.writing(durable=False) as connection:
        connection.execute(delete(paces).where(and_(paces.c.worker == worker) | old))
        if rows:
            connection.execute(insert(paces), rows)
