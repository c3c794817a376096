"""How often anybody can have taken part in the rounds of a run so far: counted on from its log, one round at a time.

`statements.participation_log` says the same of a log on disk; here a round may not be on disk yet.
"""

import time
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tacit.privacy import Participation
from tacit.privacy.measured_participation import realised_participation
from tacit.privacy.separation import DeviceSeparation
from tacit.runs import Run


class ClientsSoFar:
    """Who took part in which round. A round more costs time in proportion to its cohort, not to the log."""

    def __init__(self, round_of: NDArray[np.int64], client_of: NDArray[np.int64]) -> None:
        """The log so far, (participations,) each."""
        rounds = int(round_of.max(initial=0)) + 1
        before = realised_participation(rounds, round_of, client_of)
        self._most = before.max_participations
        self._separation: int | None = before.min_separation if self._most > 1 else None
        clients, counts = np.unique(client_of, return_counts=True)
        self._count: dict[int, int] = dict(zip(clients.tolist(), counts.tolist(), strict=True))
        order = np.lexsort((round_of, client_of))  # of one client the last round comes last, and stays
        self._last: dict[int, int] = dict(zip(client_of[order].tolist(), round_of[order].tolist(), strict=True))

    def add(self, round: int, clients: NDArray[np.int64] | int) -> None:
        """A round more. clients: (participants,); twice the same is once here, and refused where it is written."""
        assert not isinstance(clients, int)  # or the round had been refused
        for client in set(clients.tolist()):
            if client in self._last:
                apart = round - self._last[client]
                self._separation = apart if self._separation is None else min(self._separation, apart)
            self._last[client] = round
            self._count[client] = self._count.get(client, 0) + 1
            self._most = max(self._most, self._count[client])

    def participation(self, rounds: int) -> Participation:
        """What happened in these rounds, of which the last was added last."""
        separation = rounds if self._separation is None else self._separation
        return Participation(rounds=rounds, min_separation=separation, max_participations=self._most)


class TimesSoFar:
    """When rounds finished, and what devices without identities kept by themselves."""

    def __init__(self, finished: list[float], separation: DeviceSeparation, *, began: float) -> None:
        """finished: of the rounds so far, in Unix seconds. began: before the first round was opened to devices."""
        self._finished, self._separation, self._began = finished, separation, began
        self.finished: float | None = None  # when the round finished that was added last, as the clock said

    def add(self, round: int, clients: NDArray[np.int64] | int) -> None:
        """A round more, which is finished now."""
        self.finished = time.time()
        self._finished = self._until(self.finished)

    def participation(self, rounds: int) -> Participation:
        """The most that a device which keeps the separation can have done in the first `rounds` rounds."""
        return self._separation.realised(self._finished[:rounds], began=self._began)

    def at_least(self, rounds: int) -> Participation:
        """The same if the round that comes next finished now: the later it does, the more often devices may come."""
        return self._separation.realised(self._until(time.time())[:rounds], began=self._began)

    def _until(self, now: float) -> list[float]:
        return [*self._finished, max([now, *self._finished[-1:]])]  # a clock that was set back is refused on disk


SoFar: TypeAlias = ClientsSoFar | TimesSoFar


def log_so_far(run: Run, separation: DeviceSeparation | None) -> SoFar:
    """Of the rounds that are on disk. separation: of devices that are counted only; None: the log names clients."""
    if separation is None:
        return ClientsSoFar(*run.participations())
    return TimesSoFar([finished for _, finished, _ in run.times()], separation, began=run.metadata.created)
