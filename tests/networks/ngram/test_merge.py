"""Several counted texts as one model against one n-gram at a time, what is left out for room, and the texts' shares."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.networks.ngram.slow_kneser_ney import Gram, SlowKneserNey

from tacit.networks.ngram.bend import ObservedCells
from tacit.networks.ngram.kneser_ney import KneserNey, discounts, kneser_ney
from tacit.networks.ngram.merge import _fitted, likeliest_shares, merged, shares_by_words, within
from tacit.networks.ngram.tables import NGramTables
from tacit.text.vocabulary import BOS, EOS, OOV, PAD, SPECIALS

V = 9
sentences = st.lists(st.integers(OOV, V - 1), max_size=6).map(lambda words: [BOS, *words, EOS])
texts = st.lists(sentences, min_size=1, max_size=10)
cutoffs = st.sampled_from([(1, 1, 1), (1, 2, 3), (1, 2), (1,)])


MANY_WORDS = 10_004
MANY = np.array([*range(SPECIALS), *range(9_000, 9_000 + V - SPECIALS)])  # other ids of the same words


def flat(text: list[list[int]]) -> np.ndarray:
    return np.array([word for sentence in text for word in sentence], np.int64)


def tables_of(text: list[list[int]], cut: tuple[int, ...], pair_weight: float = 0.0) -> NGramTables:
    return NGramTables.packed(kneser_ney(flat(text), vocabulary=V, order=len(cut) + 1, cutoffs=cut), pair_weight)


class SlowMerge:
    """Of the dictionaries of several texts, each with its weight a count."""

    def __init__(self, models: list[SlowKneserNey], weights: list[float]) -> None:
        self.models, self.weights = models, weights

    def p(self, w: int, context: Gram) -> float:
        if not context:
            totals = [weight * sum(model.counts[1].values()) for model, weight in self._each()]
            parts = [total * model._p(w, ()) for total, model in zip(totals, self.models, strict=True)]
            return sum(parts) / sum(totals)
        share, left = self._share(w, context, lambda model: model.counts[len(context) + 1])
        return share + left * self.p(w, context[1:])

    def p_pairs(self, w: int, before: int) -> float:
        share, left = self._share(w, (before,), lambda model: model.seen[2])
        return share + left * self.p(w, ())

    def _each(self) -> Any:
        return zip(self.models, self.weights, strict=True)

    def _share(self, w: int, context: Gram, counts: Any) -> tuple[float, float]:
        m, total, given = len(context) + 1, 0.0, dict.fromkeys(range(V), 0.0)
        for model, weight in self._each():
            taken = discounts(np.array(list(counts(model).values()), np.int64))
            of = {gram: count for gram, count in counts(model).items() if gram[:-1] == context}
            kept = {gram: count for gram, count in of.items() if gram in model.kept[m]}
            total += weight * sum(of.values()) * bool(kept)
            for gram, count in kept.items():
                given[gram[-1]] += weight * (count - taken[min(count, 3)])
        return (given[w] / total, 1 - sum(given.values()) / total) if total else (0.0, 1.0)


@given(
    one=texts, other=texts, cut=cutoffs, share=st.sampled_from([0.1, 0.5, 0.8]), pair_weight=st.sampled_from([0.0, 1.0])
)
def test_it_is_the_slow_one(
    one: list[list[int]], other: list[list[int]], cut: tuple[int, ...], share: float, pair_weight: float
) -> None:
    """Within what the bytes of both models and of the merged one round away; after every context they sum to one."""
    both = [tables_of(text, cut, pair_weight) for text in (one, other)]
    found = merged(both, [share, 1 - share])
    assert found.pair_weight == pytest.approx(pair_weight)
    again = NGramTables.from_arrays(found.arrays(), order=found.order, pair_weight=pair_weight)
    slow_models = [SlowKneserNey(text, vocabulary=V, order=len(cut) + 1, cutoffs=cut) for text in (one, other)]
    tokens = [sum(model.seen[1].values()) for model in slow_models]
    slow = SlowMerge(slow_models, [share / tokens[0], (1 - share) / tokens[1]])
    contexts = {tuple(s[max(0, at - len(cut)) : at]) for s in one + other for at in range(1, len(s))}
    for context in [*contexts, (BOS,), (V - 1,) * len(cut)]:
        probabilities = again.after(context)
        assert probabilities.sum(dtype=np.float64) == pytest.approx(1, abs=1e-6)
        assert probabilities[PAD] == probabilities[BOS] == 0 and (probabilities >= 0).all()
        wanted = [slow.p_pairs(w, context[-1]) if pair_weight else slow.p(w, context) for w in range(V)]
        np.testing.assert_allclose(probabilities, wanted, rtol=0.35, atol=2e-3)


def test_a_text_has_a_say_after_the_contexts_that_it_knows() -> None:
    a, b, c, d = 4, 5, 6, 7
    one = tables_of([[BOS, a, b, EOS]] * 20 + [[BOS, b, EOS]] * 3, (1,))
    other = tables_of([[BOS, a, c, EOS]] * 20 + [[BOS, d, c, EOS]] * 20, (1,))
    found = merged([one, other], [0.9, 0.1])
    after_both, after_other = found.after((a,)), found.after((d,))
    assert after_both[b] > 3 * after_both[c]
    assert after_other[c] == pytest.approx(other.after((d,))[c], rel=0.1)  # whatever its text's weight


def size_of(model: KneserNey) -> int:
    """Of all that grows with the n-grams; each array besides has one start more."""
    arrays = NGramTables.packed(model).arrays()
    return sum(each.nbytes for name, each in arrays.items() if name[-1] in "2345" or name.startswith("pairs"))


def grams_of(model: KneserNey) -> list[list[Gram]]:
    """The n-grams of 2, 3, ... words, in the order of their keys."""
    shorter: list[Gram] = [(word,) for word in range(model.vocabulary)]
    found = list[list[Gram]]()
    for level in model.levels:
        shorter = [(*shorter[key // model.vocabulary], key % model.vocabulary) for key in level.keys.tolist()]
        found.append(shorter)
    return found


def worth_of(model: KneserNey) -> dict[Gram, float]:
    """Of each n-gram its count times the nats that it adds, or what a longer one that begins so is worth, if more."""
    shares, left, totals = dict[Gram, float](), dict[Gram, float](), dict[Gram, float]()
    for level, grams in zip(model.levels, grams_of(model), strict=True):
        shares |= dict(zip(grams, level.shares.tolist(), strict=True))
        contexts = [grams[start][:-1] for start in level.starts[:-1]]
        left |= dict(zip(contexts, level.backoffs.tolist(), strict=True))
        totals |= dict(zip(contexts, level.totals.tolist(), strict=True))

    def p(gram: Gram) -> float:
        if len(gram) == 1:
            return float(model.unigram[gram[0]])
        return shares.get(gram, 0.0) + left.get(gram[:-1], 1.0) * p(gram[1:])

    found = {gram: each * totals[gram[:-1]] * float(np.log(p(gram) / p(gram[1:]))) for gram, each in shares.items()}
    for gram in sorted(found, key=len, reverse=True):
        if len(gram) > 2:
            found[gram[:-1]] = max(found[gram[:-1]], found[gram])
    return found


@pytest.mark.parametrize(("size", "ids"), [(V, np.arange(V)), (MANY_WORDS, MANY)], ids=["few words", "many words"])
def test_those_worth_least_are_left_out(size: int, ids: np.ndarray) -> None:
    random = np.random.default_rng(0)
    lines = random.integers(0, 3, (600, 8))
    for at in range(2, 8):  # two words say the next one, mostly
        lines[:, at] = (lines[:, at - 1] + lines[:, at - 2] + (lines[:, at] * random.random(600) > 1)) % 5
    text = ids[flat([[BOS, *row, EOS] for row in (lines + SPECIALS).tolist()])]
    model = kneser_ney(text, vocabulary=size, order=5, cutoffs=(1, 1, 1, 1))
    rare = kneser_ney(text, vocabulary=size, order=5, cutoffs=(1, 8, 8, 8))
    of_bytes = [size_of(model), size_of(rare)]
    assert within(model, of_bytes[0]) is model
    small = within(model, of_bytes[1])
    assert 0.9 * of_bytes[1] < size_of(small) <= of_bytes[1] + 100 < of_bytes[0]
    worth = worth_of(model)
    kept = {gram for grams in grams_of(small) for gram in grams}
    left_out = [value for gram, value in worth.items() if gram not in kept]
    assert 0 < len(kept) < len(worth) and min(worth[gram] for gram in kept) >= max(left_out) - 1e-9
    tables = NGramTables.packed(small)
    for context in ((BOS,), (BOS, 4), (4, 4, 5), (8, 8, 8)):
        assert tables.after(tuple(ids[list(context)])).sum(dtype=np.float64) == pytest.approx(1, abs=1e-6)


@given(share=st.floats(0.05, 0.95), seed=st.integers(0, 99))
def test_shares_are_those_of_the_mixture_that_was_drawn(share: float, seed: int) -> None:
    """And no others of a fine grid are likelier."""
    random = np.random.default_rng(seed)
    likelihoods = random.dirichlet(np.ones(40), 2)
    counts = random.multinomial(100_000, np.array([share, 1 - share]) @ likelihoods).astype(float)
    found = likeliest_shares(likelihoods, counts)
    assert found.sum() == pytest.approx(1) and found[0] == pytest.approx(share, abs=0.03)
    best = counts @ np.log(found @ likelihoods)
    for other in np.linspace(0, 1, 201):
        assert counts @ np.log(np.array([other, 1 - other]) @ likelihoods + 1e-300) <= best + 0.1


def test_shares_follow_from_released_words_unless_noise_hides_them() -> None:
    one, other = tables_of([[BOS, 4, 4, 5, EOS]] * 9, (1,)), tables_of([[BOS, 7, 8, 8, EOS]] * 9, (1,))
    expected = 0.8 * one.frequencies[SPECIALS:] + 0.2 * other.frequencies[SPECIALS:]
    otherwise = np.array([0.5, 0.5])
    for stddev, wanted in ((10.0, [0.8, 0.2]), (1e6, [0.5, 0.5])):
        noise = np.random.default_rng(1).normal(0, stddev, V - SPECIALS)
        cells = ObservedCells.dense(1e4 * expected.astype(np.float64) + noise, stddev)
        np.testing.assert_allclose(shares_by_words([one, other], cells, otherwise), wanted, atol=0.02)


@dataclass
class Frequencies:
    """As much of a model as shares by words look at."""

    frequencies: np.ndarray
    unigrams: np.ndarray

    @classmethod
    def drawn(cls, random: np.random.Generator, words: int) -> "Frequencies":
        """By Zipf's law, each word besides with a deviation of its own, log-normal."""
        share = 1 / np.arange(3, words + 3) * random.lognormal(0, 1, words)
        share /= share.sum()
        padded = np.concatenate([np.zeros(SPECIALS), share])
        return cls(padded, padded)


