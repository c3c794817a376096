"""How one person's model is made of everybody's: a few steps of SGD on the phone [paper 5, section 3.3]."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from tacit.errors import InputError
from tacit.keyboard.cifg_ragged import Batch, Rates, Reals, Weights
from tacit.keyboard.cifg_ragged_loops import descend_batch

Layers = Literal["all", "output", "biases", "recurrent", "embeddings"]
# What each choice fine-tunes; the output table of a tied network is its input embedding, too.
PARAMETERS: Mapping[str, tuple[str, ...]] = {
    "all": Rates._fields,
    "output": ("table", "output_bias"),
    "biases": ("bias", "output_bias"),
    "recurrent": ("kernel", "bias", "projection"),
    "embeddings": ("embedding", "table"),
}


@dataclass(frozen=True, kw_only=True)
class Strategy:
    """A personalization strategy: batch size B, learning rate L, and when to stop, whichever comes first."""

    batch_size: int = 5  # sentences
    learning_rate: float = 0.1
    max_tokens: int = 5000  # stop before the batch that follows once so many words and ends were seen
    epochs: int = 1
    layers: Layers = "all"  # `PARAMETERS` has what each of them is
    proximal: float = 0.0  # mu: the loss gains mu/2 * |theta - global|^2

    def __post_init__(self) -> None:
        for name in ("batch_size", "max_tokens", "epochs"):
            if getattr(self, name) < 1:
                raise InputError(f"strategy {name}={getattr(self, name)} must be at least 1.")
        if not (self.learning_rate > 0 and math.isfinite(self.learning_rate)):
            raise InputError(f"strategy learning_rate={self.learning_rate} must be a positive number, such as 0.1.")
        if not (self.proximal >= 0 and math.isfinite(self.proximal)):
            raise InputError(f"strategy proximal={self.proximal} must be 0 (none) or a positive number.")
        if self.layers not in PARAMETERS:
            raise InputError(f"strategy layers={self.layers!r} is unknown; it is one of {', '.join(PARAMETERS)}.")

    def __str__(self) -> str:
        """As tables and figures name it: `B=5, L=0.1`, and what differs from the whole model and no proximal term.

        Strategies that differ, but for when they stop, have different names.
        """
        layers = "" if self.layers == "all" else f", {self.layers} only"
        proximal = f", mu={in_full(self.proximal)}" if self.proximal else ""
        return f"B={self.batch_size}, L={in_full(self.learning_rate)}{layers}{proximal}"

    def rates(self, *, tied: bool) -> Rates:
        """The learning rate of each parameter of the network."""
        chosen = {*PARAMETERS[self.layers], *(["embedding"] if tied and "table" in PARAMETERS[self.layers] else [])}
        return Rates(*(np.float32(self.learning_rate if name in chosen else 0.0) for name in Rates._fields))


def in_full(number: float) -> str:
    """The shortest text that reads as this very number: 1 for 1.0, 0.1, 0.1000001."""
    short = f"{number:g}"
    return short if float(short) == number else repr(number)


class FineTuned(NamedTuple):
    """One person's model, and how it came about."""

    weights: Weights
    tokens: int  # words and ends that it was trained on, repeats counted
    loss: float  # nats per token, of each batch before its own step; inf if it diverged
    diverged: bool  # a loss or a parameter is not finite; training ended there


def fine_tune(start: Weights, batches: Sequence[Batch], strategy: Strategy, memory: Reals) -> FineTuned:
    """SGD from the global model `start`, which is left as it is, over the batches in their order.

    memory: at least V numbers for each word of the largest batch, overwritten.
    """
    weights = start.copy()
    rates, proximal = strategy.rates(tied=start.tied), np.float32(strategy.proximal)
    nats, tokens = 0.0, 0
    for ids, targets, active in (batch for _ in range(strategy.epochs) for batch in batches):
        if tokens >= strategy.max_tokens or not math.isfinite(nats):
            break
        loss = descend_batch(weights, start, start.tied, ids, targets, active, rates, proximal, memory)
        nats += len(ids) * loss
        tokens += len(ids)
    diverged = not (math.isfinite(nats) and weights.finite())
    return FineTuned(weights, tokens, math.inf if diverged else nats / max(tokens, 1), diverged)
