"""Phrases: beam search against every phrase there is, and what is shown under what was typed."""

from itertools import product as cartesian
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.keyboard.tabled import drawn, table_of, words_of

from tacit.errors import InputError
from tacit.keyboard.compose import Composed
from tacit.keyboard.suggest import TypingSession
from tacit.keyboard.vocabulary import BOS, EOS, OOV, SPECIALS

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
