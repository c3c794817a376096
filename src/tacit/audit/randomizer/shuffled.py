"""A lower bound on the central epsilon of shuffled reports, from sums that were really made.

One report is about x or about y, all others about a third value. What is seen are the shuffled reports; of them only
how many support x alone and how many y alone tells anything, and the score is the exact likelihood ratio of both.
"""

import numpy as np
from numpy.typing import NDArray

from tacit.audit.randomizer.likelihood import check_values, tells_apart
from tacit.errors import InputError
from tacit.privacy.empirical.thresholds import ThresholdBound, epsilon_by_threshold
from tacit.randomizers.randomizer import Randomizer

AT_ONCE = 1 << 22  # reports held at a time
Numbers = NDArray[np.int64]
X, Y, OTHERS = 0, 1, 2


def epsilon_of_shuffled(
    randomizer: Randomizer,
    reports: int,
    runs: int,
    delta: float,
    generator: np.random.Generator,
    *,
    confidence: float = 0.95,
) -> ThresholdBound:
    """From `runs` shuffled sums of `reports` reports with x among them, and as many with y. Replace-one adjacency.

    Raises: InputError for a domain without a third value, or fewer than two reports or runs.
    """
    if reports < 2 or runs < 2:
        raise InputError(f"reports={reports}, runs={runs}: a shuffle needs two reports, and a bound two runs.")
    check_values(randomizer, X, Y, OTHERS)
    chances = _chances(randomizer)
    present, absent = (
        _log_ratio(*told(randomizer, own, reports, runs, generator), reports, *chances) for own in (X, Y)
    )
    return epsilon_by_threshold(absent, present, delta, confidence=confidence, how="split")


def told(
    randomizer: Randomizer, own: int, reports: int, runs: int, generator: np.random.Generator
) -> tuple[Numbers, Numbers]:
    """Of each run's reports, how many support x alone and how many y alone: (runs,) each."""
    for_x, for_y = np.empty(runs, np.int64), np.empty(runs, np.int64)
    held = np.full(reports, OTHERS)
    held[0] = own
    step = max(1, AT_ONCE // reports)
    for begin in range(0, runs, step):
        end = min(begin + step, runs)
        made = randomizer.encode(np.tile(held, end - begin), generator)
        for counted, x, y in (for_x, X, Y), (for_y, Y, X):
            counted[begin:end] = tells_apart(randomizer, made, x, y).reshape(end - begin, reports).sum(axis=1)
    return for_x, for_y


def _chances(randomizer: Randomizer) -> tuple[float, float, float]:
    """How probably a report is for x alone where it is about x, about y, and about a third value.

    Measured, so that nothing is assumed of the randomizer; wrong ones would cost power and no confidence.
    """
    generator = np.random.default_rng(0)
    made = 200_000
    own, wrong, other = (
        float(tells_apart(randomizer, randomizer.encode(np.full(made, value), generator), X, Y).mean())
        for value in (X, Y, OTHERS)
    )
    return own, wrong, max(other, 1 / made)


def _log_ratio(
    for_x: Numbers, for_y: Numbers, reports: int, own: float, wrong: float, other: float
) -> NDArray[np.float64]:
    """log Pr[counts | x] / Pr[counts | y]: the one report is one of those for x, for y, or for neither."""
    rest = (reports - for_x - for_y) * (1 - own - wrong) / max(1 - 2 * other, 1e-12)
    x, y = own * for_x + wrong * for_y + other * rest, wrong * for_x + own * for_y + other * rest
    return np.asarray(np.log(x) - np.log(y))
