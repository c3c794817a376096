"""Several counted models as one: the counts of each text times its weight, and then those that matter most.

Count merging [Bacchiani & Roark, "Unsupervised language model adaptation", ICASSP 2003]: of an n-gram h w with the
discounted count d_i in the text i, whose context has the count c_i,

    share(w | h) = sum_i weight_i d_i(h w) / sum_i weight_i c_i(h).

So a text has a say after the contexts that it knows. What is left goes to the shorter context, as in each model.

The keys are those of `kneser_ney`, by the places of contexts. Those of several texts are brought together length by
length: what a place is in one text, and what it is in all.

An n-gram is worth its weighted count times the nats that it adds to the shorter context [Seymore & Rosenfeld,
"Scalable backoff language models", ICSLP 1996]. Where there is no room for all, those worth least are left out.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from tacit.networks.ngram.bend import ObservedCells, often
from tacit.networks.ngram.kneser_ney import NOWHERE, Ids, KneserNey, NGrams, places_of, sum_at
from tacit.networks.ngram.tables import LOG_ODDS, LOGARITHMIC, TOTALS, Level, NGramTables

Floats = NDArray[np.float64]
STEPS = 1000  # of EM
BEYOND_NOISE = 2.0
PHI = (1e-4, 1e6)  # between which it lies
HALVINGS, REWEIGHTED = 40, 3
TINY = 1e-9  # a variance where neither noise nor text has any
THRESHOLDS = 1 << 12  # of what an n-gram has to be worth


class Counts(NamedTuple):
    """Weighted counts of the n-grams of one length."""

    keys: Ids  # (n,) sorted
    counts: Floats  # (n,) discounted
    contexts: Ids  # (m,) sorted
    totals: Floats  # (m,) counts of the contexts

    @classmethod
    def of_level(cls, level: Level, contexts: Ids, vocabulary: int, weight: float) -> Self:
        """Those of a file. contexts: the places, among those of all texts, of its n-grams that are one word shorter."""
        starts = level.starts.astype(np.int64)
        sizes, own = starts[1:] - starts[:-1], contexts[level.contexts]
        shares = LOGARITHMIC[level.shares].astype(np.float64)
        totals = weight * TOTALS[level.totals]
        given = totals * (1 - LOG_ODDS[level.backoffs].astype(np.float64))
        counts = shares * np.repeat(given / sum_at(shares, starts[:-1]), sizes)
        return cls(np.repeat(own, sizes) * vocabulary + level.words, counts, own, totals)

    @classmethod
    def added(cls, parts: "Sequence[Counts]") -> tuple[Self, list[Ids]]:
        """The sum of several, and the places of the n-grams of each in it."""
        keys, counts, places = _added([each.keys for each in parts], [each.counts for each in parts])
        contexts, totals, _ = _added([each.contexts for each in parts], [each.totals for each in parts])
        return cls(keys, counts, contexts, totals), places

    def ngrams(self, vocabulary: int) -> NGrams:
        """The same as shares."""
        contexts, starts = np.unique(self.keys // vocabulary, return_index=True)
        totals = self.totals[np.searchsorted(self.contexts, contexts)]
        shares = self.counts / np.repeat(totals, np.diff(starts, append=len(self.keys)))
        left = np.clip(1 - sum_at(shares, starts), 0.0, 1.0)
        return NGrams(self.keys, shares, contexts, np.append(starts, len(self.keys)), left, totals)


def _added(keys: list[Ids], values: list[Floats]) -> tuple[Ids, Floats, list[Ids]]:
    """Of each part's sorted keys: (the different ones, sorted; the sums of their values; the places of each part's)."""
    every = np.concatenate(keys)
    order = np.argsort(every, kind="stable")  # what is sorted in pieces is merged in one go
    ranked = every[order]
    first = np.diff(ranked, prepend=NOWHERE) > 0
    places = np.empty(len(every), np.int64)
    places[order] = np.cumsum(first) - 1
    sums = np.bincount(places, np.concatenate(values)).astype(np.float64)
    return ranked[first], sums, np.split(places, np.cumsum([len(each) for each in keys])[:-1])


def merged(models: Sequence[NGramTables], shares: Sequence[float], *, most_bytes: int | None = None) -> NGramTables:
    """One model of several texts with the same words, each with its share of all tokens, above 0; they sum to 1.

    most_bytes: what its n-grams may take. The weight of plain pairs is the mean of the models'. Raises: ValueError for
    models of different words or lengths, and for shares that are none.
    """
    shapes = {(each.vocabulary, each.order) for each in models}
    if len(shapes) != 1 or len(shares) != len(models) or min(shares) <= 0 or abs(sum(shares) - 1) > 1e-6:
        raise ValueError(f"models of {sorted(shapes)} words and lengths with the shares {list(shares)} are not merged")
    ((vocabulary, order),) = shapes
    weights = np.array([share / float(each.counted[0]) for each, share in zip(models, shares, strict=True)])
    weights /= weights.max()
    contexts = [np.arange(vocabulary)] * len(models)
    levels, pairs = list[NGrams](), None
    for length in range(order - 1):
        of = zip(models, contexts, weights.tolist(), strict=True)
        parts = [Counts.of_level(each.levels[length], own, vocabulary, weight) for each, own, weight in of]
        if pairs is None:
            of = zip(models, contexts, weights.tolist(), strict=True)
            plain = [Counts.of_level(each.pairs, own, vocabulary, weight) for each, own, weight in of]
            pairs = Counts.added(plain)[0].ngrams(vocabulary)
        whole, contexts = Counts.added(parts)
        levels.append(whole.ngrams(vocabulary))
    assert pairs is not None  # the order is 2 or more
    counted = np.stack([each.counted for each in models]).astype(np.float64)
    tokens, kinds = (weights * counted[:, at] for at in (0, 1))
    model = KneserNey(
        vocabulary=vocabulary,
        unigram=_mean([each.unigrams for each in models], kinds),
        levels=tuple(levels),
        frequency=_mean([each.frequencies for each in models], np.array(shares)),
        pairs=pairs,
        tokens=float(tokens.sum()),
        kinds=float(kinds.sum()),
    )
    pair_weight = float(np.dot(shares, [each.pair_weight for each in models]))
    return NGramTables.packed(model if most_bytes is None else within(model, most_bytes), pair_weight)


def _mean(values: Sequence[NDArray[np.float32]], weights: Floats) -> Floats:
    """Of probabilities (V,) each; the sum of the result is one."""
    found: Floats = np.stack(values).astype(np.float64).T @ weights
    found /= found.sum()
    return found


def within(model: KneserNey, most_bytes: int) -> KneserNey:
    """The model with those n-grams alone that are worth most, so that they take at most so many bytes."""
    if _bytes(model) <= most_bytes:
        return model
    worth = _worth(model)
    for at in range(len(worth) - 1, 0, -1):  # a context stays with what is worth most after it
        longer = model.levels[at]
        after = np.maximum.reduceat(worth[at], longer.starts[:-1]) if len(longer.contexts) else worth[at]
        worth[at - 1][longer.contexts] = np.maximum(worth[at - 1][longer.contexts], after)
    least = np.quantile(np.concatenate(worth), np.linspace(0, 1, THRESHOLDS))  # increasing, so the sizes fall
    low, high = 0, THRESHOLDS - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if _bytes(_kept(model, worth, least[middle])) > most_bytes else (low, middle)
    return _kept(model, worth, least[high])


def _worth(model: KneserNey) -> list[Floats]:
    """(n,) of the n-grams of 2, 3, ... words, in nats of the whole text."""
    ends = [np.arange(model.vocabulary)]  # of n-grams of one length, the places of their last 1, 2, ... words
    worth = list[Floats]()
    for level in model.levels:
        contexts, words = np.divmod(level.keys, model.vocabulary)
        shorter, own = model.unigram[words], [words]
        for ngrams, places in zip(model.levels, ends[:-1], strict=False):
            before = places[contexts]  # NOWHERE, which no key has, leaves all to the words after it
            at = places_of(ngrams.keys, before * model.vocabulary + words)
            shorter = np.where(at == NOWHERE, 0.0, ngrams.shares[at]) + ngrams.backoff(before) * shorter
            own.append(at)
        sizes = np.diff(level.starts)
        probability = level.shares + np.repeat(level.backoffs, sizes) * shorter
        worth.append(level.shares * np.repeat(level.totals, sizes) * np.log(probability / shorter))
        ends = [*own, np.arange(len(level.keys))]
    return worth


def _kept(model: KneserNey, worth: Sequence[Floats], least: float) -> KneserNey:
    """With the n-grams that are worth so much."""
    size = model.vocabulary
    kept = [np.ones(size, np.bool_), *(values >= least for values in worth)]
    levels = [
        level.kept(which, size).moved(before, size)
        for level, which, before in zip(model.levels, kept[1:], kept[:-1], strict=True)
    ]
    return replace(model, levels=tuple(levels), pairs=model.pairs.kept(kept[1], size))


def _bytes(model: KneserNey) -> int:
    """Of its n-grams in a file."""
    pairs = model.levels[0]  # the words, contexts and starts of both
    levels = sum(3 * len(each.keys) + 10 * len(each.contexts) for each in model.levels)
    return levels + len(pairs.keys) + 2 * len(pairs.contexts)


def likeliest_shares(likelihoods: Floats, counts: Floats) -> Floats:
    """(k,) the shares of k sources under which counts (n,) are likeliest, of cells with these probabilities (k, n) by
    each: the largest sum of counts times log of the mixture's probability, by EM.
    """
    shares = np.full(len(likelihoods), 1 / len(likelihoods))
    for _ in range(STEPS):
        parts = likelihoods * shares[:, None]
        shares = np.maximum(parts @ (counts / parts.sum(axis=0)), 0.0)
        if not shares.sum() > 0:
            return np.full(len(likelihoods), 1 / len(likelihoods))
        shares /= shares.sum()
    return shares


def shares_by_words(models: Sequence[NGramTables], cells: ObservedCells, otherwise: Floats) -> Floats:
    """(k,) the share of each model's text that fits released counts of words best, by quasi-likelihood.

    The count of a word has the mean m = sum_i t_i p_i, where t_i >= 0 words are like the text i, and the variance
    s^2 + phi m: of the noise, and of what other text of the same people would have. phi is the one under which squared
    residuals are on average what they should be [McCullagh & Nelder, Generalized Linear Models, 2nd ed., 1989, ch. 9],
    so it is large where people write like no text. Where noise is loud, frequent words say most; by likelihoods the
    noise of rare ones would count as much. `otherwise` (k,) where the noise may have made the difference: where those
    shares fit worse by less than the square of BEYOND_NOISE.
    """
    words = cells.ids[:, 0]
    shares = np.stack([often(each, words) for each in models])
    shares /= shares.sum(axis=1, keepdims=True)
    low, high = PHI
    for _ in range(HALVINGS):
        middle = float(np.sqrt(low * high))
        residuals = _fitted(shares, cells, otherwise, middle)[1]
        low, high = (middle, high) if residuals @ residuals > len(words) - len(models) else (low, middle)
    lengths, residuals, errors = _fitted(shares, cells, otherwise, high)
    if not lengths.sum() > 0:
        return otherwise
    as_it_was, counts = otherwise @ shares / errors, cells.counts / errors
    length = max(0.0, float(as_it_was @ counts) / float(as_it_was @ as_it_was))
    rest = counts - length * as_it_was
    return lengths / lengths.sum() if rest @ rest - residuals @ residuals > BEYOND_NOISE**2 else otherwise


def _fitted(shares: Floats, cells: ObservedCells, first: Floats, phi: float) -> tuple[Floats, Floats, Floats]:
    """(words of each text (k,), residuals (n,) in standard deviations, standard deviations (n,)) that fit counts best.

    shares: (k, n) of each text. first: (k,) by which variances are begun with; then they are those of what fits.
    """
    from scipy.optimize import nnls  # who merges by held-out text needs none of it

    means = max(float(cells.counts.sum()), 1.0) * first @ shares
    for _ in range(REWEIGHTED):
        errors: Floats = np.sqrt(cells.stddev**2 + phi * means + TINY)
        lengths, _ = nnls((shares / errors).T, cells.counts / errors)
        means = lengths @ shares
    residuals: Floats = (cells.counts - means) / errors
    return lengths, residuals, errors
