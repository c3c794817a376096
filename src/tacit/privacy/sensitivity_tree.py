"""The exact sensitivity of binary trees: the worst pattern is searched, because nobody knows it in advance.

A complete tree is searched in its two halves. What a client did in a tree is summed up by a state: how often it came,
what that is worth (the sum over the complete nodes of the squared participations below) and how many rounds of what
follows are still forbidden. Of the states with one count only those survive that are worth more or leave more freedom.
"""

from collections.abc import Iterable
from functools import cache, lru_cache

import numpy as np

from tacit.privacy.participation import Participation

Front = list[tuple[int, int]]  # (worth, rounds of the next block still forbidden), both rising, none dominated
Fronts = dict[int, Front]  # by the number of participations so far

_FEW = 24  # participations: below, all states are visited sooner than a bound on them is computed


def forest(rounds: int, restarts: tuple[int, ...] = ()) -> tuple[tuple[int, int], ...]:
    """The complete trees over `rounds` rounds: (first round, height), in the order of the rounds.

    Each stretch between restarts is cut into the binary digits of its length, largest first.
    """
    begins = [0, *(at for at in restarts if at < rounds)]
    trees = []
    for begin, end in zip(begins, [*begins[1:], rounds], strict=True):
        while begin < end:
            height = (end - begin).bit_length() - 1
            trees.append((begin, height))
            begin += 1 << height
    return tuple(trees)


@lru_cache(maxsize=1024)
def tree_sensitivity_squared(participation: Participation, *, restarts: tuple[int, ...] = ()) -> int:
    """Squared sensitivity of the released nodes of a forest, in squared clip norms: exact, an integer.

    The largest `sum over complete nodes of (participations below the node)^2` over all patterns (arXiv:2103.00039,
    Appendix D.2). Coming as early as possible is not the worst case, so the patterns are searched. A fraction of a
    millisecond for a few participations; for 200,000 rounds 20 ms where the separation alone limits the count, about
    a second where `max_participations` does.
    """
    limits = participation.effective
    heights = [height for _, height in forest(limits.rounds, restarts)]
    free = limits == Participation.worst_case(limits.rounds, limits.min_separation)
    if free or limits.max_participations < _FEW:
        return _PatternSearch(limits, count_is_free=free).best(heights)
    # Deepening: patterns that fall short of an upper bound by more than `deficit` are cut off. A search that returns
    # a pattern within its deficit has cut off none that is better.
    ceilings = _ceilings(limits, heights)
    bound = int(ceilings[-1, -1])
    deficit = (bound >> 8) + 1
    while True:
        value = _PatternSearch(limits, ceilings=ceilings, deficit=deficit).best(heights)
        if value >= bound - deficit:
            return value
        deficit *= 2


def _ceilings(limits: Participation, heights: list[int]) -> np.ndarray:
    """(levels, max_participations + 1): what so many participations are worth at most in nodes up to that height.

    A node of height l holds at most ceil(2^l / b) of them, and the sum of squares is largest where nodes are full.
    The bound lets each level fill its nodes by itself.
    """
    counts = np.arange(limits.max_participations + 1)
    levels = []
    for level in range(max(heights) + 1):
        holds = -(-(1 << level) // limits.min_separation)
        nodes = sum(1 << (height - level) for height in heights if height >= level)
        full, rest = np.divmod(np.minimum(counts, holds * nodes), holds)
        levels.append(full * holds**2 + rest**2)
    return np.cumsum(levels, axis=0)


class _PatternSearch:
    """The undominated states of a client after one tree or several in a row.

    With `count_is_free` (the separation alone limits the count) having come more often is never a disadvantage. With
    `ceilings` states are dropped from which no pattern comes within `deficit` of the upper bound.
    """

    def __init__(
        self,
        limits: Participation,
        *,
        count_is_free: bool = False,
        ceilings: np.ndarray | None = None,
        deficit: int = 0,
    ) -> None:
        self.min_separation = limits.min_separation
        self.max_participations = limits.max_participations
        self.count_is_free = count_is_free
        self.needed: list[list[int]] | None = None
        if ceilings is not None:
            # m participations in a block leave at most ceilings[k - m] to the others on the levels up to its height
            # and ceilings[k] on those above, so they must be worth at least what is missing there.
            missing = ceilings[:, -1:] - ceilings[:, ::-1] - deficit
            self.needed = missing.tolist()
        self.within = cache(self._within)

    def best(self, heights: list[int]) -> int:
        """The largest worth of a pattern over trees of these heights in a row; -1 where all were dropped."""
        fronts: Fronts = {0: [(0, 0)]}
        for height in heights:
            fronts = self._then(fronts, height, len(self.needed) - 1 if self.needed else 0, 0)
        return max((front[-1][0] for front in fronts.values()), default=-1)

    def _within(self, height: int, forbidden: int) -> Fronts:
        """The states of one complete tree whose first `forbidden` rounds are closed to the client."""
        size = 1 << height
        if forbidden >= size:
            return {0: [(0, forbidden - size)]}
        if size <= self.min_separation:
            # At most one participation fits, worth one node on each level wherever it lies: the earliest leaves
            # most freedom.
            return {0: [(0, 0)], 1: [(height + 1, forbidden + self.min_separation - size)]}
        halves = self._then(self.within(height - 1, forbidden), height - 1, height, 1)
        return {count: [(worth + count * count, after) for worth, after in front] for count, front in halves.items()}

    def _then(self, fronts: Fronts, height: int, level: int, parents: int) -> Fronts:
        """The states after one more complete tree of 2^height rounds.

        Together they make `parents` nodes (1 or 0) worth a square more, and must reach what is needed at `level`.
        """
        needed = self.needed[level] if self.needed else None
        reached: dict[int, dict[int, int]] = {}
        for came, front in fronts.items():
            for worth, forbidden in front:
                for comes, inner in self.within(height, forbidden).items():
                    count = came + comes
                    if count > self.max_participations:
                        continue
                    least = needed[count] - worth - parents * count * count if needed else 0
                    if inner[-1][0] < least:
                        continue
                    states = reached.setdefault(count, {})
                    for more, after in inner:
                        if more >= least and worth + more > states.get(after, -1):
                            states[after] = worth + more
        if self.count_is_free:
            return _undominated_by_higher_counts(reached)
        return {count: _undominated(states.items()) for count, states in reached.items()}


def _undominated(states: Iterable[tuple[int, int]]) -> Front:
    """Of the (forbidden, worth) those that no other one beats in both worth and freedom."""
    front: Front = []
    for forbidden, worth in sorted(states):
        if not front or worth > front[-1][0]:
            front.append((worth, forbidden))
    return front


def _undominated_by_higher_counts(reached: dict[int, dict[int, int]]) -> Fronts:
    """Those states that no state of the same or a higher count beats in both worth and freedom."""
    survivors: Fronts = {}
    best: dict[int, int] = {}
    for count in sorted(reached, reverse=True):
        merged = dict(best)
        for forbidden, worth in reached[count].items():
            merged[forbidden] = max(worth, merged.get(forbidden, -1))
        front = _undominated(merged.items())
        news = [state for state in front if best.get(state[1]) != state[0]]
        if news:
            survivors[count] = news
        best = {forbidden: worth for worth, forbidden in front}
    return survivors
