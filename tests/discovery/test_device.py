"""The device's part: what it holds, what it chooses, what it sends; against the plainest statement of each."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from tacit.discovery.device_part import answers, choose, reports, uniforms_from
from tacit.discovery.question import PrefixQuestion, WordQuestion
from tacit.discovery.settings import LocalReportSettings
from tacit.errors import InputError
from tacit.text.alphabet import END, PRINTABLE, Alphabet

ABC = Alphabet("abc")
GREEDY = LocalReportSettings(local_epsilon=4.0, contributions=2, sampler="greedy")
TYPED = {"a": 1, "ab": 2, "abc": 4, "b": 3, "cab": 1, "d": 9}


def prefixes_held(typed: dict[str, int], question: PrefixQuestion, settings: LocalReportSettings) -> list[str]:
    """The texts of a device's answers, null left out."""
    given_answers = answers(typed, question, settings, np.zeros(settings.contributions))
    return [question.text_of(int(answer)) for answer in given_answers if answer < question.domain - 1]


def test_the_printable_alphabet_has_100_symbols_with_the_end() -> None:
    assert Alphabet().size == 100 == len(set(PRINTABLE + END))
    assert Alphabet("ab").with_characters("bñé").symbols == "abñé" + END
    assert Alphabet("abñ").spells("ñab")
    assert not Alphabet("ab").spells("abc") and not Alphabet("ab").spells("")


@pytest.mark.parametrize("characters", ["", "aba", "a\n", "e\u0301\u212b"])
def test_alphabets_that_cannot_be(characters: str) -> None:
    with pytest.raises(InputError):
        Alphabet(characters)


@pytest.mark.parametrize(
    "wrong", [{"local_epsilon": 0.0}, {"local_epsilon": float("nan")}, {"contributions": 0}, {"sampler": "best"}]
)
def test_settings_that_cannot_be(wrong: dict[str, object]) -> None:
    with pytest.raises(InputError):
        LocalReportSettings(**{"local_epsilon": 1.0, **wrong})  # type: ignore[arg-type]


def test_a_device_reports_one_more_character_of_what_it_holds() -> None:
    first = PrefixQuestion(prefixes=("",), alphabet=ABC, depth=4)
    assert first.domain == 5
    assert prefixes_held(TYPED, first, GREEDY) == ["a", "b"]  # "d" is not in the alphabet
    second = PrefixQuestion(prefixes=("a", "b"), alphabet=ABC, depth=4)
    assert prefixes_held(TYPED, second, GREEDY) == ["ab", "b" + END]
    third = PrefixQuestion(prefixes=("ab",), alphabet=ABC, depth=4)
    assert prefixes_held(TYPED, third, GREEDY) == ["ab" + END, "abc"]
    assert prefixes_held(TYPED, PrefixQuestion(prefixes=("ab",), alphabet=ABC, depth=3), GREEDY) == ["ab" + END]
    knows = PrefixQuestion(prefixes=("ab",), alphabet=ABC, depth=4, found=frozenset({"abc"}))
    assert prefixes_held(TYPED, knows, GREEDY) == ["ab" + END]


def test_fewer_things_than_contributions_are_padded_with_null() -> None:
    question = PrefixQuestion(prefixes=("ab",), alphabet=ABC, depth=4)
    many = LocalReportSettings(local_epsilon=4.0, contributions=5)
    assert answers(TYPED, question, many, np.zeros(5)).tolist() == [3, 2, 4, 4, 4]
    assert answers({}, question, many, np.zeros(5)).tolist() == [4] * 5


def test_words_that_are_not_listed_are_another_word() -> None:
    question = WordQuestion(words=("b", "abc"))
    many = LocalReportSettings(local_epsilon=4.0, contributions=7)
    assert answers(TYPED, question, many, np.zeros(7)).tolist() == [2, 2, 1, 0, 2, 2, 3]


