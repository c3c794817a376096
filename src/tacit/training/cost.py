"""What the rounds so far cost, under what happened: for whoever watches a run, not for its statement."""

import time

import numpy as np
from numpy.typing import NDArray

from tacit.privacy import Guarantee
from tacit.privacy.separation import DeviceSeparation
from tacit.runs import Run
from tacit.training.participation_so_far import log_so_far

SHARE = 0.02  # of the time that passes: accounting may take so much, since the price of many rounds is not cheap


class CostSoFar:
    """zCDP and epsilon of the rounds of a run that are done, counted on from what its log says."""

    def __init__(self, run: Run, planned: Guarantee, delta: float, separation: DeviceSeparation | None = None) -> None:
        """planned: of all that the run releases together. separation: of devices that are counted only."""
        self._planned, self._delta = planned, delta
        self._log = log_so_far(run, separation)
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
