"""A cell that is good for nothing, and has every operation that a cell may have, in every place where one may stand."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
from jax import Array

from tacit.networks.recurrent.cell import Arrays, Named, Rows
from tacit.networks.recurrent.network import Recurrent


@dataclass(frozen=True, kw_only=True)
class Strange(Recurrent):
    vocabulary: int = 60
    forgetful: bool = False  # its scores look at the last word alone

    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {
            "table": (self.vocabulary, 4),
            "both": (11, 6),  # of a word, a state, and the word again
            "turned": (4, 7),  # of a word and a state
            "gain": (3,),
            "bias": (6,),
            "scores_bias": (self.vocabulary,),
        }

    def init(self, key: Array) -> dict[str, Array]:
        keys = jax.random.split(key, len(self.shapes()))
        return {
            name: 0.3 * jax.random.normal(each, shape)
            for each, (name, shape) in zip(keys, self.shapes().items(), strict=True)
        }

    def groups(self) -> Mapping[str, tuple[str, ...]]:
        return {"all": tuple(self.shapes()), "output": ("scores_bias",)}

    def states(self) -> dict[str, int]:
        return {"long": 3, "short": 4}

    def read(self, to: Arrays, p: Named, ids: Any) -> Rows:
        return to.tanh(to.rows(p["table"], ids)) * 0.9

    def step(self, to: Arrays, p: Named, states: Named, read: Rows) -> tuple[Named, Rows]:
        left, _ = to.split(to.affine((read, states["long"], 1 - read), p["both"], p["bias"]), 2)  # half of it unused
        long = to.sigmoid(left * p["gain"]) * states["long"] + to.tanh(left - p["gain"]) * (1 - to.sigmoid(left))
        mixed = to.affine((read, long * long), p["turned"], turned=True)
        features = read * read if self.forgetful else to.tanh(mixed + states["short"]) - 0.5 * mixed
        return {"long": long, "short": read}, features

    def scores(self, to: Arrays, p: Named, features: Rows) -> Rows:
        first, second = to.split(features, 2)
        whole = to.affine((second, first * 2.0), p["table"], p["scores_bias"], turned=True)
        return 0.5 * whole + to.affine(features, p["table"], turned=True)
