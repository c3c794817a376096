"""The errors of a server's models under a Toeplitz strategy, and their gradient, in O(rounds x rounds of the cooldown).

With u the partial sums of C^{-1}'s column, y = M u (`workload`) is the column of B = A C^{-1} for as long as the rate
stays: row t is y_t, ..., y_0, of variance sum_{j <= t} y_j^2. From then on B is not Toeplitz: a round r of the cooldown
adds r_r h_{r-s} to entry s of the row before, h the differences of y.
"""

import math

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from tacit.design.objective import POWERS, Objective
from tacit.design.workload import Workload

Array = NDArray[np.float64]


class ToeplitzErrors:
    """Variances and gradients for `rounds` rounds of a server, by the partial sums (rounds,) of C^{-1}'s column."""

    def __init__(self, rounds: int, workload: Workload) -> None:
        rates = workload.rates(rounds)
        self._workload = workload
        self._steady = int((rates == 1.0).sum())  # rates fall from then on
        self._falling = rates[self._steady :, None]

    def powers(self, objective: Objective) -> tuple[float, ...]:
        """The means that lead to the objective, the last of them nearest to it; while rates stay, the last row is the
        largest.
        """
        return (math.inf,) if objective == "max" and not self._falling.size else POWERS[objective]

    def variances(self, sums: Array) -> Array:
        """Of each round's model (rounds,), for seeds of variance 1; exact."""
        return self._variances(*self._rows(sums))

    def mean(self, sums: Array, power: float) -> tuple[float, Array]:
        """The power mean of the variances, (1/n sum_t v_t^power)^(1/power), and its gradient (rounds,).

        Power 1 is the squared rms error, infinity the largest variance, whose gradient is that of the largest row.
        """
        steady, cooling = self._rows(sums)
        variances = self._variances(steady, cooling)
        largest = float(variances.max())
        if math.isinf(power):
            value, weights = largest, np.zeros(sums.size)
            weights[np.argmax(variances)] = 1.0
        else:
            shares = (variances / largest) ** (power - 1.0)
            spread = float((shares * variances / largest).mean())
            value = largest * spread ** (1.0 / power)
            weights = shares * (spread ** (1.0 / power - 1.0) / sums.size)
        return value, self._back(steady, cooling, weights)

    def _variances(self, steady: Array, cooling: Array) -> Array:
        return np.concatenate([np.cumsum(steady[: self._steady] ** 2), (cooling**2).sum(axis=1)])

    def _back(self, steady: Array, cooling: Array, weights: Array) -> Array:
        """The gradient by `sums` of the variances' sum with these weights, from what `_rows` gave."""
        begin, rounds = self._steady, steady.size
        by_column = np.zeros(rounds)
        by_column[:begin] = 2 * np.cumsum(weights[:begin][::-1])[::-1] * steady[:begin]
        later = (
            2 * np.cumsum((weights[begin:, None] * cooling)[::-1], axis=0)[::-1]
        )  # of a row and all that build on it
        if begin < rounds:
            by_column[:begin] += later[0, :begin][::-1]
        by_step = np.zeros(rounds + 1)
        for row, (rate, entries) in enumerate(zip(self._falling[:, 0], later, strict=True), start=begin):
            by_step[: row + 1] += rate * entries[row::-1]
        by_column -= np.diff(by_step)
        return self._workload.moved(by_column[::-1])[::-1]

    def _rows(self, sums: Array) -> tuple[Array, Array]:
        """y (rounds,), and the rows of B in the cooldown (rounds of it, rounds)."""
        rounds, begin = sums.size, self._steady
        column = self._workload.moved(sums)
        backwards = np.append(np.diff(column, prepend=0.0)[::-1], np.zeros(rounds - 1))
        added = sliding_window_view(backwards, rounds)[: rounds - begin][::-1]  # h_{r-s} at row r - begin, column s
        rows = np.cumsum(self._falling * added, axis=0)
        rows[:, :begin] += column[:begin][::-1]
        return column, rows
