"""Histograms over clients, exact or noised, and what can be read from them.

Which cell a client is in, `cells` says. The same functions read an exact histogram (variance 0) and a released one,
whose intervals then cover the noise too.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import isotonic_regression

from tacit.errors import InputError
from tacit.evaluation.counts.cells import UNCHANGED as UNCHANGED  # what this file gives, to whoever reads it here
from tacit.evaluation.counts.cells import Buckets as Buckets
from tacit.evaluation.counts.cells import HistogramCells as HistogramCells
from tacit.evaluation.counts.cells import HistogramQuery as HistogramQuery
from tacit.evaluation.intervals import NORMAL, UNKNOWN, Estimate, share_of

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
MAX_RELATIVE_NOISE = 3.0  # standard deviations of the noise that a count of clients must exceed to be divided by


@dataclass(frozen=True, kw_only=True)
class Histogram:
    """Counts (slices, bins) of `asked` clients, of whom about `silent` have no report.

    `variance` (slices, bins) and `silent_variance` are those of the noise in each count, independent of each other;
    0 means exact, hence simulation only.
    """

    cells: HistogramCells
    counts: FloatArray
    variance: FloatArray
    silent: float
    silent_variance: float
    devices: int

    @classmethod
    def from_cells(cls, cells: HistogramCells, flat: ArrayLike, variance: ArrayLike, devices: int) -> "Histogram":
        """From counts (cells.size,) and the variance of the noise in each, a number or (cells.size,)."""
        counts = np.asarray(flat, np.float64)
        spread = np.broadcast_to(np.asarray(variance, np.float64), counts.shape)
        shape = (len(cells.slices), len(cells.bins))
        return cls(
            cells=cells,
            counts=counts[:-1].reshape(shape),
            variance=spread[:-1].reshape(shape),
            silent=float(counts[-1]),
            silent_variance=float(spread[-1]),
            devices=devices,
        )

    @property
    def exact(self) -> bool:
        """Whether no noise was added."""
        return not (self.variance.any() or self.silent_variance)

    @property
    def reporting(self) -> float:
        """How many clients are in the counts, noise and all."""
        return float(self.counts.sum())

    @property
    def noise_dominates(self) -> bool:
        """Whether the noise leaves unknown if anybody is counted at all: then no share or mean can be read."""
        return self.reporting <= MAX_RELATIVE_NOISE * math.sqrt(float(self.variance.sum()))

    def whole(self) -> "Histogram":
        """All slices added into one."""
        return Histogram(
            cells=HistogramCells(slices=Buckets(), bins=self.cells.bins),
            counts=self.counts.sum(axis=0, keepdims=True),
            variance=self.variance.sum(axis=0, keepdims=True),
            silent=self.silent,
            silent_variance=self.silent_variance,
            devices=self.devices,
        )

    def slice(self, number: int) -> "Histogram":
        """One slice's clients; who has no report is in no slice."""
        return Histogram(
            cells=HistogramCells(slices=Buckets(), bins=self.cells.bins),
            counts=self.counts[number : number + 1],
            variance=self.variance[number : number + 1],
            silent=0.0,
            silent_variance=0.0,
            devices=self.devices,
        )

    def coarser(self, cuts: Sequence[float]) -> "Histogram":
        """The same clients in the fewer bins of some of the cuts. Raises: InputError for another cut."""
        if not set(cuts) <= set(self.cells.bins.cuts):
            raise InputError("bins can only be put together; take cuts that the histogram was made with.")
        first = [0, *(self.cells.bins.cuts.index(cut) + 1 for cut in cuts)]
        return replace(
            self,
            cells=HistogramCells(slices=self.cells.slices, bins=Buckets(tuple(cuts))),
            counts=np.add.reduceat(self.counts, first, axis=1),
            variance=np.add.reduceat(self.variance, first, axis=1),
        )

    def __add__(self, other: "Histogram") -> "Histogram":
        """Of both groups of clients; they must not share a client, and must have the same cells."""
        if self.cells != other.cells:
            raise InputError("histograms of different cells cannot be added; count both with the same buckets.")
        return Histogram(
            cells=self.cells,
            counts=self.counts + other.counts,
            variance=self.variance + other.variance,
            silent=self.silent + other.silent,
            silent_variance=self.silent_variance + other.silent_variance,
            devices=self.devices + other.devices,
        )

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "Histogram":
        """What `to_record` wrote, to the bit."""
        cells = HistogramCells(slices=Buckets(tuple(record["slices"])), bins=Buckets(tuple(record["bins"])))
        return cls.from_cells(cells, record["counts"], record["variance"], record["asked"])

    def to_record(self) -> dict[str, Any]:
        """Plain values from which it can be made again; those of "no report" stand last."""
        return {
            "slices": list(self.cells.slices.cuts),
            "bins": list(self.cells.bins.cuts),
            "counts": [*self.counts.ravel().tolist(), self.silent],
            "variance": [*self.variance.ravel().tolist(), self.silent_variance],
            "asked": self.devices,
        }

    def as_row(self) -> dict[str, Any]:
        """What a report says of it."""
        return {
            "slices": list(self.cells.slices.cuts),
            "bins": list(self.cells.bins.cuts),
            "counts": self.counts.tolist(),
            "stddev": np.sqrt(self.variance).tolist(),
            "no_report": self.silent,
            "no_report_stddev": self.silent_variance**0.5,
            "asked": self.devices,
        }


