"""A second network, as short as one can be: a GRU without any fast path, for what must work with every network."""

from collections.abc import Mapping
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import Array, lax

KIND = "tests.support.networks.gru:Gru"


@dataclass(frozen=True, kw_only=True)
class Gru:
    vocabulary: int = 60
    units: int = 6

    def init(self, key: Array) -> dict[str, Array]:
        table, gates, state = jax.random.split(key, 3)
        return {
            "table": 0.5 * jax.random.normal(table, (self.vocabulary, self.units)),
            "gates": 0.5 * jax.random.normal(gates, (2 * self.units, 2 * self.units)),
            "state": 0.5 * jax.random.normal(state, (2 * self.units, self.units)),
            "bias": jnp.zeros(self.vocabulary),
        }

    def logits(self, parameters: dict[str, Array], tokens: Array) -> Array:
        def step(state: Array, word: Array) -> tuple[Array, Array]:
            both = jnp.concatenate([word, state], axis=1)
            update, reset = jnp.split(jax.nn.sigmoid(both @ parameters["gates"]), 2, axis=1)
            candidate = jnp.tanh(jnp.concatenate([word, reset * state], axis=1) @ parameters["state"])
            state = (1 - update) * state + update * candidate
            return state, state

        words = parameters["table"][tokens.T]  # (L, B, units)
        _, states = lax.scan(step, jnp.zeros_like(words[0]), words)
        return (states @ parameters["table"].T + parameters["bias"]).transpose(1, 0, 2)

    def groups(self) -> Mapping[str, tuple[str, ...]]:
        return {"all": ("table", "gates", "state", "bias"), "output": ("bias",)}
