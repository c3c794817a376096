"""How often the found words are typed: estimates with intervals, from users who took no part in finding them.

The users who found a word are no fair witnesses of its count: it was kept because its votes were high. So fresh
users are asked once more (paper 2, section 4, "counting task"), each still locally private.
"""

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError
from tacit.randomizers import Estimate, Randomizer


@dataclass(frozen=True, kw_only=True)
class WordCounts:
    """What the counting users said: of `reports` contributions, how many were each word.

    `coverage` is the share of all contributed unknown words that the found words cover; None where nobody contributed.
    """

    reports: int
    confidence: float
    counts: tuple[Estimate, ...]
    coverage: Estimate | None


def count_words(
    votes: NDArray[np.int64], reports: int, randomizer: Randomizer, *, confidence: float = 0.95
) -> WordCounts:
    """Counts of the words of a `WordQuestion` from its votes: words, then "another word", then null.

    Each value is the unbiased (v - Nq) / (p - q). Its interval is the score interval of v = Bin(h, p) + Bin(N - h, q)
    for the count h: approximate, from the normal law with h's own variance, and cut to 0..N. Coverage is
    1 - another / (N - null); its standard deviation takes the worst correlation of the two, so its interval errs wide.
    Raises: InputError for a confidence outside (0, 1).
    """
    if not 0 < confidence < 1:
        raise InputError(f"confidence {confidence} is not between 0 and 1; 0.95 is usual.")
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    values = randomizer.estimate(votes, reports)
    low, high = score_interval(votes, reports, randomizer.p, randomizer.q, z)
    counts = tuple(
        Estimate(value=float(v), low=float(a), high=float(b))
        for v, a, b in zip(values[:-2], low[:-2], high[:-2], strict=True)
    )
    coverage = _coverage(float(values[-2]), float(values[-1]), reports, randomizer, z)
    return WordCounts(reports=reports, confidence=confidence, counts=counts, coverage=coverage)


def score_interval(
    votes: NDArray[np.int64], reports: int, p: float, q: float, z: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """All counts h in 0..N for which the votes are within z standard deviations of their mean.

    Solves (v - Nq - h(p - q))^2 <= z^2 (Nq(1-q) + h(p(1-p) - q(1-q))), a quadratic in h, each side by itself.
    """
    gap, rise = p - q, p * (1 - p) - q * (1 - q)
    excess = votes - reports * q
    half = excess * gap + z**2 * rise / 2
    root = np.sqrt(np.maximum(half**2 - gap**2 * (excess**2 - z**2 * reports * q * (1 - q)), 0.0))
    return np.clip((half - root) / gap**2, 0, reports), np.clip((half + root) / gap**2, 0, reports)


def _coverage(another: float, nothing: float, reports: int, randomizer: Randomizer, z: float) -> Estimate | None:
    """1 - another / (N - null) by the delta method, or None where nothing was said but noise."""
    said = reports - nothing
    spread = math.sqrt(randomizer.variance(reports, min(max(nothing, 0.0), reports)))
    if said <= z * spread:
        return None
    share = another / said
    own_spread = math.sqrt(randomizer.variance(reports, min(max(another, 0.0), reports)))
    deviation = (own_spread + abs(share) * spread) / said
    low, high = 1 - share - z * deviation, 1 - share + z * deviation
    return Estimate(value=1 - share, low=min(max(low, 0.0), 1.0), high=min(max(high, 0.0), 1.0))
