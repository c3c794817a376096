"""What changes from A to B when both are counted on the same users: each measure's change, with its interval.

A measure is one sum over another, over all users together, as the papers' A/B tests count. Users are drawn again with
replacement, each with what it did on A and on B (the paired bootstrap: Efron & Tibshirani, "An Introduction to the
Bootstrap", 1993, sections 8.3 and 13.3: percentile intervals). Percentiles of n users run short, as a normal interval
does that takes the sample's deviation with divisor n for the truth; so they are expanded by what makes that one exact,
Student's quantile times sqrt(n / (n - 1)) (Hesterberg, "What Teachers Should Know About the Bootstrap", The American
Statistician 69:4, 2015: expanded percentile intervals). No percentile goes beyond the outermost users, between whom the
truth need not lie where they are few: of FEW users and less the interval is Student's, from the resamples' deviation
(Efron & Tibshirani, sections 12.2 and 12.3). What differs between users and not between A and B cancels out.

    difference = B - A in the unit of the measure;  relative = B / A - 1

An interval covers that users are sampled, and nothing else.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, stdtrit

from tacit.errors import InputError
from tacit.evaluation.intervals import CONFIDENCE, UNKNOWN, Estimate
from tacit.evaluation.type_ab.measures import MEASURES, Measure

RESAMPLES = 10_000  # the end of an interval at 99.5% is then read from 25 resamples
FEW = (
    20  # users; the launch rule's four percentile intervals of 10 users are all right in 9 of 10 tests, not in 19 of 20
)
AT_ONCE = 500  # resamples in memory together; changes nothing else

Sums = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Change:
    """One measure on both keyboards, and what changes; nan where its denominator is 0."""

    measure: Measure
    a: float
    b: float
    difference: Estimate  # at 95%
    relative: Estimate | None  # at 95%; None where a resample of A has 0 or less, of which nothing is a share
    cautious: Estimate  # the difference, at the confidence that the launch rule asks for


def changes_of(
    a: Sequence[NamedTuple],
    b: Sequence[NamedTuple],
    *,
    cautious: float = CONFIDENCE,
    measures: Mapping[str, Measure] = MEASURES,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> dict[str, Change]:
    """Every measure's change over the same users on A and B, entry by entry; each has sums of the same fields.

    cautious: a second confidence. seed: of the resamples, which are the same for all measures. Raises: InputError for
    fewer than two users, or other users of B than of A.
    """
    if len(a) != len(b) or len(a) < 2:
        raise InputError(f"{len(a)} users typed on A and {len(b)} on B; an interval needs the same ones, at least two.")
    one, other = np.array(a, np.float64), np.array(b, np.float64)  # (users, fields)
    again_a, again_b = _resampled(one, other, resamples, seed)
    fields = a[0]._fields
    return {
        name: _change(measure, fields, (one, other), (again_a, again_b), cautious) for name, measure in measures.items()
    }


def _resampled(one: Sums, other: Sums, resamples: int, seed: int) -> tuple[Sums, Sums]:
    """(resamples, fields) of A and of B: sums over users who are drawn with replacement, the same for both."""
    random, users = np.random.default_rng(seed), len(one)
    both = np.concatenate([one, other], axis=1)
    sums = np.empty((resamples, both.shape[1]))
    for begin in range(0, resamples, AT_ONCE):
        some = min(AT_ONCE, resamples - begin)
        times = random.multinomial(users, np.full(users, 1 / users), size=some)  # how often each user is drawn
        sums[begin : begin + some] = times @ both
    return sums[:, : one.shape[1]], sums[:, one.shape[1] :]


def _change(
    measure: Measure, fields: tuple[str, ...], sums: tuple[Sums, Sums], again: tuple[Sums, Sums], cautious: float
) -> Change:
    users = len(sums[0])
    a, b = (float(_values(measure, fields, each.sum(axis=0))) for each in sums)
    values_a, values_b = (_values(measure, fields, each) for each in again)
    difference = values_b - values_a
    relative = None
    if a > 0 and (values_a > 0).all():
        relative = _interval(b / a - 1, values_b / values_a - 1, CONFIDENCE, users)
    return Change(
        measure=measure,
        a=a,
        b=b,
        difference=_interval(b - a, difference, CONFIDENCE, users),
        relative=relative,
        cautious=_interval(b - a, difference, cautious, users),
    )


def _values(measure: Measure, fields: tuple[str, ...], sums: Sums) -> Sums:
    """The measure of each row of sums (..., fields); nan where its denominator is 0."""
    above, below = (sums[..., fields.index(name)] for name in (measure.numerator, measure.denominator))
    return np.asarray(measure.scale * above / np.where(below == 0, np.nan, below))


def _interval(value: float, again: Sums, confidence: float, users: int) -> Estimate:
    """Expanded percentiles of the resamples, or Student's; unknown where one of them has no value."""
    if not np.isfinite(again).all() or not np.isfinite(value):
        return Estimate(value, UNKNOWN.low, UNKNOWN.high)
    end = float((users / (users - 1)) ** 0.5 * stdtrit(users - 1, (1 - confidence) / 2))  # in deviations
    if users <= FEW:
        margin = -end * float(again.std())
        return Estimate(value, value - margin, value + margin)
    below = float(ndtr(end))
    low, high = np.quantile(again, [below, 1 - below])
    return Estimate(value, float(low), float(high))
