"""How much one client can move what is released: the worst case over everything a client may do, exactly.

For clients whose contribution to a round has norm at most 1 (in clip norms), zero-out adjacency, and a strategy C with
non-negative C^T C, the squared sensitivity is the largest `sum_{i,j in pattern} (C^T C)_ij` over the participation
patterns (arXiv:2211.06530). `sensitivity_squared` is exact for its strategies or refuses; `sensitivity_bound_squared`
gives a proved upper bound instead of refusing, and says so.
"""

import math
from functools import lru_cache

import numpy as np

from tacit.errors import AccountingError
from tacit.privacy.participation import Participation
from tacit.privacy.sensitivity_blt import blt_sensitivity_squared
from tacit.privacy.sensitivity_matrix import banded_sensitivity_squared, dense_sensitivity_squared
from tacit.privacy.sensitivity_tree import tree_sensitivity_squared
from tacit.privacy.strategy import (
    Banded,
    BandedInverse,
    BandedToeplitz,
    Blt,
    Dense,
    Independent,
    Strategy,
    Toeplitz,
    Tree,
)

__all__ = [
    "sensitivity",
    "sensitivity_bound_squared",
    "sensitivity_squared",
    "toeplitz_sensitivity",
    "toeplitz_sensitivity_squared",
    "tree_sensitivity_squared",
]

_ROUNDING = 1e-12  # a computed column that ought to be flat may rise by this much, relative to its largest number


def sensitivity_squared(strategy: Strategy, participation: Participation) -> float:
    """Squared L2 sensitivity in multiples of the squared clip norm; exact, AccountingError where it cannot be."""
    if not isinstance(strategy, Banded | Dense):
        return _of_formula(strategy, participation)
    value, exact = _of_matrix(strategy, participation)
    if not exact:
        raise AccountingError(
            f"the worst of all patterns of {participation.effective.max_participations} participations was not found "
            f"for this {strategy.kind} matrix, only that its sensitivity is at most {math.sqrt(value):.6g}; account "
            "with sensitivity_bound_squared, or take a banded matrix with at most 2 * min_separation bands."
        )
    return value


def sensitivity(strategy: Strategy, participation: Participation) -> float:
    """L2 sensitivity in multiples of the clip norm; exact, AccountingError where it cannot be."""
    return math.sqrt(sensitivity_squared(strategy, participation))


def sensitivity_bound_squared(strategy: Strategy, participation: Participation) -> tuple[float, bool]:
    """(an upper bound of the squared sensitivity, whether it is exact), in multiples of the squared clip norm.

    Exact wherever `sensitivity_squared` is. Otherwise, where C^{-1} is given and C's coefficients rise or are negative,
    the exact value of the smallest non-increasing column above their absolute values: |C| entry by entry below C'
    gives sens(C) <= sens(C'). For matrices the best bound that branch and bound has reached. Coefficients of C that
    somebody gave and that rise are more likely a mistake, and refused here too.
    """
    if isinstance(strategy, Banded | Dense):
        return _of_matrix(strategy, participation)
    try:
        return _of_formula(strategy, participation), True
    except AccountingError:
        if not isinstance(strategy, BandedInverse):
            raise
        falling = _falling(strategy.column(participation.rounds))
        return toeplitz_sensitivity_squared(falling, participation), False


@lru_cache(maxsize=1024)
def _of_formula(
    strategy: Independent | Tree | Toeplitz | BandedToeplitz | BandedInverse | Blt, participation: Participation
) -> float:
    """The exact squared sensitivity of a strategy that a few numbers describe."""
    match strategy:
        case Independent():
            return float(participation.effective.max_participations)
        case Tree():
            return float(tree_sensitivity_squared(participation, restarts=strategy.restarts))
        case Blt():
            return blt_sensitivity_squared(strategy.theta, strategy.omega, participation)
        case BandedInverse():
            # The column never ends, and it is computed: where it is flat its last bits may rise.
            column = strategy.column(participation.rounds)
            falling = _falling(column)
            flat = np.abs(falling - column).max() <= _ROUNDING * falling[0]
            return toeplitz_sensitivity_squared(falling if flat else column, participation)
        case Toeplitz() | BandedToeplitz():
            return toeplitz_sensitivity_squared(strategy.column(participation.rounds), participation)


@lru_cache(maxsize=8)  # matrices may be large
def _of_matrix(strategy: Banded | Dense, participation: Participation) -> tuple[float, bool]:
    """(squared sensitivity, whether it is exact and not an upper bound)."""
    if isinstance(strategy, Banded):
        return banded_sensitivity_squared(strategy, participation)
    return dense_sensitivity_squared(strategy, participation)


def _falling(column: np.ndarray) -> np.ndarray:
    """The smallest non-increasing column that is nowhere below |column|."""
    return np.maximum.accumulate(np.abs(column)[::-1])[::-1]


def toeplitz_sensitivity_squared(coefficients: np.ndarray, participation: Participation) -> float:
    """Squared sensitivity of a lower-triangular Toeplitz matrix, in squared clip norms; O(n).

    Exact for non-negative, non-increasing coefficients (n,), all n of them: the worst case comes as early and as often
    as it may (arXiv:2408.08868, Theorem 3.1; arXiv:2405.13763, Theorem 2). AccountingError for others.
    """
    column = np.asarray(coefficients, dtype=np.float64)
    if column.shape != (participation.rounds,):
        raise AccountingError(
            f"{column.shape} coefficients for {participation.rounds} rounds; the sensitivity needs all of them."
        )
    if not (np.isfinite(column).all() and column[-1] >= 0 and (np.diff(column) <= 0).all()):
        at = int(np.flatnonzero(~((column >= 0) & (np.diff(column, prepend=np.inf) <= 0)))[0])
        raise AccountingError(
            f"coefficient {at} is {column[at]:.6g}, and the exact sensitivity is known only for non-negative, "
            "non-increasing coefficients; for a BLT let the omegas sum to at most 1."
        )
    served = participation.effective
    separation, times = min(served.min_separation, served.rounds), served.max_participations
    # Row m, place r: round m b + r. A client that comes in 0, b, ..., (k-1) b moves it by the sum of the last k rows.
    rows = -(-served.rounds // separation)
    response = np.zeros((rows, separation))
    response.reshape(-1)[: served.rounds] = column
    np.cumsum(response, axis=0, out=response)
    if rows > times:
        response[times:] -= response[:-times].copy()
    moved = response.reshape(-1)[: served.rounds]
    return float(moved @ moved)


def toeplitz_sensitivity(coefficients: np.ndarray, participation: Participation) -> float:
    """The root of `toeplitz_sensitivity_squared`, in clip norms."""
    return math.sqrt(toeplitz_sensitivity_squared(coefficients, participation))
