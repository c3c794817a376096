"""A model bent by private counts: each probability times what the noisy count says that it should be.

A public model expects E_i of a cell (a word, a pair of words or three of them); devices' text has y_i of it, with
normal noise of a known standard deviation s_i. So y_i / E_i - 1 is the cell's relative deviation, seen with the error

    e_i = sqrt(s_i^2 + E_i) / E_i,     the second term for what other text of the same people would have.

What is believed of it follows from all cells together (empirical Bayes): true deviations are drawn from a mixture of
normal distributions around 0 with the standard deviations SPREADS, whose weights make the counts likeliest (by EM). The
posterior mean is the deviation times a factor in [0, 1]: near 0 where noise hides the cell, near 1 where it does not.
Nothing is chosen by hand, and no text is looked at but what was released. The prior is that of Stephens, "False
discovery rates: a new deal", Biostatistics 18 (2017) 275-294.

Words come first; pairs are held against what the model expects that words have bent, and three words against what the
model expects that pairs have bent, too.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError
from tacit.networks.ngram.kneser_ney import Ids
from tacit.networks.ngram.tables import FloatArray, NGramTables
from tacit.text.vocabulary import BOS, EOS, PAD, SPECIALS

Floats = NDArray[np.float64]
SPREADS = np.array([0.0, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2])
STEPS = 200  # of EM
INFORMATIVE = 3.0  # the largest error of a cell that says something of the weights
LEAST_RATIO, MOST_RATIO = 0.05, 40.0
RATIO_STEP = 0.03  # nats a unit of a byte
MOST_CELLS = 40_000  # factors of each length that are kept: those that change most
FORMAT = 2  # of the arrays; 1 had pairs alone


class ObservedCells(NamedTuple):
    """Released counts of n-grams of one length k, in how often they were typed."""

    ids: Ids  # (n, k) the words of each, in their order; only the first may be a sentence's beginning
    counts: Floats  # (n,)
    stddev: Floats  # (n,) of the noise

    @classmethod
    def dense(cls, counts: Floats, stddev: float) -> Self:
        """Of all n-grams of the first N words of the vocabulary, (N,) or (N, N), with the same noise in each."""
        ids = np.stack([each.ravel() for each in np.indices(counts.shape)], axis=1) + SPECIALS
        return cls(ids.astype(np.int64), counts.ravel().astype(np.float64), np.full(counts.size, float(stddev)))


class Observed(NamedTuple):
    """Released counts of one word, of two and of three that follow one another; None: none were counted."""

    words: ObservedCells | None = None
    pairs: ObservedCells | None = None
    trigrams: ObservedCells | None = None

    def check(self, vocabulary: int) -> None:
        """Raises: InputError for a cell of words that there are not or with noise that is none, and for one that is
        there twice.
        """
        for length, cells in enumerate(self, start=1):
            if cells is None:
                continue
            ids = cells.ids
            if ids.shape != (len(cells.counts), length) or cells.stddev.shape != cells.counts.shape:
                raise InputError(f"cells {ids.shape} are not {len(cells.counts)} of {length} words; give one row each.")
            if ((ids <= PAD) | (ids >= vocabulary)).any() or (ids[:, 1:] == BOS).any() or (ids[:, -1] == BOS).any():
                raise InputError(
                    f"a cell of {length} words has an id that is none of {vocabulary:,}, or a beginning that is not "
                    "first; count with the words of the n-gram model."
                )
            if not (np.isfinite(cells.counts).all() and np.isfinite(cells.stddev).all() and (cells.stddev >= 0).all()):
                raise InputError(f"a cell of {length} words has a count or noise that is no number; count again.")
            if len(np.unique(keys_of(ids, vocabulary))) < len(ids):
                raise InputError(f"a cell of {length} words is there twice; add its counts up.")


def keys_of(ids: Ids, vocabulary: int) -> Ids:
    """(n,) each row (n, k) as one number: its ids as digits in base V."""
    keys = np.zeros(len(ids), np.int64)
    for column in ids.T:
        keys = keys * vocabulary + column
    return keys


def believed(counts: Floats, expected: Floats, stddev: Floats) -> Floats:
    """What each cell's count divided by what is expected of it should be, (n,). expected: above 0.

    The counts (n,) are scaled to what is expected in all, so that only their shares matter.
    """
    total = counts.sum()
    if not total >= 1:  # all noise
        return np.ones_like(expected)
    scale = expected.sum() / total
    deviation, error = counts * scale / expected - 1, np.sqrt((stddev * scale) ** 2 + expected) / expected
    said = error < INFORMATIVE
    if not said.any():
        return np.ones_like(expected)
    weights = _weights(deviation[said], error[said])
    found: Floats = np.clip(1 + _posterior_mean(deviation, error, weights), LEAST_RATIO, MOST_RATIO)
    return found


def _likelihoods(deviation: Floats, error: Floats) -> Floats:
    """(n, SPREADS): of each deviation, were its cell of that spread."""
    variance = error[:, None] ** 2 + SPREADS**2
    exponent = -0.5 * deviation[:, None] ** 2 / variance - 0.5 * np.log(variance)
    found: Floats = np.exp(exponent - exponent.max(axis=1, keepdims=True))
    return found


def _weights(deviation: Floats, error: Floats) -> Floats:
    """(SPREADS,) under which these deviations are likeliest."""
    likelihoods, weights = _likelihoods(deviation, error), np.full(len(SPREADS), 1 / len(SPREADS))
    for _ in range(STEPS):
        parts = likelihoods * weights
        weights = (parts / parts.sum(axis=1, keepdims=True)).mean(axis=0)
    return weights


def _posterior_mean(deviation: Floats, error: Floats, weights: Floats) -> Floats:
    parts = _likelihoods(deviation, error) * weights
    parts /= parts.sum(axis=1, keepdims=True)
    found: Floats = deviation * (parts * (SPREADS**2 / (error[:, None] ** 2 + SPREADS**2))).sum(axis=1)
    return found


@dataclass(frozen=True, kw_only=True)
class Factors:
    """Of n-grams of one length: those of the i-th context begin at starts[i]."""

    contexts: NDArray[np.uint32]  # (m,) all words but the last as digits in base V, increasing
    starts: NDArray[np.uint32]  # (m + 1,)
    words: NDArray[np.uint16]  # (n,) the last words
    steps: NDArray[np.int8]  # (n,) natural logarithms of the factors, in units of RATIO_STEP

    @classmethod
    def kept(cls, keys: Ids, ratios: Floats, expected: Floats, vocabulary: int) -> Self:
        """Those of different keys (n,), sorted, that change most, where so much (n,) of each is expected."""
        steps = np.clip(np.rint(np.log(np.maximum(ratios, LEAST_RATIO)) / RATIO_STEP), -127, 127).astype(np.int8)
        changes = expected * np.abs(ratios - 1) * (steps != 0)
        most = np.sort(np.argsort(-changes, kind="stable")[: min(MOST_CELLS, int((changes > 0).sum()))])
        contexts, starts = np.unique(keys[most] // vocabulary, return_index=True)
        return cls(
            contexts=contexts.astype(np.uint32),
            starts=np.append(starts, len(most)).astype(np.uint32),
            words=(keys[most] % vocabulary).astype(np.uint16),
            steps=steps[most],
        )

    def multiply(self, probabilities: FloatArray, context: int) -> None:
        """The probabilities (V,) of what follows a context, each times its factor, in place."""
        at = int(np.searchsorted(self.contexts, np.uint32(context)))
        if at < len(self.contexts) and self.contexts[at] == context:
            here = slice(int(self.starts[at]), int(self.starts[at + 1]))
            probabilities[self.words[here]] *= FACTORS[self.steps[here].astype(np.int64) + 128]

    def check(self, vocabulary: int, contexts: int) -> None:
        """Raises: ValueError where an array leads out of another; contexts: how many there may be."""
        n, m, starts = len(self.words), len(self.contexts), self.starts
        fits = len(self.steps) == n and len(starts) == m + 1
        if not fits or starts[0] != 0 or starts[-1] != n or (starts[1:] < starts[:-1]).any():
            raise ValueError("the bend's n-grams do not belong to their contexts")
        if m and (self.contexts[-1] >= contexts or (self.contexts[1:] <= self.contexts[:-1]).any()):
            raise ValueError("the bend has contexts beyond the vocabulary")
        if n and self.words.max() >= vocabulary:
            raise ValueError("the bend has words beyond the vocabulary")


@dataclass(frozen=True, kw_only=True)
class Bend:
    """Factors of each word; of some pairs besides, and of some three words."""

    ratios: FloatArray  # (V,) 1 where nothing was counted
    after_one: Factors
    after_two: Factors

    @classmethod
    def fitted(cls, tables: NGramTables, observed: Observed) -> Self:
        """The factors that released counts say of a model. Raises: InputError for cells that are none of its words."""
        observed.check(tables.vocabulary)
        nothing = Factors.kept(np.zeros(0, np.int64), np.zeros(0), np.zeros(0), tables.vocabulary)
        found = cls(ratios=_word_ratios(tables, observed.words), after_one=nothing, after_two=nothing)
        if observed.pairs is not None:
            found = replace(found, after_one=found._fitted(tables, observed.pairs))
        if observed.trigrams is not None:
            found = replace(found, after_two=found._fitted(tables, observed.trigrams))
        return found

    def _fitted(self, tables: NGramTables, cells: ObservedCells) -> Factors:
        """Those of pairs, or of three words, by what a model expects that is bent by shorter ones."""
        keys = keys_of(cells.ids, tables.vocabulary)
        order = np.argsort(keys)
        keys, ids, counts, stddev = keys[order], cells.ids[order], cells.counts[order], cells.stddev[order]
        starts = np.unique(keys // tables.vocabulary, return_index=True)[1]
        expected = np.empty(len(keys))
        for first, last in zip(starts, np.append(starts[1:], len(keys)), strict=True):
            context = tuple(ids[first, :-1].tolist())
            expected[first:last] = self._often(tables, context) * self._after(tables, context)[ids[first:last, -1]]
        expected = np.maximum(expected * (max(float(counts.sum()), 1.0) / max(float(expected.sum()), 1e-30)), 1e-9)
        return Factors.kept(keys, believed(counts, expected, stddev), expected, tables.vocabulary)

    def _often(self, tables: NGramTables, context: tuple[int, ...]) -> float:
        """How often one or two words are typed, as a share; as many sentences begin as end."""
        first, *others = context
        word = EOS if first == BOS else first
        found = float(_often(tables, np.array([word]))[0] * self.ratios[word])
        return found * float(self._after(tables, (first,))[others[0]]) if others else found

    def _after(self, tables: NGramTables, context: tuple[int, ...]) -> FloatArray:
        """(V,) by how often something follows, not after how many words, where the model knows that: as counts do."""
        plain = tables.after_pairs(context[0]) if len(context) == 1 else tables.after(context)
        return self.bent(plain, context)

    def bent(self, probabilities: FloatArray, context: tuple[int, ...]) -> FloatArray:
        """(V,) the probabilities after the last words of a sentence, its beginning one of them, each times its factors,
        as shares of their sum; the array is used.
        """
        probabilities *= self.ratios
        if context:
            self.after_one.multiply(probabilities, context[-1])
        if len(context) > 1:
            self.after_two.multiply(probabilities, context[-2] * len(probabilities) + context[-1])
        probabilities /= probabilities.sum(dtype=np.float64).astype(np.float32)
        return probabilities

    def arrays(self) -> dict[str, NDArray[Any]]:
        """By name: `from_arrays` reads them."""
        found: dict[str, NDArray[Any]] = {"format": np.array([FORMAT], np.uint8), "ratios": self.ratios}
        for length, factors in ((2, self.after_one), (3, self.after_two)):
            found |= {f"{name}.{length}": getattr(factors, name) for name in DTYPES}
        return found

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], vocabulary: int) -> Self:
        """What `arrays` gave. Raises: ValueError where one is missing, of another type, or leads out of another."""
        if _typed(arrays, "format", np.uint8).tolist() != [FORMAT]:
            raise ValueError(f"the bend is of the format {arrays['format'].tolist()}, not {FORMAT}")
        ratios = _typed(arrays, "ratios", np.float32)
        one, two = (
            Factors(**{name: _typed(arrays, f"{name}.{length}", dtype) for name, dtype in DTYPES.items()})
            for length in (2, 3)
        )
        one.check(vocabulary, vocabulary)
        two.check(vocabulary, vocabulary**2)
        if len(ratios) != vocabulary or not (np.isfinite(ratios).all() and (ratios > 0).all()):
            raise ValueError("the bend has factors that are none")
        return cls(ratios=ratios, after_one=one, after_two=two)


def _word_ratios(tables: NGramTables, cells: ObservedCells | None) -> FloatArray:
    ratios = np.ones(tables.vocabulary)
    if cells is not None and len(cells.counts):
        words = cells.ids[:, 0]
        share = _often(tables, words)
        ratios[words] = believed(cells.counts, max(float(cells.counts.sum()), 1.0) * share / share.sum(), cells.stddev)
        ratios[words] *= share.sum() / (share * ratios[words]).sum()
    return ratios.astype(np.float32)


def _often(tables: NGramTables, words: Ids) -> Floats:
    """(n,) how often each is typed, as a share of all; a little for what was never seen."""
    found: Floats = np.maximum(tables.frequencies[words].astype(np.float64), tables.unigrams[words] * 1e-3)
    return found


def _typed(arrays: Mapping[str, NDArray[Any]], name: str, dtype: type) -> NDArray[Any]:
    if name not in arrays or arrays[name].dtype != dtype or arrays[name].ndim != 1:
        raise ValueError(f"the bend's '{name}' is missing or of another type")
    return arrays[name]


DTYPES = {"contexts": np.uint32, "starts": np.uint32, "words": np.uint16, "steps": np.int8}
FACTORS = np.exp(RATIO_STEP * np.arange(-128, 128)).astype(np.float32)  # of a step, 128 added
