"""How much one client can move what is released: the worst case over everything a client may do, exactly.

For clients whose contribution to a round has norm at most 1 (in clip norms), zero-out adjacency, and a
strategy C with non-negative C^T C, the squared sensitivity is the largest `sum_{i,j in pattern} (C^T C)_ij`
over the participation patterns (arXiv:2211.06530). Each function here is exact for its strategies or refuses.
"""

import math
from collections.abc import Iterable
from functools import cache, lru_cache

import numpy as np

from tacit.errors import AccountingError
from tacit.privacy.participation import Participation
from tacit.privacy.strategy import BandedInverse, BandedToeplitz, Blt, Independent, Strategy, Toeplitz, Tree

Front = list[tuple[int, int]]  # (value, rounds of the next block still forbidden), neither dominated
Fronts = dict[int, Front]  # by the number of participations so far


@lru_cache(maxsize=1024)
def sensitivity_squared(strategy: Strategy, participation: Participation) -> float:
    """Squared L2 sensitivity in multiples of the squared clip norm; exact, AccountingError where it cannot
    be.
    """
    match strategy:
        case Independent():
            return float(participation.effective.max_participations)
        case Tree():
            return float(tree_sensitivity_squared(participation, restarts=strategy.restarts))
        case Toeplitz() | BandedToeplitz() | BandedInverse() | Blt():
            return toeplitz_sensitivity_squared(strategy.column(participation.rounds), participation)
        case _:
            raise AccountingError(f"no exact sensitivity is known for a {strategy.kind} strategy; take another one.")


def sensitivity(strategy: Strategy, participation: Participation) -> float:
    """L2 sensitivity in multiples of the clip norm; exact, AccountingError where it cannot be."""
    return math.sqrt(sensitivity_squared(strategy, participation))


def toeplitz_sensitivity_squared(coefficients: np.ndarray, participation: Participation) -> float:
    """Squared sensitivity of a lower-triangular Toeplitz matrix, in squared clip norms.

    Exact for non-negative, non-increasing coefficients (n,), all n of them: the worst case comes as early and
    as often as it may (arXiv:2408.08868, Theorem 3.1; arXiv:2405.13763, Theorem 2). AccountingError for
    others.
    """
    column = np.asarray(coefficients, dtype=np.float64)
    if column.shape != (participation.rounds,):
        raise AccountingError(
            f"{column.shape} coefficients for {participation.rounds} rounds; the sensitivity needs all of them."
        )
    if not (np.isfinite(column).all() and column[-1] >= 0 and (np.diff(column) <= 0).all()):
        at = int(np.flatnonzero(~((column >= 0) & (np.diff(column, prepend=np.inf) <= 0)))[0])
        raise AccountingError(
            f"coefficient {at} is {column[at]:.6g}, and the exact sensitivity is known only for "
            "non-negative, "
            "non-increasing coefficients; for a BLT let the omegas sum to at most 1."
        )
    served = participation.effective
    response = np.zeros(served.rounds)
    for visit in range(served.max_participations):
        late = visit * served.min_separation
        response[late:] += column[: served.rounds - late]
    return float(response @ response)


def toeplitz_sensitivity(coefficients: np.ndarray, participation: Participation) -> float:
    """The root of `toeplitz_sensitivity_squared`, in clip norms."""
    return math.sqrt(toeplitz_sensitivity_squared(coefficients, participation))


def tree_sensitivity_squared(participation: Participation, *, restarts: tuple[int, ...] = ()) -> int:
    """Squared sensitivity of the released nodes of a forest, in squared clip norms: exact, an integer.

    The largest `sum over complete nodes of (participations below the node)^2` over all patterns
    (arXiv:2103.00039, Appendix D.2). Coming as early as possible is not the worst case, so the patterns are
    searched: a state is how often the client came, what that is worth, and how many rounds of what follows
    are still forbidden; of the states with one count only those survive that are worth more or leave more
    freedom. Takes milliseconds for thousands of rounds.
    """
    served = participation.effective
    search = _PatternSearch(served)
    fronts: Fronts = {0: [(0, 0)]}
    for _, height in Tree(restarts=restarts).blocks(served.rounds):
        fronts = search.then(fronts, height)
    return max(value for front in fronts.values() for value, _ in front)


class _PatternSearch:
    """The undominated states of a client after one tree or several in a row."""

    def __init__(self, served: Participation) -> None:
        self.min_separation = served.min_separation
        self.max_participations = served.max_participations
        # Where the separation alone limits the count, having come more often is never a disadvantage.
        worst = Participation.worst_case(served.rounds, served.min_separation)
        self.count_is_free = served.max_participations == worst.max_participations
        self.within = cache(self._within)

    def then(self, fronts: Fronts, height: int) -> Fronts:
        """The states after one more complete tree of 2^height rounds; counts beyond the maximum are "
        "dropped."""
        reached: Fronts = {}
        for came, front in fronts.items():
            for worth, forbidden in front:
                for comes, inner in self.within(height, forbidden).items():
                    if came + comes <= self.max_participations:
                        states = reached.setdefault(came + comes, [])
                        states.extend([(worth + more, after) for more, after in inner])
        if self.count_is_free:
            return _undominated_by_higher_counts(reached)
        return {count: _undominated(states) for count, states in reached.items()}

    def _within(self, height: int, forbidden: int) -> Fronts:
        """The states of one complete tree whose first `forbidden` rounds are closed to the client."""
        size = 1 << height
        if forbidden >= size:
            return {0: [(0, forbidden - size)]}
        if size <= self.min_separation:
            # At most one visit fits, worth one node on each level wherever it lies: the earliest leaves most
            # freedom.
            return {0: [(0, 0)], 1: [(height + 1, forbidden + self.min_separation - size)]}
        halves = self.then(self.within(height - 1, forbidden), height - 1)
        return {count: [(worth + count * count, after) for worth, after in front] for count, front in halves.items()}


def _undominated(states: Iterable[tuple[int, int]]) -> Front:
    """Those states that no other state beats in both worth and freedom."""
    front: Front = []
    for worth, forbidden in sorted(states, key=lambda state: (state[1], -state[0])):
        if not front or worth > front[-1][0]:
            front.append((worth, forbidden))
    return front


def _undominated_by_higher_counts(reached: Fronts) -> Fronts:
    """Those states that no state of the same or a higher count beats in both worth and freedom."""
    survivors: Fronts = {}
    best: Front = []
    for count in sorted(reached, reverse=True):
        merged = _undominated(best + reached[count])
        news = set(merged).difference(best)
        if news:
            survivors[count] = [state for state in merged if state in news]
        best = merged
    return survivors
