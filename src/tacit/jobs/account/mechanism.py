"""What a mechanism promises, as figures for people and programs, and what they hold for."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from tacit.privacy.amplification import Amplified
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.strategy import Strategy

LONG = 100  # characters; the values of a whole matrix say nothing to eyes
EXACT = "Exact, zero-out adjacency, for clients that keep the participation limits and the clip norm."
BOUND = (
    "A proved UPPER BOUND: the exact worst case of this strategy is out of reach. "
    "Zero-out adjacency, for clients that keep the participation limits and the clip norm."
)
SAMPLED = (
    "Zero-out adjacency, for cyclic Poisson sampling by the server. NOT valid for federated learning on devices, "
    "where the server does not choose who comes."
)


@dataclass(frozen=True, kw_only=True)
class MechanismAccount:
    """The figures by their names, and for whom they hold. `warning`: where the delta is too large; None: it is not."""

    figures: Mapping[str, Any]
    note: str
    warning: str | None = None

    @classmethod
    def from_guarantee(cls, guarantee: Guarantee, delta: float, **more: Any) -> Self:
        """Everything that is promised, epsilon at this delta, and what else is known."""
        limits = guarantee.participation
        encoded = {} if guarantee.clip_inflation == 1 else {"clip_inflation": guarantee.clip_inflation}
        figures = {
            **_told(guarantee.strategy),
            "rounds": limits.rounds,
            "rounds_between": limits.rounds_between,
            "min_separation": limits.min_separation,
            "max_participations": limits.max_participations,
            "noise_multiplier": guarantee.noise_multiplier,
            **encoded,
            "sensitivity_squared": guarantee.sensitivity_squared,
            "sensitivity": guarantee.sensitivity,
            "exact": guarantee.exact,
            "zcdp": guarantee.zcdp,
            "mu": guarantee.mu,
            "epsilon": guarantee.epsilon(delta),
            "delta": delta,
            **more,
        }
        return cls(figures=figures, note=EXACT if guarantee.exact else BOUND)

    @classmethod
    def from_sampling(cls, made: Amplified, strategy: Strategy, *, rounds: int, delta: float | None) -> Self:
        """Of so many rounds of cyclic Poisson sampling. delta: left out, that of so many members."""
        at = made.sampling.delta if delta is None else delta
        bounds = made.bounds(at)
        by = min(bounds, key=bounds.__getitem__)
        figures = {
            **_told(strategy),
            "rounds": rounds,
            "cycle": made.sampling.cycle,
            "sampling_probability": made.sampling.probability,
            "compositions": made.compositions,
            "column_norm": made.column_norm,
            "noise_multiplier": made.noise_multiplier,
            "sampled_noise_multiplier": made.sampled_noise_multiplier,
            "zcdp_without_sampling": made.zcdp_without_sampling,
            "epsilon_without_sampling": made.epsilon_without_sampling(at),
            "epsilon": bounds[by],
            "epsilon_by": by,
            "delta": at,
        }
        return cls(figures=figures, note=SAMPLED, warning=made.warning(at))

    def to_record(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {"schema": "tacit.account", "version": 1, **self.figures}


def _told(strategy: Strategy | None) -> dict[str, Any]:
    """A strategy's record with its kind under "mechanism", without the values of a whole matrix."""
    record = strategy.to_record() if strategy else {}
    told = {"mechanism": record.pop("kind", None), **record}
    return {name: value for name, value in told.items() if not (isinstance(value, str) and len(value) > LONG)}
