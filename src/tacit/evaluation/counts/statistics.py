"""The statistics that `tacit count` counts: what each one is of one device's text.

One is a function here and a line of STATISTICS, or of SUMS; whatever asks for it, prices it, states it and draws it
goes by its name. `device_part.py` says how they are asked for.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from tacit.text.vocabulary import OOV, SPECIALS

IntArray = NDArray[np.int64]


class HasSentences(Protocol):
    """A cache, or the view of one device's text."""

    def sentences(self, client: int) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """As `Cache.sentences`."""
        ...


@dataclass(frozen=True)
class TypedText:
    """All text of one device, in the order of its cache."""

    words: NDArray[np.int64]  # (n,) ids of a vocabulary, of one sentence after another; OOV: one that it lacks
    lengths: IntArray  # (sentences,) words of each

    @classmethod
    def from_cache(cls, text: HasSentences, client: int) -> Self:
        """Of one client; the marks around its sentences are left out."""
        ids, lengths = text.sentences(client)
        typed = np.asarray(ids, np.int64)
        return cls(typed[(typed >= SPECIALS) | (typed == OOV)], np.asarray(lengths, np.int64) - 2)


def words(text: TypedText) -> float:
    """Words typed."""
    return len(text.words)


def sentences(text: TypedText) -> float:
    """Sentences typed."""
    return len(text.lengths)


def sentence_words(text: TypedText) -> float:
    """Words of a sentence, on average; nan without a sentence."""
    return len(text.words) / len(text.lengths) if len(text.lengths) else math.nan


def different_words(text: TypedText) -> float:
    """Different words of the vocabulary among those typed."""
    return len(np.unique(text.words[text.words != OOV]))


def unknown_share(text: TypedText) -> float:
    """Share of the words typed that the vocabulary lacks; nan without a word."""
    return float(np.mean(text.words == OOV)) if len(text.words) else math.nan


STATISTICS: Mapping[str, Callable[[TypedText], float]] = {
    "words": words,
    "sentences": sentences,
    "sentence_words": sentence_words,
    "different_words": different_words,
    "unknown_share": unknown_share,
}


def word_counts(text: TypedText) -> IntArray:
    """Each word typed (n, 1)."""
    return text.words[:, np.newaxis]


def word_pairs(text: TypedText) -> IntArray:
    """Each word typed with the one before it in its sentence (n, 2), the earlier first."""
    sentence = np.repeat(np.arange(len(text.lengths)), text.lengths)
    beside = sentence[:-1] == sentence[1:]
    return np.stack([text.words[:-1][beside], text.words[1:][beside]], axis=1)


# The words of a cell, and what a device has of them: an occurrence a row.
SUMS: Mapping[str, tuple[int, Callable[[TypedText], IntArray]]] = {
    "word_counts": (1, word_counts),
    "word_pairs": (2, word_pairs),
}
