"""The trigram baseline against a slow reference that looks everything up in dictionaries of tuples."""

import math
from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.evaluation.trigrams import Sentence, V, cache_of, populations, trained
from tests.support.keyboard.counting import whole

from tacit.errors import InputError
from tacit.evaluation.held_out import HeldOut
from tacit.evaluation.trigram import BackedOffTrigram, text_of
from tacit.networks.metrics import ALL_TOKENS
from tacit.networks.ngram.kneser_ney import UNRELIABLE, discounts
from tacit.text.vocabulary import BOS, EOS, OOV, PAD, SPECIALS


class SlowTrigram:
    """Interpolated modified Kneser-Ney, one n-gram at a time."""

    def __init__(self, sentences: list[Sentence]) -> None:
        three: Counter[tuple[int, ...]] = Counter()
        for sentence in sentences:
            padded = [BOS, *sentence]
            three.update((u, v, w) for u, v, w in zip(padded, padded[1:], padded[2:], strict=False))
        two: Counter[tuple[int, ...]] = Counter()
        for (_, v, w), count in three.items():
            two[v, w] += count if v == BOS else 1
        one: Counter[tuple[int, ...]] = Counter((w,) for _, w in two)
        self.counts = {3: three, 2: two, 1: one}
        self.discounts = {n: discounts(np.array(list(c.values()))) for n, c in self.counts.items()}
        self.followers: dict[tuple[int, ...], list[int]] = defaultdict(list)
        for counts in self.counts.values():
            for *context, w in counts:
                self.followers[tuple(context)].append(w)

    def p(self, w: int, *context: int) -> float:
        n = len(context) + 1
        lower = self.p(w, *context[1:]) if context else 1 / (V - 2)
        followers = self.followers.get(context)
        if not followers:
            return lower
        counts = {f: self.counts[n][(*context, f)] for f in followers}
        taken = {f: float(self.discounts[n][min(c, 3)]) for f, c in counts.items()}
        total = sum(counts.values())
        share = (counts[w] - taken[w]) / total if w in counts else 0.0
        return share + sum(taken.values()) / total * lower

    def suggestions(self, u: int, v: int) -> list[int]:
        best = sorted(range(SPECIALS, V), key=lambda w: (-self.p(w, u, v), w))[:3]
        return best + [-1] * (3 - len(best))


def of(*numbers: int) -> list[np.ndarray]:
    return [np.array([n], np.int64) for n in numbers]


@given(clients=populations)
def test_equals_the_slow_twin(clients: list[list[Sentence]]) -> None:
    fast, slow = trained(clients), SlowTrigram([s for client in clients for s in client])
    contexts = [(u, v) for u in range(1, V) for v in range(1, V)]
    for u, v in contexts:
        expected = [slow.p(w, u, v) for w in range(EOS, V)]
        got = fast.probability(*(np.array(x) for x in ([u] * (V - 2), [v] * (V - 2), range(EOS, V))))
        np.testing.assert_allclose(got, expected, rtol=1e-12)
    suggested = fast.suggestions(*(np.array(column) for column in zip(*contexts, strict=True)))
    for (u, v), found in zip(contexts, suggested, strict=True):
        # Equal probabilities may differ in the last digit between the two, so the probabilities are compared.
        wanted = [slow.p(w, u, v) for w in slow.suggestions(u, v)]
        np.testing.assert_allclose([slow.p(int(w), u, v) for w in found], wanted, rtol=1e-12)
        assert len(set(found.tolist())) == 3


@given(clients=populations, more=populations)
def test_texts_of_two_caches_are_counted_together(clients: list[list[Sentence]], more: list[list[Sentence]]) -> None:
    apart = [text_of(cache_of(each), np.arange(len(each))) for each in (more, clients)]
    both, whole_ = BackedOffTrigram.of_text(np.concatenate(apart), vocabulary=V), trained([*clients, *more])
    np.testing.assert_array_equal(both.unigram, whole_.unigram)
    for one, other in zip((both.bigrams, both.trigrams), (whole_.bigrams, whole_.trigrams), strict=True):
        for mine, theirs in zip(one, other, strict=True):
            np.testing.assert_array_equal(mine, theirs)


@given(clients=populations)
def test_probabilities_of_all_that_may_follow_sum_to_one(clients: list[list[Sentence]]) -> None:
    model = trained(clients)
    for v in range(1, V):
        everything = [model.probability(*of(OOV, v, w))[0] for w in range(V)]
        assert math.isclose(sum(everything), 1.0, rel_tol=1e-9)
        assert everything[PAD] == everything[BOS] == 0.0


