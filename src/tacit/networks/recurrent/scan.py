"""The scores of a recurrent network by JAX: one `scan` over words, with what needs no state outside it."""

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

from tacit.networks.language_model import leaves
from tacit.networks.recurrent.cell import Cell


class JaxArrays:
    """See `Arrays`."""

    def rows(self, table: Array, ids: Array) -> Array:
        """See Arrays."""
        return table[ids]

    def affine(
        self, rows: Array | tuple[Array, ...], matrix: Array, bias: Array | None = None, *, turned: bool = False
    ) -> Array:
        """See Arrays."""
        left = jnp.concatenate(rows, axis=-1) if isinstance(rows, tuple) else rows
        product = left @ (matrix.T if turned else matrix)
        return product if bias is None else product + bias[None, :]

    def split(self, rows: Array, parts: int) -> tuple[Array, ...]:
        """See Arrays."""
        return tuple(jnp.split(rows, parts, axis=-1))

    def sigmoid(self, rows: Array) -> Array:
        """See Arrays."""
        return jax.nn.sigmoid(rows)

    def tanh(self, rows: Array) -> Array:
        """See Arrays."""
        return jnp.tanh(rows)


JAX = JaxArrays()


def logits(cell: Cell, parameters: Any, tokens: Array) -> Array:
    """Scores (B, L, V) after tokens (B, L), each sentence from a zero state."""
    p, (sentences, words) = leaves(parameters), tokens.shape
    read = cell.read(JAX, p, tokens.T.reshape(-1))  # (L*B, .), time-major

    def step(states: dict[str, Array], word: Array) -> tuple[dict[str, Array], Array]:
        after, features = cell.step(JAX, p, states, word)
        return dict(after), features

    start = {name: jnp.zeros((sentences, width), read.dtype) for name, width in cell.states().items()}
    _, features = lax.scan(step, start, read.reshape(words, sentences, -1))
    scores: Array = cell.scores(JAX, p, features.reshape(words * sentences, -1))
    return scores.reshape(words, sentences, -1).transpose(1, 0, 2)
