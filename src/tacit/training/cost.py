"""What the rounds so far cost, under what happened: for whoever watches a run, not for its statement."""

import time

import numpy as np
from numpy.typing import NDArray

from tacit.privacy import Guarantee, Participation
from tacit.privacy.measured_participation import realised_participation
from tacit.privacy.separation import DeviceSeparation
from tacit.runs import Run

SHARE = 0.02  # of the time that passes: accounting may take so much, since the price of many rounds is not cheap


class CostSoFar:
    """zCDP and epsilon of the rounds of a run that are done, counted on from what its log says."""

    def __init__(self, run: Run, planned: Guarantee, delta: float, separation: DeviceSeparation | None = None) -> None:
        """planned: of all that the run releases together. separation: of devices that are counted only."""
        self._planned, self._delta = planned, delta
        self._log = _Clients(run) if separation is None else _Times(run, separation)
        self._rests_until = 0.0

    def after(self, round: int, clients: NDArray[np.int64] | int) -> dict[str, float]:
        """The price with this round: `zcdp`, and `epsilon` at `delta`; nothing while that would cost too much time.

        The first two are infinite where no noise is added.
        """
        self._log.add(round, clients)
        began = time.perf_counter()
        if began < self._rests_until:
            return {}
        found = self._cost(round + 1)
        ended = time.perf_counter()
        self._rests_until = ended + (ended - began) / SHARE
        return found

    def _cost(self, rounds: int) -> dict[str, float]:
        if not self._planned.private:
            return {"zcdp": float("inf"), "epsilon": float("inf"), "delta": self._delta}
        spent = self._planned.with_participation(self._log.participation(rounds))
        return {"zcdp": spent.zcdp, "epsilon": spent.epsilon(self._delta), "delta": self._delta}


class _Clients:
    """Who took part in which round."""

    def __init__(self, run: Run) -> None:
        rounds, clients = run.participations()
        self._rounds: list[NDArray[np.int64]] = [rounds]
        self._clients: list[NDArray[np.int64]] = [clients]

    def add(self, round: int, clients: NDArray[np.int64] | int) -> None:
        assert not isinstance(clients, int)  # or the round had been refused
        self._rounds.append(np.full(len(clients), round))
        self._clients.append(clients)

    def participation(self, rounds: int) -> Participation:
        return realised_participation(rounds, np.concatenate(self._rounds), np.concatenate(self._clients))


class _Times:
    """When rounds finished, and what devices without identities kept by themselves."""

    def __init__(self, run: Run, separation: DeviceSeparation) -> None:
        self._separation, self._began = separation, run.metadata.created
        self._finished = [finished for _, finished, _ in run.times()]

    def add(self, round: int, clients: NDArray[np.int64] | int) -> None:
        self._finished.append(max([time.time(), *self._finished[-1:]]))

    def participation(self, rounds: int) -> Participation:
        return self._separation.realised(self._finished[:rounds], began=self._began)
