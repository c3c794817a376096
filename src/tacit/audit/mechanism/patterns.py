"""The rounds in which one client moves what is released furthest: the pattern that attains the sensitivity.

Sensitivities are computed without ever naming a pattern, so this is a second way to them: a client that comes in the
rounds P moves what is released by `sum_{i,j in P} X_ij` squared, and here P is built up round by round.
"""

import numpy as np
from numpy.typing import NDArray

from tacit.privacy.participation import Participation

Numbers = NDArray[np.float64]
KEPT = 4  # beginnings of a pattern that are kept for each last round of it; 1 where matrices are large
LARGE = 512  # rounds


def worst_pattern(gram: Numbers, participation: Participation) -> tuple[int, ...]:
    """The rounds of the pattern that is worth most, for the matrix X (n, n), symmetric.

    Of all patterns that end in the same round after as many participations only the KEPT best are continued. That is
    exact where at most neighbouring participations overlap; else it may miss the best, which whoever asks must check
    against the sensitivity. The pattern that comes as early and as often as it may is among those compared.
    """
    limits = participation.effective
    separation, rounds = limits.min_separation, limits.rounds
    early = tuple(range(0, rounds, separation))[: limits.max_participations]
    best, worth = early, _worth(gram, early)
    kept = KEPT if rounds <= LARGE else 1
    patterns = np.arange(rounds)[:, None]
    values, gains = gram.diagonal().copy(), 2 * gram
    for _ in range(limits.max_participations):
        top = int(np.argmax(values))
        if values[top] > worth * (1 + 1e-12):
            best, worth = tuple(int(each) for each in patterns[top]), float(values[top])
        following = values[:, None] + gains + gram.diagonal()
        following[patterns[:, -1:] + separation > np.arange(rounds)] = -np.inf
        before = np.argsort(-following, axis=0, kind="stable")[:kept]
        at = np.broadcast_to(np.arange(rounds), before.shape)
        values = following[before, at].ravel()
        possible = values > -np.inf
        if not possible.any():
            break
        parents, ends, values = before.ravel()[possible], at.ravel()[possible], values[possible]
        patterns = np.column_stack([patterns[parents], ends])
        gains = gains[parents] + 2 * gram[ends]
    return best


def _worth(gram: Numbers, pattern: tuple[int, ...]) -> float:
    return float(gram[np.ix_(pattern, pattern)].sum())
