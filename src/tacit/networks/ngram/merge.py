"""Several counted models as one: the counts of each text times its weight, and then those that matter most.

Count merging [Bacchiani & Roark, "Unsupervised language model adaptation", ICASSP 2003]: of an n-gram h w with the
discounted count d_i in the text i, whose context has the count c_i,

    share(w | h) = sum_i weight_i d_i(h w) / sum_i weight_i c_i(h).

So a text has a say after the contexts that it knows. What is left goes to the shorter context, as in each model.

Keys are the ids as digits in base V here, which the texts' n-grams have in common.

An n-gram is worth its weighted count times the nats that it adds to the shorter context [Seymore & Rosenfeld,
"Scalable backoff language models", ICSLP 1996]. Where there is no room for all, those worth least are left out.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError
from tacit.networks.ngram.bend import ObservedCells, often
from tacit.networks.ngram.kneser_ney import NOWHERE, Ids, KneserNey, NGrams, sum_at
from tacit.networks.ngram.tables import LOG_ODDS, LOGARITHMIC, TOTALS, Level, NGramTables

Floats = NDArray[np.float64]
MOST_KEY = 2**63 - 1
STEPS = 1000  # of EM
BEYOND_NOISE = 2.0
THRESHOLDS = 1 << 12  # of what an n-gram has to be worth


class Counts(NamedTuple):
    """Weighted counts of the n-grams of one length."""

    keys: Ids  # (n,) sorted
    counts: Floats  # (n,) discounted
    contexts: Ids  # (m,) sorted
    totals: Floats  # (m,) counts of the contexts

    @classmethod
    def of_level(cls, level: Level, contexts: Ids, vocabulary: int, weight: float) -> Self:
        """Those of a file; contexts: the keys of the n-grams that are one word shorter."""
        starts = level.starts.astype(np.int64)
        sizes, own = starts[1:] - starts[:-1], contexts[level.contexts]
        shares = LOGARITHMIC[level.shares].astype(np.float64)
        totals = weight * TOTALS[level.totals]
        given = totals * (1 - LOG_ODDS[level.backoffs].astype(np.float64))
        counts = shares * np.repeat(given / sum_at(shares, starts[:-1]), sizes)
        return cls(np.repeat(own, sizes) * vocabulary + level.words, counts, own, totals)

    @classmethod
    def added(cls, parts: "Sequence[Counts]") -> Self:
        """The sum of several."""
        keys, counts = _added([each.keys for each in parts], [each.counts for each in parts])
        return cls(keys, counts, *_added([each.contexts for each in parts], [each.totals for each in parts]))

    def ngrams(self, vocabulary: int) -> NGrams:
        """The same as shares."""
        contexts, starts = np.unique(self.keys // vocabulary, return_index=True)
        totals = self.totals[np.searchsorted(self.contexts, contexts)]
        shares = self.counts / np.repeat(totals, np.diff(starts, append=len(self.keys)))
        left = np.clip(1 - sum_at(shares, starts), 0.0, 1.0)
        return NGrams(self.keys, shares, contexts, np.append(starts, len(self.keys)), left, totals)


def _added(keys: list[Ids], values: list[Floats]) -> tuple[Ids, Floats]:
    """The different keys of several sorted lists, sorted, and the sum of each one's values."""
    every = np.concatenate(keys)
    order = np.argsort(every, kind="stable")  # what is sorted in pieces is merged in one go
    every, counts = every[order], np.concatenate(values)[order]
    starts = np.flatnonzero(np.diff(every, prepend=NOWHERE))
    return every[starts], sum_at(counts, starts).astype(np.float64)


def merged(models: Sequence[NGramTables], shares: Sequence[float], *, most_bytes: int | None = None) -> NGramTables:
    """One model of several texts with the same words, each with its share of all tokens, above 0; they sum to 1.

    most_bytes: what its n-grams may take. The weight of plain pairs is the mean of the models'. Raises: ValueError for
    models of different words or lengths, and for shares that are none; InputError where their keys have no 64 bits.
    """
    shapes = {(each.vocabulary, each.order) for each in models}
    if len(shapes) != 1 or len(shares) != len(models) or min(shares) <= 0 or abs(sum(shares) - 1) > 1e-6:
        raise ValueError(f"models of {sorted(shapes)} words and lengths with the shares {list(shares)} are not merged")
    ((vocabulary, order),) = shapes
    check_digits(vocabulary, order)
    weights = np.array([share / float(each.counted[0]) for each, share in zip(models, shares, strict=True)])
    weights /= weights.max()
    contexts = [np.arange(vocabulary)] * len(models)
    levels, pairs = list[NGrams](), None
    for length in range(order - 1):
        of = zip(models, contexts, weights.tolist(), strict=True)
        parts = [Counts.of_level(each.levels[length], own, vocabulary, weight) for each, own, weight in of]
        levels.append(Counts.added(parts).ngrams(vocabulary))
        if pairs is None:
            of = zip(models, contexts, weights.tolist(), strict=True)
            plain = [Counts.of_level(each.pairs, own, vocabulary, weight) for each, own, weight in of]
            pairs = Counts.added(plain).ngrams(vocabulary)
        contexts = [each.keys for each in parts]
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
    return NGramTables.packed(placed(model if most_bytes is None else _within(model, most_bytes)), pair_weight)


