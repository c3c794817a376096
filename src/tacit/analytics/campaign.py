"""What a campaign for new words is asked to do, as one frozen value."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from tacit.analytics.alphabet import Alphabet
from tacit.analytics.contributions import Terms
from tacit.errors import InputError


@dataclass(frozen=True, kw_only=True)
class Anonymity:
    """Whatever fewer than `k` users contributed is released with probability at most `delta`, over all passes."""

    k: int
    delta: float

    def __post_init__(self) -> None:
        if self.k < 1:
            raise InputError(f"k={self.k} is no number of users; k-anonymity needs k >= 1.")
        if not 0 < self.delta < 1:
            raise InputError(f"delta={self.delta} is not between 0 and 1; (k, delta)-anonymity needs that.")


@dataclass(frozen=True, kw_only=True)
class Campaign:
    """Paper 2's Algorithm 2, `passes` times, and a count of what it found.

    Each layer of each pass asks `users_per_layer` users who were never asked before, and keeps `prefixes` answers; a
    word of n characters needs n + 1 <= `depth` layers. `counting_users` more say how often each found word is typed.
    `seed` makes a simulation repeatable, and then its randomness protects nobody; None asks the operating system.
    """

    terms: Terms
    users_per_layer: int
    passes: int = 1
    prefixes: int = 1000
    depth: int = 15
    alphabet: Alphabet = field(default_factory=Alphabet)
    anonymity: Anonymity | None = None
    counting_users: int = 0
    resample_users: bool = False
    seed: int | None = None

    def __post_init__(self) -> None:
        for name in ("users_per_layer", "passes", "prefixes"):
            if getattr(self, name) < 1:
                raise InputError(f"{name}={getattr(self, name)} must be 1 or more.")
        if self.depth < 2:
            raise InputError(
                f"depth={self.depth} finds no word: one character and the end need 2 layers; paper 2 has 15."
            )
        if self.counting_users < 0:
            raise InputError(f"counting_users={self.counting_users} must be 0 (no counts) or more.")
        if self.seed is not None and self.seed < 0:
            raise InputError(f"seed={self.seed} must be 0 or more.")

    @property
    def users(self) -> int:
        """How many users are asked in all, once each."""
        return self.passes * self.depth * self.users_per_layer + self.counting_users

    @property
    def way_out(self) -> str:
        """What to do where the population has fewer users: the end of a sentence."""
        layers = self.passes * self.depth
        return (
            f"{self.users_per_layer:,} in each of {self.passes} x {self.depth} layers and {self.counting_users:,} to "
            f"count, each once: ask fewer in each layer (1/{layers} of the population), of fewer layers or passes, or "
            "simulate a larger population of such clients (--resample-users)."
        )

    def to_record(self) -> dict[str, Any]:
        """Flat plain values for TOML; what is None is left out."""
        values = asdict(self)
        anonymity = values.pop("anonymity") or {}
        record = {
            **values.pop("terms"),
            **values,
            "alphabet": self.alphabet.characters,
            **{f"anonymity_{name}": value for name, value in anonymity.items()},
        }
        return {name: value for name, value in record.items() if value is not None}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """What `to_record` wrote."""
        values = dict(record)
        terms = {name: values.pop(name) for name in Terms.__dataclass_fields__}
        anonymity = {name: values.pop(f"anonymity_{name}") for name in ("k", "delta") if f"anonymity_{name}" in values}
        return cls(
            terms=Terms(**terms),
            alphabet=Alphabet(values.pop("alphabet")),
            anonymity=Anonymity(**anonymity) if anonymity else None,
            **values,
        )
