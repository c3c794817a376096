"""Phrases: beam search against every phrase there is, and what is shown under what was typed."""

from itertools import product as cartesian
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.support.keyboard.tabled import drawn, table_of, words_of

from tacit.errors import InputError
from tacit.keyboard.compose import Composed
from tacit.keyboard.suggest import READ_AHEAD, TypingSession
from tacit.text.vocabulary import BOS, EOS, OOV, SPECIALS

VOCABULARY = words_of("aa", "ab", "a", "ba", "bb")
CLOSE = 1e-5  # float32


def exhaustively(
    table: Any, prefix: str, *, threshold: float, longest: int, own: dict[str, float]
) -> list[tuple[tuple[str, ...], float]]:
    """Every phrase that passes, with its probability, from probabilities alone; own: shares of <oov>."""
    known = VOCABULARY.words
    word_ids = {word: at + SPECIALS for at, word in enumerate(known)} | dict.fromkeys(own, OOV)

    def next_word(before: int, word: str) -> float:
        return float(table[before, word_ids[word]]) * own.get(word, 1.0)

    def first(word: str) -> float:
        begin = [each for each in word_ids if each.startswith(prefix)]
        share = sum(each.startswith(prefix) for each in known) / len(known)
        unknown = float(table[BOS, OOV]) * (1 - sum(own.values())) * share
        return next_word(BOS, word) / (sum(next_word(BOS, each) for each in begin) + unknown)

    found = []
    for length in range(1, longest + 1):
        for phrase in cartesian(word_ids, repeat=length):
            if not phrase[0].startswith(prefix) or phrase == (prefix,):
                continue
            before = [BOS, *(word_ids[word] for word in phrase)]
            each = [next_word(b, word) for b, word in zip(before, phrase, strict=False)]
            ends = [float(table[b, EOS]) for b in before[:-1]]
            if prefix:
                each[0], ends[0] = first(phrase[0]), 0.0
            assume(abs(prod(each) / threshold - 1) > CLOSE)
            assume(all(abs(p / end - 1) > CLOSE for p, end in zip(each, ends, strict=True) if end))
            if prod(each) >= threshold and all(p >= end for p, end in zip(each, ends, strict=True)):
                found.append((phrase, prod(each)))
    return found


@given(
    seed=st.integers(0, 10**6),
    sharpness=st.floats(0.5, 6.0),
    prefix=st.sampled_from(["", "a", "aa", "ab", "b", "c"]),
    threshold=st.floats(0.02, 1.0),
    longest=st.integers(1, 3),
    user_words=st.sampled_from([{}, {"ac": 3}, {"ac": 1, "cc": 2}]),
)
def test_it_is_the_longest_of_all_phrases_that_pass(
    seed: int, sharpness: float, prefix: str, threshold: float, longest: int, user_words: dict[str, int]
) -> None:
    """With 1 / threshold beams no phrase is missed."""
    reader = drawn(seed, VOCABULARY.size, sharpness)
    typed = sum(user_words.values()) + len(user_words)
    own = {word: count / typed for word, count in user_words.items()}
    passing = exhaustively(
        np.exp(reader.logs.astype(np.float64)), prefix, threshold=threshold, longest=longest, own=own
    )
    session = TypingSession(reader, VOCABULARY, user_words=user_words)
    found = session.compose(prefix, threshold=threshold, longest=longest, beams=50)
    if not passing:
        assert found is None
        return
    most = max(len(phrase) for phrase, _ in passing)
    best, probability = max(((p, s) for p, s in passing if len(p) == most), key=lambda each: each[1])
    assert found is not None and found.probability == pytest.approx(probability, rel=1e-4)
    assert found.words == best or any(p == found.words and s == pytest.approx(probability) for p, s in passing)


WANTED = st.lists(st.sampled_from(["aa", "AB", "a", "ba", "bb", "zz", None]), max_size=5)


@given(
    seed=st.integers(0, 10**6),
    sharpness=st.floats(0.5, 6.0),
    prefix=st.sampled_from(["", "a", "aa", "ab", "b", "c"]),
    threshold=st.floats(0.02, 1.0),
    wanted=WANTED,
    follows=st.booleans(),
)
def test_what_a_phrase_brings_is_known_as_of_the_whole_phrase(
    seed: int, sharpness: float, prefix: str, threshold: float, wanted: list[str | None], follows: bool
) -> None:
    """With fewer steps of the model; half of the texts go on as the phrase does."""
    session = TypingSession(drawn(seed, VOCABULARY.size, sharpness), VOCABULARY)
    phrase = session.compose(prefix, threshold=threshold)
    if follows and phrase is not None:
        wanted = [*phrase.words, *wanted]
    spelled = [word and word.lower() for word in wanted]
    slowly = None
    if phrase is not None:
        slowly = len(phrase.words) if spelled[: len(phrase.words)] == list(phrase.words) else 0
    assert session.words_brought(prefix, wanted, threshold=threshold) == slowly


def test_a_phrase_that_nobody_wants_is_not_carried_on_with() -> None:
    table = {"<bos>": {"aa": 0.6, "ab": 0.3}, "aa": {"ba": 0.9}, "ba": {"bb": 0.9}}
    reader = Counted(table_of(VOCABULARY, table))
    session = TypingSession(reader, VOCABULARY)
    assert session.words_brought("", ["bb"], threshold=0.2) == 0 and reader.tokens == [BOS]
    assert session.words_brought("", ["AA", "ba", "bb", "a"], threshold=0.2) == 3
    assert session.words_brought("", ["aa"], threshold=0.2) == 0, "the phrase is longer"
    assert session.words_brought("b", ["ba"], threshold=0.2) is None


