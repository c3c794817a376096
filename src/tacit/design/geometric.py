"""Finite geometric sums and their slopes, accurate where the ratio is close to 1 and where there are 10^9 terms.

The ratio is given by its gap to 1, which is what a ratio near 1 is known by: x = 1 - gap, 0 < gap < 2.
"""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

SMALL = 0.1  # terms * gap below which a series stands for what cancels like 1/(terms * gap)
SERIES = 10  # terms of that series; SMALL^10/12! is below 1e-18


def geometric_sum(gap: Array, terms: int) -> tuple[Array, Array]:
    """S = sum_{t < terms} x^t = (1 - x^terms)/gap, and dS/dgap <= 0 where x >= 0; elementwise.

    S has a relative error of a few units in the last place. dS/dgap loses a factor of terms * gap, and
    gap * dS/dgap none against S.
    """
    # log|x|, on both sides of 0: 1 - gap = -(1 - (2 - gap)).
    log_ratio = np.log1p(-np.minimum(np.minimum(gap, 2.0 - gap), 1.0 - 1e-16))
    fallen, power = np.expm1(terms * log_ratio), np.exp(max(terms - 1, 0) * log_ratio)
    if gap.size and gap.max() > 1.0:
        negative = gap > 1.0
        fallen = np.where(negative & (terms % 2 == 1), -2.0 - fallen, fallen)
        power = np.where(negative & (terms % 2 == 0), -power, power)
    total = -fallen / gap
    return total, (terms * power - total) / gap


def falling_sum(gap: Array, terms: int) -> tuple[Array, Array]:
    """W = sum_{t < terms} (terms - t) x^t, the sum of the first `terms` geometric sums, and dW/dgap; elementwise.

    (terms - x S)/gap; for terms * gap < SMALL the series sum_j binomial(terms + 1, j + 2) (-gap)^j.
    """
    total, in_total = geometric_sum(gap, terms)
    closed = (terms - (1.0 - gap) * total) / gap
    in_closed = (total - (1.0 - gap) * in_total - closed) / gap
    few = np.minimum(gap, SMALL / terms)
    series, in_series = np.ones_like(gap), np.zeros_like(gap)
    for j in reversed(range(SERIES)):
        factor = (terms - 1 - j) / (j + 3)
        series, in_series = 1.0 - few * factor * series, -factor * (series + few * in_series)
    small, size = gap * terms < SMALL, terms * (terms + 1) / 2
    return np.where(small, size * series, closed), np.where(small, size * in_series, in_closed)