@pytest.mark.parametrize("stddev", [0.0, 3.0, 80.0])
def test_shares_are_found_under_loud_noise_and_for_text_like_none(stddev: float) -> None:
    """With 60,000 words typed and noise of 80 in each of 5,000 counts, as 500 people give at epsilon 1. What they type
    is 0.85 like one text, and beside that each word has its own deviation.
    """
    found = []
    for seed in range(20):
        random = np.random.default_rng(seed)
        texts = [Frequencies.drawn(random, 5_000) for _ in range(2)]
        typed = 0.85 * texts[0].frequencies + 0.15 * texts[1].frequencies
        typed = typed[SPECIALS:] * random.gamma(20, 1 / 20, 5_000)
        counts = random.poisson(60_000 * typed) + random.normal(0, stddev, 5_000)
        cells = ObservedCells.dense(counts, stddev)
        found.append(shares_by_words(texts, cells, np.array([0.5, 0.5]))[0])  # type: ignore[arg-type]
    assert np.mean(found) == pytest.approx(0.85, abs=0.02)
    assert np.std(found) < 0.05, "the noise is weighed by its size"


@given(share=st.floats(0, 1), stddev=st.floats(0, 100), seed=st.integers(0, 99))
def test_no_other_shares_fit_released_words_better(share: float, stddev: float, seed: int) -> None:
    """By squared residuals under the same variances, over a grid of shares and lengths: what is slow and obvious."""
    random = np.random.default_rng(seed)
    texts = random.dirichlet(np.full(50, 0.5), 2)
    counts = random.poisson(5_000 * np.array([share, 1 - share]) @ texts) + random.normal(0, stddev, 50)
    cells = ObservedCells.dense(counts, stddev)
    lengths, residuals, errors = _fitted(texts, cells, np.array([0.5, 0.5]), 1.0)
    for other in np.linspace(0, 1, 41):
        mean = np.array([other, 1 - other]) @ texts / errors
        length = max(0.0, float(mean @ (counts / errors) / (mean @ mean)))
        rest = counts / errors - length * mean
        assert residuals @ residuals <= rest @ rest + 1e-6 * (1 + rest @ rest)
    np.testing.assert_allclose(residuals, (counts - lengths @ texts) / errors)


