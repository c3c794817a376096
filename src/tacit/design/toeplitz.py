"""Banded Toeplitz strategies: few coefficients of C, or few of C^{-1}, the best ones or those of a closed form.

The loss is Error x sensitivity, with the errors of B = A C^{-1}: for prefix sums again Toeplitz, its column of the
generating function 1 / ((1-x) C(x)); of other workloads as `toeplitz_error` says. The exact sensitivity is
known for non-negative, non-increasing coefficients of C (arXiv:2408.08868, Theorem 3.1), so the designs search only
among those and every result can be accounted.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from tacit.design.objective import Objective, checked_objective
from tacit.design.projected_gradient import Function, minimise_falling
from tacit.design.square_root import prefix_root
from tacit.design.toeplitz_error import ToeplitzErrors
from tacit.design.workload import PREFIX, Workload
from tacit.errors import InputError
from tacit.privacy.participation import Participation
from tacit.privacy.strategy import BandedInverse, BandedToeplitz

Array = NDArray[np.float64]

DIVERGED = 1e8  # coefficients of C beyond this come from an unstable inverse
TRIES = 5


def banded_square_root(bands: int, workload: Workload = PREFIX) -> BandedToeplitz:
    """BSR (BandFHU): C has the first `bands` coefficients of the workload's square root, (1-x)^{-1/2} for prefix sums
    (arXiv:2202.11205); with momentum arXiv:2405.13763, Nesterov's alike, at a rate that stays.
    """
    return BandedToeplitz(tuple(root_coefficients(_checked(bands), workload).tolist()))


def banded_inverse_square_root(bands: int, workload: Workload = PREFIX) -> BandedInverse:
    """BISR: C^{-1} has the first `bands` coefficients of the inverse of that root (arXiv:2505.12128)."""
    return BandedInverse(tuple(root_coefficients(_checked(bands), workload, inverse=True).tolist()))


def design_banded_toeplitz(
    participation: Participation, *, bands: int, objective: Objective = "max", workload: Workload = PREFIX
) -> BandedToeplitz:
    """BandToep: the `bands` coefficients of C, falling from 1, of least loss (arXiv:2405.15913).

    A local minimum, from the banded square root; O(rounds x bands) a step, about ten steps. Bands beyond the
    separation are allowed: clients' contributions then overlap, which the sensitivity counts exactly. For a workload
    never worse than the design for prefix sums, which is one of the starts.
    """
    _fitting(bands, participation)
    starts = [root_coefficients(bands, workload)]
    if workload != PREFIX:
        plain = design_banded_toeplitz(participation, bands=bands, objective=objective)
        starts.append(np.array(plain.coefficients))
    several = _losses(participation, objective, workload)
    column = _lowest(several, lambda loss: loss.of_column, minimise_falling, starts)
    return BandedToeplitz(tuple((column / column[0]).tolist()))


def design_banded_inverse(
    participation: Participation,
    *,
    bands: int,
    objective: Objective = "max",
    falling: bool = False,
    workload: Workload = PREFIX,
) -> BandedInverse:
    """BandInvMF: the `bands` coefficients of C^{-1} of least loss, the first of them 1 (arXiv:2505.12128).

    falling: only those for which C's coefficients fall, so that the sensitivity is known exactly. Otherwise what is
    minimised is an upper bound of the loss, with the sensitivity of the smallest falling column above C's, as
    `sensitivity_bound_squared` accounts it; from 3 bands on that is lower, although it is a bound. For a workload never
    worse than the design for prefix sums, which is one of the starts.
    """
    _fitting(bands, participation)
    if bands == 1:
        return BandedInverse((1.0,))
    several = _losses(participation, objective, workload)
    # Let b_t be the partial sums of C^{-1}, constant after the last: C(x) (1-x) = 1/b(x). Where b falls, is positive
    # and log-convex, C's coefficients are non-negative and never rise (Kaluza 1928; Hardy, Divergent Series, Theorem
    # 22). So the first search is over the gaps log b_{t-1} - log b_t, themselves a falling sequence.
    starts = [root_coefficients(bands)]
    if workload != PREFIX:
        plain = design_banded_inverse(participation, bands=bands, objective=objective, falling=True)
        starts.append(np.cumsum(plain.coefficients))
    gaps = _lowest(several, lambda loss: loss.of_gaps, minimise_falling, [-np.diff(np.log(each)) for each in starts])
    inverse = np.diff(_partial_sums(gaps), prepend=0.0)
    if not falling and bands > 2:
        starts = [inverse]
        if workload != PREFIX:
            plain = design_banded_inverse(participation, bands=bands, objective=objective)
            starts += [np.array(each.coefficients) for each in (plain, banded_inverse_square_root(bands, workload))]
        inverse = _lowest(several, lambda loss: loss.of_inverse, _descended, starts)
    return BandedInverse(tuple(inverse.tolist()))


def design_lambda_cgd(
    participation: Participation, *, objective: Objective = "max", workload: Workload = PREFIX
) -> BandedInverse:
    """DP-lambdaCGD: each round takes back lambda times the seed before, C^{-1} = (1, -lambda); lambda of least loss.

    Nothing is stored but the last seed, which can be drawn again.
    """
    bands = min(2, participation.rounds)
    return design_banded_inverse(participation, bands=bands, objective=objective, workload=workload)


def root_coefficients(count: int, workload: Workload = PREFIX, *, inverse: bool = False) -> Array:
    """The first coefficients of the root of A or of its inverse, the first of them 1.

    For prefix sums those of (1-x)^{-1/2} (`prefix_root`); with momentum beta times
    (1 - beta x)^{-1/2}, with Nesterov's times (1 - beta x/(1 + beta))^{1/2} too. A cooldown is left out: its A is not
    Toeplitz. The same on every machine: a run that goes on elsewhere computes them again.
    """
    poles, zeros = prefix_root(count, inverse=inverse), prefix_root(count, inverse=not inverse)
    beta, found = workload.momentum, poles
    if beta:
        found = _product(found, poles * _powers(beta, count))
        if workload.nesterov:
            found = _product(found, zeros * _powers(beta / (1.0 + beta), count))
    return found


def _product(left: Array, right: Array) -> Array:
    """Of two power series, as far as they go, each coefficient rounded once."""
    return np.array([math.fsum(left[: end + 1] * right[end::-1]) for end in range(left.size)])


def _powers(ratio: float, count: int) -> Array:
    return np.cumprod(np.append(1.0, np.full(count - 1, ratio)))


def _losses(participation: Participation, objective: Objective, workload: Workload) -> "list[_Loss]":
    """The losses to be lowered one after another, and at the end the one that counts."""
    if workload == PREFIX:
        return [_Loss(participation, objective)]
    errors = ToeplitzErrors(participation.rounds, workload)
    ways = [_Loss(participation, objective, errors, power) for power in errors.powers(checked_objective(objective))]
    return [*ways, _Loss(participation, objective, errors, math.inf)] if len(ways) > 1 else ways


def _lowest(
    losses: "Sequence[_Loss]",
    of: "Callable[[_Loss], Function]",
    search: Callable[[Function, Array], Array],
    starts: Sequence[Array],
) -> Array:
    """From the start of least loss down by each loss on the way to the last, which says what is lowest."""
    counts = of(losses[-1])
    start = point = min(starts, key=lambda each: counts(each)[0])
    for loss in losses if len(losses) == 1 else losses[:-1]:
        point = search(of(loss), point)
    return min((point, start), key=lambda each: counts(each)[0])


class _Loss:
    """log loss^2 and its gradient, by the coefficients of C or by the gaps of C^{-1}'s partial sums."""

    def __init__(
        self,
        participation: Participation,
        objective: Objective,
        errors: ToeplitzErrors | None = None,
        power: float = 1.0,
    ) -> None:
        """errors: of a workload, and their mean of which power is lowered; None: prefix sums."""
        rounds = participation.rounds
        self._limits = participation.effective
        self._errors, self._power = errors, power
        falls = checked_objective(objective) == "rms"
        # Column entry t of B stands in rounds - t rows; the last row, the largest, has each entry once.
        self._weights = np.arange(rounds, 0, -1) / rounds if falls else np.ones(rounds)

    def of_column(self, column: Array) -> tuple[float, Array]:
        """At C = Toeplitz(column, then zeros). With b = 1/((1-x) C): db = -(b/C) dC."""
        rounds, bands = self._weights.size, column.size
        if column[0] <= 0:
            return np.inf, np.zeros(bands)
        with np.errstate(over="ignore", invalid="ignore"):  # a step too far; the search takes it back
            errors = _divided(_impulse(rounds), np.append(column, 0.0) - np.append(0.0, column))
            error, by_sums = self._error(errors)
            by_error = -_lagged_products(by_sums, _divided(errors, column), bands)
            moved, by_moved = self._sensitivity(np.pad(column, (0, rounds - bands)))
            return float(np.log(error * moved)), by_error / error + by_moved[:bands] / moved

    def of_gaps(self, gaps: Array) -> tuple[float, Array]:
        """At b_t = exp(-(gaps up to t)), C^{-1} = differences of b: its coefficients by those of `of_inverse`."""
        sums = _partial_sums(gaps)
        value, by_inverse = self.of_inverse(np.diff(sums, prepend=0.0))
        by_logs = (by_inverse - np.append(by_inverse[1:], 0.0)) * sums
        return value, -np.cumsum(by_logs[::-1])[::-1][1:]

    def of_inverse(self, inverse: Array) -> tuple[float, Array]:
        """At C^{-1} = Toeplitz(inverse, then zeros), by the falling column above C's.

        With c = 1/C^{-1} as power series: dc = -(c*c) dC^{-1}. The gradient is one-sided where two coefficients tie.
        """
        rounds, sums = self._weights.size, np.cumsum(inverse)
        error, by_sums = self._error(sums)
        with np.errstate(over="ignore", invalid="ignore"):  # a step too far; the search takes it back
            column = _divided(_impulse(rounds), inverse)
            if not np.abs(column).max() < DIVERGED:
                return np.inf, np.zeros(sums.size)
        above, source = _falling_above(column)
        moved, by_above = self._sensitivity(above)
        by_column = np.zeros(rounds)
        np.add.at(by_column, source, by_above * np.sign(column[source]))
        by_inverse = -_lagged_products(by_column, _divided(column, inverse), sums.size) / moved
        return float(np.log(error * moved)), by_inverse + np.cumsum(by_sums[::-1])[::-1] / error

    def _error(self, sums: Array) -> tuple[float, Array]:
        """Squared error and its gradient by the partial sums (p,) of C^{-1}'s column, constant after the last."""
        if self._errors is None:
            weights = _folded(self._weights, sums.size)
            return float(weights @ sums**2), 2 * weights * sums
        value, slope = self._errors.mean(np.pad(sums, (0, self._weights.size - sums.size), mode="edge"), self._power)
        return value, _folded(slope, sums.size)

    def _sensitivity(self, column: Array) -> tuple[float, Array]:
        """Its square and gradient for a falling column (arXiv:2408.08868, Theorem 3.1)."""
        response, gradient = np.zeros(column.size), np.zeros(column.size)
        participations = range(
            0, self._limits.max_participations * self._limits.min_separation, self._limits.min_separation
        )
        for late in participations:
            response[late:] += column[: column.size - late]
        for late in participations:
            gradient[: column.size - late] += 2 * response[late:]
        return float(response @ response), gradient


