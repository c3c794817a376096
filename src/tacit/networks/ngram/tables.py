"""N-grams as the arrays of a file: a byte a probability, read where they lie, and the probabilities after one context.

The n-grams of one length stand in the order of their keys, so that those of one context lie together:

    words.m     uint16 (n,)      the last word of each n-gram of m words
    shares.m    uint8 (n,)       its share among the n-grams of its context, by LOGARITHMIC
    contexts.m  uint32 (k,)      the places, among the n-grams of m - 1 words, of those with one; of m = 2, ids
    starts.m    uint32 (k + 1,)  those of the i-th context begin at starts[i]
    backoffs.m  uint8 (k,)       what the i-th context leaves to the shorter one, by LOG_ODDS
    totals.m    uint8 (k,)       the count of the i-th context, by TOTALS
    unigrams, frequencies        float32 (V,)
    counted                      float32 (2,): tokens, and the sum of the counts behind `unigrams`
    pairs.shares, pairs.backoffs, pairs.totals  as those of m = 2, of pairs by how often they were seen

Shares are read relative to their sum. So the probabilities after a context sum to one whatever a byte rounds away:
(1 - backoff) for the n-grams that are there, and the backoff times those after the shorter context.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.errors import InputError
from tacit.networks.ngram.kneser_ney import KneserNey, NGrams

FloatArray = NDArray[np.float32]
Bytes = NDArray[np.uint8]
MOST_WORDS = 1 << 16  # ids that two bytes tell apart

SHARE_STEP, ODDS_STEP, ODDS_LEAST = 0.06, 1 / 16, -8.0  # nats a unit; the smallest share is 2.3e-7 of the largest
LOGARITHMIC = np.exp(-SHARE_STEP * np.arange(256)).astype(np.float32)
LOG_ODDS = (1 / (1 + np.exp(-(ODDS_LEAST + ODDS_STEP * np.arange(256))))).astype(np.float32)
TOTAL_STEP = 0.08  # nats a unit; the largest count is 7e8
TOTALS = np.exp(TOTAL_STEP * np.arange(256))
PARTS = {
    "words": np.uint16,
    "shares": np.uint8,
    "contexts": np.uint32,
    "starts": np.uint32,
    "backoffs": np.uint8,
    "totals": np.uint8,
}
PAIRS = ("shares", "backoffs", "totals")  # of plain pairs; the rest is that of the n-grams of two words


def check_words(vocabulary: int) -> None:
    """Raises: InputError for more ids than two bytes tell apart."""
    if vocabulary > MOST_WORDS:
        raise InputError(
            f"{vocabulary:,} ids are more than the {MOST_WORDS:,} that an n-gram model has; import the text with a "
            "smaller vocabulary."
        )


def share_bytes(shares: ArrayLike) -> Bytes:
    """The nearest of LOGARITHMIC, in nats, to each share in [0, 1]; what is too small has the last."""
    with np.errstate(divide="ignore"):
        steps = np.rint(-np.log(np.asarray(shares, np.float64)) / SHARE_STEP)
    return np.clip(steps, 0, 255).astype(np.uint8)


def backoff_bytes(backoffs: ArrayLike) -> Bytes:
    """The nearest of LOG_ODDS, in log-odds, to each backoff in [0, 1]."""
    value = np.asarray(backoffs, np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        steps = np.rint((np.log(value / (1 - value)) - ODDS_LEAST) / ODDS_STEP)
    return np.clip(steps, 0, 255).astype(np.uint8)


def total_bytes(totals: ArrayLike) -> Bytes:
    """The nearest of TOTALS, in nats, to each count."""
    steps = np.rint(np.log(np.maximum(np.asarray(totals, np.float64), 1.0)) / TOTAL_STEP)
    found: Bytes = np.clip(steps, 0, 255).astype(np.uint8)
    return found


@dataclass(frozen=True, kw_only=True)
class Level:
    """The n-grams of one length, by the places of the n-grams that are their contexts."""

    words: NDArray[np.uint16]
    shares: Bytes
    contexts: NDArray[np.uint32]
    starts: NDArray[np.uint32]
    backoffs: Bytes
    totals: Bytes

    def add_to(self, probabilities: FloatArray, context: int) -> None:
        """From the probabilities (V,) after the shorter context to those after the one at this place."""
        if (at := self._context(context)) is None:
            return
        first, last = int(self.starts[at]), int(self.starts[at + 1])
        left = LOG_ODDS[self.backoffs[at]]
        shares = LOGARITHMIC[self.shares[first:last]]
        probabilities *= left
        probabilities[self.words[first:last]] += shares * ((1 - left) / shares.sum(dtype=np.float64)).astype(np.float32)

    def place(self, context: int, word: int) -> int | None:
        """Where the context at a place, followed by a word, stands among these n-grams; None: nowhere."""
        if (at := self._context(context)) is None:
            return None
        first, last = int(self.starts[at]), int(self.starts[at + 1])
        found = first + int(np.searchsorted(self.words[first:last], np.uint16(word)))
        return found if found < last and self.words[found] == word else None

    def _context(self, place: int) -> int | None:
        at = int(np.searchsorted(self.contexts, np.uint32(place)))
        return at if at < len(self.contexts) and self.contexts[at] == place else None


@dataclass(frozen=True, kw_only=True)
class NGramTables:
    """A counted model, as a file has it. pair_weight: of the pairs by how often they were seen, beside the rest."""

    unigrams: FloatArray  # (V,) p(w), 0 for padding and the beginning
    frequencies: FloatArray  # (V,) how often each id was next, as a share of all
    counted: FloatArray  # (2,) tokens, and the sum of the counts behind `unigrams`
    levels: tuple[Level, ...]  # of 2, 3, ... words
    pairs: Level  # of 2 words, with the words and contexts of `levels[0]`
    pair_weight: float

    @property
    def order(self) -> int:
        """The words of the longest n-grams."""
        return len(self.levels) + 1

    @property
    def vocabulary(self) -> int:
        """V."""
        return len(self.unigrams)

    @classmethod
    def packed(cls, model: KneserNey, pair_weight: float = 0.0) -> Self:
        """The tables of a model. Raises: InputError for more ids than two bytes tell apart."""
        check_words(model.vocabulary)
        return cls(
            unigrams=model.unigram.astype(np.float32),
            frequencies=model.frequency.astype(np.float32),
            counted=np.array([model.tokens, model.kinds], np.float32),
            levels=tuple(_level(each, model.vocabulary) for each in model.levels),
            pairs=_level(model.pairs, model.vocabulary),
            pair_weight=pair_weight,
        )

    def after(self, context: tuple[int, ...]) -> FloatArray:
        """(V,) the probability of each id after the last ids of a sentence, its beginning one of them.

        They sum to one but for rounding in float32. The array is new.
        """
        probabilities = self.unigrams.copy()
        for length, level in enumerate(self.levels, start=1):
            place = self._place(context[len(context) - length :]) if length <= len(context) else None
            if place is None:
                break
            level.add_to(probabilities, place)
        if self.pair_weight and context:
            probabilities *= np.float32(1 - self.pair_weight)
            probabilities += np.float32(self.pair_weight) * self.after_pairs(context[-1])
        return probabilities

    def after_pairs(self, word: int) -> FloatArray:
        """(V,) the same by one word before and by how often pairs were seen."""
        probabilities = self.unigrams.copy()
        self.pairs.add_to(probabilities, word)
        return probabilities

    def _place(self, context: tuple[int, ...]) -> int | None:
        """Where a context stands among the n-grams of its length; None: nowhere."""
        place: int | None = context[0]
        for level, word in zip(self.levels, context[1:], strict=False):
            place = None if place is None else level.place(place, word)
        return place

    def arrays(self) -> dict[str, NDArray[Any]]:
        """By name, as the head of this file has them."""
        found: dict[str, NDArray[Any]] = {
            "unigrams": self.unigrams,
            "frequencies": self.frequencies,
            "counted": self.counted,
        }
        for length, level in enumerate(self.levels, start=2):
            for name in PARTS:
                found[f"{name}.{length}"] = getattr(level, name)
        return found | {f"pairs.{name}": getattr(self.pairs, name) for name in PAIRS}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], *, order: int, pair_weight: float) -> Self:
        """What `arrays` gave. Raises: ValueError where an array is missing, of another type, or leads out of another.

        Each is looked at once, so that no context of any sentence reads beyond the end.
        """
        unigrams, frequencies = _typed(arrays, "unigrams", np.float32), _typed(arrays, "frequencies", np.float32)
        size, levels = len(unigrams), list[Level]()
        contexts = size
        for length in range(2, order + 1):
            level = Level(**{name: _typed(arrays, f"{name}.{length}", dtype) for name, dtype in PARTS.items()})
            _check_level(level, contexts, size, f"{length} words")
            contexts = len(level.words)
            levels.append(level)
        if not levels or len(frequencies) != size:
            raise ValueError(f"order {order} with {size} ids and {len(frequencies)} frequencies")
        pairs = Level(
            words=levels[0].words,
            contexts=levels[0].contexts,
            starts=levels[0].starts,
            **{name: _typed(arrays, f"pairs.{name}", np.uint8) for name in PAIRS},
        )
        _check_level(pairs, size, size, "pairs")
        counted = _typed(arrays, "counted", np.float32)
        if counted.shape != (2,) or not (np.isfinite(counted).all() and (counted > 0).all()):
            raise ValueError(f"counted={counted.tolist()} are not two counts")
        if not 0 <= pair_weight <= 1:
            raise ValueError(f"pair_weight={pair_weight} is no share")
        return cls(
            unigrams=unigrams,
            frequencies=frequencies,
            counted=counted,
            levels=tuple(levels),
            pairs=pairs,
            pair_weight=pair_weight,
        )


def _level(found: NGrams, vocabulary: int) -> Level:
    sizes = np.diff(found.starts)
    return Level(
        words=(found.keys % vocabulary).astype(np.uint16),
        shares=share_bytes(found.shares / np.repeat(1 - found.backoffs, sizes)),
        contexts=found.contexts.astype(np.uint32),
        starts=found.starts.astype(np.uint32),
        backoffs=backoff_bytes(found.backoffs),
        totals=total_bytes(found.totals),
    )


def _typed(arrays: Mapping[str, NDArray[Any]], name: str, dtype: type) -> NDArray[Any]:
    found = arrays.get(name)
    if found is None or found.ndim != 1 or found.dtype != dtype:
        raise ValueError(f"'{name}' is {'missing' if found is None else f'{found.dtype} of {found.ndim} axes'}")
    return found


def _check_level(level: Level, contexts: int, vocabulary: int, what: str) -> None:
    starts, n, k = level.starts, len(level.words), len(level.contexts)
    fits = len(starts) == k + 1 and len(level.backoffs) == k == len(level.totals) and len(level.shares) == n
    if not fits or starts[0] != 0 or starts[-1] != n or (starts[1:] <= starts[:-1]).any():
        raise ValueError(f"the n-grams of {what} do not belong to their contexts")
    if k and ((level.contexts[1:] <= level.contexts[:-1]).any() or level.contexts[-1] >= contexts):
        raise ValueError(f"the n-grams of {what} have contexts that there are not")
    if n and level.words.max() >= vocabulary:
        raise ValueError(f"the n-grams of {what} have words beyond the vocabulary")