def test_models_that_do_not_fit_are_refused() -> None:
    one = tables_of([[BOS, 4, 5, EOS]] * 3, (1, 1))
    for models, shares in (
        ([one, tables_of([[BOS, 4, EOS]], (1,))], [0.5, 0.5]),
        ([one, one], [1.0, 0.0]),
        ([one, one], [0.7, 0.7]),
        ([one], [0.5, 0.5]),
    ):
        with pytest.raises(ValueError, match="not merged"):
            merged(models, shares)


@given(one=texts, other=texts, cut=cutoffs)
def test_what_is_merged_are_the_n_grams_of_all_texts(
    one: list[list[int]], other: list[list[int]], cut: tuple[int, ...]
) -> None:
    """Each once, in the order of the words, whatever its place is in one text."""
    models = [kneser_ney(flat(text), vocabulary=V, order=len(cut) + 1, cutoffs=cut) for text in (one, other)]
    found = merged([NGramTables.packed(each) for each in models], [0.5, 0.5])
    shorter: list[Gram] = [(word,) for word in range(V)]
    for level, *of_each in zip(found.levels, *map(grams_of, models), strict=True):
        contexts = np.repeat(level.contexts.astype(np.int64), np.diff(level.starts.astype(np.int64)))
        shorter = [(*shorter[at], word) for at, word in zip(contexts.tolist(), level.words.tolist(), strict=True)]
        assert shorter == sorted({gram for grams in of_each for gram in grams})


def test_long_n_grams_of_many_words_are_merged() -> None:
    """Where the ids of five words have more than 64 bits, as at 10,000 words: all is as with few words."""
    few, many = np.arange(V), MANY
    lines = np.random.default_rng(3).integers(OOV, V, (60, 6)).tolist()
    text = [[BOS, *line, EOS] for line in lines]
    merges = []
    for size, ids in ((V, few), (MANY_WORDS, many)):
        parts = [
            kneser_ney(ids[flat(part)], vocabulary=size, order=5, cutoffs=(1, 1, 1, 1))
            for part in (text[:30], text[20:])
        ]
        merges.append(merged([NGramTables.packed(each) for each in parts], [0.4, 0.6]))
    for one, other in zip(*(each.levels for each in merges), strict=True):
        for name in ("starts", "shares", "totals", "backoffs"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
        np.testing.assert_array_equal(many[one.words], other.words)
