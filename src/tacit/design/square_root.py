"""The square root of prefix sums and its inverse, as power series."""

import numpy as np
from numpy.typing import NDArray


def prefix_root(count: int, *, inverse: bool = False) -> NDArray[np.float64]:
    """The first coefficients of (1-x)^{-1/2}, products of (2t-1)/(2t), falling and log-convex (arXiv:2202.11205).

    inverse: those of (1-x)^{1/2}. The first is 1. The same on every machine: devices compute them again.
    """
    after = np.arange(1, count)
    root = np.concatenate(([1.0], np.cumprod((2 * after - 1) / (2 * after))))
    return np.diff(root, prepend=0.0) if inverse else root
