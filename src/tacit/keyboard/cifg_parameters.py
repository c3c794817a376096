"""What the keyboard's network is made of: its size, its parameters, and how they begin."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from tacit.errors import InputError


@dataclass(frozen=True, kw_only=True)
class ModelSettings:
    """The size of a next-word model; the defaults are the papers' (10k words: 2.4 M parameters, tied 1.4 M)."""

    vocabulary: int = 10_000
    embedding: int = 96
    units: int = 670
    tied: bool = False

    def __post_init__(self) -> None:
        for name in ("embedding", "units"):
            if getattr(self, name) < 1:
                raise InputError(f"model.{name}={getattr(self, name)} must be at least 1; the papers use 96 and 670.")
        if self.vocabulary < 5:
            raise InputError(
                f"model.vocabulary={self.vocabulary} must be at least 5: four special tokens and one word."
            )

    @property
    def parameters(self) -> int:
        """How many numbers the model has."""
        embeddings = self.vocabulary * self.embedding * (1 if self.tied else 2) + self.vocabulary
        return embeddings + (2 * self.embedding + 1) * 3 * self.units + self.units * self.embedding


class Cifg(NamedTuple):
    """The parameters, float32. Gates stand in the order input, candidate, output along the 3H axis."""

    embedding: Array  # (V, E)
    kernel: Array  # (2E, 3H): rows of the word first, rows of the fed-back projection after
    bias: Array  # (3H,)
    projection: Array  # (H, E)
    output: Array  # (E, V), or (E, 0) when tied: the embedding serves both ends
    output_bias: Array  # (V,)


def init(settings: ModelSettings, *, key: Array) -> Cifg:
    """Fresh parameters, drawn so that plain SGD moves from the first round.

    Input embeddings uniform in +-1: smaller ones (+-0.1, as recipes for adaptive optimizers have them) leave the gates
    at rest and cost tens of rounds. Output embeddings +-0.1, so that all words begin about equal; tied ones too. Glorot
    kernels. The input gate begins at sigmoid(-1), so the cell keeps 73% of what it knew (f = 1 - i).
    """
    keys = jax.random.split(key, 4)
    v, e, h = settings.vocabulary, settings.embedding, settings.units

    def uniform(key: Array, shape: tuple[int, int], limit: float) -> Array:
        return jax.random.uniform(key, shape, jnp.float32, -limit, limit)

    return Cifg(
        embedding=uniform(keys[0], (v, e), 0.1 if settings.tied else 1.0),
        kernel=uniform(keys[1], (2 * e, 3 * h), (6.0 / (2 * e + h)) ** 0.5),
        bias=jnp.zeros(3 * h, jnp.float32).at[:h].set(-1.0),
        projection=uniform(keys[2], (h, e), (6.0 / (h + e)) ** 0.5),
        output=uniform(keys[3], (e, 0 if settings.tied else v), 0.1),
        output_bias=jnp.zeros(v, jnp.float32),
    )
