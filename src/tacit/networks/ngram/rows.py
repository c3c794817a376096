"""The probabilities of all words after many contexts at once: rows of V numbers, for whoever measures a model.

`tables.NGramTables.after` and `bend.Bend.bent` are the slow references, one context at a time; what this file computes
is rounded as there. No phone needs it.

Shapes: T contexts, V words. Contexts are (T, C) ids, the last word first, -1 before a sentence's beginning.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from tacit.compiled import compiled
from tacit.networks.ngram.bend import FACTORS, Bend, Factors
from tacit.networks.ngram.kneser_ney import NOWHERE, Ids, KneserNey, NGrams, sum_at
from tacit.networks.ngram.tables import LOG_ODDS, LOGARITHMIC, FloatArray, Level, NGramTables, check_words
from tacit.text.vocabulary import PAD


def contexts_of(sentences: NDArray[np.integer[Any]], words: int) -> Ids:
    """(T, words) what stands before each target of padded sentences (S, L+1), the targets in their order."""
    padded = np.pad(sentences[:, :-1], ((0, 0), (words, 0)), constant_values=NOWHERE).astype(np.int64)
    length = sentences.shape[1] - 1
    before = np.stack([padded[:, words - back : words - back + length] for back in range(words)], axis=2)
    found: Ids = before[sentences[:, 1:] != PAD]
    return found


def targets_of(sentences: NDArray[np.integer[Any]]) -> Ids:
    """(T,) every token after the first but padding, of padded sentences (S, L+1), in their order."""
    found: Ids = sentences[:, 1:][sentences[:, 1:] != PAD].astype(np.int64)
    return found


class FillsRows(Protocol):
    """What writes the probabilities (T, V) in the place of each target of padded sentences (S, L+1)."""

    @property
    def vocabulary(self) -> int:
        """V."""
        ...

    def fill(self, sentences: NDArray[np.int32], rows: FloatArray) -> None:
        """See NGramRows."""
        ...


def taken(predictor: FillsRows, sentences: NDArray[np.int32]) -> FloatArray:
    """(T,) the probability of each target itself, from whole rows."""
    targets = targets_of(sentences)
    rows = np.empty((len(targets), predictor.vocabulary), np.float32)
    predictor.fill(sentences, rows)
    found: FloatArray = rows[np.arange(len(targets)), targets]
    return found


class DenseLevel(NamedTuple):
    """The n-grams of one length, by the places of their contexts among those that are one word shorter."""

    words: NDArray[np.uint16]  # (n,)
    shares: FloatArray  # (n,) what each adds to its word
    contexts: NDArray[np.uint32]  # (k,) places, increasing
    starts: NDArray[np.int64]  # (k + 1,)
    left: FloatArray  # (k,) what each context leaves to the shorter one

    @classmethod
    def of_level(cls, level: Level) -> Self:
        """As `Level.add_to` reads it."""
        starts = level.starts.astype(np.int64)
        left, shares = LOG_ODDS[level.backoffs], LOGARITHMIC[level.shares]
        scale = ((1 - left) / sum_at(shares.astype(np.float64), starts[:-1])).astype(np.float32)
        return cls(level.words, shares * np.repeat(scale, np.diff(starts)), level.contexts, starts, left)

    @classmethod
    def of_ngrams(cls, found: NGrams, vocabulary: int) -> Self:
        """Of smoothed counts, as exact as float32 has them."""
        return cls(
            (found.keys % vocabulary).astype(np.uint16),
            found.shares.astype(np.float32),
            found.contexts.astype(np.uint32),
            found.starts.astype(np.int64),
            found.backoffs.astype(np.float32),
        )

    def at(self, places: Ids) -> Ids:
        """(T,) which context stands at each place; NOWHERE where none does."""
        found: Ids = _index(self.contexts, places)
        return found

    def after(self, places: Ids, words: Ids) -> Ids:
        """(T,) where contexts at places, followed by words, stand among these n-grams; NOWHERE where they do not."""
        found: Ids = _place(self.words, self.starts, self.at(places), words)
        return found

    def added(self, shorter: FloatArray, places: Ids, words: Ids) -> FloatArray:
        """(T,) the probability of each word after the context at its place, from that after the shorter one (T,)."""
        at, among = self.at(places), self.after(places, words)
        found, known, there = shorter.copy(), at != NOWHERE, among != NOWHERE
        found[known] *= self.left[at[known]]
        found[there] += self.shares[among[there]]
        return found


@dataclass(frozen=True, kw_only=True)
class NGramRows:
    """A counted model, bent or not, that gives rows; equal to itself alone."""

    unigrams: FloatArray  # (V,)
    levels: tuple[DenseLevel, ...]  # of 2, 3, ... words
    pairs: DenseLevel  # of 2 words by how often they were seen
    pair_weight: float
    bend: Bend | None = None

    __hash__ = object.__hash__
    __eq__ = object.__eq__

    @classmethod
    def of_tables(cls, tables: NGramTables, bend: Bend | None = None) -> Self:
        """Of a file."""
        levels = tuple(map(DenseLevel.of_level, tables.levels))
        pairs, weight = DenseLevel.of_level(tables.pairs), tables.pair_weight
        return cls(unigrams=tables.unigrams, levels=levels, pairs=pairs, pair_weight=weight, bend=bend)

    @classmethod
    def of_model(cls, model: KneserNey, pair_weight: float) -> Self:
        """Of smoothed counts of a text. Raises: InputError for more ids than two bytes tell apart."""
        check_words(model.vocabulary)
        return cls(
            unigrams=model.unigram.astype(np.float32),
            levels=tuple(DenseLevel.of_ngrams(each, model.vocabulary) for each in model.levels),
            pairs=DenseLevel.of_ngrams(model.pairs, model.vocabulary),
            pair_weight=pair_weight,
        )

    @property
    def vocabulary(self) -> int:
        """V."""
        return len(self.unigrams)

    def fill(self, sentences: NDArray[np.int32], rows: FloatArray) -> None:
        """Write the probabilities (T, V) of all words in the place of each target of padded sentences (S, L+1)."""
        contexts = contexts_of(sentences, max(len(self.levels), 2))
        rows[:] = self.unigrams
        for length, level in enumerate(self.levels, start=1):
            _add(rows, level.at(self._places(contexts, length)), level)
        if self.pair_weight:
            plain = np.repeat(self.unigrams[None], len(rows), axis=0)
            _add(plain, self.pairs.at(contexts[:, 0]), self.pairs)
            mix(rows, np.float32(1 - self.pair_weight), plain, np.float32(self.pair_weight))
        if self.bend is not None:
            bend_rows(self.bend, contexts, rows)

    def likelihoods(self, sentences: NDArray[np.int32]) -> FloatArray:
        """(T,) of each target itself, as `fill` writes it."""
        if self.bend is not None:  # whose sum is over all words
            return taken(self, sentences)
        contexts, targets = contexts_of(sentences, max(len(self.levels), 2)), targets_of(sentences)
        unigrams: FloatArray = self.unigrams[targets]
        found = unigrams
        for length, level in enumerate(self.levels, start=1):
            found = level.added(found, self._places(contexts, length), targets)
        if self.pair_weight:
            plain = self.pairs.added(unigrams, contexts[:, 0], targets)
            found = found * np.float32(1 - self.pair_weight) + plain * np.float32(self.pair_weight)
        return found

    def _places(self, contexts: Ids, length: int) -> Ids:
        """(T,) of the last `length` words, among the n-grams of so many."""
        places = contexts[:, length - 1]
        for level, back in zip(self.levels, range(length - 2, -1, -1), strict=False):
            places = level.after(places, contexts[:, back])
        return places


def _add(rows: FloatArray, at: Ids, level: DenseLevel) -> None:
    _add_level(rows, at, level.starts, level.words, level.shares, level.left)


def bend_rows(bend: Bend, contexts: Ids, rows: FloatArray) -> None:
    """`Bend.bent` of each row (T, V) after contexts (T, 2 or more), in place."""
    last, before = contexts[:, 0], contexts[:, 1]
    two = np.where(before == NOWHERE, NOWHERE, before * rows.shape[1] + last)
    rows *= bend.ratios
    for factors, places in ((bend.after_one, last), (bend.after_two, two)):
        _multiply(rows, factors, places)
    rows /= rows.sum(axis=1, keepdims=True, dtype=np.float64).astype(np.float32)


def _multiply(rows: FloatArray, factors: Factors, places: Ids) -> None:
    at = _index(factors.contexts, places)
    _multiply_factors(rows, at, factors.starts, factors.words, FACTORS[factors.steps.astype(np.int64) + 128])


@compiled
def mix(rows: FloatArray, weight: Any, others: FloatArray, other_weight: Any) -> None:
    """rows (T, V) becomes weight * rows + other_weight * others; the weights in float32."""
    for t in range(rows.shape[0]):
        for w in range(rows.shape[1]):
            rows[t, w] = rows[t, w] * weight + others[t, w] * other_weight


@compiled
def _index(contexts: Any, places: Any) -> Any:
    """(T,) where each place stands among the increasing contexts (k,)."""
    found = np.full(len(places), -1, np.int64)
    for t in range(len(places)):
        low, high = 0, len(contexts)
        while low < high:
            middle = (low + high) // 2
            if np.int64(contexts[middle]) < places[t]:
                low = middle + 1
            else:
                high = middle
        if low < len(contexts) and np.int64(contexts[low]) == places[t]:
            found[t] = low
    return found


@compiled
def _place(words: Any, starts: Any, at: Any, wanted: Any) -> Any:
    """(T,) where a word stands among the n-grams of the context `at`."""
    found = np.full(len(at), -1, np.int64)
    for t in range(len(at)):
        if at[t] < 0:
            continue
        low, high = starts[at[t]], starts[at[t] + 1]
        end = high
        while low < high:
            middle = (low + high) // 2
            if np.int64(words[middle]) < wanted[t]:
                low = middle + 1
            else:
                high = middle
        if low < end and np.int64(words[low]) == wanted[t]:
            found[t] = low
    return found


@compiled
def _add_level(rows: Any, at: Any, starts: Any, words: Any, shares: Any, left: Any) -> None:
    for t in range(len(at)):
        if at[t] < 0:
            continue
        scale = left[at[t]]
        for w in range(rows.shape[1]):
            rows[t, w] *= scale
        for place in range(starts[at[t]], starts[at[t] + 1]):
            rows[t, words[place]] += shares[place]


@compiled
def _multiply_factors(rows: Any, at: Any, starts: Any, words: Any, factors: Any) -> None:
    for t in range(len(at)):
        if at[t] < 0:
            continue
        for place in range(np.int64(starts[at[t]]), np.int64(starts[at[t] + 1])):
            rows[t, words[place]] *= factors[place]
