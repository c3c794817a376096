"""A user's cache beside a model, against a twin that counts words one by one and sorts all tokens of every word."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tacit.keyboard.ranking import rank
from tacit.keyboard.user_cache import ALONE, Mix, UserCache
from tacit.networks.metrics import END, KNOWN, UNKNOWN
from tacit.networks.on_device import Scored
from tacit.text.vocabulary import BOS, EOS, OOV, PAD, SPECIALS

V, LENGTH = 9, 5
Ids = NDArray[np.int32]


@dataclass
class Scores:
    """What ranking needs of a model: the same scores for every text."""

    scored: Scored
    vocabulary: int = V

    def scores(self, batch: slice) -> Iterator[Scored]:
        yield Scored(*(each[batch].copy() for each in self.scored))


def ranked(scored: Scored, cache: UserCache, mixes: Sequence[Mix]) -> list[Any]:
    """In two batches, as a text comes."""
    return rank(Scores(scored), [slice(0, 2), slice(2, None)], cache, mixes)  # type: ignore[arg-type]


class SlowCache:
    """The formulas as they stand, over tuples."""

    def __init__(self, sentences: Ids) -> None:
        pairs = [(int(v), int(w)) for row in sentences for v, w in pairwise(row) if w != PAD]
        self.pairs, self.words = Counter(pairs), Counter(w for _, w in pairs)

    def unigram(self, w: int) -> float:
        return self.words[w] / max(self.words.total(), 1)

    def bigram(self, w: int, v: int) -> float:
        after = {pair: count for pair, count in self.pairs.items() if pair[0] == v}
        if not after:
            return self.unigram(w)
        return (after.get((v, w), 0) + len(after) * self.unigram(w)) / (sum(after.values()) + len(after))

    def mixed(self, network: NDArray[np.float64], v: int, mix: Mix) -> list[float]:
        left = 1 - mix.unigram - mix.bigram
        return [
            left * share + mix.unigram * self.unigram(w) + mix.bigram * self.bigram(w, v)
            for w, share in enumerate(network)
        ]


@st.composite
def texts(draw: st.DrawFn) -> Ids:
    words = st.lists(st.sampled_from([OOV, *range(SPECIALS, V)]), max_size=LENGTH)
    rows = [[BOS, *draw(words), EOS][: LENGTH + 1] for _ in range(draw(st.integers(0, 6)))]
    return np.array([row + [PAD] * (LENGTH + 1 - len(row)) for row in rows], np.int32).reshape(-1, LENGTH + 1)


mixes_ = st.sampled_from([Mix(0.3, 0.0), Mix(0.0, 0.4), Mix(0.2, 0.5), Mix(0.0, 0.01)])


@settings(max_examples=40)
@given(text=texts(), mix=mixes_, seed=st.integers(0, 999))
def test_words_stand_where_the_twin_has_them(text: Ids, mix: Mix, seed: int) -> None:
    random, slow = np.random.default_rng(seed), SlowCache(text)
    scored = Scored(
        random.normal(0, 2, (7, V)).astype(np.float32),
        random.integers(BOS, V, 7).astype(np.int32),
        random.integers(EOS, V, 7).astype(np.int32),
    )
    alone, mixed = ranked(scored, UserCache.from_sentences(text, V), [ALONE, mix])
    for at, (scores, before, target) in enumerate(zip(*scored, strict=True)):
        network = np.exp(scores.astype(np.float64))
        network /= network.sum()
        for words, shares in ((alone, network.tolist()), (mixed, slow.mixed(network, int(before), mix))):
            assert words.nats[at] == pytest.approx(-math.log(shares[target]), rel=2e-5, abs=1e-6)
            order = sorted(range(EOS, V), key=lambda id, shares=shares: (-shares[id], id))  # type: ignore[misc]
            assert words.rank[at] == sum(id >= SPECIALS for id in order[: order.index(target)])
            assert words.first[at] == (order[0] == target)
            assert words.kind[at] == {EOS: END, OOV: UNKNOWN}.get(int(target), KNOWN)


@settings(max_examples=40)
@given(text=texts().filter(len))
def test_both_caches_are_distributions(text: Ids) -> None:
    cache, slow = UserCache.from_sentences(text, V), SlowCache(text)
    np.testing.assert_allclose(cache.unigram, [slow.unigram(w) for w in range(V)], atol=1e-6)
    for v in range(V):
        own = cache.left[v] * cache.unigram
        pairs = slice(cache.starts[v], cache.starts[v + 1])
        own[cache.words[pairs]] += cache.shares[pairs]
        np.testing.assert_allclose(own, [slow.bigram(w, v) for w in range(V)], atol=1e-6)
        assert own.sum() == pytest.approx(1.0, rel=1e-5)
        assert own[PAD] == own[BOS] == 0.0


def test_equal_scores_come_in_the_order_of_the_vocabulary() -> None:
    flat = np.zeros((3, V), np.float32)
    targets = np.array([SPECIALS, EOS, V - 1], np.int32)
    (words,) = ranked(
        Scored(flat, np.full(3, BOS, np.int32), targets),
        UserCache.from_sentences(np.zeros((0, 2), np.int32), V),
        [ALONE],
    )
    assert words.rank.tolist() == [0, 0, V - 1 - SPECIALS]
    assert words.first.tolist() == [False, True, False]


def test_what_was_typed_comes_first_again() -> None:
    """Once after this word is enough for a bigram; the unigram knows only that it was typed."""
    text = np.array([[BOS, 5, 7, EOS], [BOS, 6, 8, EOS]], np.int32)
    scored = Scored(np.zeros((2, V), np.float32), np.array([5, 6], np.int32), np.array([7, 8], np.int32))
    unigram, bigram = ranked(scored, UserCache.from_sentences(text, V), [Mix(unigram=0.2), Mix(bigram=0.2)])
    assert bigram.rank.tolist() == [0, 0] and bigram.first.tolist() == [True, True]
    assert unigram.rank.tolist() == [2, 3], "of four words typed once the smaller id comes first"
    assert not unigram.first.any(), "the end was typed twice"


def test_scores_beyond_all_bounds_are_seen_in_the_nats() -> None:
    broken = np.full((1, V), np.inf, np.float32)
    one = np.array([5], np.int32)
    (words,) = ranked(
        Scored(broken, one, one), UserCache.from_sentences(np.array([[BOS, 5]], np.int32), V), [Mix(bigram=0.2)]
    )
    assert not np.isfinite(words.nats).any()