def merged(histograms: Sequence[Histogram]) -> Histogram:
    """The SAME clients counted several times in cells with the same bins: the average with the least variance.

    The noises are independent; exact histograms agree, and the first is taken.
    """
    wholes = [each.whole() for each in histograms]
    if any(each.exact for each in wholes):
        return next(each for each in wholes if each.exact)
    weights = np.array([1 / each.variance.mean() for each in wholes])
    weights /= weights.sum()
    first = wholes[0]
    return Histogram(
        cells=first.cells,
        counts=np.tensordot(weights, [each.counts for each in wholes], axes=1),
        variance=np.tensordot(weights**2, [each.variance for each in wholes], axes=1),
        silent=float(weights @ [each.silent for each in wholes]),
        silent_variance=float(weights**2 @ [each.silent_variance for each in wholes]),
        devices=first.devices,
    )


def representatives(bins: Buckets) -> FloatArray:
    """The number that stands for each bin: its middle; for the two open ones their cut, so means are of clipped values.

    A clipped value is at most half of the widest bin away from it.
    """
    left, right = _ends(bins)
    return (left + right) / 2


def _ends(bins: Buckets) -> tuple[FloatArray, FloatArray]:
    """(bins,) each: between which numbers the clipped values in each bin lie."""
    cuts = np.array(bins.cuts)
    return np.concatenate([cuts[:1], cuts]), np.concatenate([cuts, cuts[-1:]])


def mean_from(histogram: Histogram) -> Estimate:
    """Mean of the values clipped to the cuts, with a normal 95% interval for sampling and noise together.

    Over all slices; nan where it is drowned in noise. Binning moves it by at most half a bin, which the interval leaves
    out.
    """
    return _mean_over(histogram.whole(), representatives(histogram.cells.bins))


def worst_share_from(histogram: Histogram, share: float = 0.1) -> Estimate:
    """Mean of the clipped values over the `share` of clients with the smallest: `intervals.worst_share_of`, binned.

    With the share's quantile v it is the mean of v - (v - x)^+ / share, whose error is that of this mean, because the
    derivative in v vanishes there; v is read from the monotone curve nearest to the noisy one. Where the noise moves it
    far, the result is too low. It never falls where a value rises. So the 95% interval reaches from that of clients at
    the left ends of their bins to that of clients at the right ones: those who fare worst may all be at one end of a
    bin, as accuracies of 0 are. The estimate has them in the middle. nan where drowned.
    """
    if not 0 < share <= 1:
        raise InputError(f"share={share:g} is no share of the clients; give one in (0, 1], such as 0.1.")
    whole, bins = histogram.whole(), histogram.cells.bins
    reached = isotonic_regression(np.cumsum(whole.counts[0])).x
    at = min(int(np.searchsorted(reached, share * whole.reporting)), len(bins) - 1)

    def found(values: FloatArray) -> Estimate:
        return _mean_over(whole, values[at] - np.maximum(values[at] - values, 0.0) / share)

    left, right = _ends(bins)
    return Estimate(found(representatives(bins)).value, found(left).low, found(right).high)