words = st.dictionaries(st.text("abcd", min_size=1, max_size=4), st.integers(1, 5), max_size=8)
questions = st.builds(
    PrefixQuestion,
    prefixes=st.sampled_from([("",), ("a", "c"), ("c", "b", "a"), ("ab", "cc"), ("abc",)]),
    alphabet=st.just(ABC),
    depth=st.integers(2, 5),
    found=st.sampled_from([frozenset(), frozenset({"a", "ab", "cc"})]),
)


@given(words, questions, st.integers(1, 4))
def test_greedy_answers_are_the_most_typed_prefixes(typed: dict[str, int], question: PrefixQuestion, k: int) -> None:
    """Algorithm 2 written down anew: prefixes of words with their end, counted, sorted by count and then text."""
    held: Counter[str] = Counter()
    for word, count in typed.items():
        whole = word + END
        alive = len(whole) >= question.layer and whole[: question.layer - 1] in question.prefixes
        if alive and len(whole) <= question.depth and set(word) <= set("abc") and word not in question.found:
            held[whole[: question.layer]] += count
    ranked = sorted(held, key=lambda prefix: (-held[prefix], prefix))[:k]
    settings = LocalReportSettings(local_epsilon=1.0, contributions=k, sampler="greedy")
    assert Counter(prefixes_held(typed, question, settings)) == Counter(ranked)


@given(st.lists(st.integers(1, 9), max_size=8), st.integers(0, 2**32), st.integers(1, 4))
def test_random_choices_are_different_things(counts: list[int], seed: int, k: int) -> None:
    settings = LocalReportSettings(local_epsilon=1.0, contributions=k)
    chosen = choose(np.array(counts, np.int64), settings, np.random.default_rng(seed).random(k))
    assert len(set(chosen.tolist())) == len(chosen) == min(k, len(counts))
    assert set(chosen.tolist()) <= set(range(len(counts)))


def test_random_choices_are_uniform_and_weighted_ones_are_told_apart() -> None:
    generator = np.random.default_rng(5)
    settings = LocalReportSettings(local_epsilon=1.0, contributions=2)
    counts = np.array([100, 1, 1, 1], np.int64)
    pairs: Counter[tuple[int, ...]] = Counter()
    for _ in range(6000):
        pairs[tuple(sorted(choose(counts, settings, generator.random(2)).tolist()))] += 1
    assert len(pairs) == 6
    assert chisquare(list(pairs.values())).pvalue > 0.01
    assert chisquare(list(pairs.values()), np.array([1, 1, 1, 0.9, 0.9, 1.2]) * 1000).pvalue < 1e-3


@given(words, questions, st.integers(1, 3), st.text("abc", min_size=1, max_size=4), st.integers(0, 99))
def test_swapping_one_word_typed_changes_at_most_one_answer(
    typed: dict[str, int], question: PrefixQuestion, k: int, other: str, which: int
) -> None:
    """Theorem 1 needs it of the greedy sampler; the random one has it by coupling."""
    if not typed:
        return
    gone = sorted(typed)[which % len(typed)]
    swapped = Counter(typed) - Counter({gone: 1}) + Counter({other: 1})
    settings = LocalReportSettings(local_epsilon=1.0, contributions=k, sampler="greedy")
    before, after = (Counter(answers(t, question, settings, np.zeros(k)).tolist()) for t in (typed, swapped))
    assert (before - after).total() <= 1


def test_reports_come_in_an_order_that_tells_nothing() -> None:
    """At an epsilon that hides nothing each report is its answer; every order of three is equally likely."""
    question = PrefixQuestion(prefixes=("",), alphabet=ABC, depth=4)
    settings = LocalReportSettings(local_epsilon=30.0, contributions=3)
    generator = np.random.default_rng(3)
    orders: Counter[tuple[int, ...]] = Counter()
    for _ in range(1200):
        sent = reports({"a": 1, "b": 1, "c": 1}, question, settings, generator)
        orders[tuple(settings.randomizer_for(question.domain).votes(row[None]).argmax() for row in sent)] += 1
    assert len(orders) == 6
    assert chisquare(list(orders.values())).pvalue > 0.01


def test_uniform_numbers_are_those_of_numpy() -> None:
    assert uniforms_from(np.random.default_rng(1), 4).tolist() == np.random.default_rng(1).random(4).tolist()
