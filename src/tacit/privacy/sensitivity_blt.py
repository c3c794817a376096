"""The exact sensitivity of a BLT without its coefficients: O(d^2 log k), whatever the number of rounds.

Notation: lambda = -log theta, S(l, N) = sum_{t<N} e^(-l t), G_i(m) = S(b lambda_i, m + 1). A client that comes in
rounds 0, b, 2b, ... moves round m b + r by v0(m) = 1 + sum_i omega_i theta_i^(b-1) G_i(m-1) for r = 0 (v0(0) = 1), and
by sum_i omega_i G_i(m) theta_i^(r-1) after it. All terms are positive, so nothing cancels where theta -> 1 or thetas
meet.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tacit.errors import AccountingError
from tacit.privacy.participation import Participation

Vector = NDArray[np.float64]


def blt_sensitivity_squared(theta: Sequence[float], omega: Sequence[float], participation: Participation) -> float:
    """Squared sensitivity of the BLT (theta, omega), each (d,), in squared clip norms.

    Exact, to about 1e-14 relative: the sum of squares of arXiv:2408.08868, Theorem 3.1, over all n coefficients in
    closed form. AccountingError where the coefficients rise, that is where the omegas sum to more than 1.
    """
    limits = participation.effective
    total = math.fsum(omega)
    if total > 1 and limits.rounds > 1:
        raise AccountingError(
            f"coefficient 1 is {total:.6g}, and the exact sensitivity is known only for non-negative, non-increasing "
            "coefficients; for a BLT let the omegas sum to at most 1."
        )
    decay, weight = -np.log(np.asarray(theta, dtype=np.float64)), np.asarray(omega, dtype=np.float64)
    separation, times = limits.min_separation, limits.max_participations
    pairs = decay[:, None] + decay
    # Segments before the last participation: b rounds each, the first of which sees v0.
    sums, products = _sums_of_counts(separation * decay, times - 1)
    first = weight * np.exp(-(separation - 1) * decay)
    value = times + 2 * first @ sums + first @ products @ first
    value += weight @ (products * _geometric(pairs, separation - 1)) @ weight
    # What follows the last participation, until the end.
    last = limits.rounds - (times - 1) * separation
    amplitude = weight * _geometric(separation * decay, times)
    return float(value + amplitude @ _geometric(pairs, last - 1) @ amplitude)


def _geometric(decay: Vector, terms: int) -> Vector:
    """S(decay, terms) = sum_{t < terms} e^(-decay t), elementwise; decay >= 0."""
    ratio = np.where(decay > 0, decay, 1.0)
    return np.where(decay > 0, np.expm1(-terms * ratio) / np.expm1(-ratio), float(terms))


def _sums_of_counts(decay: Vector, terms: int) -> tuple[Vector, Vector]:
    """U_i = sum_{m < terms} G_i(m), (d,), and T_ij = sum_{m < terms} G_i(m) G_j(m), (d, d), for q_i = e^(-decay_i).

    By the binary digits of `terms`: G_i(M + m) = P_i + Q_i G_i(m) with P_i = S(decay_i, M), Q_i = e^(-decay_i M), so
    the sums over M + N terms follow from those over M and over N. Positive throughout: no digit is lost.
    """
    sums, products, done = np.zeros_like(decay), np.zeros((decay.size, decay.size)), 0
    for digit in f"{terms:b}":
        sums, products = _joined(decay, done, sums, products, done, sums, products)
        done *= 2
        if digit == "1":
            one = np.ones_like(decay)
            sums, products = _joined(decay, done, sums, products, 1, one, np.outer(one, one))
            done += 1
    return sums, products


def _joined(
    decay: Vector, early: int, sums: Vector, products: Vector, late: int, late_sums: Vector, late_products: Vector
) -> tuple[Vector, Vector]:
    """The sums over early + late terms."""
    begun, kept = _geometric(decay, early), np.exp(-decay * early)
    shifted = kept * late_sums
    cross = np.outer(begun, shifted)
    both = np.outer(kept, kept) * late_products + cross + cross.T + late * np.outer(begun, begun)
    return sums + late * begun + shifted, products + both
