"""What a mechanism must remember between rounds: the price that decides which of two good ones can run at all."""

from typing import assert_never

import numpy as np

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
    """Vectors of the model's size that the noise of a run of `rounds` rounds carries from round to round; exact.

    Not counted: the seeds of the round at hand. Banded inverses carry seeds, which a counter-based generator could
    draw again instead.
    """
    match strategy:
        case Independent():
            return 0
        case Blt():
            return len(strategy.theta)
        case Tree():
            return max(height for _, height in strategy.blocks(rounds)) + 1
        case Toeplitz():
            return min(int(np.flatnonzero(strategy.coefficients)[-1]), rounds - 1)
        case BandedToeplitz() | BandedInverse():
            return min(len(strategy.coefficients), rounds) - 1
        case Banded():
            return min(strategy.bands, rounds) - 1
        case Dense():
            return rounds - 1
    assert_never(strategy)
