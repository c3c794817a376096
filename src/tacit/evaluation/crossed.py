"""How far a result can be off where models are trained anew with a seed and judged by sampled clients: both vary.

All S models are judged by the same C clients: seeds and clients are crossed. What model s shows on client c is

    y_sc = truth + a_s + b_c + g_sc        (two-way random effects; a, b, g independent)

An interval over clients leaves a_s out, one over seeds b_c: neither says "another training, other clients". The mean
squares of the balanced table, and the variance of its mean (Searle, Casella & McCulloch, "Variance Components", 1992):

    MS_seeds   = C sum_s (y_s. - y..)^2 / (S - 1)         expects C var(a) + var(g)
    MS_clients = S sum_c (y_.c - y..)^2 / (C - 1)         expects S var(b) + var(g)
    MS_both    = sum_sc (y_sc - y_s. - y_.c + y..)^2 / ((S - 1)(C - 1))     expects var(g)
    var(y..)   = (MS_seeds + MS_clients - MS_both) / (S C)

The mean's error is a sum of two independent parts, a. + g.. and b., each with a standard error of its own and its own
degrees of freedom. Student's quantile goes on each, and both are added as squares (Banerjee, Sankhya 22, 1960: with
independent normal parts such an interval covers at least what it promises):

    margin^2 = t(S-1)^2 MS_seeds / (S C) + t(C-1)^2 max(MS_clients - MS_both, 0) / (S C)

It is never less than the margin over clients alone, nor than that over seeds alone.

Simpler ways fall short of 95% with three seeds, as `tests/evaluation/test_crossed.py` simulates. The pigeonhole
bootstrap (Owen, Annals of Applied Statistics 1:2, 2007) resamples three numbers, and covers 83 to 87% where seeds
dominate. One Student's quantile with Satterthwaite's degrees of freedom covers 92 to 94%: three seeds that lie close by
chance look like many degrees of freedom. This one covers 95 to 98%, too often where seeds matter little.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit

from tacit.errors import InputError
from tacit.evaluation.intervals import CONFIDENCE, Estimate

ENOUGH = 3  # seeds; of two, Student's quantile is 12.7 and the interval says nothing

Covers: TypeAlias = Literal["seeds and clients", "clients"]
Table: TypeAlias = NDArray[np.float64]  # (seeds, clients)


@dataclass(frozen=True, kw_only=True)
class Crossed:
    """An estimate over all seeds and clients, and what its interval covers.

    covers: "clients" where there are fewer seeds than ENOUGH: other clients, judging these very trainings.
    """

    interval: Estimate
    covers: Covers
    seeds: int
    clients: int
    error_of_seeds: float  # standard error by other trainings, nan of one seed
    error_of_clients: float  # by other clients, judging these trainings


def crossed_interval(parts: ArrayLike, wholes: ArrayLike = 1.0, *, confidence: float = CONFIDENCE) -> Crossed:
    """sum(parts) / sum(wholes) over seeds and clients, as an accuracy is: words foreseen over words typed.

    parts, wholes: (seeds, clients) sums of the same clients in the same order for each seed; what is the same for every
    seed may be (clients,). Left out, wholes are 1: a mean over clients. Of a difference of two models on the same text,
    parts are the differences of what each has. The interval is the delta method's: the ratio is off by the mean of
    parts - ratio * wholes over the mean of wholes. Raises: InputError for fewer than two clients, what is no finite
    number, or wholes whose sum is not above 0.
    """
    part, whole = _tables(parts, wholes)
    value = _ratio(part, whole)
    return _crossed(value, (part - value * whole) / whole.mean(), confidence)


def crossed_difference(
    a: tuple[ArrayLike, ArrayLike], b: tuple[ArrayLike, ArrayLike], *, confidence: float = CONFIDENCE
) -> Crossed:
    """B - A of two such ratios with wholes of their own, as words a minute; each is (parts, wholes). Raises: as it."""
    parts_a, wholes_a, parts_b, wholes_b = _tables(*a, *b)
    one, other = _ratio(parts_a, wholes_a), _ratio(parts_b, wholes_b)
    off_a, off_b = (parts_a - one * wholes_a) / wholes_a.mean(), (parts_b - other * wholes_b) / wholes_b.mean()
    return _crossed(other - one, off_b - off_a, confidence)


def crossed_change(
    a: tuple[ArrayLike, ArrayLike], b: tuple[ArrayLike, ArrayLike], *, confidence: float = CONFIDENCE
) -> Crossed:
    """B / A - 1 of two such ratios; each is (parts, wholes). Raises: as it, and where A's ratio is not above 0."""
    parts_a, wholes_a, parts_b, wholes_b = _tables(*a, *b)
    one, other = _ratio(parts_a, wholes_a), _ratio(parts_b, wholes_b)
    if one <= 0:
        raise InputError(f"A's ratio {one:g} is not above 0, and nothing is a share of it; ask for the difference.")
    off_a, off_b = (parts_a - one * wholes_a) / wholes_a.mean(), (parts_b - other * wholes_b) / wholes_b.mean()
    return _crossed(other / one - 1, (off_b - other / one * off_a) / one, confidence)


