"""What the two errors of one test show: of (epsilon, delta), and of mu.

A test says of a run whether the canary was there. Its false positive rate is that of runs without, its false negative
rate that of runs with it. Both functions fall in both rates, so upper bounds on rates give lower bounds on privacy.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv, ndtri

Numbers = NDArray[np.float64]


def epsilon_shown(false_positive: ArrayLike, false_negative: ArrayLike, delta: float) -> Numbers:
    """The largest epsilon for which no (epsilon, delta)-DP mechanism allows these rates; 0 where each does.

    By definition 1 - fnr <= e^epsilon fpr + delta, and the same of the opposite answer. Arrays of one shape.
    """
    fpr, fnr = np.asarray(false_positive, float), np.asarray(false_negative, float)
    with np.errstate(divide="ignore", invalid="ignore"):
        one, other = (1 - delta - fnr) / fpr, (1 - delta - fpr) / fnr
        shown = np.log(np.maximum(np.fmax(one, other), 1))
    return np.asarray(shown)


def mu_shown(false_positive: ArrayLike, false_negative: ArrayLike) -> Numbers:
    """The mu for which these rates lie on the trade-off curve: Phi^-1(1 - fpr) - Phi^-1(fnr), and at least 0.

    A mechanism that is mu-GDP allows no smaller rates (Dong, Roth & Su, arXiv:1905.02383, Definition 3).
    """
    between = -(ndtri(np.asarray(false_positive, float)) + ndtri(np.asarray(false_negative, float)))
    return np.asarray(np.maximum(between, 0))


def rate_at_most(count: ArrayLike, trials: int, error: float) -> Numbers:
    """Clopper and Pearson's upper bound on a probability of which `count` of `trials` independent cases were seen.

    Too small with a probability of at most `error`: at the bound, so few cases have just that probability.
    """
    seen = np.asarray(count, float)
    return np.where(seen >= trials, 1.0, betaincinv(seen + 1, np.maximum(trials - seen, 1), 1 - error))