def _mean(values: Sequence[NDArray[np.float32]], weights: Floats) -> Floats:
    """Of probabilities (V,) each; the sum of the result is one."""
    found: Floats = np.stack(values).astype(np.float64).T @ weights
    found /= found.sum()
    return found


def check_digits(vocabulary: int, order: int) -> None:
    """Raises: InputError where the ids of an n-gram, as digits in base V, are more than 64 bits."""
    if vocabulary**order > MOST_KEY:
        raise InputError(
            f"n-grams of {order} words out of {vocabulary:,} are counted, but neither added up nor thinned out: their "
            "keys have no 64 bits; give a smaller --order, or more --megabytes."
        )


def digits(model: KneserNey) -> KneserNey:
    """The same with keys of digits, which n-grams of several texts have in common."""
    check_digits(model.vocabulary, len(model.levels) + 1)
    contexts, levels = np.arange(model.vocabulary), list[NGrams]()
    for level in model.levels:
        keys = contexts[level.keys // model.vocabulary] * model.vocabulary + level.keys % model.vocabulary
        levels.append(level._replace(keys=keys, contexts=contexts[level.contexts]))
        contexts = keys
    return replace(model, levels=tuple(levels))


def placed(model: KneserNey) -> KneserNey:
    """What `digits` gave, as it was."""
    shorter, levels = np.arange(model.vocabulary), list[NGrams]()
    for level in model.levels:
        keys = (
            np.searchsorted(shorter, level.keys // model.vocabulary) * model.vocabulary + level.keys % model.vocabulary
        )
        levels.append(level._replace(keys=keys, contexts=np.searchsorted(shorter, level.contexts)))
        shorter = level.keys
    return replace(model, levels=tuple(levels))


def within(model: KneserNey, most_bytes: int) -> KneserNey:
    """The model with those n-grams alone that are worth most, so that they take at most so many bytes. Raises:
    InputError where keys of digits have no 64 bits.
    """
    return model if _bytes(model) <= most_bytes else placed(_within(digits(model), most_bytes))


def _within(model: KneserNey, most_bytes: int) -> KneserNey:
    if _bytes(model) <= most_bytes:
        return model
    worth = [_worth(model, at) for at in range(len(model.levels))]
    for at in range(len(worth) - 1, 0, -1):  # a context stays with what is worth most after it
        longer = model.levels[at]
        places = np.searchsorted(model.levels[at - 1].keys, longer.contexts)
        after = np.maximum.reduceat(worth[at], longer.starts[:-1]) if len(places) else worth[at]
        worth[at - 1][places] = np.maximum(worth[at - 1][places], after)
    least = np.quantile(np.concatenate(worth), np.linspace(0, 1, THRESHOLDS))  # increasing, so the sizes fall
    low, high = 0, THRESHOLDS - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if _bytes(_kept(model, worth, least[middle])) > most_bytes else (low, middle)
    return _kept(model, worth, least[high])


def _worth(model: KneserNey, at: int) -> Floats:
    """(n,) of the n-grams of `at` + 2 words, in nats of the whole text."""
    level, length = model.levels[at], at + 2
    counts = level.shares * np.repeat(level.totals, np.diff(level.starts))
    shorter = _probability(model, level.keys % model.vocabulary ** (length - 1), at - 1)
    own = level.shares + np.repeat(level.backoffs, np.diff(level.starts)) * shorter
    found: Floats = counts * np.log(own / shorter)
    return found


def _probability(model: KneserNey, keys: Ids, at: int) -> Floats:
    """(n,) of the last word of each key of `at` + 2 words after the others."""
    if at < 0:
        return model.unigram[keys]
    level, shorter = model.levels[at], _probability(model, keys % model.vocabulary ** (at + 1), at - 1)
    return level.share(keys) + level.backoff(keys // model.vocabulary) * shorter


def _kept(model: KneserNey, worth: Sequence[Floats], least: float) -> KneserNey:
    """With the n-grams that are worth so much."""
    levels = [level.kept(values >= least, model.vocabulary) for level, values in zip(model.levels, worth, strict=True)]
    return replace(model, levels=tuple(levels), pairs=model.pairs.kept(worth[0] >= least, model.vocabulary))


def _bytes(model: KneserNey) -> int:
    """Of its n-grams in a file."""
    pairs = model.levels[0]  # the words, contexts and starts of both
    levels = sum(3 * len(each.keys) + 10 * len(each.contexts) for each in model.levels)
    return levels + len(pairs.keys) + 2 * len(pairs.contexts)


def likeliest_shares(likelihoods: Floats, counts: Floats) -> Floats:
    """(k,) the shares of k sources under which counts (n,) are likeliest, of cells with these probabilities (k, n) by
    each: the largest sum of counts times log of the mixture's probability, by EM. Noisy counts may be below 0.
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
    """(k,) the share of each model's text under which released counts of words are likeliest.

    `otherwise` (k,) where the noise may have made the difference: where those shares make the counts likelier by less
    than BEYOND_NOISE standard deviations of what the noise adds to that.
    """
    words = cells.ids[:, 0]
    likelihoods = np.stack([often(each, words) for each in models])
    likelihoods /= likelihoods.sum(axis=1, keepdims=True)
    found = likeliest_shares(likelihoods, cells.counts)
    gains = np.log(found @ likelihoods) - np.log(otherwise @ likelihoods)
    noise = float(np.sqrt(((cells.stddev * gains) ** 2).sum()))
    return found if float(cells.counts @ gains) > BEYOND_NOISE * noise else otherwise
