"""A network and a text as the compiled loops take them: arrays, and sentences as long as they are.

N words of a batch (by place, then by sentence), V vocabulary, E embedding width, H units.
"""

from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from tacit.networks.cifg.parameters import CifgParameters
from tacit.text.vocabulary import PAD

Reals: TypeAlias = npt.NDArray[np.float32]
Ids: TypeAlias = npt.NDArray[np.int32]
Places: TypeAlias = npt.NDArray[np.int64]


class Weights(NamedTuple):
    """`CifgParameters` as NumPy arrays, float32. Tied: `table` is `embedding`, the same memory."""

    embedding: Reals  # (V, E)
    kernel: Reals  # (2E, 3H)
    bias: Reals  # (3H,)
    projection: Reals  # (H, E)
    table: Reals  # (V, E) the output embedding by word
    output_bias: Reals  # (V,)

    @property
    def tied(self) -> bool:
        """Whether one table serves both ends."""
        return self.table is self.embedding

    @classmethod
    def of(cls, model: CifgParameters) -> "Weights":
        """A copy of a model's parameters."""
        embedding, kernel, bias, projection, output, output_bias = (np.array(leaf, np.float32) for leaf in model)
        table = np.ascontiguousarray(output.T) if output.size else embedding
        return cls(embedding, kernel, bias, projection, table, output_bias)

    def copy(self) -> "Weights":
        """Parameters of one's own, tied if these are."""
        embedding = self.embedding.copy()
        table = embedding if self.tied else self.table.copy()
        return Weights(
            embedding, self.kernel.copy(), self.bias.copy(), self.projection.copy(), table, self.output_bias.copy()
        )

    def finite(self) -> bool:
        """Whether every parameter is a number."""
        return all(bool(np.isfinite(leaf).all()) for leaf in self)


class Rates(NamedTuple):
    """The learning rate of each parameter, float32; 0 leaves it as it is. A tied table has one rate, given twice."""

    embedding: np.float32
    kernel: np.float32
    bias: np.float32
    projection: np.float32
    table: np.float32
    output_bias: np.float32


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


class Trace(NamedTuple):
    """What the backward pass needs of each word (N, .)."""

    inputs: Reals  # (E)
    gates: Reals  # (3H); the backward pass writes their derivatives over them
    cells: Reals  # after the word (H)
    squashed: Reals  # tanh of it (H)
    hidden: Reals  # what is projected (H)
    outputs: Reals  # the projection (E)
