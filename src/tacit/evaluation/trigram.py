"""A backed-off trigram: the strongest language model without a network, to compare a trained one with.

Interpolated modified Kneser-Ney smoothing (`networks.ngram.kneser_ney`):

    p(w | u v) = (c(uvw) - D(c(uvw))) / c(uv.) + backoff(u v) * p(w | v),   likewise p(w | v) with p(w),
    p(w)       = (c'(w) - D(c'(w))) / c'(.)   + backoff    / (V - 2)

It counts everything the network is trained on: words, OOV and the end of a sentence (hence V - 2: padding
and the beginning are never next). A sentence's first word has the context (BOS, BOS). Unlike the network
it has no limit on the words of a sentence that it learns from.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tacit.data import Cache
from tacit.errors import InputError
from tacit.evaluation.accuracy import Evaluation
from tacit.evaluation.held_out import HeldOut
from tacit.networks.language_model import kinds_of
from tacit.networks.metrics import END, KNOWN, METRICS, SHOWN, UNKNOWN, Counts, Words
from tacit.networks.ngram.kneser_ney import FloatArray, Ids, NGrams, sum_by, unigram_of
from tacit.text.vocabulary import BOS, EOS, OOV, SPECIALS

CONTEXTS_AT_ONCE = 1 << 15  # bounds the memory of ranking; changes nothing else


@dataclass(frozen=True, kw_only=True)
class BackedOffTrigram:
    """A trained trigram model over ids 0..V-1."""

    vocabulary: int  # V
    unigram: FloatArray  # (V,) p(w), 0 for padding and the beginning
    bigrams: NGrams
    trigrams: NGrams

    @classmethod
    def train(cls, cache: Cache, clients: Ids, *, vocabulary: int, words: int | None = None) -> Self:
        """Count the text of `clients`: all of it, or its first whole sentences of at most `words` words.

        Clients are read in the order given; shuffle them before asking for a part. 20 million words of a 10k
        vocabulary take seconds and below 2 GB. Raises: InputError when there is nothing to count.
        """
        return cls.of_text(text_of(cache, clients, words), vocabulary=vocabulary)

    @classmethod
    def of_text(cls, text: Ids, *, vocabulary: int) -> Self:
        """Count sentences that stand one after another, (n,) ids, each from its BOS to its EOS.

        The order of the sentences does not matter, so texts of several caches are counted together when concatenated.
        """
        trigrams, counts = count_trigrams(text, vocabulary)
        v, bigram = trigrams // vocabulary % vocabulary, trigrams % vocabulary**2
        # Nothing stands before a beginning: what follows it counts as often as it was seen, as in KenLM.
        bigrams, kinds = sum_by(bigram, np.where(v == BOS, counts, 1))
        seen, unigram = sum_by(bigrams % vocabulary, np.ones_like(bigrams))
        return cls(
            vocabulary=vocabulary,
            unigram=unigram_of(seen, unigram, vocabulary),
            bigrams=NGrams.discounted(bigrams, kinds, vocabulary),
            trigrams=NGrams.discounted(trigrams, counts, vocabulary),
        )

    def probability(self, u: Ids, v: Ids, w: Ids) -> FloatArray:
        """p(w | u v), elementwise."""
        context = u * self.vocabulary + v
        share = self.trigrams.share(context * self.vocabulary + w)
        return share + self.trigrams.backoff(context) * self._after_one(v, w)

    def suggestions(self, u: Ids, v: Ids) -> Ids:
        """The words to show after each context, best first, (n, 3): -1 where the vocabulary has fewer words.

        Specials are never shown; of equal probabilities the smaller id comes first. Exact: words not seen
        after u v are ranked by p(. | v) alone, so one is among its best three or has these three before it.
        """
        everywhere = np.lexsort((np.arange(self.vocabulary), -self.unigram))
        everywhere = everywhere[everywhere >= SPECIALS][:SHOWN]
        everywhere = np.pad(everywhere, (0, SHOWN - len(everywhere)), constant_values=-1)
        one, of_one = np.unique(v, return_inverse=True)
        after_one = _best(
            self.bigrams,
            one,
            np.tile(everywhere, (len(one), 1)),
            lambda context, w: self.unigram[w],
            self.vocabulary,
        )
        two, of_two = np.unique(u * self.vocabulary + v, return_inverse=True)
        last = np.zeros(len(two), np.int64)
        last[of_two] = of_one
        best = [np.zeros((0, SHOWN), np.int64)]
        for start in range(0, len(two), CONTEXTS_AT_ONCE):
            here = slice(start, start + CONTEXTS_AT_ONCE)
            best.append(_best(self.trigrams, two[here], after_one[last[here]], self._after_two, self.vocabulary))
        return np.concatenate(best)[of_two]

    def evaluate(self, held_out: HeldOut) -> Evaluation:
        """Count as `evaluation.evaluate` counts for a network, with the exclusions of `keyboard.metrics`.

        Only the first SHOWN suggestions are ranked: every later word has the rank V, as if it were the last.
        """
        clients, _, length = held_out.sentences.shape
        padded = held_out.sentences.reshape(-1, length).astype(np.int64)
        targets = padded[:, 1:].reshape(-1)
        v = padded[:, :-1].reshape(-1)
        u = np.pad(padded[:, :-2], ((0, 0), (1, 0)), constant_values=BOS).reshape(-1)
        client = np.repeat(np.arange(clients), len(targets) // max(clients, 1))
        kind = kinds_of(targets, np)
        typed, known = (kind == KNOWN) | (kind == UNKNOWN), kind == KNOWN
        over = {"predicted": known, "words": typed, "tokens": typed | (kind == END)}
        there = np.flatnonzero(over["tokens"])
        u, v, wanted = u[there], v[there], targets[there]
        shown = self.suggestions(u, v)
        hits = shown == wanted[:, None]
        words = Words(
            rank=np.full(len(targets), self.vocabulary),
            nats=np.zeros(len(targets)),
            kind=kind,
            first=np.zeros(len(targets), np.bool_),
        )
        words.rank[there] = np.where(hits.any(axis=1), hits.argmax(axis=1), self.vocabulary)
        words.nats[there] = -np.log(self.probability(u, v, wanted))
        words.first[there] = self._likeliest(u, v, shown[:, 0]) == wanted

        def of_each(whose: Ids, weights: Any = None) -> list[float]:
            return np.bincount(whose, weights, minlength=clients).tolist()  # type: ignore[no-any-return]

        sums = {}
        for name, metric in METRICS.items():
            there, added = np.flatnonzero(over[metric.over]), metric.of(words)
            whole = added.dtype == bool
            sums[name] = of_each(client[there[added[there]]]) if whole else of_each(client[there], added[there])
        columns = (of_each(client[typed]), of_each(client[kind == END]), of_each(client[known]))
        each = tuple(
            Counts(*row, sums={name: column[at] for name, column in sums.items()}).host()
            for at, row in enumerate(zip(*columns, strict=True))
        )
        return Evaluation(total=sum(each, Counts()), clients=each)

    def _likeliest(self, u: Ids, v: Ids, best: Ids) -> Ids:
        """The likeliest token after each context, (n,): the best word, an unknown one or the end; of equals the smaller
        id. best: -1 where there is no word.
        """
        tokens = np.stack([np.full_like(best, EOS), np.full_like(best, OOV), np.maximum(best, OOV)])
        likeliest: Ids = tokens[self.probability(u, v, tokens).argmax(axis=0), np.arange(len(best))]
        return likeliest

    def _after_one(self, v: Ids, w: Ids) -> FloatArray:
        share = self.bigrams.share(v * self.vocabulary + w)
        return share + self.bigrams.backoff(v) * self.unigram[w]

    def _after_two(self, context: Ids, w: Ids) -> FloatArray:
        return self._after_one(context % self.vocabulary, w)


def count_trigrams(ids: Ids, vocabulary: int) -> tuple[Ids, Ids]:
    """(keys, counts), sorted, of sentences that each begin with BOS; no trigram spans two of them."""
    previous = ids[:-1]
    before = np.concatenate([[BOS], ids[:-2]])
    before = np.where(previous == BOS, BOS, before)
    keys = (before * vocabulary + previous) * vocabulary + ids[1:]
    return np.unique(keys[ids[1:] != BOS], return_counts=True)


def _best(
    ngrams: NGrams, contexts: Ids, fallback: Ids, lower: Callable[[Ids, Ids], FloatArray], vocabulary: int
) -> Ids:
    """The best words after each of the different `contexts`, (n, 3), given those after the shorter one.

    lower(contexts, words) is the probability after the shorter context.
    """
    at = np.minimum(np.searchsorted(ngrams.contexts, contexts), len(ngrams.contexts) - 1)
    starts = ngrams.starts[at]
    sizes = np.where(ngrams.contexts[at] == contexts, ngrams.starts[at + 1] - starts, 0)
    row = np.repeat(np.arange(len(contexts)), sizes)
    where = np.arange(sizes.sum()) + np.repeat(starts - np.cumsum(sizes) + sizes, sizes)
    word, share = ngrams.keys[where] % vocabulary, ngrams.shares[where]
    shown = word >= SPECIALS
    rest_row, rest = np.repeat(np.arange(len(contexts)), SHOWN), fallback.reshape(-1)
    unseen = (rest >= 0) & (ngrams.share(contexts[rest_row] * vocabulary + rest) == 0.0)
    row = np.concatenate([row[shown], rest_row[unseen]])
    word = np.concatenate([word[shown], rest[unseen]])
    share = np.concatenate([share[shown], np.zeros(int(unseen.sum()))])
    score = share + ngrams.backoff(contexts)[row] * lower(contexts[row], word)
    order = np.lexsort((word, -score, row))
    row, word = row[order], word[order]
    place = np.arange(len(row)) - np.searchsorted(row, row)  # 0 is the best of its context
    best = np.full((len(contexts), SHOWN), -1, np.int64)
    best[row[place < SHOWN], place[place < SHOWN]] = word[place < SHOWN]
    return best


def text_of(cache: Cache, clients: Ids, words: int | None = None) -> Ids:
    """(n,) ids: the sentences of the clients, one after another; the first whole ones of at most `words` words.

    Raises: InputError where that is none.
    """
    parts: list[NDArray[Any]] = []
    left = np.inf if words is None else words
    for client in clients:
        ids, lengths = cache.sentences(int(client))
        typed = np.cumsum(lengths - 2)
        fits = int(np.searchsorted(typed, left, side="right"))
        parts.append(ids[: int(lengths[:fits].sum())])
        if fits < len(lengths):
            break
        left -= int(typed[-1]) if len(typed) else 0
    text = np.concatenate(parts) if parts else np.zeros(0, np.int64)
    if not len(text):
        raise InputError(f"{len(clients)} clients and words={words} leave no sentence to count; give more of either.")
    return text.astype(np.int64)