def _mean_over(whole: Histogram, values: FloatArray) -> Estimate:
    """Mean over clients of what stands for each bin, with a normal interval for sampling and noise."""
    clients = whole.reporting
    if whole.noise_dominates:
        return UNKNOWN
    mean = float(whole.counts[0] @ values) / clients
    square = float(whole.counts[0] @ values**2) / clients
    noise = float(whole.variance[0] @ (values - mean) ** 2) / clients**2
    margin = NORMAL * (max(square - mean**2, 0.0) / clients + noise) ** 0.5
    return Estimate(mean, mean - margin, mean + margin)


def share_from(histogram: Histogram, min_value: float) -> Estimate:
    """Share of clients with a value of at least `least`; Wilson's 95% interval, widened by the noise. nan if drowned.

    Raises: InputError where `least` is not a cut, because clients inside a bin cannot be told apart.
    """
    whole, cuts = histogram.whole(), histogram.cells.bins.cuts
    if min_value not in cuts:
        near = sorted(cuts, key=lambda cut: abs(cut - min_value))[:2]
        raise InputError(
            f"{min_value:g} is no cut of the histogram, which cannot tell clients inside a bin apart; ask for "
            f"{' or '.join(f'{cut:g}' for cut in sorted(near))}, or count with a cut there."
        )
    first = cuts.index(min_value) + 1
    clients, above = whole.reporting, float(whole.counts[0, first:].sum())
    if whole.noise_dominates:
        return share_of(above, 0)
    counted = np.arange(len(whole.cells.bins)) >= first
    noise = float(whole.variance[0] @ (counted - above / clients) ** 2)
    return share_of(above, clients, noise_variance=noise / clients**2)


def quantile_from(histogram: Histogram, q: float) -> Estimate:
    """The q-quantile with a 95% interval that is right under noise and sampling, whatever the distribution is.

    For the true quantile's bin, the balance (1 - q) * below - q * above is at most 0 at its left cut and at least 0 at
    its right one; the interval is the hull of the bins for which neither is refuted at 2.5%. It ends at cuts, and is
    infinite where an open bin belongs to it. The estimate interpolates in the monotone curve nearest to the noisy one.
    """
    whole, cuts = histogram.whole(), np.array(histogram.cells.bins.cuts)
    counts, variance = whole.counts[0], whole.variance[0]
    below, total = np.cumsum(counts)[:-1], float(counts.sum())
    if whole.noise_dominates:
        return UNKNOWN
    balance = below - q * total
    under = np.cumsum(variance)[:-1]
    spread = NORMAL * np.sqrt(under * (1 - q) ** 2 + (variance.sum() - under) * q**2 + max(total, 1) * q * (1 - q))
    left_holds = np.concatenate([[True], balance <= spread])  # bin k has the cut k - 1 on its left
    right_holds = np.concatenate([balance >= -spread, [True]])
    kept = np.flatnonzero(left_holds & right_holds)
    if not kept.size:  # the noise contradicts itself: nothing is refuted
        kept = np.array([0, len(cuts)])
    ends = np.concatenate([[-np.inf], cuts, [np.inf]])
    rising = np.clip(isotonic_regression(below).x, 0, total)
    value = float(np.interp(q * total, rising, cuts)) if rising[-1] > rising[0] else float(cuts[0])
    return Estimate(value, float(ends[kept[0]]), float(ends[kept[-1] + 1]))
