"""The zero of a function between two points: Brent's method, number for number SciPy's `brentq`.

Written out because loading `scipy.optimize` for it takes half as long as everything else that an account loads.
"""

import math
from collections.abc import Callable


def root_between(
    function: Callable[[float], float], low: float, high: float, *, tolerance: float = 1e-14, steps: int = 100
) -> float | None:
    """Where the function is zero, to `tolerance` absolute and relative; None after `steps` steps without.

    The function must have different signs at `low` and `high`; None if it has not. Source: Brent, Algorithms for
    Minimization Without Derivatives (1973), chapter 4, in the order of operations of SciPy's brentq.c.
    """
    before, now, across = low, high, 0.0  # the last point, the best one, and the one on the other side of zero
    f_before, f_now, f_across = function(before), function(now), 0.0
    if f_before == 0:
        return before
    if f_now == 0:
        return now
    if (f_before < 0) == (f_now < 0):
        return None
    step_before = step = 0.0
    for _ in range(steps):
        if f_before != 0 and f_now != 0 and (f_before < 0) != (f_now < 0):
            across, f_across = before, f_before
            step_before = step = now - before
        if abs(f_across) < abs(f_now):
            before, now, across = now, across, now
            f_before, f_now, f_across = f_now, f_across, f_now
        least, half = (tolerance + tolerance * abs(now)) / 2, (across - now) / 2
        if f_now == 0 or abs(half) < least:
            return now
        tried = math.inf
        if abs(step_before) > least and abs(f_now) < abs(f_before):
            tried = _interpolated((before, f_before), (now, f_now), (across, f_across))
        if 2 * abs(tried) < min(abs(step_before), 3 * abs(half) - least):
            step_before, step = step, tried
        else:  # not a good short step: bisect
            step_before = step = half
        before, f_before = now, f_now
        now += step if abs(step) > least else math.copysign(least, half)
        f_now = function(now)
    return None


def _interpolated(before: tuple[float, float], now: tuple[float, float], across: tuple[float, float]) -> float:
    """The step to the zero of the line, or of the inverse parabola, through the points; infinite if there is none."""
    (x_before, f_before), (x, f), (x_across, f_across) = before, now, across
    try:
        if x_before == x_across:
            return -f * (x - x_before) / (f - f_before)
        slope = (f_before - f) / (x_before - x)
        slope_across = (f_across - f) / (x_across - x)
        return -f * (f_across * slope_across - f_before * slope) / (slope_across * slope * (f_across - f_before))
    except ZeroDivisionError:
        return math.inf
