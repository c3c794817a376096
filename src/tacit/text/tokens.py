"""From text to word ids, quickly: `tokenizers` cuts and looks up, NumPy arranges.

Every sentence end is cut out as a token of its own (one id past the vocabulary), so that many texts are one
call into the library and sentences are found afterwards in the flat array of ids.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

import numpy as np
import tokenizers
from numpy.typing import NDArray
from tokenizers.models import WordLevel

from tacit.text.vocabulary import BOS, EOS, OOV, SPECIAL_NAMES, Vocabulary
from tacit.text.words import LINE_END, RULES, marked, pieces, splitter

CHARACTERS_AT_ONCE = 1_000_000  # per call into the library, whose result is about 50 times as large as the ids


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
        ids = {word: vocabulary.id_of(word) for word in vocabulary.words}
        ids[SPECIAL_NAMES[OOV]] = OOV
        ids[LINE_END] = self._line_end
        self._lookup = tokenizers.Tokenizer(WordLevel(ids, unk_token=SPECIAL_NAMES[OOV]))
        self._lookup.pre_tokenizer = splitter()

    @property
    def version(self) -> str:
        """The rules and the library that cut, for manifests."""
        return f"{RULES} (tokenizers {tokenizers.__version__})"

    def sentences(self, text: str) -> list[list[str]]:
        """The words of each sentence, known or not; sentences without a word are left out."""
        words = pieces(marked(text, lowercase=self.vocabulary.lowercase))
        stops = [-1, *(at for at, word in enumerate(words) if word == LINE_END), len(words)]
        return [words[begin + 1 : end] for begin, end in pairwise(stops) if end > begin + 1]

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
        parts: list[NDArray[np.int32]] = []
        line_ends: list[int] = []
        for batch in _batches(texts):
            cut = [marked(text, lowercase=self.vocabulary.lowercase) + LINE_END for text in batch]
            ids = [encoding.ids for encoding in self._lookup.encode_batch_fast(cut, add_special_tokens=False)]
            parts.append(np.fromiter(chain.from_iterable(ids), np.int32, sum(map(len, ids))))
            line_ends.extend(text.count(LINE_END) for text in cut)
        flat = np.concatenate(parts) if parts else np.empty(0, np.int32)
        return flat, np.array(line_ends, np.int64)


def _batches(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    begin = characters = 0
    for end, text in enumerate(texts):
        if characters and characters + len(text) > CHARACTERS_AT_ONCE:
            yield texts[begin:end]
            begin, characters = end, 0
        characters += len(text)
    if begin < len(texts):
        yield texts[begin:]
