"""Interpolated modified Kneser-Ney smoothing of n-grams.

Chen & Goodman, "An Empirical Study of Smoothing Techniques for Language Modeling", Computer Speech and Language 13
(1999) 359-394 (technical report: Harvard TR-10-98, 1998). Every count loses a discount that depends on it being 1, 2 or
more; what is taken goes to the next shorter context; and a shorter context counts after how many different words it was
seen, not how often:

    p(w | h) = (c(h w) - D(c(h w))) / c(h .) + backoff(h) p(w | h'),   h' is h without its first word,
    p(w)     = (c(w) - D(c(w))) / c(.) + backoff / (V - 2)

The discounts follow from the counts of counts (Eq. 26 of the report), the leave-one-out estimate of Ney, Essen &
Kneser. Padding and the beginning are never next, hence V - 2. Nothing stands before a beginning, so what follows it
counts as often as it was seen, as in KenLM.

A key is an n-gram as one number: the place of its context among the n-grams that are one word shorter, times V, plus
its last word. So a key has 64 bits whatever the order, and keys are in the order of the words. The place of a word is
its id. `trigram` has other keys in the same arrays: the ids as digits in base V.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError
from tacit.text.vocabulary import BOS, PAD

Ids = NDArray[np.int64]
FloatArray = NDArray[np.float64]

# Discounts where the text is too small to estimate them, as the fallback of KenLM has them.
UNRELIABLE = (0.5, 1.0, 1.5)
NOWHERE = -1


class NGrams(NamedTuple):
    """The n-grams of one length that were seen, sorted."""

    keys: Ids  # (n,) context * V + word
    shares: FloatArray  # (n,) (count - discount) / the context's count
    contexts: Ids  # (m,) the different contexts, sorted
    starts: Ids  # (m + 1,): the n-grams of contexts[i] are keys[starts[i]:starts[i+1]]
    backoffs: FloatArray  # (m,) the probability that a context leaves to the shorter one
    totals: FloatArray  # (m,) the counts of the contexts

    @classmethod
    def discounted(cls, keys: Ids, counts: Ids, vocabulary: int) -> Self:
        """Of different keys (n,), sorted, and their counts (n,)."""
        contexts, starts = np.unique(keys // vocabulary, return_index=True)
        shares, backoffs = discounted(counts, starts)
        totals = sum_at(counts, starts).astype(np.float64)
        return cls(keys, shares, contexts, np.append(starts, len(keys)), backoffs, totals)

    def kept(self, which: NDArray[np.bool_], vocabulary: int) -> "NGrams":
        """Those of `which` (n,) alone; what the others had is left to the shorter context."""
        if which.all():
            return self
        keys, shares = self.keys[which], self.shares[which]
        contexts, starts = np.unique(keys // vocabulary, return_index=True)
        gone = sum_at(np.where(which, 0.0, self.shares), self.starts[:-1])
        at = np.searchsorted(self.contexts, contexts)
        return NGrams(keys, shares, contexts, np.append(starts, len(keys)), (self.backoffs + gone)[at], self.totals[at])

    def moved(self, kept: NDArray[np.bool_], vocabulary: int) -> "NGrams":
        """The same, where only the `kept` of the n-grams one word shorter are left, all contexts among them."""
        if kept.all():
            return self
        places = np.cumsum(kept) - 1
        keys = places[self.keys // vocabulary] * vocabulary + self.keys % vocabulary
        return self._replace(keys=keys, contexts=places[self.contexts])

    def share(self, keys: Ids) -> FloatArray:
        """The discounted share of each key, 0 where it was not seen."""
        return _found(self.keys, self.shares, keys, 0.0)

    def backoff(self, contexts: Ids) -> FloatArray:
        """What each context leaves to the shorter one: all of it where the context was not seen."""
        return _found(self.contexts, self.backoffs, contexts, 1.0)


def _found(keys: Ids, values: FloatArray, wanted: Ids, missing: float) -> FloatArray:
    """The value of each wanted key among the sorted keys, or what stands for those that are not there."""
    if not len(keys):
        return np.full(np.shape(wanted), missing)
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[at] == wanted, values[at], missing)


def places_of(keys: Ids, wanted: Ids) -> Ids:
    """Where each wanted key stands among the sorted keys; NOWHERE where it does not."""
    if not len(keys):
        return np.full(np.shape(wanted), NOWHERE)
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[at] == wanted, at, NOWHERE)


@dataclass(frozen=True, kw_only=True)
class KneserNey:
    """A smoothed model of one text, in float64."""

    vocabulary: int  # V
    unigram: FloatArray  # (V,) p(w), 0 for padding and the beginning
    levels: tuple[NGrams, ...]  # of 2, 3, ... words
    frequency: FloatArray  # (V,) how often each id was next, as a share of all
    pairs: NGrams  # of 2 words by how often they were seen, not after how many words
    tokens: float  # that were counted
    kinds: float  # the sum of the counts behind `unigram`: after how many words each was seen

    def probabilities(self, text: Ids) -> tuple[FloatArray, FloatArray]:
        """(n,) of each token of sentences but their beginnings: by all levels, and by `pairs` alone."""
        ends = np.flatnonzero(text != BOS)
        words = self.unigram[text[ends]]
        found, places = words.copy(), text  # of the n-gram that ends at each token; NOWHERE: it was not seen
        for level in self.levels:
            contexts = places[ends - 1]
            there = np.flatnonzero(contexts != NOWHERE)
            keys = contexts[there] * self.vocabulary + text[ends[there]]
            found[there] = level.share(keys) + level.backoff(contexts[there]) * found[there]
            places = np.full(len(text), NOWHERE)
            places[ends[there]] = places_of(level.keys, keys)
        before = text[ends - 1]
        return found, self.pairs.share(before * self.vocabulary + text[ends]) + self.pairs.backoff(before) * words


def kneser_ney(text: Ids, *, vocabulary: int, order: int, cutoffs: tuple[int, ...]) -> KneserNey:
    """The model of sentences (n,) that stand one after another, each from its BOS to its EOS.

    cutoffs: of 2, 3, ... words, how often an n-gram has to be seen to be kept; it does not fall from one to the next,
    so that every context that is kept is a kept n-gram itself. The share of one that is not kept goes to the shorter
    context. Raises: InputError for cutoffs that fall.
    """
    check_cutoffs(order, cutoffs)
    seen = seen_in(text, vocabulary, order)
    counts = [continuations(one.counts, longer.suffixes) for one, longer in pairwise(seen)] + [seen[-1].counts]
    kept = [np.ones(vocabulary, np.bool_), *(each.counts >= cut for each, cut in zip(seen[1:], cutoffs, strict=True))]
    levels = [
        NGrams.discounted(each.keys, count, vocabulary).kept(which, vocabulary).moved(before, vocabulary)
        for each, count, which, before in zip(seen[1:], counts[1:], kept[1:], kept[:-1], strict=True)
    ]
    pairs = NGrams.discounted(seen[1].keys, seen[1].counts, vocabulary).kept(kept[1], vocabulary)
    words = np.flatnonzero(seen[0].counts)
    often, kinds = seen[0].counts[words], counts[0][words]
    frequency = np.zeros(vocabulary)
    frequency[words] = often / often.sum()
    return KneserNey(
        vocabulary=vocabulary,
        unigram=unigram_of(words, kinds, vocabulary),
        levels=tuple(levels),
        frequency=frequency,
        pairs=pairs,
        tokens=float(often.sum()),
        kinds=float(kinds.sum()),
    )


def check_cutoffs(order: int, cutoffs: tuple[int, ...]) -> None:
    """Raises: InputError for an order below 2, and cutoffs that are not one for each length from 2 on or that fall."""
    if order < 2:
        raise InputError(f"order={order} looks at no word before; give 2 or more.")
    if len(cutoffs) != order - 1 or min(cutoffs) < 1 or list(cutoffs) != sorted(cutoffs):
        raise InputError(
            f"cutoffs={','.join(map(str, cutoffs))} are not {order - 1} numbers of 1 or more that never fall, one for "
            f"each length from 2 to {order}; give for example {','.join(['1', '2', '3', '3', '3', '3'][: order - 1])}."
        )


def unigram_of(words: Ids, counts: Ids, vocabulary: int) -> FloatArray:
    """(V,) p(w) of the different words (n,) that were seen with these counts (n,)."""
    share, backoff = discounted(counts, np.zeros(1, np.int64))
    probability = np.full(vocabulary, backoff[0] / (vocabulary - 2))
    probability[words] += share
    probability[[PAD, BOS]] = 0.0
    return probability


class Seen(NamedTuple):
    """The different n-grams of one length in a text, in the order of their keys; of words, all of the vocabulary."""

    keys: Ids  # (n,)
    counts: Ids  # (n,)
    suffixes: Ids  # (n,) the places, among those one word shorter, of each without its first word


def seen_in(text: Ids, vocabulary: int, order: int) -> list[Seen]:
    """Of 1, 2, ... words of one sentence; a beginning is never the last of one."""
    begins, places = text == BOS, text  # of the n-gram that ends at each token; NOWHERE: none of that length does
    counts = np.bincount(text[~begins], minlength=vocabulary)
    found = [Seen(np.arange(vocabulary), counts, np.zeros(0, np.int64))]
    for _ in range(1, order):
        contexts = np.append(NOWHERE, places[:-1])
        ends = np.flatnonzero((contexts != NOWHERE) & ~begins)
        keys, first, which, counts = np.unique(
            contexts[ends] * vocabulary + text[ends], return_index=True, return_inverse=True, return_counts=True
        )
        found.append(Seen(keys, counts, places[ends[first]]))
        places = np.full(len(text), NOWHERE)
        places[ends] = which
    return found


def continuations(counts: Ids, suffixes: Ids) -> Ids:
    """(n,) after how many different words each n-gram was seen; from a beginning on, how often it was (n,).

    suffixes: the places of those that are one word longer, without their first words.
    """
    kinds = np.bincount(suffixes, minlength=len(counts))
    return np.where(kinds > 0, kinds, counts)


def discounts(counts: Ids) -> FloatArray:
    """(4,): what a count of 0, 1, 2 and 3 or more loses [Chen & Goodman 1998, Eq. 26].

    Where too little text makes the estimates undefined or negative, `UNRELIABLE`.
    """
    n1, n2, n3, n4 = np.bincount(np.minimum(counts, 5), minlength=6)[1:5].tolist()
    if min(n1, n2, n3, n4) == 0:
        return np.array([0.0, *UNRELIABLE])
    y = n1 / (n1 + 2 * n2)
    estimates = [k - (k + 1) * y * above / below for k, below, above in ((1, n1, n2), (2, n2, n3), (3, n3, n4))]
    return np.array([0.0, *(estimates if min(estimates) >= 0 else UNRELIABLE)])


def discounted(counts: Ids, starts: Ids) -> tuple[FloatArray, FloatArray]:
    """(shares (n,), backoffs (m,)) of the counts whose contexts begin at `starts` (m,)."""
    taken = discounts(counts)[np.minimum(counts, 3)]
    totals = sum_at(counts, starts)
    sizes = np.diff(starts, append=len(counts))
    return (counts - taken) / np.repeat(totals, sizes), sum_at(taken, starts) / totals


def sum_at(values: NDArray[Any], starts: Ids) -> NDArray[Any]:
    """(m,): the sums of the values (n,) from each start (m,) to the next."""
    return np.add.reduceat(values, starts) if len(starts) else values[:0]


def sum_by(keys: Ids, values: Ids) -> tuple[Ids, Ids]:
    """(the different keys, sorted, and the sum of the values of each)."""
    order = np.argsort(keys, kind="stable")
    keys, starts = np.unique(keys[order], return_index=True)
    return keys, np.add.reduceat(values[order], starts)


def likeliest_weight(first: FloatArray, second: FloatArray, counts: FloatArray | None = None) -> float:
    """The weight w in [0, 1] under which a text is likeliest, where its tokens have these probabilities (n,) by two
    models: the largest mean of log((1 - w) first + w second), to 1e-4. By bisection, since it is concave in w. counts:
    (n,) how often each token counts; None: once.
    """
    low, high = 0.0, 1.0
    while high - low > 1e-4:
        weight = (low + high) / 2
        slope = np.average((second - first) / ((1 - weight) * first + weight * second), weights=counts)
        low, high = (weight, high) if slope > 0 else (low, weight)
    return round((low + high) / 2, 4)
