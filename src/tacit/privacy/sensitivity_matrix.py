"""The sensitivity of matrices given number by number: exact where a program finds the worst pattern, else a bound.

With X = C^T C a client that comes in the rounds of a pattern moves what is released by `sum_{i,j in pattern} X_ij
<u_i, u_j>` for unit vectors u_i. Where at most neighbouring participations overlap, the signs of the u_i can be chosen
freely along the chain and the worst case has |X_ij|; in general the formula is exact where X is non-negative
(arXiv:2211.06530), and with |X_ij| it is an upper bound.
"""

import heapq
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from tacit.errors import AccountingError
from tacit.privacy.participation import Participation
from tacit.privacy.sensitivity_tree import forest, tree_sensitivity_squared

Numbers = NDArray[np.float64]

_WORK = 30_000  # partial patterns times participations that the search for an exact value may look at: seconds
_LARGEST = 4096  # rounds up to which C^T C and a few more matrices of its size are held: 0.7 GB
_SAME = 1e-12  # relative: a pattern that reaches the bound this closely proves it


class _Matrix(Protocol):
    """A strategy, of which only the matrix is used."""

    kind: ClassVar[str]

    def dense(self, rounds: int) -> Numbers: ...


def banded_sensitivity_squared(columns: Numbers, participation: Participation) -> float:
    """Squared sensitivity of a banded matrix, in squared clip norms; columns (n, p), C[j + i, j] at row j, column i.

    Exact for one participation and for up to 2b bands, whatever the signs: with p <= b the columns of a pattern are
    orthogonal and their squared norms add up; with p <= 2b only neighbours overlap. A dynamic program over the rounds,
    O(n k (1 + p - b)). Not for more participations of more bands: that is `dense_sensitivity_squared`.
    """
    return _best_chain(columns, participation.effective)


def _best_chain(columns: Numbers, limits: Participation) -> float:
    """max over patterns of `sum_i X_ii + 2 sum |X_ij| over neighbours i, j`, for columns (n, p), p <= 2b."""
    rounds, bands = columns.shape
    separation = limits.min_separation
    alone = (columns**2).sum(axis=1)
    lags = range(separation, min(bands, rounds))
    overlaps = [2 * np.abs((columns[: rounds - lag, lag:] * columns[lag:, : bands - lag]).sum(axis=1)) for lag in lags]
    best = alone  # the most that can come from round i on, by the rest of the pattern, i included
    for _ in range(limits.max_participations - 1):
        # From the next participation on, if it comes so late that nothing overlaps; zero where there is none.
        apart = np.zeros(rounds)
        free = max(bands, separation)
        latest = np.maximum.accumulate(best[::-1])[::-1]
        apart[: max(rounds - free, 0)] = latest[free:]
        for lag, overlap in zip(lags, overlaps, strict=True):
            apart[: rounds - lag] = np.maximum(apart[: rounds - lag], best[lag:] + overlap)
        best = alone + apart
    return float(best.max())


def pattern_sensitivity_squared(columns: Numbers) -> float:
    """Squared sensitivity to a client who comes in just these rounds, in squared clip norms; columns (n, k) of C.

    `sum_ij |X_ij|` over the pattern: exact where X is non-negative, or only neighbours overlap; else an upper bound. It
    never falls with a round more, nor is it above what all patterns that have this one among them cost.
    """
    return float(np.abs(columns.T @ columns).sum())


def banded_pattern_squared(columns: Numbers, participations: Sequence[int]) -> float:
    """The same of a banded matrix, columns (n, p) as above, for the rounds `came`: O(len(came) p^2), whatever n."""
    rounds, bands = columns.shape
    there = np.zeros(rounds + bands, dtype=bool)
    there[list(participations)] = True
    squared = float((columns[there[:rounds]] ** 2).sum())
    for lag in range(1, bands):
        early = np.flatnonzero(there[:rounds] & there[lag : rounds + lag])
        squared += 2 * float(np.abs((columns[early, lag:] * columns[early + lag, : bands - lag]).sum(axis=1)).sum())
    return squared


def dense_sensitivity_squared(
    strategy: _Matrix, participation: Participation, *, tree_rounds: int | None = None
) -> tuple[float, bool]:
    """(squared sensitivity, whether it is exact and not an upper bound), in squared clip norms.

    Exact for one participation (the largest squared column norm) and for two (pairs of columns); for a matrix whose
    C^T C is that of the binary tree's nodes, by the tree (to the 1e-9 at which it is recognised), of fewer rounds by
    the tree up to the end of the block that they end in: a bound, since what is released later is left out; else where
    the search closes within a few seconds and C^T C is non-negative. Otherwise a proved upper bound. AccountingError
    for more rounds than a matrix C^T C can be held for.

    tree_rounds: the rounds of the binary tree whose leading block the matrix is; None where it is not known to be one.
    """
    limits = participation.effective
    if limits.rounds > _LARGEST and limits.max_participations > 1:
        raise AccountingError(
            f"{limits.rounds} rounds are too many to compare all columns of a {strategy.kind} matrix (at most "
            f"{_LARGEST}); let its bands be at most twice the separation, or take a Toeplitz mechanism."
        )
    matrix = strategy.dense(limits.rounds)
    if limits.max_participations == 1:
        return float((matrix**2).sum(axis=0).max()), True
    if tree_rounds is not None:
        ends = [first + (1 << height) for first, height in forest(tree_rounds)]
        reached = next(end for end in ends if end >= limits.rounds)
        return float(tree_sensitivity_squared(replace(limits, rounds=reached))), reached == limits.rounds
    gram = matrix.T @ matrix
    if _is_tree(gram):
        return float(tree_sensitivity_squared(limits)), True
    smallest = float(gram.min())
    # Products of columns that ought to be zero come out as rounding errors of either sign.
    signs_agree = smallest >= -1e-13 * float(gram.diagonal().max())
    found, bound = _PairSearch(np.abs(gram), limits).run()
    closed = found >= bound * (1 - _SAME)
    return max(found, bound), closed and (signs_agree or limits.max_participations == 2)


