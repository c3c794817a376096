"""What a device answers instead of the truth, and what the sum of many answers estimates.

One contract, `Randomizer`; Subset Selection is the one to take for accuracy, Projective Geometry Response
(`projective_geometry.py`) for short messages, k-ary randomised response is the baseline. All are exactly
epsilon-locally-private for one value of one device; `registry.py` lists them by name.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tacit.errors import InputError
from tacit.privacy.local_subset_selection import SubsetNumbers, check_local, estimate_variance
from tacit.randomizers.device_randomness import random_words
from tacit.randomizers.subset_sums import MOST_DEVICES, sum_of_subsets
from tacit.randomizers.subsets import Numbers, count_bits, subsets_as_bitmaps, subsets_as_numbers

FloatArray = npt.NDArray[np.float64]
Reports = npt.NDArray[Any]

SIMULATED = 1 << 22  # numbers of reports held at a time where votes are simulated report by report


@dataclass(frozen=True)
class Randomizer(ABC):
    """A local randomizer over the values 0..domain-1, with what its reports support.

    A report supports a set of values; `votes` counts how many reports support each. A device's own value is
    supported with probability p, any other given value with probability q < p. No report is more than e**epsilon
    times likelier under one value than under another.
    """

    name: ClassVar[str]  # in RANDOMIZERS, in settings, and in the rows of the ledger

    domain: int
    epsilon: float

    def __post_init__(self) -> None:
        check_local(self.domain, self.epsilon)

    @property
    @abstractmethod
    def p(self) -> float:
        """The probability that a report supports its device's value."""

    @property
    @abstractmethod
    def q(self) -> float:
        """The probability that a report supports any one given other value."""

    @property
    def most_supported(self) -> int:
        """How many values a report supports, at most: so far one that was made up moves all votes together."""
        return self.domain

    @property
    @abstractmethod
    def bits(self) -> float:
        """Bits of one report as `encode` represents it, without framing."""

    @abstractmethod
    def encode(self, values: Numbers, generator: np.random.Generator) -> Reports:
        """The device's function: one report, a row or a number, for each value. Values (devices,), int64."""

    @abstractmethod
    def votes(self, reports: Reports) -> Numbers:
        """How many reports support each value, (domain,). InputError for a report that no device can send."""

    @abstractmethod
    def sample_votes(self, holders: Numbers, generator: np.random.Generator) -> Numbers:
        """The votes of sum(holders) devices, holders[x] of them with value x: a draw from the joint law, (domain,)."""

    def estimate(self, votes: Numbers, reports: int) -> FloatArray:
        """(votes - reports * q) / (p - q): unbiased, (domain,). Some are negative; that is what unbiased means."""
        if np.shape(votes) != (self.domain,):
            raise InputError(f"votes of shape {np.shape(votes)} are not one number for each of {self.domain} values.")
        if reports < 1:
            raise InputError(f"reports={reports}: an estimate needs one report or more.")
        return (np.asarray(votes, np.float64) - reports * self.q) / (self.p - self.q)

    def variance(self, reports: int, count: float = 0.0) -> float:
        """Exact variance of one estimate, in devices squared, when `count` of the `reports` devices hold the value.

        (count p(1-p) + (reports - count) q(1-q)) / (p-q)^2: reports are independent, each supports or does not.
        """
        return estimate_variance(self.p, self.q, reports, count)


def checked_values(values: Numbers, domain: int) -> Numbers:
    """Values as encode takes them: whole numbers 0..domain-1, one for each device."""
    array = np.asarray(values)
    if array.ndim != 1 or not np.issubdtype(array.dtype, np.integer):
        raise InputError(f"values of shape {array.shape} and type {array.dtype} are not whole numbers, one a device.")
    if array.size and not (array.min() >= 0 and array.max() < domain):
        outside = int(array[(array < 0) | (array >= domain)][0])
        raise InputError(f"the value {outside} is outside 0..{domain - 1}: map it to a value of the domain first.")
    return np.ascontiguousarray(array, np.int64)


