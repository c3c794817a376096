"""A second network, as short as one can be: a GRU without any fast path, for what must work with every network."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from tacit.networks.onnx.graph import Graph

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


@dataclass(frozen=True)
class GruCell:
    """See OnnxCell: one state, from which the scores are read."""

    parameters: dict[str, Any]
    states: Mapping[str, int]
    features: int

    def step(self, graph: Graph, word: str, states: Mapping[str, str], after: Mapping[str, str]) -> str:
        weight = {name: graph.weight(f"gru.{name}", value) for name, value in self.parameters.items()}
        row, state = graph.op("Gather", weight["table"], word), states["state"]
        both = graph.op("Concat", row, state, axis=1)
        gates = graph.op("Sigmoid", graph.op("MatMul", both, weight["gates"]))
        update, reset = graph.ops("Split", gates, names=2, axis=1, num_outputs=2)
        seen = graph.op("Concat", row, graph.op("Mul", reset, state), axis=1)
        candidate = graph.op("Tanh", graph.op("MatMul", seen, weight["state"]))
        moved = graph.op("Mul", update, graph.op("Sub", candidate, state))
        return graph.op("Add", state, moved, name=after["state"])

    def scores(self, graph: Graph, features: str) -> str:
        table, bias = (graph.weight(f"gru.{name}", self.parameters[name]) for name in ("table", "bias"))
        return graph.op("Gemm", features, table, bias, transB=1)


@dataclass(frozen=True, kw_only=True)
class GruWithCell(Gru):
    """A network of one's own that says what it does in ONNX's operators."""

    def onnx_cell(self, parameters: dict[str, Any]) -> GruCell:
        weights = {name: np.asarray(value) for name, value in parameters.items()}
        return GruCell(weights, {"state": self.units}, self.units)
