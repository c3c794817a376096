"""What one client's training takes, in bytes and operations, before anything is allocated: an estimate from its sizes.

Shapes: B sentences of a batch, L words of each, W = B*L, V words in the vocabulary, P numbers of the model.
"""

import math
from dataclasses import dataclass
from typing import Self

from tacit.errors import InputError

FLOAT = 4  # bytes
GIGABYTE = 10**9
MOST_BYTES = 32 * GIGABYTE  # of any client's training: more than a phone has by far, and what a server may have
MOST_OPERATIONS = 1e16  # of the same: a day of a core
SCORES = 3  # arrays (W, V) that a step holds at once: scores, exponentials, their derivative
TRACE = 4  # arrays (W, sqrt(P)) of what a recurrence keeps for its way back
COPIES = 5  # of the model: as broadcast, at work, its gradient, the one after the step, the update
PASSES = 6  # operations for a number of the model and a word: two forwards, four backwards


@dataclass(frozen=True, kw_only=True)
class TrainingCost:
    """Of one client in one round."""

    bytes: int  # at once
    operations: float

    @classmethod
    def estimate(
        cls, *, epochs: int, batch_size: int, sentences: int, words: int, vocabulary: int, parameters: int
    ) -> Self:
        """By the client's settings, V and P.

        Bytes are 4 (3 W V + 4 W sqrt(P) + 5 P) and the padded sentences, within a factor of two of what XLA plans for
        our networks (a test compares); scores dominate. Operations are 6 P for each word of all epochs, padding
        counted: a bound where the model has embeddings, which are looked up.
        """
        batches = -(-sentences // batch_size)
        step, padded = batch_size * words, batches * batch_size * (words + 1)
        numbers = SCORES * step * vocabulary + TRACE * step * math.isqrt(parameters) + COPIES * parameters + padded
        return cls(bytes=FLOAT * numbers, operations=float(PASSES) * parameters * epochs * padded)

    def check(self) -> None:
        """Raises: InputError where no client could train so."""
        if self.bytes > MOST_BYTES:
            raise InputError(
                f"client.batch_size and client.words make one step of a client take about "
                f"{self.bytes / GIGABYTE:,.0f} GB of memory, above {MOST_BYTES // GIGABYTE}; lower one of them, or "
                "take a smaller vocabulary."
            )
        if self.operations > MOST_OPERATIONS:
            raise InputError(
                f"client.epochs, client.sentences and client.words make a client's round take about "
                f"{self.operations:.1g} operations, above {MOST_OPERATIONS:g}; lower one of them."
            )
