"""The error of a BLT's prefix sums in closed form: no cost per round.

C has the generating function f(x) = 1 + sum_j omega_j / (x - theta_j) in x = 1/z, so C^{-1} has the poles
theta_hat, the zeros of f, which interlace: theta_1 > theta_hat_1 > theta_2 > ... (arXiv:2408.08868, Lemma 5.2 of
arXiv:2404.16706). Each is found as an offset from its nearest theta, so that every difference keeps its
relative accuracy however close the thetas are to each other or to 1.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tacit.design.geometric import falling_sum, geometric_sum
from tacit.privacy.strategy import Blt

Array = NDArray[np.float64]

HALVINGS = 64  # of a bracket of logarithms no wider than about 100: to the last bit


def blt_errors(blt: Blt, rounds: int) -> tuple[float, float]:
    """(max error, rms error) of the prefix sums A C^{-1} Z over `rounds` rounds; exact, to about 1e-14.

    With b_t = beta + sum_i g_i theta_hat_i^t, all of beta and g_i non-negative, the error of prefix t has
    variance sum_{s <= t} b_s^2, so the last one is the largest: max^2 = sum_t b_t^2 and
    rms^2 = (1/n) sum_t (n - t) b_t^2, sums of geometric series (arXiv:2408.08868, Proposition 3.3).
    """
    theta, omega = _distinct(blt)
    from_theta, from_one = _poles_of_inverse(theta, omega)
    # C^{-1} = 1/f: its residues are 1/f'(theta_hat), and its value at 1 is the limit of the b_t.
    g = 1.0 / (omega / from_theta**2).sum(axis=1) / from_one
    with np.errstate(divide="ignore"):
        beta = 1.0 / (1.0 + (omega / (1.0 - theta)).sum())
    products = from_one[:, None] + from_one * (1.0 - from_one[:, None])  # 1 - theta_hat_i theta_hat_j

    def squares(constant: float, summed: Callable[[Array, int], tuple[Array, Array]]) -> float:
        (single, _), (double, _) = summed(from_one, rounds), summed(products, rounds)
        return float(beta**2 * constant + 2 * beta * (g @ single) + g @ double @ g)

    total, falling = squares(rounds, geometric_sum), squares(rounds * (rounds + 1) / 2, falling_sum)
    return math.sqrt(total), math.sqrt(falling / rounds)


def _distinct(blt: Blt) -> tuple[Array, Array]:
    """Decreasing thetas, each once, the weights of equal ones added: the same matrix."""
    theta, place = np.unique(blt.theta, return_inverse=True)
    return theta[::-1].copy(), np.bincount(place, weights=blt.omega).astype(np.float64)[::-1].copy()


def _poles_of_inverse(theta: Array, omega: Array) -> tuple[Array, Array]:
    """For theta_hat: theta_hat_i - theta_j (d, d), and 1 - theta_hat_i (d,), each to a few units in the last place.

    f falls from +inf to -inf between neighbouring thetas, and below the last theta it vanishes at most
    sum(omega) away.
    """
    between = theta[:, None] - theta
    gaps = np.append(-np.diff(theta), omega.sum())
    middle = between - gaps[:, None] / 2
    below = 1.0 + (omega / middle).sum(axis=1) > 0  # the zero lies in the upper half, below theta_i
    below[-1] = True
    pole = np.arange(theta.size, dtype=np.intp) + np.where(below, 0, 1)
    sign = np.where(below, -1.0, 1.0)
    apart = between[pole]
    size = _zeros(apart, omega, pole, sign, np.where(below & (pole < theta.size - 1), gaps / 2, gaps))
    return apart + (sign * size)[:, None], (1.0 - theta[pole]) - sign * size


def _zeros(apart: Array, omega: Array, pole: NDArray[np.intp], sign: Array, most: Array) -> Array:
    """The distance of each zero of f from its pole, by halving the logarithm of a bracket.

    At the zero omega_pole/distance is balanced by the other terms, none of which can exceed its value at half
    its distance from the pole: that bounds the distance from below.
    """
    with np.errstate(divide="ignore"):
        others = np.where(apart == 0, 0.0, 2 * omega / np.abs(apart)).sum(axis=1)
    low, high = np.log(omega[pole] / (1.0 + others)) - 1.0, np.log(most)
    for _ in range(HALVINGS):
        half = (low + high) / 2
        value = 1.0 + (omega / (apart + (sign * np.exp(half))[:, None])).sum(axis=1)
        further = value * sign > 0  # below its pole f rises from -inf with the distance, above it falls from +inf
        low, high = np.where(further, half, low), np.where(further, high, half)
    zeros: Array = np.exp((low + high) / 2)
    return zeros
