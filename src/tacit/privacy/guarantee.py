"""The one place where participation, strategy, clip norm and noise meet, and where a noise standard deviation
is computed.
"""

import html
import math
from dataclasses import dataclass, replace
from typing import Self

from tacit.errors import AccountingError, InputError
from tacit.privacy import gaussian
from tacit.privacy.delta import LARGEST, PAPERS_DELTA
from tacit.privacy.participation import Participation
from tacit.privacy.rounding import rounded_up
from tacit.privacy.sensitivity import sensitivity_bound_squared
from tacit.privacy.strategy import Independent, Strategy

OPERATING_SYSTEM = "operating system"  # whose randomness the keys of the noise come from, unless a seed is named


@dataclass(frozen=True, kw_only=True)
class Guarantee:
    """What a sequence of noised sums promises to each client.

    Each client's contribution to a round's SUM has norm at most `clip_norm` and weight one; the noise added
    is `C^{-1} Z` for the strategy matrix C and seeds Z of standard deviation `noise_multiplier * clip_norm`.
    Without a strategy there is no noise and no guarantee. The clip norm may be infinite then, and only then.

    Where contributions are encoded for secure aggregation, rounding makes them longer: what is summed has norm
    at most `clip_inflation * clip_norm` (see `encoding`), while the noise stays as it is. The squared
    sensitivity and rho then grow by `clip_inflation`^2.
    """

    participation: Participation
    strategy: Strategy | None
    clip_norm: float
    noise_multiplier: float
    clip_inflation: float = 1.0

    def __post_init__(self) -> None:
        finite = math.isfinite(self.clip_norm) or (self.strategy is None and self.clip_norm == math.inf)
        if not (finite and self.clip_norm > 0):
            raise InputError(f"clip_norm={self.clip_norm} is not a finite number above 0; give one.")
        if self.strategy is None and self.noise_multiplier != 0:
            raise InputError(
                f"noise_multiplier={self.noise_multiplier} has no strategy to add the noise; name a strategy, "
                "or set noise_multiplier=0 for a run without privacy."
            )
        if self.strategy is not None and not 0 < self.noise_multiplier < math.inf:
            raise InputError(
                f"noise_multiplier={self.noise_multiplier} is not a finite number above 0; give one, or no "
                "strategy at all for a run without privacy."
            )
        if not 1 <= self.clip_inflation < math.inf:
            raise InputError(
                f"clip_inflation={self.clip_inflation} is not a finite factor of at least 1; "
                "give 1 where nothing is encoded, else the factor by which encoding lengthens a contribution."
            )

    @classmethod
    def for_zcdp(
        cls,
        zcdp: float,
        *,
        participation: Participation,
        strategy: Strategy,
        clip_norm: float,
        clip_inflation: float = 1.0,
    ) -> "Guarantee":
        """The guarantee with just the noise that makes it `zcdp`-zCDP."""
        loud = cls(
            participation=participation,
            strategy=strategy,
            clip_norm=clip_norm,
            noise_multiplier=1.0,
            clip_inflation=clip_inflation,
        )
        return replace(loud, noise_multiplier=gaussian.noise_multiplier_for(zcdp, loud.sensitivity))

    def __str__(self) -> str:
        """What is promised, in a sentence; `repr` is what it was made of, and costs nothing to compute."""
        if not self.private:
            return "no noise, so nothing is promised"
        try:
            rho = self.zcdp
        except AccountingError as error:
            return f"no guarantee is known: {error}"
        deltas = " or ".join(f"{rounded_up(self.epsilon(at))} at delta {at:g}" for at in (LARGEST, PAPERS_DELTA))
        limits = self.participation
        return (
            f"zCDP {rounded_up(rho)}, epsilon {deltas} (any other: epsilon(delta)), of {limits.rounds:,} rounds with "
            f"noise multiplier {self.noise_multiplier:.6g}, for clients that take part at most "
            f"{limits.max_participations} times, at least {limits.min_separation} rounds apart"
            + ("" if self.exact else "; a proved upper bound")
        )

    def _repr_html_(self) -> str:
        """As a notebook shows it."""
        return f"<p>{html.escape(str(self))}</p>"

    def checked(self) -> Self:
        """Itself; AccountingError where no sensitivity of its strategy is known, so that it would promise nothing."""
        sensitivity_bound_squared(self.strategy or Independent(), self.participation)
        return self

    @property
    def private(self) -> bool:
        """Whether any noise is added at all."""
        return self.strategy is not None

    @property
    def sensitivity_squared(self) -> float:
        """Squared L2 sensitivity in squared clip norms, of what was encoded if anything was; without a
        strategy, that of the plain sums. Exact, or a proved upper bound: see `exact`.
        """
        return self._sensitivity_squared[0] * self.clip_inflation**2

    @property
    def exact(self) -> bool:
        """Whether the sensitivity is attained by some pattern of participation, or only a proved upper bound."""
        return self._sensitivity_squared[1]

    @property
    def _sensitivity_squared(self) -> tuple[float, bool]:
        return sensitivity_bound_squared(self.strategy or Independent(), self.participation)

    @property
    def sensitivity(self) -> float:
        """L2 sensitivity in clip norms."""
        return math.sqrt(self.sensitivity_squared)

    @property
    def zcdp(self) -> float:
        """rho; infinite without noise."""
        return gaussian.zcdp(self.sensitivity, self.noise_multiplier)

    @property
    def mu(self) -> float:
        """The mu of Gaussian differential privacy, sqrt(2 rho); infinite without noise."""
        return gaussian.mu(self.sensitivity, self.noise_multiplier)

    def epsilon(self, delta: float) -> float:
        """The smallest epsilon at `delta`; infinite without noise."""
        return gaussian.epsilon_of_mu(self.mu, delta)

    @property
    def seed_stddev(self) -> float:
        """Standard deviation of each coordinate of each seed added to a round's sum; 0 without a strategy."""
        return self.noise_multiplier * self.clip_norm if self.private else 0.0

    def starts_afresh(self, round: int) -> bool:
        """Whether what is released from `round` on shares no noise with what came before: its clip norm may change."""
        return self.strategy is None or self.strategy.starts_afresh(round)

    def with_participation(self, participation: Participation) -> "Guarantee":
        """The same noise under another participation: what happened instead of what was planned, say."""
        return replace(self, participation=participation)
