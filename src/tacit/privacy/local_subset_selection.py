"""Subset Selection's numbers, in the one place that the device's code and the accounting both read them from.

Source: Ye & Barg 2018, arXiv:1702.00610; Wang et al. 2019, arXiv:1607.08025.
"""

import math
from dataclasses import dataclass

from tacit.errors import InputError

SMALLEST_EPSILON = 1e-6  # one differing answer in a million: below, sums of rounding errors say more
LARGEST_EPSILON = 30.0  # one lie in 10**13: beyond, an answer protects nobody and 64 random bits do not resolve it
LARGEST_DOMAIN = 2**31


def check_local(domain: int, epsilon: float) -> None:
    """InputError where no report could both hide something and say something."""
    if not 2 <= domain <= LARGEST_DOMAIN:
        raise InputError(
            f"domain={domain} is not between 2 and {LARGEST_DOMAIN}: with one value there is nothing to hide "
            "or to learn; give every value the device may hold, the empty one included."
        )
    if not SMALLEST_EPSILON <= epsilon <= LARGEST_EPSILON:
        raise InputError(
            f"epsilon={epsilon:g} is not between {SMALLEST_EPSILON:g} and {LARGEST_EPSILON:g}: below, a report says "
            "nothing, and beyond, it hides nothing; local guarantees lie between 0.1 and 12."
        )


@dataclass(frozen=True)
class SubsetNumbers:
    """Size and probabilities of Subset Selection over `domain` values with a local guarantee of `epsilon`.

    size = max(1, ceil(d / (e^eps + 1))), p = size e^eps / (size e^eps + d - size), q = (size - p) / (d - 1).
    """

    domain: int
    epsilon: float

    def __post_init__(self) -> None:
        check_local(self.domain, self.epsilon)

    @property
    def size(self) -> int:
        """How many values a report names."""
        return max(1, math.ceil(self.domain / (math.exp(self.epsilon) + 1)))

    @property
    def lie(self) -> float:
        """The probability that the own value is left out, 1 - p without its rounding error."""
        others = self.domain - self.size
        return others / (self.size * math.exp(self.epsilon) + others)

    @property
    def p(self) -> float:
        """The probability that a report names the device's value."""
        return 1 - self.lie

    @property
    def q(self) -> float:
        """The probability that a report names any one given other value."""
        return (self.size - self.p) / (self.domain - 1)

    def variance(self, reports: int, count: float = 0.0) -> float:
        """Exact variance of one estimated count, when `count` of the `reports` devices hold the value."""
        return estimate_variance(self.p, self.q, reports, count)


def estimate_variance(p: float, q: float, reports: int, count: float) -> float:
    """(count p(1-p) + (reports - count) q(1-q)) / (p-q)^2: independent reports, each names the value or does not."""
    if not 0 <= count <= reports:
        raise InputError(f"count={count:g} of {reports} reports cannot be: give a number from 0 to {reports}.")
    return (count * p * (1 - p) + (reports - count) * q * (1 - q)) / (p - q) ** 2
