"""The CIFG in the hands of one device, without padding and on one core; see `on_device`, whose `Padded` is its twin."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tacit.keyboard.cifg_parameters import CifgParameters
from tacit.keyboard.cifg_ragged import Batch, Ids, Rates, Reals, Weights, batches_of
from tacit.keyboard.cifg_ragged_loops import descend_batch, rank_batch
from tacit.keyboard.metrics import Words
from tacit.keyboard.on_device import Step, kinds


@dataclass(frozen=True)
class CifgOnDevice:
    """See `on_device.HeldModel`; BLAS must be limited to one thread by whoever runs several of these at once."""

    weights: Weights

    @classmethod
    def of(cls, parameters: CifgParameters) -> "CifgOnDevice":
        """A copy of a model's parameters."""
        return cls(Weights.of(parameters))

    @property
    def finite(self) -> bool:
        """See HeldModel."""
        return self.weights.finite()

    def copy(self) -> "CifgOnDevice":
        """See HeldModel."""
        return CifgOnDevice(self.weights.copy())

    def batches(self, sentences: Ids, size: int) -> list[Batch]:
        """See HeldModel."""
        return batches_of(sentences, size)

    def memory(self, batches: Sequence[Batch]) -> Reals:
        """See HeldModel: the scores of the largest batch."""
        return np.empty(len(self.weights.table) * max(batch.tokens for batch in batches), np.float32)

    def descend(self, batch: Batch, start: "CifgOnDevice", step: Step, memory: Reals) -> float:
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

    def rank(self, batches: Sequence[Batch]) -> Words:
        """See HeldModel.

        Of equal scores the smaller id comes first; "equal" is within rounding, since BLAS adds up in an order of its
        own.
        """
        ranks, nats, targets = [np.zeros(0, np.int32)], [np.zeros(0, np.float32)], [np.zeros(0, np.int32)]
        for batch in batches:
            of_batch, surprises = rank_batch(self.weights, batch.ids, batch.targets, batch.active)
            ranks.append(of_batch)
            nats.append(surprises)
            targets.append(batch.targets)
        return Words(np.concatenate(ranks), np.concatenate(nats), kinds(np.concatenate(targets)))


def rates_of(step: Step, *, tied: bool) -> Rates:
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