def _folded(values: Array, size: int) -> Array:
    """The first `size` of `values`, those that are left added to the last."""
    return np.append(values[: size - 1], values[size - 1 :].sum())


def _falling_above(column: Array) -> tuple[Array, NDArray[np.int64]]:
    """The smallest non-increasing column nowhere below |column|, and the place that each of its numbers comes from."""
    backwards = np.abs(column)[::-1]
    above = np.maximum.accumulate(backwards)
    place = np.maximum.accumulate(np.where(backwards >= above, np.arange(column.size), 0))
    return above[::-1], (column.size - 1 - place)[::-1]


def _descended(function: Function, start: Array) -> Array:
    """A local minimum over all but the first number, by BFGS, which also copes with the ties of `of_inverse`."""
    from scipy.optimize import minimize

    def free(rest: Array) -> tuple[float, Array]:
        value, slope = function(np.append(start[0], rest))
        return value, slope[1:]

    best, lowest = start, function(start)[0]
    for _ in range(TRIES):  # begun again where a tie has spoilt its curvature
        found = minimize(free, best[1:], jac=True, method="BFGS", options={"gtol": 1e-9})
        if not found.fun < lowest - 1e-10:
            break
        best, lowest = np.append(start[0], found.x), float(found.fun)
    return best


def _partial_sums(gaps: Array) -> Array:
    sums: Array = np.exp(-np.append(0.0, np.cumsum(gaps)))
    return sums


def _impulse(rounds: int) -> Array:
    impulse = np.zeros(rounds)
    impulse[0] = 1.0
    return impulse


def _divided(series: Array, divisor: Array) -> Array:
    """series / divisor as power series, as far as `series` goes; O(rounds x bands)."""
    from scipy.signal import lfilter

    return np.asarray(lfilter([1.0], divisor, series), np.float64)


def _lagged_products(left: Array, right: Array, lags: int) -> Array:
    """sum_t left[t] right[t - s] for s < lags; O(n log n)."""
    from scipy.signal import correlate

    products: Array = correlate(left, right, method="fft")[right.size - 1 : right.size - 1 + lags]
    return products


def _checked(bands: int) -> int:
    if bands < 1:
        raise InputError(f"bands={bands} leaves nothing of C; give at least 1, which is independent noise.")
    return bands


def _fitting(bands: int, participation: Participation) -> None:
    if _checked(bands) > participation.rounds:
        raise InputError(
            f"bands={bands} exceed the {participation.rounds} rounds; give at most {participation.rounds}."
        )
