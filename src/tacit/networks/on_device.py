"""A model in the hands of one device: fine-tuned on its text, and asked for the scores of each word (see `ranking`).

`held(network, parameters)` gives it for any network: by a way of the network's own where it has one
(`HasOnDeviceTraining`, which computes no padding, say), else by `Padded`, its slow reference.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, Protocol, Self, runtime_checkable

import jax
import numpy as np
from jax import Array
from numpy.typing import NDArray

from tacit.networks.language_model import LanguageModel, Parameters, cross_entropy, leaves
from tacit.text.vocabulary import PAD

Ids = NDArray[np.int32]


class SgdStep(NamedTuple):
    """How one step of SGD is taken."""

    learns: Collection[str]  # names of the parameters that move; the others stay as they are
    learning_rate: float
    proximal: float = 0.0  # mu: the loss gains mu/2 * |theta - start|^2


class Scored(NamedTuple):
    """The scores of some words, in any order."""

    scores: NDArray[np.float32]  # (N, V)
    before: Ids  # (N,) the token before each
    targets: Ids  # (N,) which it is


class HeldModel(Protocol):
    """One device's copy of a model. Batches are what its own `batches` made, of sentences without those all padding."""

    @property
    def vocabulary(self) -> int:
        """How many ids it has scores of."""
        ...

    @property
    def finite(self) -> bool:
        """Whether every parameter is a number."""
        ...

    def copy(self) -> Self:
        """A model of one's own, to be fine-tuned."""
        ...

    def by_name(self) -> dict[str, NDArray[np.float32]]:
        """Its parameters as they are now, by the names of `language_model.leaves`; none of a counted model."""
        ...

    def batches(self, sentences: Ids, size: int) -> Sequence[Any]:
        """Padded sentences (S, L+1) in batches of `size`, in their order; each has `tokens`, how many it predicts."""
        ...

    def memory(self, batches: Sequence[Any]) -> Any:
        """What `descend` may write into while it works on one of these batches; for one thread at a time."""
        ...

    def descend(self, batch: Any, start: Self, step: SgdStep, memory: Any) -> float:
        """One step down the mean cross-entropy of a batch, in place; the loss before it. start: where it began."""
        ...

    def scores(self, batch: Any) -> Iterator[Scored]:
        """Of every word and end of sentence of the batch, some at a time."""
        ...


@runtime_checkable
class HasOnDeviceTraining(Protocol):
    """A network with a faster way to fine-tune and to rank on a processor."""

    def held(self, parameters: Parameters) -> HeldModel:
        """As `Padded`, but for rounding."""
        ...


def held(network: LanguageModel, parameters: Parameters) -> HeldModel:
    """The model as a device has it, by the network's own way where it has one."""
    if isinstance(network, HasOnDeviceTraining):
        return network.held(parameters)
    return Padded(network, parameters)


# -- for any network -----------------------------------------------------------------------------------------------


class PaddedBatch(NamedTuple):
    """Sentences as they are trained federated: padded to one length, and to one number by sentences of padding."""

    sentences: Ids  # (size, L+1)
    tokens: int


@dataclass
class Padded:
    """Any network, by its scores: compiled once for each size of batch."""

    network: LanguageModel
    parameters: Parameters

    @property
    def vocabulary(self) -> int:
        """See HeldModel."""
        return self.network.vocabulary

    @property
    def finite(self) -> bool:
        """See HeldModel."""
        return all(bool(np.isfinite(leaf).all()) for leaf in jax.tree.leaves(self.parameters))

    def copy(self) -> "Padded":
        """See HeldModel; steps make new arrays."""
        return Padded(self.network, self.parameters)

    def by_name(self) -> dict[str, NDArray[np.float32]]:
        """See HeldModel."""
        return {name: np.asarray(leaf) for name, leaf in leaves(self.parameters).items()}

    def batches(self, sentences: Ids, size: int) -> list[PaddedBatch]:
        """See HeldModel."""
        filled = np.pad(sentences, ((0, -len(sentences) % size), (0, 0)), constant_values=PAD)
        parts = filled.reshape(-1, size, sentences.shape[1])
        return [PaddedBatch(part, int(np.count_nonzero(part[:, 1:] != PAD))) for part in parts]

    def memory(self, batches: Sequence[PaddedBatch]) -> None:
        """See HeldModel: the compiler's own."""

    def descend(self, batch: PaddedBatch, start: "Padded", step: SgdStep, memory: None) -> float:
        """See HeldModel."""
        moves = _step(self.network, frozenset(step.learns))
        self.parameters, loss = moves(
            self.parameters, start.parameters, batch.sentences, step.learning_rate, step.proximal
        )
        return float(loss)

    def scores(self, batch: PaddedBatch) -> Iterator[Scored]:
        """See HeldModel."""
        before, targets = batch.sentences[:, :-1], batch.sentences[:, 1:]
        there = targets != PAD
        scores = np.asarray(_scores(self.network)(self.parameters, before))
        yield Scored(scores[there], before[there], targets[there])


@lru_cache(maxsize=32)
def _step(network: LanguageModel, learns: frozenset[str]) -> Any:
    """(parameters, start, sentences, learning rate, mu) -> (parameters, mean loss), compiled."""

    def step(parameters: Parameters, start: Parameters, sentences: Array, rate: Array, pull: Array) -> Any:
        def mean(parameters: Parameters) -> Array:
            return cross_entropy(network.logits(parameters, sentences[:, :-1]), sentences[:, 1:])

        value, gradient = jax.value_and_grad(mean)(parameters)
        moved = [
            p - rate * (slope + pull * (p - origin)) if name in learns else p
            for (name, p), slope, origin in zip(
                leaves(parameters).items(), jax.tree.leaves(gradient), jax.tree.leaves(start), strict=True
            )
        ]
        return jax.tree.unflatten(jax.tree.structure(parameters), moved), value

    return jax.jit(step)


@lru_cache(maxsize=8)
def _scores(network: LanguageModel) -> Any:
    return jax.jit(network.logits)
