"""Finite geometric sums that stay accurate where the ratio is close to 1, or where there are 10^9 terms."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

SMALL = 0.1  # rounds * gap below which the series of `falling_sum` takes over: the closed form loses a factor 1/SMALL
TERMS = 10  # of that series; SMALL^TERMS / (TERMS + 2)! is below 1e-18


def geometric_sum(gap: Array, terms: int) -> Array:
    """sum_{t < terms} x^t for x = 1 - gap, 0 < gap <= 2, elementwise, to a few units in the last place.

    The ratio is given by its distance from 1, which is what a ratio near 1 is known by.
    """
    return (1.0 - _power(gap, terms)) / gap if np.all(gap > 0.5) else _mixed(gap, terms)


def _mixed(gap: Array, terms: int) -> Array:
    near = np.minimum(gap, 0.5)
    return np.where(gap <= 0.5, -np.expm1(terms * np.log1p(-near)), 1.0 - _power(gap, terms)) / gap


def _power(gap: Array, terms: int) -> Array:
    ratio = 1.0 - gap
    magnitude = np.exp(terms * np.log(np.maximum(np.abs(ratio), 1e-300)))
    return np.where((ratio < 0) & (terms % 2 == 1), -magnitude, magnitude) if terms else np.ones_like(gap)


def falling_sum(gap: Array, terms: int) -> Array:
    """sum_{t < terms} (terms - t) x^t for x = 1 - gap, 0 < gap <= 2, elementwise: the sum of the first `terms`
    geometric sums.

    (terms - x S)/gap with S the geometric sum; for terms * gap < SMALL, where that cancels, the series
    sum_j binomial(terms + 1, j + 2) (-gap)^j.
    """
    closed = (terms - (1.0 - gap) * geometric_sum(gap, terms)) / gap
    few = np.minimum(gap, SMALL / terms)
    series = np.zeros_like(gap)
    for j in reversed(range(TERMS)):
        series = 1.0 - few * ((terms - 1 - j) / (j + 3)) * series
    return np.where(gap * terms < SMALL, terms * (terms + 1) / 2 * series, closed)