def is_whole_tree(matrix: Numbers) -> bool:
    """Whether the matrix, with all its rounds, is TreeAgg-Full; its blocks share no round and stand one by one."""
    return len(matrix) <= _LARGEST and _is_tree(matrix.T @ matrix)


def _is_tree(gram: Numbers) -> bool:
    """Whether C^T C is N^T N for the node matrix N of one binary tree: TreeAgg-Full."""
    rounds = len(gram)
    if np.abs(gram[0] - np.rint(gram[0])).max() > 1e-9:
        return False
    nodes = np.zeros_like(gram)
    for level in range(rounds.bit_length()):
        block = np.arange(rounds) >> level
        nodes += (block[:, None] == block) & ((block + 1) << level <= rounds)
    return bool(np.abs(gram - nodes).max() <= 1e-9)


class _PairSearch:
    """Branch and bound over patterns, for a symmetric X >= 0 (n, n).

    A pattern i_1 < i_2 < ... is worth `sum_a X(i_a, i_a) + 2 sum_{l>=1} sum_a X(i_a, i_{a+l})`. The bound takes the
    pairs of neighbours (l = 1) as they are and lets each pair further apart be the best that lies at least l b rounds
    later, `max_{j >= i + l b} X_ij`. It is exact where X falls with the distance.
    """

    def __init__(self, gram: Numbers, limits: Participation) -> None:
        self.gram, self.rounds = gram, limits.rounds
        self.separation, self.times = limits.min_separation, limits.max_participations
        self.best = self._chains()

    def run(self) -> tuple[float, float]:
        """(the worth of the best pattern found, an upper bound for all); equal where the search closed.

        Best first: the branch with the largest bound is always the next to be extended by one participation.
        """
        found, serial = 0.0, 0
        # (minus its bound, a tie-breaker, its node, its rank among the node's branches)
        branches = [self._branch(self._node(0, 0.0, np.zeros(self.rounds), 0), 0, serial)]
        for _ in range(max(_WORK // self.times, 1)):
            bound, _, node, rank = branches[0]
            if -bound <= found * (1 + _SAME):
                return found, found
            at = int(node.order[rank])
            worth = float(node.worth + node.gains[at] + self.gram[at, at])
            found = max(found, worth)
            serial += 2
            heapq.heapreplace(branches, self._branch(node, rank + 1, serial))
            if node.participations + 1 < self.times and at + self.separation < self.rounds:
                gains = node.gains + 2 * self.gram[at]
                child = self._node(node.participations + 1, worth, gains, at + self.separation)
                heapq.heappush(branches, self._branch(child, 0, serial + 1))
        return found, max(found, -branches[0][0])

    def _branch(self, node: "_Node", rank: int, serial: int) -> "tuple[float, int, _Node, int]":
        """The node's branch of that rank; worth nothing after the last."""
        bound = float(node.bounds[rank]) if rank < node.bounds.size else 0.0
        return -bound, serial, node, rank

    def _node(self, participations: int, worth: float, gains: Numbers, first: int) -> "_Node":
        """The pattern's next participations from round `first` on, the one with the largest bound first."""
        more = self.times - participations - 1
        bounds = worth + gains[first:] + self.best[more][first:]
        latest = np.maximum.accumulate(gains[::-1])[::-1]  # what the pattern adds at most to a later participation
        for begin in range(
            first + self.separation, min(self.rounds, first + 1 + more * self.separation), self.separation
        ):
            bounds[: self.rounds - begin] += latest[begin:]
        order = np.argsort(-bounds, kind="stable")
        return _Node(participations=participations, worth=worth, gains=gains, order=first + order, bounds=bounds[order])

    def _chains(self) -> list[Numbers]:
        """For m = 0, 1, ...: (n,) what round i and at most m later ones are worth at most among themselves."""
        gram, rounds, apart = self.gram, self.rounds, self.separation
        later = np.maximum.accumulate(gram[:, ::-1], axis=1)[:, ::-1]  # max over j' >= j of X_ij'
        alone = gram.diagonal().copy()
        neighbours = np.where(np.subtract.outer(np.arange(rounds), np.arange(rounds)) <= -apart, 2 * gram, -np.inf)
        best, far = [alone], np.zeros(rounds)
        for more in range(1, self.times):
            if more >= 2:
                at = np.arange(max(rounds - more * apart, 0))
                far[at] += 2 * later[at, at + more * apart]
            follow = (neighbours + best[-1]).max(axis=1)
            best.append(np.maximum(best[-1], alone + far + np.maximum(follow, 0.0)))
        return best


class _Node(NamedTuple):
    """A pattern and how it may go on."""

    participations: int  # participations so far
    worth: float
    gains: Numbers  # (n,): twice the sum of X_ij over i in the pattern, what it adds to a participation in j
    order: NDArray[np.int64]  # the next participation, best bound first
    bounds: Numbers
