"""Renyi differential privacy of a Poisson-sampled Gaussian, and what it says of (epsilon, delta).

Looser than a privacy loss distribution where that one can be computed, but finite at every delta, however small.
"""

import math

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError

# Whole orders that are tried first, 4 to an octave. Every one gives a bound, so a best one beyond the last costs
# tightness alone.
ORDERS = np.unique(np.round(2 ** (np.arange(4, 77) / 4)).astype(np.int64)).tolist()


def sampled_gaussian_rdp(order: int, probability: float, noise_multiplier: float) -> float:
    """RDP at a whole order alpha >= 2 of a Gaussian of sensitivity 1 that one is drawn for with `probability`.

    `log(sum_k C(alpha, k) (1 - q)^(alpha - k) q^k exp((k^2 - k) / (2 z^2))) / (alpha - 1)`, by logarithms: Mironov,
    Talwar & Zhang 2019 (arXiv:1908.10530), section 3.3; of both directions it is the larger one (their
    A_alpha >= B_alpha). Neighbours: the one's contribution is zero.
    """
    if order < 2:
        raise InputError(f"order={order} is below 2; give a whole order of at least 2.")
    if not 0 < probability <= 1:
        raise InputError(f"probability={probability} is not above 0 and at most 1; give how likely one is drawn.")
    if not 0 < noise_multiplier < math.inf:
        raise InputError(f"noise_multiplier={noise_multiplier} is not a finite number above 0; give one.")
    if probability == 1:
        return order / 2 / noise_multiplier / noise_multiplier
    drawn = np.arange(order + 1.0)
    with np.errstate(over="ignore"):  # of next to no noise: infinite, as it is
        moments = drawn * (drawn - 1) / 2 / noise_multiplier / noise_multiplier
    terms = _log_choices(order) + (order - drawn) * math.log1p(-probability) + drawn * math.log(probability) + moments
    return float(np.logaddexp.reduce(terms)) / (order - 1)


def epsilon_of_sampled_gaussians(probability: float, noise_multiplier: float, compositions: int, delta: float) -> float:
    """An epsilon at `delta` of so many compositions: the least over whole orders; an upper bound.

    `RDP + log(1 - 1/alpha) - (log delta + log alpha) / (alpha - 1)`: Canonne, Kamath & Steinke 2020
    (arXiv:2004.00010), Proposition 12.
    """
    target = math.log(delta)

    def at(order: int) -> float:
        rdp = compositions * sampled_gaussian_rdp(order, probability, noise_multiplier)
        return max(0.0, rdp + math.log1p(-1 / order) - (target + math.log(order)) / (order - 1))

    best = min(range(len(ORDERS)), key=lambda each: at(ORDERS[each]))
    low, high = ORDERS[max(best - 1, 0)], ORDERS[min(best + 1, len(ORDERS) - 1)]
    while high - low > 2:  # falls to the best order and grows from it: a third is left out at a time
        left, right = low + (high - low) // 3, high - (high - low) // 3
        low, high = (low, right) if at(left) <= at(right) else (left, high)
    return min(map(at, range(low, high + 1)))


def _log_choices(of: int) -> NDArray[np.float64]:
    """log of the binomial coefficients (of, 0) to (of, of)."""
    factorials = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1.0, of + 1)))])
    found: NDArray[np.float64] = factorials[-1] - factorials - factorials[::-1]
    return found
