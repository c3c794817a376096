"""Noise of a matrix told by its numbers: each round takes back its shares of the noise of the rounds before it.

C Zhat = Z is solved by forward substitution, Zhat_t = (Z_t - sum_{i>0} C[t, t-i] Zhat_{t-i}) / C[t, t]. What float32
rounds away in one round is taken back by the next ones like noise itself: the streamed noise is that of seeds which
differ from the given ones by a few units in their last place, for however many rounds.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tacit.mechanisms.step import Keep, Step
from tacit.mechanisms.stream import NoiseStream
from tacit.privacy.strategy import Banded, BandedToeplitz, Dense, Toeplitz


@dataclass(frozen=True)
class SubstitutionStream(NoiseStream):
    """Carries the noise of the last p - 1 rounds, p the diagonals of C that are not zero.

    A full matrix (Dense, Toeplitz) has as many diagonals as rounds: all earlier noise is carried, a vector more each
    round. That is for comparison on small models, and for short runs.
    """

    strategy: Toeplitz | BandedToeplitz | Banded | Dense

    @cached_property
    def carried(self) -> int:
        """The noise vectors carried when enough rounds are done: the lowest diagonal that is not zero."""
        match self.strategy:
            case Toeplitz(coefficients=coefficients) | BandedToeplitz(coefficients=coefficients):
                return int(np.flatnonzero(coefficients).max())
            case Banded(columns=columns):
                return int(np.flatnonzero(columns.any(axis=0)).max())
            case Dense(matrix=matrix):
                below, above = np.nonzero(matrix)
                return int((below - above).max())

    def memory(self, rounds: int) -> int:
        """The noise of each round so far, at most p - 1."""
        return min(rounds, self.carried)

    def step(self, round: int) -> Step:
        """The noise of round t is written over that of round t - (p - 1), after this was used for the last time."""
        shares = self._row(round, self.memory(round))
        buffers = np.zeros(len(shares) - 1)
        if self.carried:
            buffers[(round - np.arange(1, len(shares))) % self.carried] = -shares[1:] / shares[0]
        return Step(
            seeds=(1.0 / float(shares[0]),),
            buffers=tuple(buffers.tolist()),
            then=Keep(slot=round % self.carried, noise=1.0) if self.carried else None,
        )

    def _row(self, round: int, back: int) -> npt.NDArray[np.float64]:
        """C[t, t - i] for i = 0 ... back."""
        lags = np.arange(back + 1)
        match self.strategy:
            case Toeplitz(coefficients=coefficients) | BandedToeplitz(coefficients=coefficients):
                row = np.array(coefficients[: back + 1])
            case Banded(columns=columns):
                row = columns[round - lags, lags]
            case Dense(matrix=matrix):
                row = matrix[round, round - lags]
        return row
