"""The loss of a BLT and its gradient, for many candidates at once; of prefix sums at no cost per round, O(d^2 log k).

The coordinates are those of `blt_coordinates`. Every quantity is a sum of positive terms, so nothing cancels. A name
that begins with `in_` is the derivative of what the rest of the name says, in the decays (-log theta) or gaps
(1 - theta_hat) and in the logarithms of the weights.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.design.blt_coordinates import Candidates
from tacit.design.geometric import falling_sum, geometric_sum
from tacit.design.objective import Objective
from tacit.design.toeplitz_error import ToeplitzErrors
from tacit.privacy.participation import Participation

Array = NDArray[np.float64]


def log_loss(gaps: Array, participation: Participation, objective: Objective) -> tuple[Array, Array]:
    """(log loss (...), its gradient in the log gaps (..., 2d)) for gaps (..., 2d) > 0."""
    at = Candidates.from_gaps(gaps)
    return _with_sensitivity(at, _squared_error(at, participation.rounds, objective), participation)


def log_workload_loss(
    gaps: Array, participation: Participation, errors: ToeplitzErrors, power: float
) -> tuple[Array, Array]:
    """The same of the mean that `errors` has of that power, for gaps (candidates, 2d); O(d rounds) each while the rate
    stays.
    """
    at = Candidates.from_gaps(gaps)
    return _with_sensitivity(at, _workload_error(at, participation.rounds, errors, power), participation)


def _with_sensitivity(
    at: Candidates, error_and_slopes: tuple[Array, Array, Array, Array], participation: Participation
) -> tuple[Array, Array]:
    error, in_inverse_gap, in_limit, in_step = error_and_slopes
    spread, in_decay, in_omega = _squared_sensitivity(at.decay, at.omega, participation.effective)
    slope = at.slope(in_decay / spread, in_inverse_gap / error, in_limit / error, in_omega / spread, in_step / error)
    return (np.log(error) + np.log(spread))[..., 0] / 2, slope / 2


def _squared_error(at: Candidates, rounds: int, objective: Objective) -> tuple[Array, Array, Array, Array]:
    """Squared error (..., 1) and its derivatives in inverse_gap (..., d), log limit (..., 1) and log inverse_step
    (..., d); see `blt_errors`.
    """
    summed, scale = (geometric_sum, 1.0) if objective == "max" else (falling_sum, 1.0 / rounds)
    gap, step = at.inverse_gap, at.inverse_step
    kept = 1.0 - gap
    single, in_single = summed(gap, rounds)
    double, in_double = summed(gap[..., :, None] + gap[..., None, :] * kept[..., :, None], rounds)
    crossed = 2 * scale * at.limit * step
    squares = 2 * scale * step[..., :, None] * step[..., None, :]
    alone, shared = crossed * single, (squares * double).sum(-1)
    level = (rounds if objective == "max" else (rounds + 1) / 2) * at.limit**2
    error = level + alone.sum(-1, keepdims=True) + shared.sum(-1, keepdims=True) / 2
    in_gap = crossed * in_single + (squares * in_double * kept[..., None, :]).sum(-1)
    return error, in_gap, 2 * level + alone.sum(-1, keepdims=True), alone + shared


def _workload_error(
    at: Candidates, rounds: int, errors: ToeplitzErrors, power: float
) -> tuple[Array, Array, Array, Array]:
    """As `_squared_error`, by the partial sums of C^{-1}'s column, limit + sum_i inverse_step_i theta_hat_i^t."""
    powers = np.ones((*at.inverse_gap.shape, rounds))
    powers[..., 1:] = 1.0 - at.inverse_gap[..., None]
    np.cumprod(powers, axis=-1, out=powers)
    sums = at.limit + np.einsum("md,mdt->mt", at.inverse_step, powers)
    means = [errors.mean(row, power) for row in sums]
    value, slope = np.array([[each] for each, _ in means]), np.stack([each for _, each in means])
    in_gap = -at.inverse_step * np.einsum("mt,mdt->md", slope[:, 1:] * np.arange(1, rounds), powers[..., :-1])
    in_step = at.inverse_step * np.einsum("mt,mdt->md", slope, powers)
    return value, in_gap, at.limit * slope.sum(-1, keepdims=True), in_step


