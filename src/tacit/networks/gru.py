"""A second network of about the same size: a GRU whose state is projected, and the projection is fed back.

Gated recurrent units (Cho et al. 2014, arXiv:1406.1078) with the reset gate after the product, as cuDNN has them, so
that a word costs one product with what was fed back. All of it follows from the cell (`recurrent`); no way of computing
is written by hand. Its slow, obvious reference is `tests/networks/numpy_gru.py`.

Gates stand in the order update, reset, candidate along the 3H axis; H units, E embedding width, V words.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from tacit.errors import InputError
from tacit.networks.recurrent.cell import Arrays, Named, Rows
from tacit.networks.recurrent.network import Recurrent

if TYPE_CHECKING:
    from jax import Array

WIDEST = 2**16  # a hundred times the default


@dataclass(frozen=True, kw_only=True)
class Gru(Recurrent):
    """The network of this size; the default has 2.4 M parameters, tied 1.4 M."""

    examples: ClassVar = ({"embedding": 4, "units": 6}, {"embedding": 4, "units": 6, "tied": True})

    vocabulary: int = 10_000
    embedding: int = 96
    units: int = 670
    tied: bool = False  # one embedding at both ends

    def __post_init__(self) -> None:
        for name in ("embedding", "units"):
            if not 1 <= getattr(self, name) <= WIDEST:
                raise InputError(f"model.{name}={getattr(self, name)} must be 1 to {WIDEST:,}; 96 and 670 are usual.")
        if self.vocabulary < 5:
            raise InputError(
                f"model.vocabulary={self.vocabulary} must be at least 5: four special tokens and one word."
            )

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """See Cell."""
        v, e, h = self.vocabulary, self.embedding, self.units
        return {
            "embedding": (v, e),
            "kernel": (e, 3 * h),  # of the word
            "bias": (3 * h,),
            "feedback": (e, 3 * h),  # of the projection that is fed back
            "feedback_bias": (3 * h,),
            "projection": (h, e),
            **({} if self.tied else {"output": (e, v)}),
            "output_bias": (v,),
        }

    def init(self, key: "Array") -> "dict[str, Array]":
        """Fresh parameters, drawn so that plain SGD moves from the first round.

        Kernels are Glorot's, and biases 0 but for the update gate's, which begins at sigmoid(-1): the state keeps 73%.
        """
        import jax
        import jax.numpy as jnp

        e, h = self.embedding, self.units
        gates = (6.0 / (2 * e + h)) ** 0.5
        limits = {"kernel": gates, "feedback": gates, "projection": (6.0 / (h + e)) ** 0.5, "output": 0.1}
        limits["embedding"] = 0.1 if self.tied else 1.0
        shapes = self.shapes()
        found = {
            name: jax.random.uniform(each, shape, jnp.float32, -limits[name], limits[name])
            if name in limits
            else jnp.zeros(shape, jnp.float32)
            for each, (name, shape) in zip(jax.random.split(key, len(shapes)), shapes.items(), strict=True)
        }
        return {**found, "bias": found["bias"].at[: self.units].set(-1.0)}

    def groups(self) -> Mapping[str, tuple[str, ...]]:
        """What fine-tuning may change; the output table of a tied network is its input embedding, too."""
        table = "embedding" if self.tied else "output"
        return {
            "all": tuple(self.shapes()),
            "output": (table, "output_bias"),
            "biases": ("bias", "feedback_bias", "output_bias"),
            "recurrent": ("kernel", "bias", "feedback", "feedback_bias", "projection"),
            "embeddings": ("embedding", table),
        }

    def states(self) -> dict[str, int]:
        """See Cell."""
        return {"state": self.units, "output": self.embedding}

    def read(self, to: Arrays, p: Named, ids: Any) -> Rows:
        """See Cell: the word's part of the gates."""
        return to.affine(to.rows(p["embedding"], ids), p["kernel"], p["bias"])

    def step(self, to: Arrays, p: Named, states: Named, read: Rows) -> tuple[Named, Rows]:
        """See Cell."""
        fed_back = to.affine(states["output"], p["feedback"], p["feedback_bias"])
        (update, reset, candidate), (of_update, of_reset, of_candidate) = to.split(read, 3), to.split(fed_back, 3)
        candidate = to.tanh(candidate + to.sigmoid(reset + of_reset) * of_candidate)
        state = states["state"] + to.sigmoid(update + of_update) * (candidate - states["state"])
        output = to.affine(state, p["projection"])
        return {"state": state, "output": output}, output

    def scores(self, to: Arrays, p: Named, features: Rows) -> Rows:
        """See Cell."""
        return to.affine(features, p["embedding" if self.tied else "output"], p["output_bias"], turned=self.tied)
