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

A key is an n-gram as one number: its ids as digits in base V.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError
from tacit.text.vocabulary import BOS, PAD

Ids = NDArray[np.int64]
FloatArray = NDArray[np.float64]

# Discounts where the text is too small to estimate them, as the fallback of KenLM has them.
UNRELIABLE = (0.5, 1.0, 1.5)
MOST_KEY = 2**63 - 1


class NGrams(NamedTuple):
    """The n-grams of one length that were seen, sorted; a key is their ids as digits in base V."""

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
        keys, shares = self.keys[which], self.shares[which]
        contexts, starts = np.unique(keys // vocabulary, return_index=True)
        gone = sum_at(np.where(which, 0.0, self.shares), self.starts[:-1])
        at = np.searchsorted(self.contexts, contexts)
        return NGrams(keys, shares, contexts, np.append(starts, len(keys)), (self.backoffs + gone)[at], self.totals[at])

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
        _, ends = _last_of(text, 1)
        words = self.unigram[text[ends]]
        found = words.copy()
        for length, level in enumerate(self.levels, start=2):
            keys, places = _last_of(text, length, self.vocabulary)
            at = np.searchsorted(ends, places)
            found[at] = level.share(keys) + level.backoff(keys // self.vocabulary) * found[at]
        keys, _ = _last_of(text, 2, self.vocabulary)
        return found, self.pairs.share(keys) + self.pairs.backoff(keys // self.vocabulary) * words


def kneser_ney(text: Ids, *, vocabulary: int, order: int, cutoffs: tuple[int, ...]) -> KneserNey:
    """The model of sentences (n,) that stand one after another, each from its BOS to its EOS.

    cutoffs: of 2, 3, ... words, how often an n-gram has to be seen to be kept; it does not fall from one to the next,
    so that every context that is kept is a kept n-gram itself. The share of one that is not kept goes to the shorter
    context. Raises: InputError for cutoffs that fall, and where the keys of so many words fit into no 64 bits.
    """
    check_cutoffs(order, cutoffs)
    if vocabulary**order > MOST_KEY:
        raise InputError(f"order={order} of {vocabulary:,} words has keys beyond 64 bits; give a smaller order.")
    seen = [counted(text, length, vocabulary) for length in range(1, order + 1)]
    shorter = [continuations(seen[length - 1], seen[length], vocabulary, length) for length in range(1, order)]
    levels = [
        NGrams.discounted(keys, counts, vocabulary).kept(raw >= cutoff, vocabulary)
        for (keys, counts), (_, raw), cutoff in zip([*shorter[1:], seen[-1]], seen[1:], cutoffs, strict=True)
    ]
    (words, counts), (_, often) = shorter[0], seen[0]
    pairs = NGrams.discounted(*seen[1], vocabulary).kept(seen[1][1] >= cutoffs[0], vocabulary)
    frequency = np.zeros(vocabulary)
    frequency[words] = often / often.sum()
    return KneserNey(
        vocabulary=vocabulary,
        unigram=unigram_of(words, counts, vocabulary),
        levels=tuple(levels),
        frequency=frequency,
        pairs=pairs,
        tokens=float(often.sum()),
        kinds=float(counts.sum()),
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


def counted(text: Ids, length: int, vocabulary: int) -> tuple[Ids, Ids]:
    """(keys, counts), sorted, of the n-grams of so many words of one sentence; a beginning is never the last of one."""
    keys, _ = _last_of(text, length, vocabulary)
    return np.unique(keys, return_counts=True)


def _last_of(text: Ids, length: int, vocabulary: int = 1) -> tuple[Ids, Ids]:
    """(keys, places of the last word) of all n-grams of so many words, as they stand in the text."""
    places = np.arange(len(text))
    begun = np.maximum.accumulate(np.where(text == BOS, places, 0))
    ends = np.flatnonzero((text != BOS) & (places - begun >= length - 1))
    keys = np.zeros(len(ends), np.int64)
    for back in range(length - 1, -1, -1):
        keys = keys * vocabulary + text[ends - back]
    return keys, ends


def continuations(seen: tuple[Ids, Ids], longer: tuple[Ids, Ids], vocabulary: int, length: int) -> tuple[Ids, Ids]:
    """The keys of `seen` and after how many different words each was seen; from a beginning on, how often it was.

    longer: the n-grams of `length` + 1 words.
    """
    keys, counts = seen
    after, kinds = np.unique(longer[0] % vocabulary**length, return_counts=True)
    counts = counts.copy()
    counts[np.searchsorted(keys, after)] = kinds
    return keys, counts


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
