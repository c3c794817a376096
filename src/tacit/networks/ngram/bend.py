"""A model bent by private counts: each probability times what the noisy count says that it should be.

A public model expects E_i of a cell (a word, or a pair of words); devices' text has y_i of it, with normal noise of a
known standard deviation s_i. So y_i / E_i - 1 is the cell's relative deviation, seen with the error

    e_i = sqrt(s_i^2 + E_i) / E_i,     the second term for what other text of the same people would have.

What is believed of it follows from all cells together (empirical Bayes): true deviations are drawn from a mixture of
normal distributions around 0 with the standard deviations SPREADS, whose weights make the counts likeliest (by EM). The
posterior mean is the deviation times a factor in [0, 1]: near 0 where noise hides the cell, near 1 where it does not.
Nothing is chosen by hand, and no text is looked at but what was released. The prior is that of Stephens, "False
discovery rates: a new deal", Biostatistics 18 (2017) 275-294.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from tacit.networks.ngram.tables import FloatArray, NGramTables
from tacit.text.vocabulary import SPECIALS

Floats = NDArray[np.float64]
SPREADS = np.array([0.0, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2])
STEPS = 200  # of EM
INFORMATIVE = 3.0  # the largest error of a cell that says something of the weights
LEAST_RATIO, MOST_RATIO = 0.05, 40.0
RATIO_STEP = 0.03  # nats a unit of a byte
MOST_CELLS = 40_000  # pairs that are kept: those that change most


class Observed(NamedTuple):
    """Released counts of words and pairs, in how often something was typed.

    Words are the first of the vocabulary; a pair is a word and the next one of its sentence.
    """

    words: Floats  # (N,)
    words_stddev: Floats  # (N,) of the noise
    pairs: Floats | None = None  # (M, M), the first word by row; None: none were counted
    pairs_stddev: Floats | None = None  # (M, M)


def believed(counts: Floats, expected: Floats, stddev: Floats) -> Floats:
    """What each cell's count divided by what is expected of it should be, (n,). expected: above 0.

    The counts (n,) are scaled to what is expected in all, so that only their shares matter.
    """
    total = counts.sum()
    if not total > 0:  # all noise
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
class Bend:
    """Factors of each word, and of some pairs besides: those of the i-th context begin at starts[i]."""

    ratios: FloatArray  # (V,) 1 where nothing was counted
    contexts: NDArray[np.uint16]  # (k,) first words, increasing
    starts: NDArray[np.uint32]  # (k + 1,)
    words: NDArray[np.uint16]  # (n,) second words
    steps: NDArray[np.int8]  # (n,) natural logarithms of their factors, in units of RATIO_STEP

    @classmethod
    def fitted(cls, tables: NGramTables, observed: Observed) -> Self:
        """The factors that released counts say of a model: of words first, then of pairs by what words alone expect."""
        ratios = np.ones(tables.vocabulary)
        words = slice(SPECIALS, SPECIALS + len(observed.words))
        share = np.maximum(tables.frequencies[words].astype(np.float64), tables.unigrams[words] * 1e-3)
        total = max(float(observed.words.sum()), 0.0)
        expected = total * share / share.sum()
        if total > 0:
            ratios[words] = believed(observed.words, expected, observed.words_stddev)
            ratios[words] *= share.sum() / (share * ratios[words]).sum()
        if observed.pairs is None or observed.pairs_stddev is None:
            return cls._of_pairs(ratios, np.zeros((0, 0)), np.zeros((0, 0)))
        many = len(observed.pairs)
        firsts = (tables.frequencies * ratios)[SPECIALS : SPECIALS + many]
        after = np.stack([tables.after_pairs(SPECIALS + first) for first in range(many)]) * ratios
        after /= after.sum(axis=1, keepdims=True)
        expects = firsts[:, None] * after[:, SPECIALS : SPECIALS + many]
        expects = np.maximum(expects * (max(float(observed.pairs.sum()), 0.0) / expects.sum()), 1e-9)
        said = believed(observed.pairs.ravel(), expects.ravel(), observed.pairs_stddev.ravel()).reshape(many, many)
        return cls._of_pairs(ratios, said, expects)

    @classmethod
    def _of_pairs(cls, ratios: Floats, pairs: Floats, expected: Floats) -> Self:
        """pairs, expected: (M, M) factors, and how often each pair is expected."""
        steps = np.clip(np.rint(np.log(np.maximum(pairs, LEAST_RATIO)) / RATIO_STEP), -127, 127).astype(np.int8)
        changes = expected * np.abs(pairs - 1) * (steps != 0)
        kept = np.sort(np.argsort(-changes, axis=None, kind="stable")[: min(MOST_CELLS, int((changes > 0).sum()))])
        first, second = np.divmod(kept, max(pairs.shape[1], 1))
        contexts, starts = np.unique(first, return_index=True)
        return cls(
            ratios=ratios.astype(np.float32),
            contexts=(contexts + SPECIALS).astype(np.uint16),
            starts=np.append(starts, len(kept)).astype(np.uint32),
            words=(second + SPECIALS).astype(np.uint16),
            steps=steps.ravel()[kept],
        )

    def bent(self, probabilities: FloatArray, last: int) -> FloatArray:
        """(V,) the probabilities after a token, each times its factor, as shares of their sum; the array is used."""
        probabilities *= self.ratios
        at = int(np.searchsorted(self.contexts, np.uint16(last)))
        if at < len(self.contexts) and self.contexts[at] == last:
            here = slice(int(self.starts[at]), int(self.starts[at + 1]))
            probabilities[self.words[here]] *= FACTORS[self.steps[here].astype(np.int64) + 128]
        probabilities /= probabilities.sum(dtype=np.float64).astype(np.float32)
        return probabilities

    def arrays(self) -> dict[str, NDArray[Any]]:
        """By name: `from_arrays` reads them."""
        return {name: getattr(self, name) for name in DTYPES}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], vocabulary: int) -> Self:
        """What `arrays` gave. Raises: ValueError where one is missing, of another type, or leads out of another."""
        for name, dtype in DTYPES.items():
            if name not in arrays or arrays[name].dtype != dtype or arrays[name].ndim != 1:
                raise ValueError(f"the bend's '{name}' is missing or of another type")
        found = cls(**{name: arrays[name] for name in DTYPES})
        n, k, starts = len(found.words), len(found.contexts), found.starts
        fits = len(found.ratios) == vocabulary and len(found.steps) == n and len(starts) == k + 1
        if not fits or starts[0] != 0 or starts[-1] != n or (starts[1:] < starts[:-1]).any():
            raise ValueError("the bend's pairs do not belong to their contexts")
        if (n and found.words.max() >= vocabulary) or (found.contexts[1:] <= found.contexts[:-1]).any():
            raise ValueError("the bend has words beyond the vocabulary")
        if not (np.isfinite(found.ratios).all() and (found.ratios > 0).all()):
            raise ValueError("the bend has factors that are none")
        return found


DTYPES = {
    "ratios": np.float32,
    "contexts": np.uint16,
    "starts": np.uint32,
    "words": np.uint16,
    "steps": np.int8,
}
FACTORS = np.exp(RATIO_STEP * np.arange(-128, 128)).astype(np.float32)  # of a step, 128 added
