"""How much one client can move what is released: the worst case over everything a client may do, exactly.

For clients whose contribution to a round has norm at most 1 (in clip norms), zero-out adjacency, and a strategy C with
non-negative C^T C, the squared sensitivity is the largest `sum_{i,j in pattern} (C^T C)_ij` over the participation
patterns (arXiv:2211.06530). `sensitivity_squared` is exact for its strategies or refuses; `sensitivity_bound_squared`
gives a proved upper bound instead of refusing, and says so.
"""

import math

import numpy as np

from tacit.errors import AccountingError
from tacit.privacy.factorization import Strategy
from tacit.privacy.participation import Participation
from tacit.privacy.sensitivity_tree import tree_sensitivity_squared

__all__ = [
    "sensitivity",
    "sensitivity_bound_squared",
    "sensitivity_squared",
    "toeplitz_sensitivity",
    "toeplitz_sensitivity_squared",
    "tree_sensitivity_squared",
]


def sensitivity_squared(strategy: Strategy, participation: Participation) -> float:
    """Squared L2 sensitivity in multiples of the squared clip norm; exact, AccountingError where it cannot be."""
    value, exact = strategy.sensitivity_squared(participation)
    if not exact:
        raise AccountingError(strategy.only_bounded(participation, value))
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
    return strategy.sensitivity_squared(participation)


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
        raise AccountingError(rising(column))
    limits = participation.effective
    separation, times = min(limits.min_separation, limits.rounds), limits.max_participations
    # Row m, place r: round m b + r. A client that comes in 0, b, ..., (k-1) b moves it by the sum of the last k rows.
    rows = -(-limits.rounds // separation)
    response = np.zeros((rows, separation))
    response.reshape(-1)[: limits.rounds] = column
    np.cumsum(response, axis=0, out=response)
    if rows > times:
        response[times:] -= response[:-times].copy()
    moved = response.reshape(-1)[: limits.rounds]
    return float(moved @ moved)


def rising(column: np.ndarray) -> str:
    """Which coefficient of a column is negative or above the one before it, so that no exact value is known."""
    at = int(np.flatnonzero(~((column >= 0) & (np.diff(column, prepend=np.inf) <= 0)))[0])
    return (
        f"coefficient {at} is {column[at]:.6g}, and the exact sensitivity is known only for non-negative, "
        "non-increasing coefficients; for a BLT let the omegas sum to at most 1."
    )


def toeplitz_sensitivity(coefficients: np.ndarray, participation: Participation) -> float:
    """The root of `toeplitz_sensitivity_squared`, in clip norms."""
    return math.sqrt(toeplitz_sensitivity_squared(coefficients, participation))
