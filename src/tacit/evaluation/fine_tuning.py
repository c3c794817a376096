"""How one client's model is made of everybody's: a few steps of SGD on its device [paper 5, section 3.3]."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from tacit.errors import InputError
from tacit.keyboard.language_model import LanguageModel
from tacit.keyboard.on_device import HeldModel, Step


@dataclass(frozen=True, kw_only=True)
class FineTuning:
    """A way to personalise: batch size B, learning rate L, and when to stop, whichever comes first."""

    batch_size: int = 5  # sentences
    learning_rate: float = 0.1
    max_tokens: int = 5000  # stop before the batch that follows once so many words and ends were seen
    epochs: int = 1
    layers: str = "all"  # one of the network's groups: the CIFG's are all, output, biases, recurrent and embeddings
    proximal: float = 0.0  # mu: the loss gains mu/2 * |theta - global|^2

    def __post_init__(self) -> None:
        for name in ("batch_size", "max_tokens", "epochs"):
            if getattr(self, name) < 1:
                raise InputError(f"strategy {name}={getattr(self, name)} must be at least 1.")
        if not (self.learning_rate > 0 and math.isfinite(self.learning_rate)):
            raise InputError(f"strategy learning_rate={self.learning_rate} must be a positive number, such as 0.1.")
        if not (self.proximal >= 0 and math.isfinite(self.proximal)):
            raise InputError(f"strategy proximal={self.proximal} must be 0 (none) or a positive number.")

    def __str__(self) -> str:
        """As tables and figures name it: `B=5, L=0.1`, and what differs from the whole model and no proximal term.

        Strategies that differ, but for when they stop, have different names.
        """
        layers = "" if self.layers == "all" else f", {self.layers} only"
        proximal = f", mu={in_full(self.proximal)}" if self.proximal else ""
        return f"B={self.batch_size}, L={in_full(self.learning_rate)}{layers}{proximal}"

    def step(self, network: LanguageModel) -> Step:
        """How each step is taken. Raises: InputError where the network has no such group of parameters."""
        groups = network.groups()
        if self.layers not in groups:
            raise InputError(f"strategy layers={self.layers!r} is unknown; it is one of {', '.join(groups)}.")
        return Step(frozenset(groups[self.layers]), self.learning_rate, self.proximal)


def in_full(number: float) -> str:
    """The shortest text that reads as this very number: 1 for 1.0, 0.1, 0.1000001."""
    short = f"{number:g}"
    return short if float(short) == number else repr(number)


class FineTuned(NamedTuple):
    """One client's model, and how it came about."""

    model: HeldModel
    tokens: int  # words and ends that it was trained on, repeats counted
    loss: float  # nats per token, of each batch before its own step; inf if it diverged
    diverged: bool  # a loss or a parameter is not finite; training ended there


def fine_tune(start: HeldModel, batches: Sequence[Any], how: FineTuning, step: Step, memory: Any) -> FineTuned:
    """SGD from the global model `start`, which is left as it is, over the batches (`start.batches`) in their order.

    memory: `start.memory(batches)`, overwritten.
    """
    model = start.copy()
    nats, tokens = 0.0, 0
    for batch in (batch for _ in range(how.epochs) for batch in batches):
        if tokens >= how.max_tokens or not math.isfinite(nats):
            break
        loss = model.descend(batch, start, step, memory)
        nats += batch.tokens * loss
        tokens += batch.tokens
    diverged = not (math.isfinite(nats) and model.finite)
    return FineTuned(model, tokens, math.inf if diverged else nats / max(tokens, 1), diverged)
