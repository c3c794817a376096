"""Minimising a smooth function from many starts at once.

All starts take their steps together: evaluating them all costs little more than evaluating one, because it is
the calls that cost and not the arithmetic. A library's optimiser, called start by start, would give that away.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Function = Callable[[Array], tuple[Array, Array]]  # points (m, p) -> values (m,), gradients (m, p)

DESCENT = 1e-4  # the share of the promised decrease that a step must bring (Armijo)
CUTS = 25  # of a step's length, before a start is taken to be at its minimum


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How far the search goes: the largest change of one coordinate in a step; steps in all; and after which steps
    only how many of the best starts go on.

    Every `stretch` steps a start must have gained more than `least`, and more than one `patience`-th of what
    separates it from the best, else it is done.
    """

    longest: float = 2.0
    steps: int = 500
    heats: tuple[tuple[int, int], ...] = ((20, 16), (50, 8), (120, 3))
    stretch: int = 10
    min_gain: float = 1e-9
    patience: float = 50.0


def minimise(function: Function, starts: Array, effort: Effort) -> tuple[Array, float]:
    """The best point (p,) found from `starts` (m, p) and its value, by BFGS from each.

    Deterministic. The starts that lag behind are dropped on the way, see `Effort`.
    """
    heats = dict(effort.heats)
    points, (values, slopes) = starts, function(starts)
    inverses = np.broadcast_to(np.eye(starts.shape[1]), (*starts.shape, starts.shape[1])).copy()
    best, lowest, before = points[np.argmin(values)], float(values.min()), values
    for step in range(effort.steps):
        if step in heats:
            kept = np.argsort(values, kind="stable")[: heats[step]]
            points, values, slopes, inverses = points[kept], values[kept], slopes[kept], inverses[kept]
            before = before[kept]
        way = -np.einsum("mij,mj->mi", inverses, slopes)
        way *= np.minimum(1.0, effort.longest / np.maximum(np.abs(way).max(axis=1), 1e-300))[:, None]
        promise = -(way * slopes).sum(axis=1)
        reached, lower, there = _search(function, points, values, slopes, way, promise)
        _learn(inverses, reached - points, there - slopes, first=step == 0)
        live = lower < values
        points, values, slopes = reached, lower, there
        if values.min() < lowest:
            best, lowest = points[np.argmin(values)], float(values.min())
        if step % effort.stretch == effort.stretch - 1:
            live &= before - values > np.maximum(effort.min_gain, (values - lowest) / effort.patience)
            before = values
        if not live.any():
            break
        points, values, slopes, inverses = points[live], values[live], slopes[live], inverses[live]
        before = before[live]
    return best, lowest


def _search(
    function: Function, points: Array, values: Array, slopes: Array, way: Array, promise: Array
) -> tuple[Array, Array, Array]:
    """Along each way the first point that is low enough: whole steps first, shortened by the parabola through what
    is known. Where there is none, the point itself.
    """
    reached, lower, there = points.copy(), values.copy(), slopes.copy()
    share = np.ones(len(points))
    still = np.arange(len(points))
    for _ in range(CUTS):
        tried = points[still] + share[still, None] * way[still]
        value, slope = function(tried)
        low = value <= values[still] - DESCENT * share[still] * promise[still]
        found = still[low]
        reached[found], lower[found], there[found] = tried[low], value[low], slope[low]
        if low.all():
            break
        rise = value[~low] - values[still[~low]]
        still = still[~low]
        line = promise[still] * share[still]
        share[still] *= np.clip(line / (2 * (rise + line)), 0.1, 0.5)
    return reached, lower, there


def _learn(inverses: Array, moved: Array, turned: Array, *, first: bool) -> None:
    """The BFGS update of the inverse Hessians, in place, where the slope grew along the step.

    J. Nocedal, S. Wright, Numerical Optimization, 2nd ed., Equations 6.17 and 6.20.
    """
    grown = (moved * turned).sum(axis=1)
    sound = grown > 1e-12 * np.sqrt((moved**2).sum(axis=1) * (turned**2).sum(axis=1))
    ratio = 1.0 / np.where(sound, grown, 1.0)
    if first:
        inverses *= np.where(sound, grown / np.maximum((turned**2).sum(axis=1), 1e-300), 1.0)[:, None, None]
    seen = np.einsum("mij,mj->mi", inverses, turned)
    outward = ratio * (1.0 + ratio * (turned * seen).sum(axis=1))
    mixed = ratio[:, None, None] * (moved[:, :, None] * seen[:, None, :])
    update = outward[:, None, None] * (moved[:, :, None] * moved[:, None, :]) - mixed - np.swapaxes(mixed, 1, 2)
    inverses += np.where(sound[:, None, None], update, 0.0)
