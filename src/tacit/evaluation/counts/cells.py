"""The cells of a histogram over clients, and in which of them a client is: what a device says of itself.

A client adds one unit to ONE cell of each histogram: (slice, bin), or the last cell, "no report", where it has nothing
to say (too little text, no known word). So every client changes each histogram by the same amount, and nobody is left
out by falling between buckets: buckets are made by cuts, and the first and last are open.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.errors import InputError

IntArray = NDArray[np.int64]
UNCHANGED = 1e-9  # below every change that is none: one word of a text, or a nat of one


@dataclass(frozen=True)
class Buckets:
    """k increasing cuts make k + 1 buckets; bucket j holds cuts[j-1] <= x < cuts[j]. The outer two are open."""

    cuts: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        finite = all(np.isfinite(cut) for cut in self.cuts)
        if not finite or any(later <= before for before, later in zip(self.cuts, self.cuts[1:], strict=False)):
            raise InputError(
                f"the cuts {', '.join(f'{cut:g}' for cut in self.cuts)} do not increase; give finite numbers, each "
                "above the one before. Below the first and from the last on there is always a bucket."
            )

    @classmethod
    def steps(cls, first: int, last: int, per_unit: int) -> "Buckets":
        """Cuts at first/per_unit, (first+1)/per_unit, ..., last/per_unit: each the float nearest to its fraction."""
        return cls(tuple(step / per_unit for step in range(first, last + 1)))

    def with_unchanged_apart(self) -> "Buckets":
        """With a bin of its own for 0, where 0 is a cut: who keeps the global model has not gained a little."""
        if 0.0 not in self.cuts or UNCHANGED in self.cuts:
            return self
        return Buckets(tuple(sorted((*self.cuts, UNCHANGED))))

    def __len__(self) -> int:
        return len(self.cuts) + 1

    def of(self, values: ArrayLike) -> IntArray:
        """The bucket of each value; infinities are in the outer ones. InputError for nan."""
        numbers = np.asarray(values, np.float64)
        if np.isnan(numbers).any():
            raise InputError("nan is in no bucket; a client without a value makes no report.")
        return np.searchsorted(self.cuts, numbers, side="right").astype(np.int64)

    def labels(self) -> tuple[str, ...]:
        """As people read them: below the first cut, from one cut to the next, from the last on."""
        if not self.cuts:
            return ("all",)
        inner = [f"{low:,g} to {high:,g}" for low, high in zip(self.cuts, self.cuts[1:], strict=False)]
        return (f"below {self.cuts[0]:,g}", *inner, f"{self.cuts[-1]:,g} and more")


@dataclass(frozen=True, kw_only=True)
class HistogramCells:
    """What one histogram counts: slices times bins, and the last cell for those who have no report."""

    slices: Buckets
    bins: Buckets

    @property
    def size(self) -> int:
        """How many cells, "no report" included."""
        return len(self.slices) * len(self.bins) + 1

    def of(self, sliced_by: ArrayLike, values: ArrayLike) -> IntArray:
        """The cell of each reporting client (n,)."""
        return self.slices.of(sliced_by) * len(self.bins) + self.bins.of(values)


@dataclass(frozen=True, kw_only=True)
class HistogramQuery:
    """One histogram to be made: its name, its cells, and which of them each asked client is in."""

    name: str
    cells: HistogramCells
    chosen: IntArray  # (asked,), each in 0 <= cell < cells.size; "no report" is the last

    def __post_init__(self) -> None:
        if self.chosen.size and not (self.chosen.min() >= 0 and self.chosen.max() < self.cells.size):
            raise InputError(f"'{self.name}' has cells 0 to {self.cells.size - 1}, and a client is in none of them.")

    @property
    def counts(self) -> IntArray:
        """How many clients are in each cell: exact."""
        return np.bincount(self.chosen, minlength=self.cells.size)
