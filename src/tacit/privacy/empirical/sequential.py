"""A test that may stop at any time: evidence against a promise, after each score or pair of scores.

The evidence is the wealth of a gambler who begins with 1 and, while the promise holds, plays games that are fair or
worse. By Ville's inequality it ever reaches 1 / a with a probability of at most a. So continuous integration may look
after each score, stop at the first alarm, or go on tomorrow (arXiv:2509.07055, 2602.06518). The wealth here is shared
among several bets from the start, which costs at most the logarithm of their number, and is as fair.

Each function gives the logarithm of the wealth after each score, (n,); `first_alarm` says when it is enough.
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.errors import InputError
from tacit.privacy import gaussian
from tacit.privacy.empirical.samples import check_delta, error_of, positive, sample

Evidence = NDArray[np.float64]

# What part of the promised noise a fault may leave, and by what factor of mu a canary may move a score too far.
NOISE_LEFT = (0.3, 0.5, 0.65, 0.75, 0.82, 0.87, 0.9, 0.93, 0.96, 0.98)
TOO_FAR = (1.02, 1.05, 1.1, 1.15, 1.25, 1.5, 2.0, 3.0)
STAKES = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64)  # of the most that cannot lose everything


def evidence_of_less_noise(noise: ArrayLike) -> Evidence:
    """Against "a score's noise is normal with a standard deviation of at least 1, whatever its mean".

    noise: (n,), independent, in units of the promised standard deviation, less what the score is without noise. A
    Gaussian mechanism of known sensitivity keeps mu just if this holds. The bets are likelihood ratios of N(0, r^2) to
    N(0, 1), r in NOISE_LEFT; they fall in |x|, which more noise or another mean only makes larger (Anderson's theorem),
    so that none gains then.
    """
    squares = np.cumsum(np.square(sample("noise", noise)))
    r = np.array(NOISE_LEFT)[:, None]
    number = np.arange(1, len(squares) + 1)
    return _shared(-number * np.log(r) - squares / 2 * (r**-2 - 1))


def evidence_of_larger_shift(present: ArrayLike, mu: float) -> Evidence:
    """Against "a score is N(m, 1) with m of at most mu": the canary moves it further than the promise allows.

    present: (n,), independent scores with the canary, in units of a noise that is known. The bets are likelihood
    ratios of N(k mu, 1) to N(mu, 1), k in TOO_FAR; their mean is e^((k - 1) mu (m - mu)), at most 1.
    """
    positive("mu", mu)
    sums = np.cumsum(sample("present", present) - mu)
    further = (np.array(TOO_FAR)[:, None] - 1) * mu
    return _shared(further * sums - np.arange(1, len(sums) + 1) * further**2 / 2)


def evidence_by_threshold(
    absent: ArrayLike, present: ArrayLike, threshold: float, *, epsilon: float, delta: float
) -> Evidence:
    """Against (epsilon, delta)-DP, of scores of any law: pairs of runs without the canary and with it.

    absent, present: (n,), the pairs in order; independent of one another and of the threshold. A score above it says
    "there". With x and y whether the two scores of a pair are, y - e^epsilon x - delta has a mean of at most 0, and so
    has (1 - x) - e^epsilon (1 - y) - delta. A bet is 1 plus a stake times one of these, which is never below 0.
    """
    check_delta(delta)
    if not 0 <= epsilon < 700:
        raise InputError(f"epsilon={epsilon} must be at least 0 and below 700; give the promised one.")
    without, within = sample("absent", absent, finite=False), sample("present", present, finite=False)
    if len(without) != len(within) or math.isnan(threshold):
        raise InputError(
            f"{len(without)} scores without the canary, {len(within)} with it, threshold={threshold}: "
            "give pairs, and a number between them."
        )
    x, y, grows = without > threshold, within > threshold, math.exp(epsilon)
    gains = y - grows * x - delta, ~x - grows * ~y - delta
    bets = [np.cumsum(np.log1p(stake / (grows + delta) * gain)) for gain in gains for stake in STAKES]
    return _shared(np.array(bets))


def evidence_against_mu(
    absent: ArrayLike, present: ArrayLike, threshold: float, mu: float, *, epsilon: float = 0.0
) -> Evidence:
    """Against mu-GDP, of scores of any law: `evidence_by_threshold` with the delta that mu-GDP has at `epsilon`.

    Any epsilon may be chosen beforehand. Of normal scores 0 is right for the threshold in their middle.
    """
    positive("mu", mu)
    return evidence_by_threshold(absent, present, threshold, epsilon=epsilon, delta=gaussian.delta(epsilon, mu))


def first_alarm(evidence: Evidence, *, confidence: float = 0.99) -> int | None:
    """After how many scores, or pairs, the promise is refuted; None where it is not yet.

    While it holds that ever happens with a probability of at most 1 - confidence.
    """
    enough = np.flatnonzero(evidence >= -math.log(error_of(confidence)))
    return int(enough[0]) + 1 if len(enough) else None


def _shared(bets: NDArray[np.float64]) -> Evidence:
    """The logarithm of the mean wealth of bets that began alike: (bets, n) to (n,)."""
    shared: Evidence = np.logaddexp.reduce(bets, axis=0) - math.log(len(bets))
    return shared
