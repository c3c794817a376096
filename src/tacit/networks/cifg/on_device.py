"""The CIFG on one device, without padding and on one core; see `on_device`, whose `Padded` is its reference."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tacit.networks.cifg.on_device_loops import FloatArray, Ids, Places, Rates, Weights, descend_batch, outputs_of
from tacit.networks.cifg.parameters import CifgParameters
from tacit.networks.on_device import Scored, SgdStep
from tacit.text.vocabulary import PAD

AT_ONCE = 128  # words scored together; bounds memory


class Batch(NamedTuple):
    """Some sentences without padding, place by place: the first words of all, the second words, and so on."""

    ids: Ids  # (N,)
    targets: Ids  # (N,) the words that come after them
    active: Places  # (places,): how many sentences reach that place; never more than at the one before

    @property
    def tokens(self) -> int:
        """Words and ends of sentences that are predicted."""
        return len(self.ids)


def batches_of(sentences: Ids, size: int) -> list[Batch]:
    """The padded sentences (S, L+1), in batches of `size` as they come; the longest first within each."""
    lengths = (sentences[:, 1:] != PAD).sum(axis=1)
    batches = []
    for start in range(0, len(sentences), size):
        rows = start + np.argsort(-lengths[start : start + size], kind="stable")
        here = np.arange(lengths[rows].max())[:, None] < lengths[rows]  # (places, sentences)
        ids, targets = (sentences[rows, skip : skip + len(here)].T[here] for skip in (0, 1))
        batches.append(Batch(ids.astype(np.int32), targets.astype(np.int32), here.sum(axis=1)))
    return batches


@dataclass(frozen=True)
class CifgOnDevice:
    """See `on_device.HeldModel`; BLAS must be limited to one thread by whoever runs several of these at once."""

    weights: Weights

    @classmethod
    def from_parameters(cls, parameters: CifgParameters) -> "CifgOnDevice":
        """A copy of a model's parameters."""
        return cls(Weights.from_parameters(parameters))

    @property
    def vocabulary(self) -> int:
        """See HeldModel."""
        return len(self.weights.table)

    @property
    def finite(self) -> bool:
        """See HeldModel."""
        return self.weights.finite()

    def copy(self) -> "CifgOnDevice":
        """See HeldModel."""
        return CifgOnDevice(self.weights.copy())

    def by_name(self) -> dict[str, FloatArray]:
        """See HeldModel."""
        return self.weights.by_name()

    def batches(self, sentences: Ids, size: int) -> list[Batch]:
        """See HeldModel."""
        return batches_of(sentences, size)

    def memory(self, batches: Sequence[Batch]) -> FloatArray:
        """See HeldModel: the scores of the largest batch."""
        return np.empty(len(self.weights.table) * max(batch.tokens for batch in batches), np.float32)

    def descend(self, batch: Batch, start: "CifgOnDevice", step: SgdStep, memory: FloatArray) -> float:
        """See HeldModel."""
        return descend_batch(
            self.weights,
            start.weights,
            start.weights.tied,
            batch.ids,
            batch.targets,
            batch.active,
            rates_of(step, tied=start.weights.tied),
            np.float32(step.proximal),
            memory,
        )

    def scores(self, batch: Batch) -> Iterator[Scored]:
        """See HeldModel. BLAS adds up in an order of its own, so that equal scores are equal but for rounding."""
        outputs = outputs_of(self.weights, batch.ids, batch.active)
        for begin in range(0, len(outputs), AT_ONCE):
            here = slice(begin, begin + AT_ONCE)
            scores = outputs[here] @ self.weights.table.T
            scores += self.weights.output_bias
            yield Scored(scores, batch.ids[here], batch.targets[here])


def rates_of(step: SgdStep, *, tied: bool) -> Rates:
    """The learning rate of each array; a tied table's is that of the embedding, given twice."""

    def rate(name: str) -> np.float32:
        return np.float32(step.learning_rate if name in step.learns else 0.0)

    return Rates(
        embedding=rate("embedding"),
        kernel=rate("kernel"),
        bias=rate("bias"),
        projection=rate("projection"),
        table=rate("embedding" if tied else "output"),
        output_bias=rate("output_bias"),
    )
