"""What devices could report of an A/B test of typing: how much each measure of the launch rule changed for their user.

Each user adds one unit to one cell of each measure's histogram, as in every evaluation (`release.py`). So what is
released is a mean over users, each counting alike, of changes clipped to the outer cuts, and not the ratio of sums that
the exact part has.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from scipy import stats

from tacit.evaluation.counts.histograms import Buckets, Histogram, HistogramCells, HistogramQuery, mean_from
from tacit.evaluation.intervals import NORMAL, Estimate
from tacit.evaluation.type_ab.launch_rule import CAUTIOUS, DECIDING, gain_of
from tacit.evaluation.type_ab.measures import MEASURES, Measure, Tally

ODD = range(-39, 40, 2)  # cuts lie at odd multiples, so that no change is the middle of a bin
SHARES = Buckets(tuple(odd / 400 for odd in ODD))  # half a point each, up to 10 points
A_MINUTE = Buckets(tuple(odd / 8 for odd in ODD))  # a quarter of a word each, up to 5 words a minute
WIDER = float(stats.norm.ppf((1 + CAUTIOUS) / 2)) / NORMAL  # of an interval at CAUTIOUS than of one at CONFIDENCE


def queries_about(a: Sequence[Tally], b: Sequence[Tally]) -> list[HistogramQuery]:
    """One question for each measure of the launch rule, to the same users on A and B; one without a value on either has
    no report.
    """
    found = []
    for name, cells in histograms_about().items():
        measure = MEASURES[name]
        change = np.array([measure.of(after) - measure.of(before) for before, after in zip(a, b, strict=True)])
        chosen, there = np.full(len(change), cells.size - 1, np.int64), ~np.isnan(change)
        chosen[there] = cells.of(np.zeros(int(there.sum())), change[there])
        found.append(HistogramQuery(name=name, cells=cells, chosen=chosen))
    return found


def histograms_about() -> dict[str, HistogramCells]:
    """The histograms of `queries_about`, in their order."""
    return {name: HistogramCells(slices=Buckets(), bins=cuts_of(MEASURES[name])) for name in DECIDING}


def cuts_of(measure: Measure) -> Buckets:
    """Between which changes of a measure users are told apart."""
    return SHARES if measure.unit == "%" else A_MINUTE


def mean_changes(histograms: Mapping[str, Histogram]) -> dict[str, Estimate]:
    """B - A of each measure, a mean over users, at 95%; the interval covers sampling and noise."""
    return {name: mean_from(histograms[name]) for name in DECIDING}


def cautious_gains(changes: Mapping[str, Estimate]) -> dict[str, Estimate]:
    """The same at the launch rule's confidence, positive where it is for the better."""
    return {name: gain_of(MEASURES[name], _widened(change)) for name, change in changes.items()}


def _widened(change: Estimate) -> Estimate:
    """A normal interval at CAUTIOUS in place of the one at 95%."""
    value, low, high = change
    return Estimate(value, value - WIDER * (value - low), value + WIDER * (high - value))
