"""What changes from A to B where the same users typed with several trainings of each: intervals as of `crossed`.

A seed is that of a training and of the typists' slips. Where no side was trained anew, seeds differ in slips alone: of
those each user has its own, and nothing is common to a seed. Then the interval is over users, of each user's sums.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from tacit.errors import InputError
from tacit.evaluation.crossed import Crossed, Table, crossed_change, crossed_difference
from tacit.evaluation.intervals import CONFIDENCE, UNKNOWN, Estimate
from tacit.evaluation.type_ab.measures import MEASURES, Measure, Tally
from tacit.evaluation.type_ab.paired_bootstrap import Change


class CrossedChanges(NamedTuple):
    """Every measure's change, and what the intervals cover: other users, or other trainings as well."""

    changes: dict[str, Change]
    covers: str  # "seeds and clients", or "clients"


def crossed_changes(
    a: Sequence[Sequence[Tally]],
    b: Sequence[Sequence[Tally]],
    *,
    trained: bool,
    cautious: float = CONFIDENCE,
    measures: Mapping[str, Measure] = MEASURES,
) -> CrossedChanges:
    """a, b: of each seed the tallies of the same users in the same order. trained: whether a side has a training of its
    own for each seed. cautious: a second confidence, as in `changes_of`.

    Raises: InputError for other seeds or users on B than on A, or fewer than two users.
    """
    if {len(each) for each in (*a, *b)} != {len(a[0])} or len(a) != len(b):
        numbers = [[len(each) for each in side] for side in (a, b)]
        raise InputError(
            f"{numbers[0]} users typed on A and {numbers[1]} on B, seed by seed; give the same users and seeds of both."
        )
    sums = [np.array(each, np.float64) for each in (a, b)]  # (seeds, users, fields)
    if not trained:
        sums = [each.sum(axis=0, keepdims=True) for each in sums]
    found = {name: _change(measure, sums[0], sums[1], cautious) for name, measure in measures.items()}
    covers = {crossed.covers for _, crossed in found.values() if crossed is not None}
    return CrossedChanges({name: change for name, (change, _) in found.items()}, covers.pop() if covers else "clients")


def _change(measure: Measure, a: Table, b: Table, cautious: float) -> tuple[Change, Crossed | None]:
    at = [Tally._fields.index(name) for name in (measure.numerator, measure.denominator)]
    one, other = ((measure.scale * each[..., at[0]], each[..., at[1]]) for each in (a, b))
    first, second = (float(parts.sum() / wholes.sum()) if wholes.sum() else np.nan for parts, wholes in (one, other))
    unknown = Estimate(second - first, UNKNOWN.low, UNKNOWN.high)
    change = Change(measure=measure, a=first, b=second, difference=unknown, relative=None, cautious=unknown)
    if not np.isfinite(first + second):
        return change, None
    crossed = crossed_difference(one, other)
    change = replace(
        change,
        difference=crossed.interval,
        relative=crossed_change(one, other).interval if first > 0 else None,
        cautious=crossed_difference(one, other, confidence=cautious).interval,
    )
    return change, crossed
