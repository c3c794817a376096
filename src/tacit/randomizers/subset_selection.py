"""Subset Selection: a report names a set of values, the own one among them with probability p."""

import math
from dataclasses import dataclass

import numpy as np

from tacit.errors import InputError
from tacit.privacy.local_subset_selection import SubsetNumbers
from tacit.randomizers.randomizer import Randomizer, Reports, checked_values, lies
from tacit.randomizers.subsets import Numbers, count_bits, subsets_as_bitmaps, subsets_as_numbers


@dataclass(frozen=True)
class SubsetSelection(Randomizer):
    """Reports a set of `size` values: the device's own with probability p, the others uniform.

    size = max(1, ceil(d / (e^eps + 1))), p = size e^eps / (size e^eps + d - size), q = (size - p) / (d - 1).
    Exactly eps-locally-private for any size: the sets with the value have probability e^eps times that of the sets
    without it. Source: Ye & Barg 2018, arXiv:1702.00610; Wang et al. 2019, arXiv:1607.08025. In domains much larger
    than e^eps this size makes the variance least, near reports * 4 e^eps / (e^eps - 1)^2 for a rare value; in
    domains hardly larger, rounding down would be better, and randomised response is.

    A report is `size` ascending numbers where that is shorter than a bitmap of the domain (uint32, a row a device;
    ceil(log2 d) bits each when packed), otherwise the bitmap (uint64 words). Both name the set and nothing more:
    the order of drawing never leaves the device.
    """

    name = "subset-selection"

    @property
    def size(self) -> int:
        """How many values a report names."""
        return self._numbers.size

    @property
    def most_supported(self) -> int:
        """As many as a report names."""
        return self.size

    @property
    def lie(self) -> float:
        """The probability that the own value is left out, 1 - p without its rounding error."""
        return self._numbers.lie

    @property
    def p(self) -> float:
        """The probability that a report names the device's value."""
        return self._numbers.p

    @property
    def q(self) -> float:
        """The probability that a report names any one given other value."""
        return self._numbers.q

    @property
    def _numbers(self) -> SubsetNumbers:
        return SubsetNumbers(self.domain, self.epsilon)

    @property
    def as_bitmap(self) -> bool:
        """Whether a report is a bitmap: where naming the values one by one would take more bits."""
        return self.size * math.ceil(math.log2(self.domain)) >= self.domain

    @property
    def bits(self) -> float:
        """Bits of a report: the shorter of a bitmap and `size` numbers of ceil(log2 domain) bits."""
        return float(min(self.domain, self.size * math.ceil(math.log2(self.domain))))

    def encode(self, values: Numbers, generator: np.random.Generator) -> Reports:
        """One report for each value: (devices, size) uint32, or (devices, ceil(domain / 64)) uint64 bitmaps."""
        own = checked_values(values, self.domain)
        included = ~lies(generator, own.size, self.lie)
        draw = subsets_as_bitmaps if self.as_bitmap else subsets_as_numbers
        return draw(own, included, self.size, self.domain, generator)

    def votes(self, reports: Reports) -> Numbers:
        """How many reports name each value, (domain,). InputError for a report that no device can send."""
        if self.as_bitmap:
            return self._votes_of_bitmaps(reports)
        if reports.ndim != 2 or reports.shape[1] != self.size:
            raise InputError(f"reports of shape {reports.shape} do not name {self.size} values each.")
        if reports.size and reports.max() >= self.domain:
            raise InputError(f"a report names {reports.max()}, outside 0..{self.domain - 1}: no device sends that.")
        if np.any(reports[:, 1:] <= reports[:, :-1]):
            raise InputError("a report names a value twice or out of order: no device sends that.")
        return np.bincount(reports.ravel(), minlength=self.domain)

    def _votes_of_bitmaps(self, reports: Reports) -> Numbers:
        width = -(-self.domain // 64)
        if reports.ndim != 2 or reports.shape[1] != width or reports.dtype != np.uint64:
            raise InputError(f"reports of shape {reports.shape} are not bitmaps of {width} words of 64 bits each.")
        if np.any(np.bitwise_count(reports).sum(axis=1, dtype=np.int64) != self.size):
            raise InputError(f"a report does not name {self.size} values: no device sends that.")
        spare = 64 * width - self.domain
        if spare and np.any(reports[:, -1] >> np.uint64(64 - spare)):
            raise InputError(f"a report names a value beyond {self.domain - 1}: no device sends that.")
        counted = np.zeros(self.domain, np.int64)
        count_bits(np.ascontiguousarray(reports), counted)
        return counted
