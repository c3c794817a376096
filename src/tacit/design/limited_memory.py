"""Minimising a smooth function of very many numbers: L-BFGS that reads its long vectors twice a step."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Function: TypeAlias = Callable[[Array], tuple[float, Array]]

MEMORY = 8  # pairs of vectors kept; with 30 the banded designs took as many steps as with 10
SHRINK = 1e-4  # Armijo: a step keeps at least this share of the promised fall
FIRST = 0.1  # length of the first step, as a share of the start's norm


@dataclass(frozen=True)
class Step:
    """Where a search is: the point, its value and gradient, and how often the function was evaluated."""

    point: Array
    value: float
    slope: Array
    evaluations: int


def descend(function: Function, start: Array) -> Iterator[Step]:
    """Ever lower points, without end as long as rounding lets the value fall; the caller says when it is enough.

    `function` gives (value, gradient) at a point (size,); values that are not finite count as too far.
    """
    value, slope = function(start)
    here = Step(start, value, slope, 1)
    curvature = _Curvature(start.size)
    direction = slope * (-FIRST * np.linalg.norm(start) / max(float(np.linalg.norm(slope)), 1e-300))
    while True:
        yield here
        there = _search(function, here, direction)
        if there is None:
            return
        direction = curvature.direction(there.point - here.point, there.slope - here.slope, there.slope)
        here = there


def _search(function: Function, here: Step, direction: Array) -> Step | None:
    """The first of ever shorter steps that falls enough; None where rounding hides the fall."""
    descent = float(here.slope @ direction)
    length, tries = 1.0, 0
    while length > 1e-10 and descent < 0:
        tries += 1
        point = here.point + length * direction
        value, slope = function(point)
        if np.isfinite(value) and value <= here.value + SHRINK * length * descent:
            return Step(point, value, slope, here.evaluations + tries)
        # The parabola through both values and the slope has its lowest point there.
        lowest = -length * descent / (2 * (value - here.value - length * descent)) if np.isfinite(value) else 0.1
        length *= min(max(lowest, 0.1), 0.5)
    return None


class _Curvature:
    """The last steps s and changes of gradient y. The two-loop recursion (Nocedal 1980) runs on their inner products
    only (as in Chen, Wang & Zhou 2014): one product with all of them before it, one after.
    """

    def __init__(self, size: int) -> None:
        self._pairs = np.zeros((2 * MEMORY, size))  # s in the first rows, y in the others
        self._products = np.zeros((2 * MEMORY, 2 * MEMORY))
        self._slots: list[int] = []  # oldest first

    def direction(self, step: Array, change: Array, slope: Array) -> Array:
        """Downhill at `slope`, after a `step` that changed the gradient by `change`."""
        latest = np.stack((step, change, slope))
        taken = bool(step @ change > 1e-12 * (change @ change))  # else the quadratic model would not be convex
        if taken:
            slot = self._slots.pop(0) if len(self._slots) == MEMORY else len(self._slots)
            self._slots.append(slot)
            self._pairs[slot], self._pairs[MEMORY + slot] = step, change
        used = max(self._slots, default=-1) + 1
        products = np.zeros((2 * MEMORY, 3))
        for first in (0, MEMORY):
            products[first : first + used] = self._pairs[first : first + used] @ latest.T
        if taken:
            self._products[slot] = self._products[:, slot] = products[:, 0]
            self._products[MEMORY + slot] = self._products[:, MEMORY + slot] = products[:, 1]
        weights, scale = self._weights(products[:, 2])
        found = -scale * slope
        for first in (0, MEMORY):
            found -= weights[first : first + used] @ self._pairs[first : first + used]
        return found

    def _weights(self, by_slope: Array) -> tuple[Array, float]:
        """(weights of s and y, weight of the gradient) in H times gradient."""
        weights, products = np.zeros(2 * MEMORY), self._products
        for slot in reversed(self._slots):
            turn = by_slope[slot] + products[slot] @ weights
            weights[MEMORY + slot] -= turn / products[slot, MEMORY + slot]
        if not self._slots:
            return weights, 1.0
        last = self._slots[-1]
        scale = products[last, MEMORY + last] / products[MEMORY + last, MEMORY + last]
        turns = -weights[MEMORY:]
        weights *= scale
        for slot in self._slots:
            back = scale * by_slope[MEMORY + slot] + products[MEMORY + slot] @ weights
            weights[slot] += turns[slot] - back / products[slot, MEMORY + slot]
        return weights, scale
