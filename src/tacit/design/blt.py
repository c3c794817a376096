"""The buffered linear Toeplitz matrices that cost least: for one participation, or for several at once.

The problem is arXiv:2408.08868, Section 3.3. Here it is solved in closed form (`blt_objective`), without penalties
(`blt_coordinates`) and from many starts at once (`quasi_newton`), because there are many local optima: a buffer whose
gaps close is worth nothing and seldom comes back. Everything is deterministic.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tacit.design.blt_coordinates import Candidates
from tacit.design.blt_objective import log_loss, log_workload_loss
from tacit.design.objective import Objective, checked_objective
from tacit.design.quasi_newton import Effort, Function, minimise
from tacit.design.toeplitz_error import ToeplitzErrors
from tacit.design.workload import PREFIX, Workload
from tacit.errors import InputError
from tacit.privacy.participation import Participation
from tacit.privacy.strategy import Blt

Array = NDArray[np.float64]

MOST_BUFFERS = 10  # nothing is gained beyond about six, and every buffer is as large as the model
# Logarithms of the narrowest and the widest gap: a theta of 1 - 1e-26 is 1, and one of exp(-20) is 0, in all but name.
NARROWEST, WIDEST = -60.0, 3.0
# How sharply the mean over participations follows their worst while the search is still far away.
SHARPNESS = 100.0


def design_blt(
    participation: Participation, *, buffers: int, objective: Objective = "max", workload: Workload = PREFIX
) -> Blt:
    """The BLT of least max or rms loss for `participation`, with so many buffers (1 to 10).

    Against the best of hundreds of random starts it was within a millionth in 100 of 100 random problems (10 to 10^7
    rounds, 1 to 5 buffers). Takes some ten milliseconds, whatever the number of rounds. Its cost is
    `losses(design, participation)`. For another workload than prefix sums it takes seconds and is a local optimum,
    never worse there than the design for prefix sums, which is one of the starts. InputError for a number of
    buffers out of range or an unknown objective.
    """
    _check(buffers, objective)
    place, _ = _optimum(participation, buffers, objective)
    return _blt(place if workload == PREFIX else _workload_optimum(participation, buffers, objective, workload, place))


def design_robust_blt(participations: Sequence[Participation], *, buffers: int, objective: Objective = "max") -> Blt:
    """The BLT whose worst ratio, over `participations`, of its loss to the least possible one there is least.

    For rounds and separations that are not known before a run (arXiv:2408.08868, Section 4.2: Figures 3 and 5). Each
    participation is designed for on its own; from each of these the mean of high order over the ratios is lowered,
    then the worst ratio itself, as a constrained problem. A local optimum; takes some ten milliseconds for each
    participation. InputError where there is none.
    """
    _check(buffers, objective)
    if not participations:
        raise InputError("a robust design was asked for no participation at all; give one or more.")
    alone = [_optimum(limits, buffers, objective) for limits in participations]
    least = np.array([value for _, value in alone])
    regrets = [_regret(limits, objective, value) for limits, value in zip(participations, least, strict=True)]
    start, _ = minimise(_soft_worst(regrets), np.stack([place for place, _ in alone]), Effort())
    return _blt(_worst_lowered(regrets, start))


def spread(low: int, high: int, points: int = 3) -> tuple[int, ...]:
    """Whole numbers from `low` to `high`, both included, at equal ratios: where a robust design is to hold when all
    that is known is this range.

    Three are enough: for 1000 to 4000 rounds and separations of 100 to 1000, the worst ratio over 105 places in
    between is 1.067 for a design at 3 by 3 of them, 1.065 at 5 by 5.
    """
    if not 1 <= low <= high:
        raise InputError(f"{low} to {high} is no range of whole numbers from 1 on; give the smaller one first.")
    return tuple(sorted({round(each) for each in np.geomspace(low, high, points)}))


def _check(buffers: int, objective: str) -> None:
    checked_objective(objective)
    if not 1 <= buffers <= MOST_BUFFERS:
        raise InputError(f"buffers={buffers} is not between 1 and {MOST_BUFFERS}; 3 to 5 are what pays.")


def _blt(place: Array) -> Blt:
    at = Candidates.from_gaps(np.exp(np.clip(place, NARROWEST, WIDEST)))
    return Blt(theta=tuple(np.exp(-at.decay).tolist()), omega=tuple(at.omega.tolist()))


def _optimum(participation: Participation, buffers: int, objective: Objective) -> tuple[Array, float]:
    """(log gaps (2d,), log loss) of the best design found."""
    return minimise(_regret(participation, objective, 0.0), _starts(participation, buffers), Effort())


def _workload_optimum(
    participation: Participation, buffers: int, objective: Objective, workload: Workload, plain: Array
) -> Array:
    """Log gaps (2d,): from those for prefix sums and from many more; with a cooldown, which takes longer to evaluate,
    from those of rates that stay.
    """
    if workload.cooldown:
        steady = replace(workload, cooldown=0.0)
        starts = np.stack([plain, _workload_optimum(participation, buffers, objective, steady, plain)])
    else:
        starts = np.concatenate([plain[None], _starts(participation, buffers)])
    errors = ToeplitzErrors(participation.rounds, workload)
    points, powers = starts, errors.powers(objective)
    for power in powers:
        loss = partial(log_workload_loss, participation=participation, errors=errors, power=power)
        points = minimise(_inside(loss), points, Effort())[0][None]
    counts = powers[0] if len(powers) == 1 else math.inf
    last = np.concatenate([starts[:2], points])
    found, _ = _inside(partial(log_workload_loss, participation=participation, errors=errors, power=counts))(last)
    best: Array = last[np.argmin(found)]
    return best


def _inside(loss: Function) -> Function:
    """The log loss by log gaps; flat beyond the narrowest and the widest gap."""

    def value_and_slope(places: Array) -> tuple[Array, Array]:
        inside = np.clip(places, NARROWEST, WIDEST)
        value, slope = loss(np.exp(inside))
        return value, np.where(inside == places, slope, 0.0)

    return value_and_slope


def _regret(participation: Participation, objective: Objective, least: float) -> Function:
    """How far the log loss exceeds `least`, of log gaps."""
    loss = _inside(partial(log_loss, participation=participation, objective=objective))

    def excess(places: Array) -> tuple[Array, Array]:
        value, slope = loss(places)
        return value - least, slope

    return excess


def _starts(limits: Participation, buffers: int) -> Array:
    """Where optima were found: log gaps (starts, 2d) that rise evenly to about -0.5.

    In some the first theta is 1, in some the first buffers are as slow as the run is long, in some all of them are
    slower than a client's whole stay, and in some the last theta is 0: which of these families holds the best
    optimum depends on how the separation and the participations compare with the rounds.
    """
    gaps, slow = 2 * buffers, -math.log(limits.rounds)
    stay = -math.log(limits.min_separation * limits.effective.max_participations) - 0.5
    one = slow - 8.0

    def rising(first: float, last: float, count: int) -> list[float]:
        return [float(each) for each in np.linspace(first, last, count)]

    starts = [rising(slow, max(stay, slow + 1.0), gaps), [one, *rising(slow, max(stay, slow + 1.0), gaps - 1)]]
    for first in (-1.5, -3.0):
        even = rising(first, -0.5, gaps)
        starts += [even, [first - 3.0, *even[1:]], [one, *rising(first, -0.5, gaps - 1)]]
        starts += [[*rising(first, -0.2, gaps - 2), 2.5, last] for last in (-2.5, 0.5)]
        for lasting in range(2, gaps, 2):
            fast = rising(first, -0.5, gaps - lasting)
            starts.append([*rising(slow - 1.0, slow + 2.0, lasting), *fast])
            starts.append([one, *rising(slow - 1.0, slow + 2.0, lasting - 1), *fast])
            starts.append([*rising(slow - 1.0, slow + 2.0, lasting), *fast[:-2], 2.5, -2.5])
    return np.array(starts)


def _soft_worst(regrets: Sequence[Function]) -> Function:
    """The logarithm of the mean of the ratios' SHARPNESS-th powers, over SHARPNESS."""

    def mean(places: Array) -> tuple[Array, Array]:
        values, slopes = map(np.stack, zip(*(regret(places) for regret in regrets), strict=True))
        worst = values.max(axis=0)
        powers = np.exp(SHARPNESS * (values - worst))
        total = powers.sum(axis=0)
        soft = worst + np.log(total / len(regrets)) / SHARPNESS
        return soft, (powers[..., None] * slopes).sum(axis=0) / total[:, None]

    return mean


def _worst_lowered(regrets: Sequence[Function], start: Array) -> Array:
    """The least bound s with all regrets at most s, by sequential quadratic programming from `start`."""
    from scipy.optimize import minimize

    def each(point: Array) -> tuple[Array, Array]:
        values, slopes = zip(*(regret(point[None, :-1]) for regret in regrets), strict=True)
        return np.concatenate(values), np.concatenate(slopes)

    worst = float(each(np.append(start, 0.0))[0].max())
    up = np.append(np.zeros(start.size), 1.0)
    slack = {
        "type": "ineq",
        "fun": lambda point: point[-1] - each(point)[0],
        "jac": lambda point: np.concatenate((-each(point)[1], np.ones((len(regrets), 1))), axis=1),
    }
    found = minimize(
        lambda point: (point[-1], up),
        np.append(start, worst),
        jac=True,
        method="SLSQP",
        bounds=[(NARROWEST, WIDEST)] * start.size + [(0.0, None)],
        constraints=[slack],
        options={"maxiter": 200, "ftol": 1e-10},
    )
    lowered = np.asarray(found.x[:-1], dtype=np.float64)
    return lowered if each(found.x)[0].max() < worst else start
