"""The price of a release of histograms, as it is asked for."""

import math
from dataclasses import dataclass, replace
from typing import Any, Self

from tacit.errors import InputError
from tacit.privacy import gaussian
from tacit.privacy.delta import default_delta
from tacit.records import to_plain
from tacit.secure_aggregation.simulated_protocol import SimulatedProtocol, check_protocol


@dataclass(frozen=True, kw_only=True)
class ReleaseCost:
    """What a release of histograms costs each client: exactly one of three prices.

    Central, by noise that a trusted aggregator adds: `zcdp`, or `epsilon` at `delta` (left out: that of so many clients
    as are asked, see `asking`). Local, by devices that randomise their one report themselves: `local_epsilon`.
    `secure_sum`: how the reports are added up, at the same price; None: in the clear.
    """

    zcdp: float | None = None
    epsilon: float | None = None
    delta: float | None = None
    local_epsilon: float | None = None
    secure_sum: SimulatedProtocol | None = None

    def __post_init__(self) -> None:
        check_protocol("secure_sum", self.secure_sum)
        given = [each for each in (self.zcdp, self.epsilon, self.local_epsilon) if each is not None]
        if len(given) != 1:
            raise InputError("zcdp, epsilon and local_epsilon each say the whole price; give one.")
        if self.delta is not None and not 0 < self.delta < 1:
            raise InputError(f"delta {self.delta:g} is not a probability between 0 and 1; give for example 1e-6.")
        if not (given[0] > 0 and math.isfinite(given[0])):
            raise InputError(f"a price of {given[0]:g} releases nothing or promises nothing; give a number above 0.")

    def asking(self, clients: int) -> Self:
        """The same price, its delta in numbers: where none was given, that of so many clients as are asked."""
        return self if self.delta is not None else replace(self, delta=default_delta(clients))

    @property
    def rho(self) -> float:
        """zCDP of a central release. Raises: InputError for a local one, or an epsilon without delta."""
        if self.zcdp is not None:
            return self.zcdp
        if self.epsilon is None:
            raise InputError("local reports have no zCDP; their price is local_epsilon.")
        if self.delta is None:
            raise InputError(f"epsilon {self.epsilon:g} has no zCDP without a delta; give one, or `asking(clients)`.")
        return gaussian.zcdp_for_epsilon(self.epsilon, self.delta)

    def to_plain(self) -> dict[str, Any]:
        """For TOML, which has no null."""
        return {name: value for name, value in to_plain(self).items() if value is not None}
