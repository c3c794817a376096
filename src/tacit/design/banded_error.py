"""The errors of a workload under a banded strategy and their gradient: O(n p^2) work in BLAS, O(n p) memory.

A workload A under C has the noise B = A C^{-1}. A^{-1} has few bands (prefix sums ones on the diagonal and -1 below it,
a server with momentum three, see `workload`), so the matrix F = C A^{-1} has little more than C, and B = F^{-1}. Cut
into blocks of at least as many rounds as F has bands below the diagonal, F is made of diagonal blocks L_i, lower
triangles, and of blocks K_i below them, upper triangles. B F = F B = I, read by blocks:

    Q_i = L_i^{-1} (I + K_{i-1} Q_{i-1} K_{i-1}^T) L_i^{-T}    the diagonal blocks of B B^T, first to last
    S_i = L_i^{-T} (W_i + K_i^T S_{i+1} K_i) L_i^{-1}          those of B^T W B, W = diag(w), last to first

Nothing is ever subtracted, so nothing cancels. The diagonal of Q is the variance of each model; a function of
the variances with derivatives w has, by F, the derivative -2 B^T W B B^T, within the band

    -2 S_i L_i Q_i in the diagonal blocks,    2 S_{i+1} K_i Q_i in those below.
"""

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray
from scipy.linalg.blas import dgemm, dtrmm, dtrsm

from tacit.design.workload import PREFIX, Workload

Array = NDArray[np.float64]

SMALLEST = 64  # rounds in a block: below that calling BLAS costs more than its work


class BandedErrors:
    """Variances and gradients for strategies (rounds, bands); columns (n, p) as in `privacy.strategy.Banded`."""

    def __init__(self, rounds: int, bands: int, workload: Workload = PREFIX) -> None:
        self.rounds, self.bands = rounds, bands
        self._inverse = workload.inverse(rounds)
        self._reach = bands + self._inverse.shape[1] - 2  # how far below its diagonal F goes
        self._blocks = -(-rounds // min(max(self._reach, SMALLEST), rounds))
        self._size = max(self._reach, -(-rounds // self._blocks), 1)
        self.inside = np.arange(rounds)[:, None] + np.arange(bands) < rounds  # the others lie below the last round

    def mean(self, columns: Array, power: float = 1.0) -> tuple[float, Array]:
        """log of the power mean of the models' variances, (1/n sum_t v_t^power)^(1/power), and its gradient.

        Power 1 is the rms objective; a large power comes near the largest variance.
        """
        lower, below = self._triangles(columns)
        covariances = self._forward(lower, below)
        variances = np.concatenate([np.diagonal(block) for block in covariances])[: self.rounds]
        largest = variances.max()
        powers = (variances / largest) ** power
        value = float(np.log(largest) + np.log(powers.mean()) / power)
        weights = powers / variances / powers.sum()
        return value, self._backward(lower, below, covariances, weights)

    def _triangles(self, columns: Array) -> tuple[list[Array], list[Array]]:
        """L and K: F[j + i, j] = sum_l C[j + i, j + l] A^{-1}[j + l, j]; those that fill the last block stand alone."""
        rounds, bands, size = self.rounds, self.bands, self._size
        band = np.zeros((self._blocks * size, self._reach + 1))
        for lag, share in enumerate(self._inverse.T):
            band[: rounds - lag, lag : lag + bands] += columns[lag:] * share[: rounds - lag, None]
        band[rounds:, 0] = 1.0
        tall = np.zeros((self._blocks, size, 2 * size))  # tall[i] is [L_i; K_i] transposed
        self._diagonals(tall)[...] = band.reshape(self._blocks, size, self._reach + 1)
        lower = [np.asfortranarray(block[:, :size].T) for block in tall]
        below = [np.asfortranarray(block[:, size:].T) for block in tall[:-1]]
        return lower, below

    def _diagonals(self, tall: Array) -> Array:
        """A view (blocks, m, bands of F) of `tall`: entry [., j, i] is i below the diagonal in column j."""
        block, column, row = tall.strides
        return as_strided(tall, (self._blocks, self._size, self._reach + 1), (block, column + row, row))

    def _forward(self, lower: list[Array], below: list[Array]) -> list[Array]:
        """Q, block by block."""
        found: list[Array] = []
        for at, triangle in enumerate(lower):
            inner = np.eye(self._size, order="F")
            if at:
                inner += _congruent(below[at - 1], found[-1], transposed=False)
            half = dtrsm(1.0, triangle, inner, lower=1, overwrite_b=1)
            found.append(dtrsm(1.0, triangle, half, side=1, lower=1, trans_a=1, overwrite_b=1))
        return found

    def _backward(self, lower: list[Array], below: list[Array], covariances: list[Array], weights: Array) -> Array:
        """The gradient by the columns of C (n, p): S from last to first, and its products with Q."""
        rounds, bands, size = self.rounds, self.bands, self._size
        gradient = np.zeros((self._blocks, size, 2 * size))
        padded = np.zeros(self._blocks * size)
        padded[:rounds] = weights
        later = np.empty(0)  # S of the block after, none for the last
        for at in reversed(range(self._blocks)):
            inner = np.asfortranarray(np.diag(padded[at * size : (at + 1) * size]))
            if at + 1 < self._blocks:
                inner += _congruent(below[at], later, transposed=True)
                gradient[at, :, size:] = 2 * dgemm(1.0, dtrmm(1.0, below[at], covariances[at]), later, trans_a=1)
            half = dtrsm(1.0, lower[at], inner, lower=1, trans_a=1, overwrite_b=1)
            later = dtrsm(1.0, lower[at], half, side=1, lower=1, overwrite_b=1)
            gradient[at, :, :size] = -2 * dgemm(1.0, dtrmm(1.0, lower[at], covariances[at], lower=1), later, trans_a=1)
        by_band = self._diagonals(gradient).reshape(-1, self._reach + 1)[:rounds]
        by_columns = np.zeros((rounds, bands))
        for lag, share in enumerate(self._inverse.T):
            by_columns[lag:] += by_band[: rounds - lag, lag : lag + bands] * share[: rounds - lag, None]
        return np.where(self.inside, by_columns, 0.0)


def _congruent(upper: Array, inner: Array, *, transposed: bool) -> Array:
    """K X K^T, or K^T X K, for an upper triangle K."""
    half = dtrmm(1.0, upper, inner, trans_a=int(transposed))
    return np.asarray(dtrmm(1.0, upper, half, side=1, trans_a=int(not transposed), overwrite_b=1))