def _crossed(value: float, off: Table, confidence: float) -> Crossed:
    """The interval around a value that is off by the mean of this table."""
    seeds, clients = off.shape
    middle, of_seed, of_client = off.mean(), off.mean(axis=1), off.mean(axis=0)
    over_clients = float(of_client.var(ddof=1)) / clients  # MS_clients / (S C)
    margin = _student(clients, confidence) * over_clients**0.5
    error_of_seeds = float("nan")
    if seeds > 1:
        error_of_seeds = float(of_seed.std(ddof=1)) / seeds**0.5  # its square is MS_seeds / (S C)
        rest = off - of_seed[:, None] - of_client + middle
        both = float(np.square(rest).sum()) / ((seeds - 1) * (clients - 1) * seeds * clients)  # MS_both / (S C)
        if seeds >= ENOUGH:
            crossed = (_student(seeds, confidence) * error_of_seeds) ** 2
            crossed += _student(clients, confidence) ** 2 * max(over_clients - both, 0)
            margin = max(margin, crossed**0.5)
    return Crossed(
        interval=Estimate(value, value - margin, value + margin),
        covers="seeds and clients" if seeds >= ENOUGH else "clients",
        seeds=seeds,
        clients=clients,
        error_of_seeds=error_of_seeds,
        error_of_clients=over_clients**0.5,
    )


def _tables(*given: ArrayLike) -> list[Table]:
    """All of them as (seeds, clients). Raises: InputError."""
    arrays = [np.asarray(each, np.float64) for each in given]
    try:
        alike = np.broadcast_arrays(*arrays)
    except ValueError as error:
        shapes = ", ".join(str(each.shape) for each in arrays)
        raise InputError(
            f"sums of shapes {shapes} are not of the same seeds and clients; give (seeds, clients)."
        ) from (error)
    tables = [np.atleast_2d(each) for each in alike]
    if tables[0].ndim != 2 or tables[0].shape[1] < 2 or not tables[0].shape[0]:
        raise InputError(
            f"sums of shape {tables[0].shape} have no spread to make an interval of; give (seeds, clients) of at least "
            "two clients."
        )
    if not all(np.isfinite(each).all() for each in tables):
        raise InputError("a sum is no finite number; leave out that client, for every seed.")
    return tables


def _ratio(parts: Table, wholes: Table) -> float:
    if wholes.mean() <= 0:
        raise InputError(f"the mean {wholes.mean():g} cannot be divided by; a ratio needs one above 0.")
    return float(parts.sum() / wholes.sum())


def _student(size: int, confidence: float) -> float:
    return float(stdtrit(size - 1, (1 + confidence) / 2))
