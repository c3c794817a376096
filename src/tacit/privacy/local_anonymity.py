"""Approximate k-anonymity of discovered words: what fewer than k users typed is output with probability <= delta.

A threshold on the votes promises it, exactly and as strictly as one likes, for one given string, not for all rare
strings at once. Keeping only the L most voted (Lemma 1 of paper 2) would need no threshold, but about L of d candidates
are kept even where nobody typed anything, so its delta is never below about L/d.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.errors import InputError

FloatArray = npt.NDArray[np.float64]

# Incomplete beta functions are within 5e-12 of 40-digit sums at 1e8 trials, binomial terms of 1e6 within 1e-9.
MARGIN = 1e-8
MOST_CONTRIBUTORS = 10**6


@dataclass(frozen=True, kw_only=True)
class Anonymity:
    """Whatever fewer than `k` users contributed is output with probability at most `delta`, for each given string."""

    k: int
    delta: float

    def __post_init__(self) -> None:
        if self.k < 1:
            raise InputError(f"k={self.k} is no number of users; k-anonymity needs k >= 1.")
        if not 0 < self.delta < 1:
            raise InputError(f"delta={self.delta} is not between 0 and 1; (k, delta)-anonymity needs that.")

    def sentence(self) -> str:
        """The promise, to publish."""
        return (
            f"Anonymity: a string that fewer than {self.k} of those asked typed is output with probability at most "
            f"{self.delta:g}, for each given string."
        )


def rare_votes_tail(p: float, q: float, reports: int, k: int, votes: int) -> float:
    """Pr[Bin(k - 1, p) + Bin(reports - k + 1, q) >= votes], rounded up by at most a part in 10**7.

    The votes of a string that k - 1 of the reports are about, each supporting it with probability p, and the others
    with q: the most that fewer than k contributors, one report each, can bring about, as p > q.
    """
    _check(p, q, reports, k)
    own = k - 1
    if votes <= 0:
        return 1.0
    mean, deviation = own * p, math.sqrt(own * p * (1 - p))
    # Twelve standard deviations and thirty more: what lies above is counted as if it always reached the votes.
    low = max(0, math.floor(mean - 12 * deviation - 30))
    high = min(own, math.ceil(mean + 12 * deviation + 30))
    supporters = np.arange(low, high + 1, dtype=np.float64)
    chances = _binomial(supporters, own, p)
    tail = float(chances @ _at_least(votes - supporters, reports - own, q))
    below = float(_at_least(np.array([votes - low]), reports - own, q)[0]) if low else 0.0
    above = float(_at_least(np.array([high + 1.0]), own, p)[0]) if high < own else 0.0
    return min(1.0, (tail + below + above) * (1 + MARGIN))


def absolute_threshold(p: float, q: float, reports: int, k: int, delta: float) -> int:
    """The fewest votes at which a string that fewer than k devices typed is kept with probability at most delta.

    Exact but for rounding on the safe side, for any randomizer with support probabilities p > q and one report a
    contributor. At most reports + 1, which nothing reaches. Milliseconds at 10**8 reports.
    """
    if not 0 < delta < 1:
        raise InputError(f"delta={delta:g} is not between 0 and 1: take the probability that may leak a rare word.")
    _check(p, q, reports, k)
    low, high = 0, reports + 1  # the tail at low is above delta, at high it is not
    while high - low > 1:
        middle = (low + high) // 2
        if rare_votes_tail(p, q, reports, k, middle) > delta:
            low = middle
        else:
            high = middle
    return high


def _binomial(number: FloatArray, trials: int, chance: float) -> FloatArray:
    """Pr[Bin(trials, chance) = number]."""
    from scipy import special  # loading it takes as long as most accounts, which need none of it

    ways = special.gammaln(trials + 1) - special.gammaln(number + 1) - special.gammaln(trials - number + 1)
    logarithm = ways + special.xlogy(number, chance) + special.xlog1py(trials - number, -chance)
    return np.asarray(np.exp(logarithm), np.float64)


def _at_least(number: FloatArray, trials: int, chance: float) -> FloatArray:
    """Pr[Bin(trials, chance) >= number]."""
    from scipy import special  # loading it takes as long as most accounts, which need none of it

    inside = np.clip(number, 1, max(trials, 1))
    value = special.betainc(inside, max(trials, 1) - inside + 1, chance)
    return np.where(number <= 0, 1.0, np.where(number > trials, 0.0, value))


def _check(p: float, q: float, reports: int, k: int) -> None:
    if not 0 <= q < p <= 1:
        raise InputError(f"p={p:g}, q={q:g}: a report supports its own value with the larger probability p, up to 1.")
    if reports < 1:
        raise InputError(f"reports={reports}: there is nothing to be anonymous in; give the reports of one layer.")
    if not 1 <= k <= min(reports, MOST_CONTRIBUTORS):
        raise InputError(
            f"k={k} is not between 1 and {min(reports, MOST_CONTRIBUTORS)}: nothing has more contributors than there "
            "are reports, and a million is the most that is computed here."
        )
