"""Scores whose law is normal: how far those with the canary lie from those without, in standard deviations, is mu.

A Gaussian mechanism, projected on the canary's direction, gives such scores: N(0, s^2) without and N(mu s, s^2) with
it. The trade-off between both is that of mu-GDP, so that a lower bound on mu is one on privacy. Each bound below is
exact for its model, by the law of one pivot, and says which of mean and deviation must be known.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import chdtri, nctdtr, ndtri

from tacit.errors import AccountingError, InputError
from tacit.privacy.empirical.samples import Scores, error_of, positive, sample
from tacit.privacy.roots import root_between


@dataclass(frozen=True)
class MuBound:
    """`lower` is at most the true mu with the confidence asked for, and at least 0; `estimate` promises nothing."""

    estimate: float
    lower: float


def mu_of_known_noise(present: ArrayLike, *, confidence: float = 0.95) -> MuBound:
    """From scores with the canary where those without are N(0, 1) for certain: (n,) of N(mu, 1), independent.

    Their mean is N(mu, 1/n), so it exceeds mu by z / sqrt(n) with probability 1 - confidence.
    """
    error = error_of(confidence)
    scores = sample("present", present)
    return _at_least(float(scores.mean()), -float(ndtri(error)) / math.sqrt(len(scores)))


def mu_of_known_shift(noise: ArrayLike, shift: float, *, confidence: float = 0.95) -> MuBound:
    """From scores without the canary, N(0, s^2) with unknown s, that the canary moves by just `shift`: mu = shift / s.

    noise: (n,), what is left of runs' scores when what they are without noise is taken away. The tightest where the
    canary's effect is known. Their sum of squares over s^2 is chi-squared with n degrees of freedom, so it is below
    that law's 1 - confidence quantile so often.
    """
    error = error_of(confidence)
    positive("shift", shift)
    scores = sample("noise", noise)
    squares = float(scores @ scores)
    if squares == 0:
        raise InputError("all of noise is 0: no noise was added, and no mu is large enough; give runs with noise.")
    rare = float(chdtri(len(scores), 1 - error))  # the chi-squared number that is exceeded but for `error`
    return MuBound(shift * math.sqrt(len(scores) / squares), shift * math.sqrt(rare / squares))


def mu_of_normal_samples(absent: ArrayLike, present: ArrayLike, *, confidence: float = 0.95) -> MuBound:
    """From scores without the canary and with it, N(a, s^2) and N(a + mu s, s^2), both a and s unknown.

    absent, present: (n,) and (m,), independent. Student's two-sample t has the noncentral law with n + m - 2 degrees
    of freedom and noncentrality mu / sqrt(1/n + 1/m); at the bound so large a t has probability 1 - confidence.
    """
    error = error_of(confidence)
    without, within = sample("absent", absent, least=2), sample("present", present, least=2)
    return _noncentral(
        float(within.mean() - without.mean()),
        math.sqrt((_squares(without) + _squares(within)) / (len(without) + len(within) - 2)),
        1 / len(without) + 1 / len(within),
        len(without) + len(within) - 2,
        error,
    )


def mu_of_cosines(cosines: ArrayLike, dimension: int, *, confidence: float = 0.95) -> MuBound:
    """From the cosines between a noisy sum and each of the random canaries in it: one run, Gaussian noise.

    cosines: (k,), of canaries drawn uniformly from the sphere of the clip norm. Those of canaries that took no part
    are N(0, 1 / dimension), nearly, so `dimension` is that of the vectors. For a sum of the canaries and noise of s
    clip norms in each coordinate the scaled cosines are nearly N(1 / s, 1) where k is far below s^2 * dimension (Andrew
    et al., arXiv:2302.03098); whatever else is summed makes them smaller. Their mean's variance is at most
    1 / k + 2 mu^2 / dimension: 2 / dimension more for pairs of canaries that happen to point one way.
    """
    error = error_of(confidence)
    scores = sample("cosines", cosines)
    if (far := np.abs(scores) > 1).any():
        raise InputError(f"cosines[{int(np.argmax(far))}]={scores[np.argmax(far)]} is no cosine: divide by both norms.")
    if dimension < 2:
        raise InputError(f"dimension={dimension} has no random directions; give the number of coordinates, 2 or more.")
    mean = math.sqrt(dimension) * float(scores.mean())
    return _at_least(mean, -float(ndtri(error)) * math.sqrt(1 / len(scores) + 2 * mean**2 / dimension))


def _at_least(estimate: float, margin: float) -> MuBound:
    return MuBound(estimate, max(estimate - margin, 0.0))


def _squares(scores: Scores) -> float:
    return float(np.square(scores - scores.mean()).sum())


def _noncentral(difference: float, deviation: float, variance: float, degrees: int, error: float) -> MuBound:
    """From a mean difference of `variance` squared deviations and an independent deviation of so many degrees."""
    if deviation == 0:
        raise InputError("the scores of a sample are all alike: no noise was added; give runs with noise.")
    scale = math.sqrt(variance)
    lower = scale * noncentrality_at_least(difference / deviation / scale, degrees, error)
    return MuBound(difference / deviation, max(lower, 0.0))


def noncentrality_at_least(t: float, degrees: int, error: float) -> float:
    """The lower confidence bound on a Student number's noncentrality: of it a larger t has probability `error`.

    t: one number; may be negative. Raises: AccountingError where the law cannot be computed.
    """

    def below(shift: float) -> float:
        return float(nctdtr(degrees, shift, t)) - (1 - error)

    step = 2.0 + abs(t) / math.sqrt(degrees)
    low = t - step
    while below(low) < 0 and step < 1e6 * (1 + abs(t)):
        step *= 2
        low = t - step
    high = t + step
    found = root_between(below, low, high, tolerance=1e-12)
    if found is None:
        raise AccountingError(f"no noncentral t law found for t={t:g} with {degrees} degrees of freedom.")
    return found
