"""The words that clients typed and a vocabulary lacks: what each device could tell if it were asked for new words.

A cache keeps ids, and every unknown word has the same one. So unknown words are read from the source itself, cut by
the function the caller passes in (the keyboard's own, so that a word here is a word there); or from a cache whose
vocabulary is larger than the one that is to grow, and then only as far as that larger vocabulary spells them.
"""

import hashlib
from array import array
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.cache import Cache
from tacit.data.clients import Source, checked_clients, split_of
from tacit.errors import SourceError
from tacit.progress import Advanced, Progress, StageBegan, StageEnded, silent

CountWords = Callable[[Sequence[str]], Mapping[str, int]]
READING = "reading clients"  # the stage, a step a client


@dataclass(frozen=True, kw_only=True)
class TypedWords:
    """The unknown words of each client of one split, with the client's own counts.

    The words are sorted by code point, so that those with one prefix are neighbours. Client c has the words
    `words[w]` for w in word_of[offsets[c]:offsets[c + 1]], ascending, each typed `counts` times. Memory grows with
    the different words of each client, not with the text.
    """

    words: tuple[str, ...]
    offsets: NDArray[np.int64]  # (clients + 1,)
    word_of: NDArray[np.int32]  # (pairs,)
    counts: NDArray[np.int32]  # (pairs,) at least 1
    typed: NDArray[np.int64]  # (clients,) everything the client typed, known words too
    beyond_spelling: int = 0  # unknown words typed whose spelling the cache did not keep

    @property
    def clients(self) -> int:
        """How many clients there are, those without an unknown word too."""
        return len(self.typed)

    def of(self, client: int) -> dict[str, int]:
        """What one device holds: its unknown words in order, and how often each was typed."""
        begin, end = self.offsets[client : client + 2]
        pairs = zip(self.word_of[begin:end], self.counts[begin:end], strict=True)
        return {self.words[word]: int(count) for word, count in pairs}

    @cached_property
    def totals(self) -> NDArray[np.int64]:
        """(words,) how often each word was typed by all clients together."""
        return np.bincount(self.word_of, weights=self.counts, minlength=len(self.words)).astype(np.int64)

    @cached_property
    def holders(self) -> NDArray[np.int64]:
        """(words,) how many clients typed each word."""
        return np.bincount(self.word_of, minlength=len(self.words)).astype(np.int64)

    def oov_rate(self, learned: Container[str] = frozenset()) -> float:
        """The share of everything typed that is unknown once the learned words are known; NaN if nothing was typed."""
        unknown = sum(int(total) for word, total in zip(self.words, self.totals, strict=True) if word not in learned)
        everything = int(self.typed.sum())
        return (unknown + self.beyond_spelling) / everything if everything else float("nan")

    @cached_property
    def sha256(self) -> str:
        """A digest of all of it: equal digests, equal populations."""
        digest = hashlib.sha256("\n".join(self.words).encode())
        for numbers in (self.offsets, self.word_of, self.counts, self.typed):
            digest.update(np.ascontiguousarray(numbers).tobytes())
        return digest.hexdigest()


def read_typed_words(
    source: Source,
    count_words: CountWords,
    known: Container[str],
    *,
    split: str | None = "train",
    progress: Progress = silent,
) -> TypedWords:
    """The unknown words of a split's clients (of all when None), in the order of the source.

    `count_words` cuts texts into words and counts them; words in `known` are left out. SourceError when the split has
    no client, or from the source.
    """
    growing = _GrowingCounts()
    for seen, client in enumerate(checked_clients(source), start=1):
        if seen == 1:
            progress(StageBegan(READING, source.expected_clients))  # known once reading has begun
        if split is None or (client.split or split_of(client.client_id)) == split:
            growing.add(count_words(client.texts), known)
        progress(Advanced(READING, seen))
    progress(StageEnded(READING))
    return growing.finish(f"'{source.description}'", split)


def cached_typed_words(
    cache: Cache, word_of_id: Sequence[str | None], known: Container[str], *, split: str | None = "train"
) -> TypedWords:
    """The same from a cache, for the words its own vocabulary spells: `word_of_id[id]`, None for special ids.

    Words that the cache's vocabulary lacks too are counted in `beyond_spelling`. SourceError when the split has no
    client, or when the cache spells no word that is unknown.
    """
    if all(word is None or word in known for word in word_of_id):
        raise SourceError(
            f"the cache {cache.path} keeps ids, and its vocabulary has no word that this one lacks: the spelling of "
            "unknown words is not in it; give --data the source that it was imported from."
        )
    special = np.array([word is None for word in word_of_id])
    oov = cache.manifest.vocabulary.oov_id
    growing = _GrowingCounts()
    lost = 0
    for client in cache.clients(split):
        ids, times = np.unique(cache.sentences(int(client))[0], return_counts=True)
        spelled = {str(word_of_id[id]): int(n) for id, n in zip(ids, times, strict=True) if not special[id]}
        unspelled = int(times[ids == oov].sum())
        growing.add(spelled, known, also_typed=unspelled)
        lost += unspelled
    return growing.finish(str(cache.path), split, beyond_spelling=lost)


class _GrowingCounts:
    """Clients so far; words are numbered as they come and sorted at the end."""

    def __init__(self) -> None:
        self._number: dict[str, int] = {}
        self._word_of, self._counts = array("i"), array("i")
        self._lengths, self._typed = array("q"), array("q")

    def add(self, counted: Mapping[str, int], known: Container[str], *, also_typed: int = 0) -> None:
        """One more client and everything it typed."""
        unknown = [word for word in counted if word not in known]
        self._word_of.extend(self._number.setdefault(word, len(self._number)) for word in unknown)
        self._counts.extend(counted[word] for word in unknown)
        self._lengths.append(len(unknown))
        self._typed.append(sum(counted.values()) + also_typed)

    def finish(self, where: str, split: str | None, *, beyond_spelling: int = 0) -> TypedWords:
        """Everything in compact arrays."""
        if not self._typed:
            raise SourceError(f"{where} has no client in the split {split!r}; give a source with clients in it.")
        words = sorted(self._number)
        rank = np.empty(len(words), np.int32)
        rank[[self._number[word] for word in words]] = np.arange(len(words), dtype=np.int32)
        lengths = np.array(self._lengths, np.int64)
        word_of = rank[np.array(self._word_of, np.int64)] if words else np.empty(0, np.int32)
        order = np.lexsort((word_of, np.repeat(np.arange(len(lengths)), lengths)))
        return TypedWords(
            words=tuple(words),
            offsets=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
            word_of=_narrow(word_of[order]),
            counts=_narrow(np.array(self._counts, np.int32)[order]),
            typed=np.array(self._typed, np.int64),
            beyond_spelling=beyond_spelling,
        )


def _narrow(numbers: NDArray[Any]) -> NDArray[np.int32]:
    return np.ascontiguousarray(numbers, dtype=np.int32)
