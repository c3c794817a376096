"""What a mechanism must remember between rounds: the price that decides which of two good ones can run at all."""

from typing import assert_never

import numpy as np
from numpy.typing import ArrayLike

from tacit.privacy.strategy import (
    Banded,
    BandedInverse,
    BandedToeplitz,
    Blt,
    Dense,
    Independent,
    Strategy,
    Toeplitz,
    Tree,
)


def noise_memory(strategy: Strategy, rounds: int) -> int:
    """Vectors of the model's size that the noise carries when `rounds` rounds are done; exact for `stream_for`.

    Not counted: the seeds of the round at hand. A banded inverse carries seeds, except that a single earlier one
    (DP-lambdaCGD) is drawn again.
    """
    match strategy:
        case Independent():
            return 0
        case Blt():
            return len(strategy.theta)
        case Tree():
            return max(height for _, height in strategy.blocks(rounds)) + 1
        case BandedInverse():
            reach = _reach(strategy.coefficients)
            return 0 if reach == 1 else min(rounds, reach)
        case Toeplitz() | BandedToeplitz():
            return min(rounds, _reach(strategy.coefficients))
        case Banded():
            return min(rounds, _reach(strategy.columns.any(axis=0)))
        case Dense():
            below, above = np.nonzero(strategy.matrix)
            return min(rounds, int((below - above).max()))
    assert_never(strategy)


def _reach(numbers: ArrayLike) -> int:
    """The place of the last number that is not zero."""
    return int(np.flatnonzero(numbers)[-1])
