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
from tacit.privacy.local_subset_selection import check_local, estimate_variance
from tacit.randomizers.device_randomness import random_words
from tacit.randomizers.subsets import Numbers

FloatArray = npt.NDArray[np.float64]
Reports = npt.NDArray[Any]


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


def lies(generator: np.random.Generator, devices: int, probability: float) -> npt.NDArray[np.bool_]:
    """Which devices answer without their own value, (devices,): 64 random bits each.

    The probability of a lie is rounded up to a multiple of 2**-64, so that floating point cannot cost any privacy:
    a report's likelihood ratio is at most what the exact probability gives.
    """
    threshold = min(math.ceil(probability * (1 + 2.0**-50) * 2.0**64), 2**64 - 1)
    return random_words(generator, devices) < np.uint64(threshold)