class Counted:
    """A reader that remembers which tokens it was asked to read."""

    def __init__(self, reader: Any) -> None:
        self.reader = reader
        self.tokens: list[int] = []

    def begin(self) -> Any:
        return self.reader.begin()

    def step(self, state: Any, token: int) -> Any:
        self.tokens.append(token)
        return self.reader.step(state, token)


def test_what_was_read_ahead_is_not_read_again() -> None:
    table = {"<bos>": {"aa": 0.9}, "aa": {"ba": 0.9}, "ba": {"bb": 0.3}}
    reader = Counted(table_of(VOCABULARY, table))
    session = TypingSession(reader, VOCABULARY)
    fresh = session.fork()
    for _ in range(3):
        assert str(session.compose(threshold=0.5)) == "aa ba"
    one, two = (VOCABULARY.id_of(word) for word in ("aa", "ba"))
    assert reader.tokens == [BOS, one, two]
    session.commit("aa")
    assert session.compose(threshold=0.5) is not None and reader.tokens == [BOS, one, two]
    session.commit("ba bb")
    assert reader.tokens == [BOS, one, two, VOCABULARY.id_of("bb")]
    assert fresh.compose(threshold=0.5) is not None and len(reader.tokens) == 4, "a fork remembers it too"


WRITTEN = st.lists(st.sampled_from(["aa", "ab", "a", "ba. ", "zz", "ac"]), max_size=6)


@given(seed=st.integers(0, 10**6), ahead=WRITTEN, written=WRITTEN)
def test_a_session_that_read_ahead_stands_where_one_stands_that_did_not(
    seed: int, ahead: list[str], written: list[str]
) -> None:
    reader = drawn(seed, VOCABULARY.size, 3.0)
    plain, asking = (TypingSession(reader, VOCABULARY, user_words={"ac": 2}) for _ in range(2))
    for word in written:
        step = asking
        for other in ahead:
            step = step.after(other.strip(". "))
        asking.compose(word[:1], threshold=0.1)
        one = asking.after(word.strip(". "))
        plain.commit(word)
        asking.commit(word)
        if "." not in word:
            assert one.rescore(VOCABULARY.words) == plain.rescore(VOCABULARY.words)
        assert asking.rescore(VOCABULARY.words) == plain.rescore(VOCABULARY.words)
        assert asking.next_words(3) == plain.next_words(3)


def test_what_is_remembered_ahead_is_bounded() -> None:
    words = words_of(*(f"w{number}" for number in range(3 * READ_AHEAD)))
    reader = Counted(drawn(0, words.size, 1.0))
    session = TypingSession(reader, words)
    for word in words.words:
        session.after(word)
    last = words.words[-1]
    before = len(reader.tokens)
    session.after(last)
    assert len(reader.tokens) == before, "the last ones are remembered"
    session.after(words.words[0])
    assert len(reader.tokens) == before + 1, "and the first ones forgotten"


ROWS = {
    "<bos>": {"thank": 0.5, "that": 0.2, "the": 0.1, "<eos>": 0.1},
    "thank": {"you": 0.9, "<eos>": 0.05},
    "you": {"for": 0.5, "<eos>": 0.4},
    "for": {"that": 0.3, "<eos>": 0.6},
    "that": {"you": 0.4},
}
SPOKEN = words_of("thank", "you", "for", "that", "the")


def spoken() -> TypingSession:
    return TypingSession(table_of(SPOKEN, ROWS), SPOKEN)


def test_it_is_asked_again_at_every_character() -> None:
    """thank you for: 0.5 * 0.9 * 0.5 before anything is typed; "th" leaves 0.8 and an unknown word's share 0.06."""
    asked = {prefix: spoken().compose(prefix, threshold=0.25) for prefix in ("", "t", "th", "tha", "than", "x", "you")}
    assert {prefix: each and str(each) for prefix, each in asked.items()} == {
        "": "thank you",
        "t": "thank you for",
        "th": "thank you for",
        "tha": "thank you for",
        "than": "thank you for",
        "x": None,
        "you": None,
    }
    found = asked["th"]
    assert isinstance(found, Composed) and found.probability == pytest.approx(0.5 / (0.8 + 0.1 * 3 / 5) * 0.9 * 0.5)


def test_no_phrase_goes_on_where_the_end_is_likelier() -> None:
    session = spoken()
    session.commit("thank you")
    assert session.compose(threshold=1e-6) == Composed(("for",), pytest.approx(0.5))
    session.commit("for")
    assert session.compose(threshold=1e-6) is None


def test_what_is_typed_already_is_no_phrase() -> None:
    session = spoken()
    session.commit("you")
    assert session.compose("for", threshold=0.9) is None
    assert session.compose("fo", threshold=0.9) == Composed(("for",), pytest.approx(0.5 / (0.5 + 0.1 / 5)))


def test_asking_moves_nothing_and_few_beams_are_few_steps() -> None:
    reader = table_of(SPOKEN, ROWS)
    steps: list[int] = []
    step = reader.step
    reader.step = lambda state, token: (steps.append(token), step(state, token))[1]  # type: ignore[method-assign]
    session = TypingSession(reader, SPOKEN)
    before = session.next_words()
    session.compose(threshold=0.01, longest=3, beams=2)
    assert len(steps) == 1 + 2 * 2 and session.next_words() == before


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"threshold": 0.0}, "threshold=0 is no probability above 0"),
        ({"threshold": float("nan")}, "threshold=nan"),
        ({"threshold": 0.1, "longest": 0}, "longest=0 composes nothing"),
        ({"threshold": 0.1, "beams": True}, "beams=True is of the type bool"),
        ({"threshold": 0.1, "prefix": 3}, "prefix=3 is of the type int"),
    ],
)
def test_what_cannot_be_asked_is_refused(given: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        spoken().compose(**given)
