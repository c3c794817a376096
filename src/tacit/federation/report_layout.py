"""What one device reports of histograms: one vector of whole numbers, which a sum adds up cell by cell.

    [cells of histogram 1 | ... | cells of histogram H]                      one unit in each: counts for a noised sum
    [the same, of local reports | which of the H histograms it answered]     a randomised subset of one, and one unit

Of local reports a device answers ONE histogram, drawn without looking at its answer, so the H numbers at the end say
nothing of its text; their sum is how many devices answered each.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.errors import InputError
from tacit.federation.report_shape import ReportShape
from tacit.privacy.local_subset_selection import SubsetNumbers

IntArray = NDArray[np.int64]
Words = NDArray[np.uint32]
MOST_HISTOGRAMS = 10_000  # of a report
MOST_CELLS = 10_000_000  # of all histograms of a step: 40 MB a report
MOST_EACH = 1  # of any number of one report
MOST_HISTOGRAMS = 10_000
MOST_CELLS = 10_000_000  # of all histograms of a step: 40 MB a report


class Opened(NamedTuple):
    """A sum of reports, taken apart."""

    counts: IntArray  # (cells of all histograms,): devices in each cell, or votes for it
    answered: IntArray  # (H,) devices that answered each histogram: of counts in the clear, all of them


@dataclass(frozen=True, kw_only=True)
class ReportLayout:
    """How many cells each histogram has, "no report" included; and the epsilon of reports that devices randomise.

    Raises: InputError for a histogram without two cells, none at all, or an epsilon that is none.
    """

    sizes: tuple[int, ...]
    local_epsilon: float | None = None  # None: counts in the clear, to which the aggregator adds noise

    def __post_init__(self) -> None:
        if not self.sizes or min(self.sizes) < 2:
            raise InputError(
                f"histograms of {list(self.sizes)[:9]} cells count nothing; give two cells or more to each."
            )
        if self.local_epsilon is not None and not 0 < self.local_epsilon < np.inf:
            raise InputError(f"local_epsilon={self.local_epsilon} must be a number above 0.")

    @property
    def length(self) -> int:
        """Numbers of a report."""
        return self.cells + (0 if self.local_epsilon is None else len(self.sizes))

    @property
    def shape(self) -> ReportShape:
        """What a report may be."""
        return ReportShape(tensor="words", length=self.length, largest=MOST_EACH, check=self.check)

    @property
    def cells(self) -> int:
        """Of all histograms."""
        return int(self.starts[-1])

    def counted(self, chosen: ArrayLike) -> Words:
        """The report (length,) of a device in these cells (H,): one unit in one cell of each histogram.

        Raises: InputError for a cell that its histogram does not have.
        """
        if self.local_epsilon is not None:
            raise InputError("this report is one that a device randomises itself; count none in the clear.")
        vector = np.zeros(self.length, np.uint32)
        vector[self.starts[:-1] + self.checked(chosen)] = 1
        return vector

    def check(self, vector: NDArray[np.uint32]) -> None:
        """That a report (length,) is one that a device can make. Raises: InputError."""
        if vector.shape != (self.length,):
            raise InputError(f"the report has {vector.size} numbers, and {self.length} were asked for.")
        if int(vector.max()) > MOST_EACH:
            raise InputError("a number of the report is above 1, and a device is one in a cell or none.")
        units = np.add.reduceat(vector[: self.cells], self.starts[:-1])
        if self.local_epsilon is None:
            if (units != 1).any():
                at = int(np.flatnonzero(units != 1)[0])
                raise InputError(f"the report is in {units[at]} cells of histogram {at + 1}, and a device is in one.")
            return
        answered = np.flatnonzero(vector[self.cells :])
        if answered.size != 1:
            raise InputError(f"the report answers {answered.size} histograms, and a device answers one.")
        number = int(answered[0])
        if units[number] != (size := self._named(number)) or units.sum() != size:
            raise InputError(
                f"the report of histogram {number + 1} names {units.sum()} cells, and it names {size} there."
            )

    def check_sum(self, total: NDArray[np.uint32], reports: int) -> None:
        """That a sum (length,) is one of so many reports, as far as it tells. Raises: InputError.

        Of a sealed sum nobody has checked the reports: one that is none shows here, or moves counts within it.
        """
        if total.shape != (self.length,):
            raise InputError(f"the sum has {total.size} numbers, and {self.length} were asked for.")
        if int(total.max()) > reports:
            raise InputError(f"a count of the sum is {int(total.max()):,}, above its {reports:,} reports.")
        units = np.add.reduceat(total[: self.cells].astype(np.int64), self.starts[:-1])
        if self.local_epsilon is None:
            if (units != reports).any():
                at = int(np.flatnonzero(units != reports)[0])
                raise InputError(
                    f"histogram {at + 1} of the sum counts {units[at]:,} devices, and {reports:,} reported."
                )
            return
        answered = total[self.cells :].astype(np.int64)
        sizes = np.array([self._named(number) for number in range(len(self.sizes))])
        if answered.sum() != reports or (units != answered * sizes).any() or not answered.all():
            raise InputError(f"the sum is none of {reports:,} randomised reports, or of some histogram there is none.")

    def opened(self, total: ArrayLike, reports: int) -> Opened:
        """A sum (length,) of so many reports."""
        found = np.asarray(total).astype(np.int64)
        answered = np.full(len(self.sizes), reports) if self.local_epsilon is None else found[self.cells :]
        return Opened(found[: self.cells], answered)

    @cached_property
    def starts(self) -> IntArray:
        """(H + 1,) where each histogram begins, and the last ends."""
        return np.cumsum([0, *self.sizes])

    def checked(self, chosen: ArrayLike) -> IntArray:
        """The cells (H,) of one device. Raises: InputError for a cell that its histogram does not have."""
        own = np.asarray(chosen, np.int64)
        if own.shape != (len(self.sizes),) or (own < 0).any() or (own >= np.array(self.sizes)).any():
            raise InputError(f"the cells {own.tolist()} are not one of each of {len(self.sizes)} histograms.")
        return own

    def _named(self, number: int) -> int:
        """How many cells a randomised answer to the histogram names."""
        assert self.local_epsilon is not None  # the caller's to know
        return SubsetNumbers(self.sizes[number], self.local_epsilon).size
