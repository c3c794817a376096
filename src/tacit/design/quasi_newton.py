"""Minimising a smooth function from many starts at once: one evaluation of all of them costs little more than one of
one, which is what calling a library's optimiser per start would give away.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Function = Callable[[Array], tuple[Array, Array]]  # (starts, p) -> values (starts,), gradients (starts, p)


def minimise(
    function: Function,
    starts: Array,
    *,
    steps: int = 400,
    longest: float = 2.0,
    flat: float = 1e-8,
) -> tuple[Array, Array, int]:
    points = starts.copy()
    values, slopes = function(points)
    size = points.shape[1]
    inverse = np.broadcast_to(np.eye(size), (len(points), size, size)).copy()
    live = np.arange(len(points))
    fresh = np.ones(len(points), bool)
    evals = 0
    stall = np.zeros(len(points), int)
    for _ in range(steps):
        if not live.size:
            break
        H, x, f, g = inverse[live], points[live], values[live], slopes[live]
        step = -(H @ g[:, :, None])[:, :, 0]
        down = (step * g).sum(1)
        bad = down >= 0
        if bad.any():
            step[bad] = -g[bad]
            down[bad] = -(g[bad] ** 2).sum(1)
            H[bad] = np.eye(size)
        factor = np.minimum(1.0, longest / np.abs(step).max(1))
        step *= factor[:, None]
        down *= factor
        t = np.ones(len(live))
        newx, newf, newg = x.copy(), f.copy(), g.copy()
        todo = np.arange(len(live))
        for _ in range(20):
            cand = x[todo] + t[todo, None] * step[todo]
            cf, cg = function(cand)
            evals += 1
            ok = cf <= f[todo] + 1e-4 * t[todo] * down[todo]
            hit = todo[ok]
            newx[hit], newf[hit], newg[hit] = cand[ok], cf[ok], cg[ok]
            todo, cf = todo[~ok], cf[~ok]
            if not todo.size:
                break
            # quadratic interpolation
            q = -down[todo] * t[todo] / (2 * (cf - f[todo] - down[todo] * t[todo]))
            t[todo] *= np.clip(np.nan_to_num(q), 0.1, 0.5)
        s, y = newx - x, newg - g
        sy = (s * y).sum(1)
        good = sy > 1e-14 * np.sqrt((s**2).sum(1) * (y**2).sum(1))
        if good.any():
            k = np.flatnonzero(good)
            first = k[fresh[live[k]]]
            if first.size:
                H[first] = np.eye(size) * (sy[first] / (y[first] ** 2).sum(1))[:, None, None]
                fresh[live[first]] = False
            sk, yk, r = s[k], y[k], 1.0 / sy[k]
            Hy = (H[k] @ yk[:, :, None])[:, :, 0]
            yHy = (yk * Hy).sum(1)
            H[k] += ((1 + yHy * r) * r)[:, None, None] * sk[:, :, None] * sk[:, None, :] - r[:, None, None] * (
                Hy[:, :, None] * sk[:, None, :] + sk[:, :, None] * Hy[:, None, :]
            )
        points[live], values[live], slopes[live], inverse[live] = newx, newf, newg, H
        gain = f - newf
        stall[live] = np.where(gain > 1e-11, 0, stall[live] + 1)
        done = (np.abs(newg).max(1) < flat) | (stall[live] >= 5)
        live = live[~done]
    return points, values, evals
