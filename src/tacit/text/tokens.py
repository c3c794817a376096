"""From text to word ids: `words.pieces` cuts, a dictionary looks up, NumPy arranges.

Every sentence end is a token of its own (one id past the vocabulary), so that sentences are found afterwards in the
flat array of the ids of many texts.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.text.unicode_tables import UNICODE
from tacit.text.vocabulary import BOS, EOS, OOV, Vocabulary
from tacit.text.words import LINE_END, RULES, pieces, sentences


@dataclass(frozen=True, kw_only=True)
class Encoded:
    """Sentences one after another; each begins with BOS, ends with EOS and has at least one word between."""

    ids: NDArray[np.int32]  # (words and specials of all sentences,)
    lengths: NDArray[np.int32]  # (sentences,) including BOS and EOS
    text_of: NDArray[np.int32]  # (sentences,) which of the given texts it stood in; never decreases


class Tokenizer:
    """Cuts text into sentences and words by the rules of `words.py`, and knows the ids of one vocabulary."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self._line_end = vocabulary.size
        self._ids = {word: vocabulary.id_of(word) for word in vocabulary.words} | {LINE_END: self._line_end}

    @property
    def version(self) -> str:
        """The rules and the properties of characters that cut, for manifests."""
        return f"{RULES} (Unicode {UNICODE})"

    def sentences(self, text: str) -> list[list[str]]:
        """The words of each sentence, known or not; sentences without a word are left out."""
        return sentences(text, self.vocabulary.writing)

    def encode(self, texts: Sequence[str]) -> Encoded:
        """Sentences of all texts, in order, as ids."""
        flat, stops = self._flat(texts)
        line_ends = np.flatnonzero(flat == self._line_end)
        words = np.diff(line_ends, prepend=-1) - 1  # of each sentence
        text_of = np.repeat(np.arange(len(texts), dtype=np.int32), stops)[words > 0]
        lengths = (words[words > 0] + 2).astype(np.int32)
        ends = np.cumsum(lengths, dtype=np.int64)
        ids = np.empty(int(ends[-1]) if len(ends) else 0, np.int32)
        inside = np.ones(len(ids), bool)
        for special, places in ((BOS, ends - lengths), (EOS, ends - 1)):
            ids[places] = special
            inside[places] = False
        ids[inside] = flat[flat != self._line_end]
        return Encoded(ids=ids, lengths=lengths, text_of=text_of)

    def _flat(self, texts: Sequence[str]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """All ids of all texts with a line end after each sentence, and how many line ends each text has."""
        get, writing = self._ids.get, self.vocabulary.writing
        parts: list[NDArray[np.int32]] = []
        line_ends = np.empty(len(texts), np.int64)
        for number, text in enumerate(texts):
            found = [*pieces(text, writing), LINE_END]
            line_ends[number] = found.count(LINE_END)
            parts.append(np.fromiter([get(word, OOV) for word in found], np.int32, len(found)))
        return np.concatenate(parts) if parts else np.empty(0, np.int32), line_ends