@given(clients=populations, length=st.integers(2, 8))
def test_counts_with_the_exclusions_of_the_metrics(clients: list[list[Sentence]], length: int) -> None:
    slow = SlowTrigram([s for client in clients for s in client])
    rows = max(len(c) for c in clients)
    padded = np.zeros((len(clients), rows, length), np.int32)
    for i, client in enumerate(clients):
        for j, sentence in enumerate(client):
            padded[i, j, : len(sentence[:length])] = sentence[:length]
    found = trained(clients).evaluate(HeldOut(sentences=padded))
    assert len(found.clients) == len(clients)
    for client, counts in zip(clients, found.clients, strict=True):
        targets = [([BOS, *s[:t]][-2:], w) for s in client for t, w in enumerate(s[:length]) if t and w != EOS]
        known = [(context, w) for context, w in targets if w != OOV]
        nats = -sum(math.log(slow.p(w, *context)) for context, w in known)
        assert counts.words == len(targets)
        assert counts.sums["oov_rate"] == len(targets) - len(known)
        assert counts.predicted == len(known)
        assert counts.ends == sum(w == EOS for s in client for w in s[:length])
        assert math.isclose(counts.sums["cross_entropy"], nats, rel_tol=1e-9, abs_tol=1e-12)
        assert counts.sums["top1_accuracy"] <= counts.sums["top3_accuracy"] <= counts.predicted
        tokens = [([BOS, *s[:t]][-2:], w) for s in client for t, w in enumerate(s[:length]) if t]
        lead = [slow.p(w, *c) - max(slow.p(x, *c) for x in range(EOS, V) if x != w) for c, w in tokens]
        surely, at_most = (sum(each > least for each in lead) for least in (1e-12, -1e-12))
        assert surely <= counts.sums[ALL_TOKENS] <= at_most
    assert found.total.predicted == sum(c.predicted for c in found.clients)


def test_hits_are_the_words_it_suggests() -> None:
    text = [[BOS, 4, 5, 6, EOS]] * 3 + [[BOS, 4, 5, 7, EOS]] * 2 + [[BOS, 4, 5, 8, EOS]]
    model = trained([text])
    assert model.suggestions(*of(4, 5))[0].tolist() == [6, 7, 8]
    held_out = HeldOut(sentences=np.array([[[BOS, 4, 5, 7, EOS], [BOS, OOV, 3, 3, EOS]]], np.int32))
    total = model.evaluate(held_out).total
    assert whole(total) == (6, 3, 2, 3, 2, 3, 4)  # 4 and 5 are certain, 7 comes second; both ends come first


def test_after_an_unseen_pair_the_shorter_context_decides() -> None:
    model = trained([[[BOS, 4, 5, EOS], [BOS, 6, 5, EOS], [BOS, 7, 8, EOS]]])
    assert model.suggestions(*of(8, 7))[0][0] == 8


def test_fewer_words_than_places_leave_places_empty() -> None:
    cache = cache_of([[[BOS, 4, 4, EOS]]])
    model = BackedOffTrigram.train(cache, np.arange(1), vocabulary=5)
    assert model.suggestions(*of(BOS, BOS)).tolist() == [[4, -1, -1]]


def test_reads_whole_sentences_up_to_the_words_asked_for() -> None:
    clients = [[[BOS, 4, EOS], [BOS, 5, 5, EOS]], [[BOS, 6, EOS]]]
    part = trained(clients, words=2)  # the second sentence would be word three
    np.testing.assert_array_equal(part.trigrams.keys, trained([[[BOS, 4, EOS]]]).trigrams.keys)
    np.testing.assert_array_equal(trained(clients, words=4).trigrams.keys, trained(clients).trigrams.keys)


def test_nothing_to_count_is_refused() -> None:
    with pytest.raises(InputError, match="0 clients and words=None leave no sentence"):
        trained([])


def test_discounts_are_chen_and_goodmans() -> None:
    # Chen & Goodman 1998, Eq. 26 by hand: n = 40, 10, 4, 2; Y = 40/60 = 2/3; D1 = 1 - 2*2/3*10/40 = 2/3;
    # D2 = 2 - 3*2/3*4/10 = 1.2; D3 = 3 - 4*2/3*2/4 = 5/3.
    counts = np.repeat([1, 2, 3, 4, 9], [40, 10, 4, 2, 3])
    np.testing.assert_allclose(discounts(counts), [0, 2 / 3, 1.2, 5 / 3])
    np.testing.assert_allclose(discounts(np.array([1, 1, 2])), [0, *UNRELIABLE])
