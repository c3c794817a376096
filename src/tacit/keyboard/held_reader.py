"""A model that is read word by word, as one device ranks with it: a counted one, of which nothing is fine-tuned."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError
from tacit.keyboard.suggest import Reader
from tacit.networks.on_device import Scored, SgdStep
from tacit.text.vocabulary import PAD

Ids = NDArray[np.int32]


class Sentences(NamedTuple):
    """Some padded sentences."""

    sentences: Ids  # (S, L+1)
    tokens: int


class HeldReader:
    """See `networks.on_device.HeldModel`: scores of a reader, and no steps of SGD."""

    finite = True  # a reader's folder is checked when it is read

    def __init__(self, reader: Reader, vocabulary: int) -> None:
        """vocabulary: how many ids it has scores of."""
        self._reader, self.vocabulary = reader, vocabulary

    def copy(self) -> "HeldReader":
        """See HeldModel; nothing of it is ever changed."""
        return self

    def by_name(self) -> dict[str, NDArray[np.float32]]:
        """See HeldModel; it has none."""
        return {}

    def batches(self, sentences: Ids, size: int) -> list[Sentences]:
        """See HeldModel."""
        parts = [sentences[start : start + size] for start in range(0, len(sentences), size)]
        return [Sentences(part, int(np.count_nonzero(part[:, 1:] != PAD))) for part in parts]

    def memory(self, batches: Sequence[Sentences]) -> None:
        """See HeldModel; none is needed."""

    def descend(self, batch: Sentences, start: "HeldReader", step: SgdStep, memory: Any) -> float:
        """See HeldModel. Raises: InputError always."""
        raise InputError(
            "a counted model has no parameters that SGD could move; give caches alone, such as bigram=0.1."
        )

    def scores(self, batch: Sentences) -> Iterator[Scored]:
        """See HeldModel; a sentence at a time."""
        for sentence in batch.sentences:
            ids = sentence[sentence != PAD]
            state, rows = self._reader.begin(), []
            for token in ids[:-1].tolist():
                state, scores = self._reader.step(state, token)
                rows.append(scores)
            if rows:
                yield Scored(np.stack(rows), ids[:-1], ids[1:])
