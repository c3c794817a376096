"""What one device reports: one vector of whole numbers, which a sum adds up cell by cell.

    [cells of histogram 1 | ... | cells of histogram H]                      one unit in each: counts for a noised sum
    [the same, of local reports | which of the H histograms it answered]     a randomised subset of one, and one unit
    [cells of sum 1 | ... | cells of sum S]                                  whole numbers, each sum's of a bounded norm

Of local reports a device answers ONE histogram, drawn without looking at its answer, so the H numbers at the end say
nothing of its text; their sum is how many devices answered each.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

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
MOST_NORM = 1 << 16  # of one sum's numbers: no sum of MOST_CELLS squares leaves int64
WORDS = 1 << 32  # what a cell of a sum is counted modulo


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


@dataclass(frozen=True, kw_only=True)
class BoundedLayout:
    """Sums of whole numbers: how many cells each has, and the L2 norm that a device's numbers of it stay within.

    Raises: InputError for a sum without a cell, and a norm that is not between 1 and MOST_NORM.
    """

    sizes: tuple[int, ...]
    norms: tuple[float, ...]  # of each sum

    def __post_init__(self) -> None:
        if not self.sizes or min(self.sizes) < 1 or len(self.norms) != len(self.sizes):
            raise InputError(
                f"sums of {list(self.sizes)[:9]} cells with {len(self.norms)} norms count nothing; give one cell or "
                "more to each, and a norm."
            )
        for norm in self.norms:
            if not 1 <= norm <= MOST_NORM:
                raise InputError(f"norm={norm:g} must lie between 1, which is one unit in one cell, and {MOST_NORM:,}.")

    @property
    def length(self) -> int:
        """Numbers of a report."""
        return int(self.starts[-1])

    @property
    def shape(self) -> ReportShape:
        """What a report may be."""
        return ReportShape(tensor="words", length=self.length, largest=self.largest, check=self.check)

    @property
    def largest(self) -> int:
        """Of the numbers of one report."""
        return math.floor(max(self.norms))

    @property
    def clip_norm(self) -> float:
        """L2 norm that everything in one report stays within: the root of the sum of the squared norms."""
        return math.hypot(*self.norms)

    @cached_property
    def starts(self) -> IntArray:
        """(S + 1,) where each sum begins, and the last ends."""
        return np.cumsum([0, *self.sizes])

    def apart(self, values: NDArray[Any]) -> list[NDArray[Any]]:
        """The cells (sizes[s],) of each sum."""
        return np.split(values, self.starts[1:-1])

    def reported(self, counted: Sequence[tuple[IntArray, IntArray]]) -> Words:
        """The report (length,) of a device. counted: of each sum its cells (n,), each once, and its counts (n,) there.

        Raises: InputError for a cell that a sum does not have.
        """
        vector = np.zeros(self.length, np.uint32)
        for part, norm, (cells, counts) in zip(self.apart(vector), self.norms, counted, strict=True):
            if cells.size and not 0 <= cells.min() <= cells.max() < part.size:
                raise InputError(
                    f"cells {cells.min():,} to {cells.max():,} were counted, and the sum has {part.size:,}."
                )
            part[cells] = clipped(counts, norm)
        return vector

    def check(self, vector: Words) -> None:
        """That a report (length,) is one that a device can make, exactly. Raises: InputError."""
        if vector.shape != (self.length,):
            raise InputError(f"the report has {vector.size} numbers, and {self.length} were asked for.")
        for number, (part, norm) in enumerate(zip(self.apart(vector), self.norms, strict=True), start=1):
            whole = part.astype(np.int64)
            if int(part.max()) > norm or int(np.dot(whole, whole)) > Fraction(norm) ** 2:
                raise InputError(f"the report's numbers of sum {number} are longer than the norm {norm:g}.")

    def check_reports(self, reports: int) -> None:
        """That the sum of so many reports fits into the words that it is counted in. Raises: InputError."""
        if reports * self.largest >= WORDS:
            raise InputError(
                f"{reports:,} reports of numbers up to {self.largest:,} may sum to {reports * self.largest:,}, and a "
                f"cell holds {WORDS - 1:,}; ask {(WORDS - 1) // self.largest:,} devices at most, or lower the norm."
            )

    def check_sum(self, total: NDArray[Any], reports: int) -> None:
        """That a sum (length,) is one of so many reports, as far as it tells. Raises: InputError.

        Whole numbers within a norm N are each at most N, and together at most N^2 and at most N times the root of
        their number. Of a sealed sum nobody has checked the reports.
        """
        if total.shape != (self.length,):
            raise InputError(f"the sum has {total.size} numbers, and {self.length} were asked for.")
        self.check_reports(reports)
        for number, (part, norm) in enumerate(zip(self.apart(total), self.norms, strict=True), start=1):
            squared = Fraction(norm) ** 2
            together = min(math.floor(squared), math.isqrt(math.floor(squared * part.size)))
            for found, most in ((part.max(), math.floor(norm)), (part.sum(dtype=np.int64), together)):
                if int(found) > reports * most:
                    raise InputError(
                        f"sum {number} holds {int(found):,}, and {reports:,} reports within the norm {norm:g} give "
                        f"{reports * most:,} at most."
                    )


def clipped(counts: ArrayLike, norm: float) -> IntArray:
    """Whole numbers (n,) scaled by min(1, norm / their L2 norm) and rounded down: exactly, so never beyond the norm.

    In Python's integers: floor(c N / sqrt(S)) is the whole root of floor(c^2 N^2 / S), where S is the sum of all c^2.
    Raises: InputError for numbers that are not whole, or below 0.
    """
    whole = np.asarray(counts)
    if whole.size and (not np.issubdtype(whole.dtype, np.integer) or whole.min() < 0):
        raise InputError(f"counts of {whole.dtype} from {whole.min()} are no whole numbers of 0 or more.")
    values, places, times = np.unique(whole, return_inverse=True, return_counts=True)
    units, longest = list(map(int, values)), Fraction(norm) ** 2
    squared = sum(unit * unit * int(many) for unit, many in zip(units, times, strict=True))
    if squared <= longest:
        return whole.astype(np.int64)
    shorter = [math.isqrt(unit * unit * longest.numerator // (longest.denominator * squared)) for unit in units]
    return np.array(shorter, np.int64)[places]
