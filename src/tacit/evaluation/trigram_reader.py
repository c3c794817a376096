"""The trigram as a keyboard reads it: the probability of every word after what was typed, one word at a time."""

from typing import TypeAlias

import numpy as np

from tacit.evaluation.trigram import BackedOffTrigram
from tacit.keyboard.suggest import Scores
from tacit.networks.ngram.kneser_ney import FloatArray, Ids, NGrams
from tacit.text.vocabulary import BOS

Context: TypeAlias = tuple[int, int]  # the last two tokens (u, v), the later one second


class TrigramReader:
    """See `suggest.Reader`: the scores are natural logarithms of probabilities that sum to 1.

    They are those of `BackedOffTrigram.probability` for all words at once: what the shorter contexts give, scaled by
    what the context leaves to them, and the shares of the few words that were seen after it. Padding and the beginning
    have -infinity.
    """

    def __init__(self, trigram: BackedOffTrigram) -> None:
        self._trigram = trigram

    def begin(self) -> Context:
        """See Reader: before a sentence's first word stand two beginnings."""
        return BOS, BOS

    def step(self, state: Context, token: int) -> tuple[Context, Scores]:
        """See Reader."""
        of, (_, u), v = self._trigram, state, token
        probabilities = of.unigram.copy()
        for ngrams, context in ((of.bigrams, v), (of.trigrams, u * of.vocabulary + v)):
            words, shares, left = _after(ngrams, context, of.vocabulary)
            probabilities *= left
            probabilities[words] += shares
        with np.errstate(divide="ignore"):
            return (u, v), np.log(probabilities).astype(np.float32)


def _after(ngrams: NGrams, context: int, vocabulary: int) -> tuple[Ids, FloatArray, float]:
    """The words seen after a context, each one's share, and what is left to the shorter context."""
    at = int(np.searchsorted(ngrams.contexts, context))
    if at == len(ngrams.contexts) or ngrams.contexts[at] != context:
        return ngrams.keys[:0], ngrams.shares[:0], 1.0
    seen = slice(ngrams.starts[at], ngrams.starts[at + 1])
    return ngrams.keys[seen] - context * vocabulary, ngrams.shares[seen], float(ngrams.backoffs[at])
