"""The smallest network that learns."""

from dataclasses import dataclass
from typing import Any

import jax


@dataclass(frozen=True)
class Bigram:
    """The smallest network that learns: a row of scores for each word."""

    vocabulary: int = 0
    scale: float = 0.1

    def init(self, key: jax.Array) -> Any:
        return {"scores": self.scale * jax.random.normal(key, (self.vocabulary, self.vocabulary))}

    def logits(self, parameters: Any, tokens: jax.Array) -> jax.Array:
        return parameters["scores"][tokens]  # type: ignore[no-any-return]

    def groups(self) -> dict[str, tuple[str, ...]]:
        return {"all": ("scores",)}
