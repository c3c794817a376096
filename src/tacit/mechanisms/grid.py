"""Sums are released on a grid: a function of the exact noised sum alone, whatever floating point does on the way.

A sum of floating-point numbers has low bits that depend on both, and attacks read the one through the other (Mironov
2012, "On significance of the least significant bits for differential privacy"). Here the sum x + a Z + b, with Z a real
normal number, is rounded to a multiple of a power of two that was chosen before the data. Rounding is post-processing,
so what must be right is which multiple is nearest. float64 decides where it can tell; where the sum is within its error
of the middle between two multiples, rational arithmetic does (`nearest`), with as many more bits of Z as it needs.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.compiled import compiled
from tacit.errors import InputError

FINENESS = 2.0**-8  # of a grid, in standard deviations of a round's fresh noise: its variance grows by 2^-16/12 at most
# The error of float64's sum, in grid steps, is below DOUBT (|sum| + FARTHEST a + grid): four roundings, each of 2^-53.
DOUBT = 2.0**-49
FARTHEST = 16.0  # no seed is farther from 0


def grid_for(stddev: float) -> float:
    """The step of the grid on which noise of this standard deviation is released: the power of two up to stddev/256."""
    if not 0 < stddev < math.inf:
        raise InputError(f"stddev={stddev} cannot be: noise that is added has a positive standard deviation.")
    return math.ldexp(FINENESS, math.frexp(stddev)[1] - 1)


@compiled
def release(
    summed: npt.NDArray[Any],
    fresh: npt.NDArray[np.float64],
    rest: npt.NDArray[np.float64],
    of_fresh: float,
    of_rest: float,
    grid: float,
    out: npt.NDArray[Any],
    doubtful: npt.NDArray[np.intp],
) -> int:
    """out = summed + of_fresh fresh + of_rest rest to the nearest multiple of `grid`; how many are in doubt, and where.

    summed = high + low, high a multiple of the grid and |low| <= grid/2, both exact: so what is rounded has the size of
    the noise, whatever the size of the sum. float32's 24 bits hold the result to 2^24 steps; beyond, it is
    rounded again, as anybody may who reads it.
    """
    steps, slack, count = 1.0 / grid, FARTHEST * abs(of_fresh) / grid + 1.0, 0
    for index in range(out.size):
        exact = np.float64(summed[index])
        high = np.rint(exact * steps)
        low = exact - high * grid
        noised = (of_fresh * fresh[index] + (of_rest * rest[index] + low)) * steps
        nearest = np.rint(noised)
        out[index] = (high + nearest) * grid
        count += abs(noised - nearest) > 0.5 - DOUBT * (abs(noised) + slack)
    if count == 0:
        return 0
    count = 0
    for index in range(out.size):
        exact = np.float64(summed[index])
        low = exact - np.rint(exact * steps) * grid
        noised = (of_fresh * fresh[index] + (of_rest * rest[index] + low)) * steps
        if abs(noised - np.rint(noised)) > 0.5 - DOUBT * (abs(noised) + slack):
            doubtful[count] = index
            count += 1
    return count


def nearest(
    fixed: Fraction, of_fresh: float, fresh: tuple[Fraction, Fraction], more: Callable[[], int], grid: float
) -> float:
    """The multiple of `grid` nearest to fixed + of_fresh Z, where Z is low + u width and u uniform in [0, 1).

    fresh: (low, width). more: 64 further bits of u, highest first; asked for until they decide.
    """
    step, factor, (low, width) = Fraction(grid), Fraction(of_fresh), fresh
    while True:
        ends = sorted(fixed + factor * end for end in (low, low + width))
        first, last = (math.floor(end / step + Fraction(1, 2)) for end in ends)
        if first == last:
            return first * grid
        width /= 2**64
        low += more() * width
