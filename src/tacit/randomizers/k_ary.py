"""k-ary randomised response: a report is one value, the own one or a uniform other; a baseline."""

import math
from dataclasses import dataclass

import numpy as np

from tacit.errors import InputError
from tacit.randomizers.randomizer import Randomizer, Reports, checked_values, lies
from tacit.randomizers.subsets import Numbers, subsets_as_numbers


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
