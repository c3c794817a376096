"""How a figure changes along another over clients: a slope with its interval."""

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from tacit.errors import InputError
from tacit.evaluation.intervals import CONFIDENCE, Estimate


def slope_of(along: ArrayLike, values: ArrayLike) -> Estimate:
    """Least-squares slope of `values` over `along`, with an interval that allows for any spread (White's HC1 error).

    Raises: InputError for fewer than three clients, or where nothing varies along.
    """
    across, up = np.asarray(along, np.float64), np.asarray(values, np.float64)
    centred = across - across.mean()
    square = float(centred @ centred)
    if across.size < 3 or square == 0:
        raise InputError(f"{across.size} clients that are all alike have no slope; take three that differ.")
    slope = float(centred @ up) / square
    residuals = up - up.mean() - slope * centred
    free = across.size - 2
    error = np.sqrt(float(centred**2 @ residuals**2) * across.size / free) / square
    margin = float(stats.t.ppf((1 + CONFIDENCE) / 2, free)) * float(error)
    return Estimate(slope, slope - margin, slope + margin)
