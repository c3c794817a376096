"""What counts say of words, exactly: how often each is typed, and what follows one or two; no text is written for it.

A counted model, or the counted part of a mixture, bent by private counts where there are some.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.keyboard.mixture import MixtureReader
from tacit.keyboard.suggest import Reader
from tacit.networks.ngram.bend import Bend
from tacit.networks.ngram.reader import NGramReader
from tacit.networks.ngram.tables import NGramTables

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Counts:
    """The n-grams of a model. network_weight: of the network beside them, which says the rest; 0: there is none."""

    tables: NGramTables
    bend: Bend | None = None
    network_weight: float = 0.0

    @property
    def shares(self) -> FloatArray:
        """(V,) how often each id comes, but for a factor."""
        found = self.tables.frequencies.astype(np.float64)
        return found if self.bend is None else found * self.bend.ratios

    def after(self, head: int) -> FloatArray:
        """(V,) the probability of each id after this one, by how often pairs were seen.

        Not `NGramTables.after`: what Kneser-Ney says of one word is meant for places that no longer context knows.
        """
        return self._bent(self.tables.after_pairs(head), (head,))

    def after_pair(self, head: int, word: int) -> FloatArray:
        """(V,) the probability of each id after these two."""
        return self._bent(self.tables.after((head, word)), (head, word))

    def _bent(self, found: NDArray[np.float32], context: tuple[int, ...]) -> FloatArray:
        return (found if self.bend is None else self.bend.bent(found, context)).astype(np.float64)


def counts_of(reader: Reader) -> Counts | None:
    """The counts that a reader reads; None: it is a network."""
    if isinstance(reader, NGramReader):
        return Counts(reader.tables)
    return Counts(*reader.counted) if isinstance(reader, MixtureReader) else None
