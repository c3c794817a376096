"""What one round of a mechanism does, written down: which weighted vectors make the noise, and what is kept.

Every mechanism here is linear, so this is all there is to say, and two files know how to do it: `blocks.py` on a CPU,
`device.py` on an accelerator.
"""

from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

Weights: TypeAlias = tuple[float, ...]


class Decay(NamedTuple):
    """Every buffer takes up the noise and fades: s_j <- s_j + (noise - rates_j s_j).

    Rates, not factors 1 - rate: a buffer that keeps 0.9999999999921 of itself has a factor that float32 rounds to 1
    and a rate that it holds to a relative 6e-8.
    """

    rates: Weights


class Keep(NamedTuple):
    """One buffer is written anew: s_slot <- noise * (the noise) + seeds . Z + buffers . s."""

    slot: int
    noise: float = 0.0
    seeds: Weights = ()
    buffers: Weights = ()


class Step(NamedTuple):
    """noise = seeds . Z + buffers . s, added up in this order in float32; then what is kept.

    Weights count from the first seed and the first buffer; those left out are zero. They are rounded to float32,
    or held to twice its digits where they are `cancelling`: where they nearly add up to nothing, so that what is
    rounded away from each would be seen in the sum of many rounds.
    """

    seeds: Weights
    buffers: Weights = ()
    then: Decay | Keep | None = None
    cancelling: bool = False


def float32_parts(weights: npt.ArrayLike, cancelling: bool) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """The weights as the sum of two float32, the larger first; the smaller is zero unless they are cancelling."""
    exact = np.asarray(weights, np.float64)
    large = exact.astype(np.float32)
    small = (exact - large).astype(np.float32) if cancelling else np.zeros_like(large)
    return large, small
