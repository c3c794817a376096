"""How far an average over sampled clients can be from that over everybody: 95% intervals, each by its own theorem.

Clients are taken as independent draws from the population; an interval covers that sampling and nothing else, unless it
says so. None is adjusted for looking at many numbers at once.
"""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri, stdtrit

from tacit.errors import InputError
from tacit.randomizers.estimates import Estimate as Estimate  # what this file gives, to whoever reads it here

CONFIDENCE = 0.95
NORMAL = float(ndtri((1 + CONFIDENCE) / 2))

Values = NDArray[np.float64]


UNKNOWN = Estimate(float("nan"), float("-inf"), float("inf"))  # what too few clients, or too much noise, tell


def complement(share: Estimate) -> Estimate:
    """What is left of the whole: 1 less the share."""
    return Estimate(1 - share.value, 1 - share.high, 1 - share.low)


def as_share(found: Estimate) -> Estimate:
    """The same of what is a share, as an accuracy is: outside [0, 1] nothing true is cut off."""
    return found if np.isnan(found.value) else Estimate(*(float(np.clip(each, 0, 1)) for each in found))


def mean_of(values: ArrayLike) -> Estimate:
    """Mean over clients with Student's t interval: exact for normal values, else right for many clients.

    Raises: InputError for fewer than two values.
    """
    sample = _sample(values)
    margin = _student(sample.size) * float(sample.std(ddof=1)) / np.sqrt(sample.size)
    mean = float(sample.mean())
    return Estimate(mean, mean - margin, mean + margin)


def ratio_of_means(parts: ArrayLike, wholes: ArrayLike) -> Estimate:
    """mean(parts) / mean(wholes) with the delta method's interval: the paper's relative change, say.

    The residuals parts - ratio * wholes have mean zero, and the ratio is off by their mean over mean(wholes).
    Raises: InputError for fewer than two clients, or where the wholes' mean is not above 0.
    """
    part, whole = _sample(parts), _sample(wholes)
    if whole.mean() <= 0:
        raise InputError(f"the mean {whole.mean():g} cannot be compared with; a ratio needs one above 0.")
    ratio = float(part.mean() / whole.mean())
    residuals = part - ratio * whole
    margin = _student(part.size) * float(residuals.std(ddof=1) / whole.mean()) / np.sqrt(part.size)
    return Estimate(ratio, ratio - margin, ratio + margin)


def share_of(holds: float, clients: float, *, noise_variance: float = 0.0) -> Estimate:
    """holds / clients with Wilson's score interval, widened by the variance of noise on the share.

    The ends solve (share - s)^2 = z^2 (s (1 - s) / clients + noise_variance); without noise this is Wilson's interval.
    nan where no client is left, as noise can make it look.
    """
    if clients <= 0:
        return Estimate(float("nan"), 0.0, 1.0)
    share = holds / clients
    penalty = NORMAL**2 / clients
    centre = share + penalty / 2
    # Far outside [0, 1] no s solves it when the noise is small; the nearest end is all that is left then.
    root = np.sqrt(max(centre**2 - (1 + penalty) * (share**2 - NORMAL**2 * noise_variance), 0.0))
    low, high = (centre - root) / (1 + penalty), (centre + root) / (1 + penalty)
    return Estimate(float(np.clip(share, 0, 1)), float(np.clip(low, 0, 1)), float(np.clip(high, 0, 1)))


def quantile_of(values: ArrayLike, q: float) -> Estimate:
    """The q-quantile over clients; its interval is between two order statistics, whatever the distribution is.

    The number of values below the true quantile is Binomial(n, q). Where the sample is too small for an end (q near 0
    or 1), that end is infinite. Linear interpolation between values (NumPy's default) for the estimate; between
    infinite ones there is none, so where a value is infinite it is the smallest value that q of them do not exceed.
    """
    from scipy import stats  # most of SciPy comes with it, and a page of many rounds needs none of that

    sample = np.sort(_sample(values))
    method: Literal["linear", "inverted_cdf"] = "linear" if np.isfinite(sample).all() else "inverted_cdf"
    tail = (1 - CONFIDENCE) / 2
    below = int(stats.binom.ppf(tail, sample.size, q))  # P[B < below] <= tail
    above = int(stats.binom.ppf(1 - tail, sample.size, q))  # P[B > above] <= tail
    low = float(sample[below - 1]) if below >= 1 else -np.inf
    high = float(sample[above]) if above < sample.size else np.inf
    return Estimate(float(np.quantile(sample, q, method=method)), low, high)


def worst_share_of(values: ArrayLike, share: float = 0.1) -> Estimate:
    """Mean over the `share` of clients with the smallest values: how those fare who fare worst.

    With the share's quantile v it is v - mean((v - x)^+) / share (Rockafellar & Uryasev, 2000, Theorem 1), and its
    error is that of this mean, because the derivative in v vanishes there; hence the t interval.
    """
    sample = _sample(values)
    if not 0 < share <= 1:
        raise InputError(f"share={share:g} is no share of the clients; give one in (0, 1], such as 0.1.")
    at = float(np.sort(sample)[max(int(np.ceil(share * sample.size)) - 1, 0)])
    shortfall = np.maximum(at - sample, 0) / share
    value = at - float(shortfall.mean())
    margin = _student(sample.size) * float(shortfall.std(ddof=1)) / np.sqrt(sample.size)
    return Estimate(value, value - margin, value + margin)


def _student(clients: int) -> float:
    return float(stdtrit(clients - 1, (1 + CONFIDENCE) / 2))


def _sample(values: ArrayLike) -> Values:
    sample = np.asarray(values, np.float64)
    if sample.size < 2:
        raise InputError(f"{sample.size} clients have no spread to make an interval of; evaluate at least two.")
    return sample
