"""Two normal laws of any means and deviations: what telling them apart shows of epsilon at delta.

Where the noise depends on whether the canary is there, mu alone says too little (arXiv:2606.12733 fits both laws).
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import fdtri

from tacit.errors import InputError
from tacit.privacy.empirical.normal_scores import noncentrality_at_least
from tacit.privacy.empirical.samples import check_delta, error_of, positive, sample

RATIOS = 9  # of deviations, looked at in the interval of those that are likely, before the least is looked for
GOLDEN = (math.sqrt(5) - 1) / 2
LARGEST = 700.0  # of epsilon: e^700 is nearly the largest float


def delta_of_pair(mean: float, deviation: float, epsilon: float) -> float:
    """The smallest delta at which N(mean, deviation^2) and N(0, 1) are (epsilon, delta)-close, both ways. Exact.

    One way it is the integral of (p - e^epsilon q) over where p is larger. There the logarithm of p / q, a quadratic
    function, exceeds epsilon: on one interval, outside of one, or on a half line.
    """
    positive("deviation", deviation)
    return max(_one_way(mean, deviation, epsilon), _one_way(-mean / deviation, 1 / deviation, epsilon))


def epsilon_of_pair(mean: float, deviation: float, delta: float) -> float:
    """The smallest epsilon at which both laws of `delta_of_pair` are (epsilon, delta)-close; at most LARGEST."""
    if not 0 < delta < 1:
        raise InputError(f"delta={delta} must be above 0 and below 1: of normal laws no epsilon is finite at 0.")
    low, high = 0.0, 1.0
    if delta_of_pair(mean, deviation, 0.0) <= delta:
        return 0.0
    while delta_of_pair(mean, deviation, high) > delta:
        low, high = high, 2 * high
        if high > LARGEST:
            return LARGEST
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if delta_of_pair(mean, deviation, middle) > delta else (low, middle)
    return low


def epsilon_of_normal_samples(
    absent: ArrayLike, present: ArrayLike, delta: float, *, confidence: float = 0.95
) -> float:
    """A lower bound on epsilon at `delta` from normal scores, (n,) and (m,), all four parameters unknown.

    Half the error goes to the ratio r of deviations, by the F law of the ratio of variances. Given r, the mean
    difference over the deviation pooled with weights 1 and 1/r^2 has the noncentral t law, which bounds the mean by
    the other half. The bound is the least epsilon over the r left, so it holds for the true pair.
    """
    check_delta(delta)
    error = error_of(confidence)
    without, within = sample("absent", absent, least=2), sample("present", present, least=2)
    n, m = len(without), len(within)
    variances = float(without.var(ddof=1)), float(within.var(ddof=1))
    if min(variances) == 0:
        raise InputError("the scores of a sample are all alike: no noise was added; give runs with noise.")
    difference = float(within.mean() - without.mean())
    sign, observed = math.copysign(1, difference), variances[1] / variances[0]

    def epsilon(ratio: float) -> float:
        pooled = math.sqrt(((n - 1) * variances[0] + (m - 1) * variances[1] / ratio**2) / (n + m - 2))
        scale = math.sqrt(1 / n + ratio**2 / m)
        mean = scale * noncentrality_at_least(abs(difference) / pooled / scale, n + m - 2, error / 4)
        return epsilon_of_pair(sign * max(mean, 0.0), ratio, delta)

    # s1^2/s0^2 over r^2 has the F law with m - 1 and n - 1 degrees of freedom.
    largest = math.sqrt(observed / float(fdtri(m - 1, n - 1, error / 4)))
    smallest = math.sqrt(observed / float(fdtri(m - 1, n - 1, 1 - error / 4)))
    return _least(epsilon, smallest, largest)


def _least(function: Callable[[float], float], low: float, high: float) -> float:
    """The least value of a function with one valley between two points, and what a grid sees of it besides."""
    points = np.geomspace(low, high, RATIOS)
    values = [function(float(point)) for point in points]
    best = int(np.argmin(values))
    low, high, found = float(points[max(best - 1, 0)]), float(points[min(best + 1, RATIOS - 1)]), values[best]
    while high - low > 1e-4 * high:
        one, other = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
        at_one, at_other = function(one), function(other)
        found = min(found, at_one, at_other)
        low, high = (low, other) if at_one < at_other else (one, high)
    return found


def _one_way(mean: float, deviation: float, epsilon: float) -> float:
    square, slope = (1 - deviation**-2) / 2, mean / deviation**2
    constant = -math.log(deviation) - mean**2 / (2 * deviation**2) - epsilon
    if abs(square) < 1e-12 * max(1.0, slope * slope):  # the same deviation: a half line
        if slope == 0:
            return 0.0
        begin = -constant / slope
        own = _above((begin - mean) / deviation) if slope > 0 else _above((mean - begin) / deviation)
        return own - math.exp(epsilon) * (_above(begin) if slope > 0 else _above(-begin))
    inner = slope * slope - 4 * square * constant
    if inner <= 0:  # nowhere, or everywhere, which epsilon >= 0 forbids
        return 0.0
    half = -(slope + math.copysign(math.sqrt(inner), slope)) / 2
    low, high = sorted((half / square, constant / half)) if half else sorted((-1.0, 1.0))
    if square > 0:
        own = _above((mean - low) / deviation) + _above((high - mean) / deviation)
        other = _above(-low) + _above(high)
    else:
        own = _between((low - mean) / deviation, (high - mean) / deviation)
        other = _between(low, high)
    return max(own - math.exp(epsilon) * other, 0.0)


def _above(x: float) -> float:
    return math.erfc(x * math.sqrt(0.5)) / 2


def _between(low: float, high: float) -> float:
    return _above(low) - _above(high) if low > 0 else _above(-high) - _above(-low)