def checked_holders(holders: Numbers, domain: int) -> Numbers:
    """Holders as sample_votes takes them: how many devices hold each value."""
    array = np.asarray(holders)
    if array.shape != (domain,) or not np.issubdtype(array.dtype, np.integer):
        raise InputError(f"holders of shape {array.shape} and type {array.dtype} are not {domain} whole numbers.")
    if array.min() < 0:
        raise InputError(f"{int(array.min())} devices cannot hold a value: holders are counts, 0 or more.")
    return np.ascontiguousarray(array, np.int64)


def lies(generator: np.random.Generator, devices: int, probability: float) -> npt.NDArray[np.bool_]:
    """Which devices answer without their own value, (devices,): 64 random bits each.

    The probability of a lie is rounded up to a multiple of 2**-64, so that floating point cannot cost any privacy:
    a report's likelihood ratio is at most what the exact probability gives.
    """
    threshold = min(math.ceil(probability * (1 + 2.0**-50) * 2.0**64), 2**64 - 1)
    return random_words(generator, devices) < np.uint64(threshold)


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

    def sample_votes(self, holders: Numbers, generator: np.random.Generator) -> Numbers:
        """The votes of sum(holders) devices, drawn from their joint law without making the reports, (domain,).

        A report is a uniform subset with probability 1 - g, and otherwise the own value with a uniform subset of the
        others, where p = (1 - g) size / d + g. `subset_sums.py` draws the sum of all these subsets at once. Few
        reports are made one by one instead, which is then faster. InputError from 10**9 devices on.
        """
        held = checked_holders(holders, self.domain)
        devices = int(held.sum())
        if devices * self.size <= SIMULATED:
            return self.votes(self.encode(np.repeat(np.arange(self.domain), held), generator))
        if devices > MOST_DEVICES:
            raise InputError(f"{devices} devices are more than the {MOST_DEVICES} that can be drawn at once: split.")
        share = self.size / self.domain
        forced = generator.binomial(held, (self.p - share) / (1 - share))
        rest = sum_of_subsets(forced, self.size - 1, devices - int(forced.sum()), self.size, generator)
        return forced + rest


@dataclass(frozen=True)
class KaryRandomizedResponse(Randomizer):
    """Reports one value: the device's own with probability e^eps / (e^eps + d - 1), else a uniform other one.

    The baseline: shortest of all and exact, but its variance grows with the domain (Warner 1965; Kairouz, Bonawitz &
    Ramage 2016, arXiv:1602.07387). Subset Selection of size 1 is the same randomizer.
    """

    name = "k-ary"

    @property
    def most_supported(self) -> int:
        """One."""
        return 1

    @property
    def lie(self) -> float:
        """The probability of another value, 1 - p without its rounding error."""
        return (self.domain - 1) / (math.exp(self.epsilon) + self.domain - 1)

    @property
    def p(self) -> float:
        """The probability of the own value."""
        return 1 - self.lie

    @property
    def q(self) -> float:
        """The probability of any one given other value."""
        return self.lie / (self.domain - 1)

    @property
    def bits(self) -> float:
        """Bits of a report: one number below the domain."""
        return float(math.ceil(math.log2(self.domain)))

    def encode(self, values: Numbers, generator: np.random.Generator) -> Reports:
        """One value for each value, (devices,) uint32."""
        own = checked_values(values, self.domain)
        included = ~lies(generator, own.size, self.lie)
        return subsets_as_numbers(own, included, 1, self.domain, generator)[:, 0]

    def votes(self, reports: Reports) -> Numbers:
        """How many reports are each value, (domain,). InputError for a report that no device can send."""
        if reports.ndim != 1 or (reports.size and reports.max() >= self.domain):
            raise InputError(f"reports of shape {reports.shape} are not one value below {self.domain} each.")
        return np.bincount(reports, minlength=self.domain)

    def sample_votes(self, holders: Numbers, generator: np.random.Generator) -> Numbers:
        """The votes of sum(holders) devices, drawn from their joint law without making the reports, (domain,).

        A report is uniform with probability d * q, and otherwise the own value: exactly the law of `encode`.
        """
        held = checked_holders(holders, self.domain)
        forced = generator.binomial(held, 1 - self.domain * self.q)
        rest = int(held.sum() - forced.sum())
        return forced + generator.multinomial(rest, np.full(self.domain, 1 / self.domain))
