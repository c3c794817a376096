"""The errors of a server's models under a Toeplitz strategy, and their gradient, in O(rounds x rounds of the cooldown).

With u the partial sums of C^{-1}'s column, y = M u (`workload`) is the column of B = A C^{-1} for as long as the rate
stays: row t is y_t, ..., y_0, of variance sum_{j <= t} y_j^2. From then on B is not Toeplitz: a round r of the cooldown
adds r_r h_{r-s} to entry s of the row before, h the differences of y.
"""

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from tacit.design.workload import Workload

Array = NDArray[np.float64]


class ToeplitzErrors:
    """Variances and gradients for `rounds` rounds of a server, by the partial sums (rounds,) of C^{-1}'s column."""

    def __init__(self, rounds: int, workload: Workload) -> None:
        rates = workload.rates(rounds)
        self._workload = workload
        self._steady = int((rates == 1.0).sum())  # rates fall from then on
        self._falling = rates[self._steady :, None]

    def variances(self, sums: Array) -> Array:
        """Of each round's model (rounds,), for seeds of variance 1; exact."""
        steady, cooling = self._rows(sums)
        return np.concatenate([np.cumsum(steady[: self._steady] ** 2), (cooling**2).sum(axis=1)])

    def _rows(self, sums: Array) -> tuple[Array, Array]:
        """y (rounds,), and the rows of B in the cooldown (rounds of it, rounds)."""
        rounds, begin = sums.size, self._steady
        column = self._workload.moved(sums)
        backwards = np.append(np.diff(column, prepend=0.0)[::-1], np.zeros(rounds - 1))
        added = sliding_window_view(backwards, rounds)[: rounds - begin][::-1]  # h_{r-s} at row r - begin, column s
        rows = np.cumsum(self._falling * added, axis=0)
        rows[:, :begin] += column[:begin][::-1]
        return column, rows
