"""Minimising over sequences that fall and stay non-negative: there the sensitivity of a Toeplitz matrix is known."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Function: TypeAlias = Callable[[Array], tuple[float, Array]]

STEPS = 2_000
REMEMBERED = 8  # a step may rise, but not above the largest of so many values before
PATIENCE = 20  # steps without a gain of TINY end the search
TINY = 1e-13


def falling(values: Array) -> Array:
    """The nearest non-increasing, non-negative sequence: pool adjacent violators, then clip; O(p)."""
    from scipy.optimize import isotonic_regression

    return np.asarray(np.maximum(isotonic_regression(values, increasing=False).x, 0.0))


def minimise_falling(function: Function, start: Array) -> Array:
    """A local minimum of `function` (value, gradient) over the falling sequences (p,), from the one nearest to `start`.

    Spectral projected gradients (Birgin, Martinez & Raydan 2000, Algorithm 1): the step length is that of Barzilai
    and Borwein, so no curvature is stored and every iterate obeys the constraint. Values that are not finite count
    as too far.
    """
    point = falling(start)
    value, slope = function(point)
    best, best_value = point, value
    recent, lately_best = [value], [value]
    length = 0.1 * _norm(point) / max(_norm(slope), TINY)
    for _ in range(STEPS):
        direction = falling(point - length * slope) - point
        descent = float(slope @ direction)
        if descent > -TINY:
            break
        found = _search(function, point, direction, max(recent), descent)
        if found is None:
            break
        reached, value, new_slope = found
        moved, turned = reached - point, new_slope - slope
        bend = float(moved @ turned)
        length = float(np.clip((moved @ moved) / bend, 1e-8, 1e8)) if bend > 0 else 4 * length
        point, slope = reached, new_slope
        recent = [*recent[1 - REMEMBERED :], value]
        if value < best_value:
            best, best_value = point, value
        lately_best = [*lately_best[-PATIENCE:], best_value]
        if len(lately_best) > PATIENCE and lately_best[0] - best_value < TINY:
            break
    return best


def _search(
    function: Function, point: Array, direction: Array, ceiling: float, descent: float
) -> tuple[Array, float, Array] | None:
    """The first of the steps 1, 1/2, 1/4, ... that falls enough below `ceiling`; None where rounding hides it."""
    step = 1.0
    while step > 1e-12:
        reached = point + step * direction
        value, slope = function(reached)
        if np.isfinite(value) and np.isfinite(slope).all() and value <= ceiling + 1e-4 * step * descent:
            return reached, value, slope
        step /= 2
    return None


def _norm(vector: Array) -> float:
    return float(np.linalg.norm(vector))
