"""Kneser-Ney in arrays against one n-gram at a time, a small text by hand, and what its file keeps of it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.networks.ngram.slow_kneser_ney import SlowKneserNey

from tacit.errors import InputError
from tacit.networks.ngram.kneser_ney import NOWHERE, KneserNey, kneser_ney, places_of
from tacit.networks.ngram.rows import NGramRows
from tacit.networks.ngram.tables import LOG_ODDS, LOGARITHMIC, NGramTables, backoff_bytes, share_bytes
from tacit.text.vocabulary import BOS, EOS, OOV, PAD

V = 9
sentences = st.lists(st.integers(OOV, V - 1), max_size=7).map(lambda words: [BOS, *words, EOS])
texts = st.lists(sentences, min_size=1, max_size=12)
cutoffs = st.sampled_from([(1, 1, 1, 1), (1, 1, 2, 2), (1, 1, 1), (1, 1, 2), (1, 2, 3), (2, 2, 2), (1, 2), (3,), (1,)])


def counted(text: list[list[int]], cut: tuple[int, ...]) -> KneserNey:
    flat = np.array([word for sentence in text for word in sentence], np.int64)
    return kneser_ney(flat, vocabulary=V, order=len(cut) + 1, cutoffs=cut)


def exactly(model: KneserNey, context: tuple[int, ...]) -> np.ndarray:
    """The same sum that the tables do, from the float64 of every share."""
    words, found = np.arange(V), model.unigram.copy()
    for length, level in enumerate(model.levels, start=1):
        if length > len(context):
            break
        first, *others = context[len(context) - length :]
        place = np.array([first])
        for shorter, word in zip(model.levels, others, strict=False):
            place = places_of(shorter.keys, place * V + word) if place[0] != NOWHERE else place
        if len(level.keys) and place[0] != NOWHERE:
            found = level.share(place * V + words) + level.backoff(place) * found
    return found


@given(text=texts, cut=cutoffs, context=st.lists(st.integers(OOV, V - 1), max_size=5))
def test_it_is_the_slow_one(text: list[list[int]], cut: tuple[int, ...], context: list[int]) -> None:
    slow = SlowKneserNey(text, vocabulary=V, order=len(cut) + 1, cutoffs=cut)
    model = counted(text, cut)
    for each in ([BOS, *context], [BOS, *text[0][1:3]]):
        expected = [slow.p(w, tuple(each)) for w in range(V)]
        np.testing.assert_allclose(exactly(model, tuple(each[-len(cut) :])), expected, atol=1e-12)
        assert sum(expected) == pytest.approx(1, abs=1e-12)


@given(text=texts, cut=cutoffs, weight=st.sampled_from([0.0, 0.3, 1.0]))
def test_tables_keep_the_probabilities_but_for_a_byte(
    text: list[list[int]], cut: tuple[int, ...], weight: float
) -> None:
    """A share is within 3.1%, a backoff within 1/32 of its odds; after every context they sum to one."""
    slow = SlowKneserNey(text, vocabulary=V, order=len(cut) + 1, cutoffs=cut)
    tables = NGramTables.packed(counted(text, cut), weight)
    reread = NGramTables.from_arrays(tables.arrays(), order=tables.order, pair_weight=weight)
    contexts = {tuple(s[max(0, at - len(cut)) : at]) for s in text for at in range(1, len(s))}
    for context in [*contexts, (BOS,), (V - 1,) * len(cut), (OOV, 5)[-len(cut) :]]:
        found = reread.after(context)
        assert found.sum(dtype=np.float64) == pytest.approx(1, abs=1e-6)
        assert found[PAD] == found[BOS] == 0 and (found >= 0).all()
        wanted = [(1 - weight) * slow.p(w, context) + weight * slow.p_pairs(w, context[-1]) for w in range(V)]
        np.testing.assert_allclose(found, wanted, rtol=0.3, atol=1e-5)


def test_a_text_by_hand() -> None:
    """Two sentences, a b and a c: too few for estimates, so that D1 = 1/2 and D2 = 1.

    After how many words: a 1 (the beginning), b 1, c 1, the end 2 (b, c): 5 in all. p(a) = (1 - 1/2) / 5 + backoff / 7
    with backoff (3 * 1/2 + 1) / 5 = 1/2. After a: b and c once each: (1 - 1/2) / 2 + 1/2 p(b). After the beginning, a
    was seen twice: (2 - 1) / 2 + 1/2 p(a).
    """
    a, b, c = 4, 5, 6
    model = counted([[BOS, a, b, EOS], [BOS, a, c, EOS]], (1,))
    one = 0.5 / 5 + 0.5 / 7
    assert model.unigram[[a, b, c]] == pytest.approx(one) and model.unigram[EOS] == pytest.approx(1 / 5 + 0.5 / 7)
    assert exactly(model, (a,))[b] == pytest.approx(0.25 + 0.5 * one)
    assert exactly(model, (BOS,))[a] == pytest.approx(0.5 + 0.5 * one)
    assert model.frequency[[a, b, c, EOS]] == pytest.approx([1 / 3, 1 / 6, 1 / 6, 1 / 3])


def test_bytes_are_the_nearest_values() -> None:
    shares = np.exp(-np.linspace(0.01, 15, 999))
    assert np.abs(np.log(LOGARITHMIC[share_bytes(shares)] / shares)).max() <= 0.0301
    assert share_bytes([0.0, 1.0]).tolist() == [255, 0]
    odds = np.linspace(-7.9, 7.9, 999)
    found = LOG_ODDS[backoff_bytes(1 / (1 + np.exp(-odds)))].astype(np.float64)
    assert np.abs(np.log(found / (1 - found)) - odds).max() <= 1 / 32 + 1e-3
    assert backoff_bytes([0.0, 1.0]).tolist() == [0, 255]


@pytest.mark.parametrize(
    ("order", "cut", "says"),
    [(1, (), "order=1"), (3, (1,), "cutoffs=1 are not 2"), (3, (2, 1), "never fall"), (3, (0, 1), "1 or more")],
)
def test_bad_orders_and_cutoffs_are_refused(order: int, cut: tuple[int, ...], says: str) -> None:
    with pytest.raises(InputError, match=says):
        kneser_ney(np.array([BOS, EOS]), vocabulary=V, order=order, cutoffs=cut)


@pytest.mark.parametrize("name", ["starts.2", "contexts.3", "words.3", "shares.3", "pairs.shares", "unigrams"])
def test_arrays_that_lead_out_of_one_another_are_refused(name: str) -> None:
    arrays = NGramTables.packed(counted([[BOS, 4, 5, 4, EOS]] * 3, (1, 1))).arrays()
    for damaged in (arrays[name][:-1], arrays[name].astype(np.float64), np.full_like(arrays[name], 200)):
        if name.endswith("shares") or name == "unigrams" or name == "shares.3":
            damaged = arrays[name][:-1]
        with pytest.raises(ValueError, match=r"n-grams|missing|axes|frequencies"):
            NGramTables.from_arrays({**arrays, name: damaged}, order=3, pair_weight=0.0)
    with pytest.raises(ValueError, match="missing"):
        NGramTables.from_arrays({k: v for k, v in arrays.items() if k != name}, order=3, pair_weight=0.0)


def test_ids_that_two_bytes_do_not_tell_apart_are_refused() -> None:
    text = np.array([BOS, 4, EOS])
    model = kneser_ney(text, vocabulary=70_000, order=2, cutoffs=(1,))
    for made in (NGramTables.packed, lambda model: NGramRows.of_model(model, 0.0)):
        with pytest.raises(InputError, match=r"70,000 ids .* smaller vocabulary"):
            made(model)


@given(text=texts, cut=cutoffs)
def test_the_probabilities_of_a_text_are_those_after_each_context(text: list[list[int]], cut: tuple[int, ...]) -> None:
    slow, model = SlowKneserNey(text, vocabulary=V, order=len(cut) + 1, cutoffs=cut), counted(text, cut)
    others = [[BOS, 4, 5, EOS], *text[::-1]]
    levels, pairs = model.probabilities(np.array([word for sentence in others for word in sentence], np.int64))
    places = [(s, at) for s in others for at in range(1, len(s))]
    wanted = [slow.p(s[at], tuple(s[max(0, at - len(cut)) : at])) for s, at in places]
    np.testing.assert_allclose(levels, wanted, atol=1e-12)
    np.testing.assert_allclose(pairs, [slow.p_pairs(s[at], s[at - 1]) for s, at in places], atol=1e-12)


def test_long_n_grams_of_many_words_are_counted() -> None:
    """Where the ids of five words have more than 64 bits, as at 10,000 words."""
    size = 10_004
    text = np.array([BOS, *range(9_000, 9_006), EOS] * 3 + [BOS, *range(9_001, 9_006), 7, EOS], np.int64)
    small = np.unique(text, return_inverse=True)[1]  # the same ranks, from BOS as 0
    named = np.array([BOS, EOS, *range(4, 20)])[small]
    found, few = (
        kneser_ney(each, vocabulary=size, order=5, cutoffs=(1, 1, 1, 1)).probabilities(each)[0]
        for each in (text, named)
    )
    np.testing.assert_array_equal(found, few)