def _squared_sensitivity(decay: Array, omega: Array, limits: Participation) -> tuple[Array, Array, Array]:
    """Squared sensitivity (..., 1) and its derivatives in lambda (..., d) and log omega (..., d).

    With one participation after another as early as may be (arXiv:2408.08868, Theorem 3.1) the response between
    the (m+1)-th and the next is sum_i omega_i G_i(m) theta_i^(s-1) in its s-th round, G_i(m) the sum of the first
    m + 1 powers of theta_i^b. The 1 of each participation aside, the squares of its first b rounds make
    omega_i omega_j S(lambda_i + lambda_j, b) G_i G_j, so that with W = sum_m G and Q = sum_m G G, m < k - 1,
    sens^2 = k + 2 sum_i omega_i theta_i^(b-1) W_i + sum_ij omega_i omega_j (S_ij(b) Q_ij + S_ij(L - 1) G_i G_j),
    where L = n - (k-1) b rounds follow the last one, itself included, with G = G(k-1).
    """
    b, k = limits.min_separation, limits.max_participations
    last = limits.rounds - (k - 1) * b - 1
    sums = participation_sums(b * decay, k - 1)
    both, pairs = decay[..., :, None] + decay[..., None, :], omega[..., :, None] * omega[..., None, :]
    tail, in_tail = _decaying_sum(both, last)
    grown, in_grown = (
        sums.power_sum + sums.power,
        sums.in_power_sum + sums.in_power,
    )
    grown_both = grown[..., :, None] * grown[..., None, :]
    shared = tail * grown_both
    in_shared = in_tail * grown_both + tail * (b * in_grown)[..., :, None] * grown[..., None, :]
    alone = in_alone = np.zeros_like(decay)
    if k > 1:
        stretch, in_stretch = _decaying_sum(both, b)
        shared += stretch * sums.square_sum
        in_shared += in_stretch * sums.square_sum + stretch * (b * sums.in_square_sum)
        late = 2 * omega * np.exp(-(b - 1) * decay)
        alone, in_alone = late * sums.sum, late * (b * sums.in_sum - (b - 1) * sums.sum)
    row = (pairs * shared).sum(-1)
    squared = k + alone.sum(-1, keepdims=True) + row.sum(-1, keepdims=True)
    return squared, in_alone + 2 * (pairs * in_shared).sum(-1), alone + 2 * row


@dataclass
class ParticipationSums:
    """For x = exp(-l) (..., d) and a count M: x^M, S = sum_{s<M} x^s, W = the sum of the first M such sums, and
    Q_ij = that of their products; each with its derivative in l (of Q in l_i alone, the other held).
    """

    power: Array
    in_power: Array
    power_sum: Array
    in_power_sum: Array
    sum: Array
    in_sum: Array
    square_sum: Array
    in_square_sum: Array


def participation_sums(rate: Array, count: int) -> ParticipationSums:
    """By the binary digits of `count`, doubling or adding one: O(d^2 log count), sums of positive terms only."""
    ratio = np.exp(-rate)
    none, nothing = np.zeros_like(rate), np.zeros((*rate.shape, rate.shape[-1]))
    at = ParticipationSums(np.ones_like(rate), none, none, none, none, none, nothing, nothing)
    reached = 0
    for digit in bin(count)[2:] if count else "":
        if reached:
            at = _doubled(at, reached)
        reached *= 2
        if digit == "1":
            at = _one_more(at, ratio)
            reached += 1
    return at


def _doubled(at: ParticipationSums, count: int) -> ParticipationSums:
    """The later half of the sums is S(M) + x^M times the earlier half."""
    x, dx, s, ds = at.power, at.in_power, at.power_sum, at.in_power_sum
    w, dw = x * at.sum, dx * at.sum + x * at.in_sum
    later, in_later = x[..., :, None] * x[..., None, :], dx[..., :, None] * x[..., None, :]
    # sum over the later half of (S_i + x_i G_i)(S_j + x_j G_j)
    half = (count * s / 2 + w)[..., None, :]
    in_half = count * s[..., None, :] + w[..., None, :]
    cross = s[..., :, None] * half
    return ParticipationSums(
        power=x * x,
        in_power=2 * x * dx,
        power_sum=s + x * s,
        in_power_sum=ds + dx * s + x * ds,
        sum=at.sum + count * s + w,
        in_sum=at.in_sum + count * ds + dw,
        square_sum=at.square_sum + cross + np.swapaxes(cross, -1, -2) + later * at.square_sum,
        in_square_sum=at.in_square_sum
        + ds[..., :, None] * in_half
        + dw[..., :, None] * s[..., None, :]
        + in_later * at.square_sum
        + later * at.in_square_sum,
    )


def _one_more(at: ParticipationSums, ratio: Array) -> ParticipationSums:
    s, ds = at.power_sum + at.power, at.in_power_sum + at.in_power
    return ParticipationSums(
        power=at.power * ratio,
        in_power=(at.in_power - at.power) * ratio,
        power_sum=s,
        in_power_sum=ds,
        sum=at.sum + s,
        in_sum=at.in_sum + ds,
        square_sum=at.square_sum + s[..., :, None] * s[..., None, :],
        in_square_sum=at.in_square_sum + ds[..., :, None] * s[..., None, :],
    )


def _decaying_sum(rate: Array, terms: int) -> tuple[Array, Array]:
    """sum_{t < terms} exp(-rate t) and its derivative in the rate."""
    gap = -np.expm1(-rate)
    total, in_gap = geometric_sum(gap, terms)
    return total, in_gap * (1.0 - gap)
