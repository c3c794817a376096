"""The `.combined` list of a model: read back by a slow reader, held against probabilities that are known."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.keyboard.slow_combined import probability, read
from tests.support.keyboard.tabled import Tabled, drawn, table_of, words_of

from tacit.errors import InputError
from tacit.keyboard import dictionary
from tacit.keyboard.dictionary import Entry, can_be_written, combined, dictionary_of, promised, word_entries
from tacit.keyboard.exported import Promise
from tacit.keyboard.phone_model import PhoneModel
from tacit.text.vocabulary import EOS, SPECIALS, Provenance, Vocabulary

HEADER: dict[str, Any] = {"locale": "en", "description": "for tests", "date": 0}
PUBLIC = Promise(kind="public text", says="public", public_text="a book")
LOGS = st.floats(-34.0, 0.0)  # down to f=12
WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=50)


@st.composite
def lists(draw: st.DrawFn) -> list[Entry]:
    words = draw(st.lists(WORDS.filter(can_be_written), min_size=1, max_size=8, unique=True))
    pairs = st.lists(st.tuples(st.sampled_from(words), LOGS), max_size=3, unique_by=lambda pair: pair[0])
    return [Entry(word, draw(LOGS), tuple(draw(pairs)), draw(st.booleans())) for word in words]


@given(entries=lists())
def test_what_is_written_is_read_back_to_half_a_step(entries: list[Entry]) -> None:
    found = read(combined(entries, **HEADER))
    assert found.header["dictionary"] == "main:en" and found.header["version"] == "1"
    assert found.words.keys() == {entry.word for entry in entries}
    assert list(found.words.values()) == sorted(found.words.values(), reverse=True)
    for entry in entries:
        pairs = [(found.words[entry.word], entry.log_probability)]
        pairs += [(found.bigrams[entry.word][word], log) for word, log in entry.followers]
        assert len(found.bigrams[entry.word]) == len(entry.followers)
        for f, log in pairs:
            assert 1 <= f <= 255 and abs(math.log(probability(f)) - log) <= math.log(1.15) / 2 + 1e-9
        assert found.attributes[entry.word] == ({"discovered": "true"} if entry.discovered else {})


def test_the_scale_is_that_of_the_sample() -> None:
    """The scale of LatinIME's dictionaries/sample.combined: 255 is 1, each decrement divides by 1.15."""
    f = [dictionary.frequency(log) for log in (0.0, -math.log(1.15), -10 * math.log(1.15), -1000.0, -math.inf)]
    assert f == [255, 254, 245, 1, 1]  # 0 would be a word that is never suggested
    with pytest.raises(InputError, match="no logarithm of a probability"):
        dictionary.frequency(math.nan)
    with pytest.raises(InputError, match="no logarithm of a probability"):
        dictionary.frequency(0.1)


@pytest.mark.parametrize(
    ("word", "written"),
    [
        *[(word, True) for word in ("don't", "a=b", "3.14", "x" * 47)],
        *[(word, False) for word in ("", "1,000", "a\nb", "a\rb", " a", "x" * 48)],
    ],
)
def test_words_that_the_format_has_no_room_for(word: str, written: bool) -> None:
    assert can_be_written(word) == written


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no words": ({"entries": []}, "no words suggests nothing"),
    "a comma": ({"entries": [Entry("1,000", -1.0)]}, "'1,000' cannot be in the list"),
    "twice": ({"entries": [Entry("a", -1.0), Entry("a", -1.0)]}, "twice"),
    "an unknown follower": ({"entries": [Entry("a", -1.0, (("b", -1.0),))]}, "'b' follows 'a'"),
    "no probability": ({"entries": [Entry("a", 0.5)]}, "no logarithm"),
    "a locale": ({"locale": "English"}, "give a language"),
    "a description": ({"description": "epsilon=8, or so"}, "leave out commas"),
    "no description": ({"description": " "}, "leave out commas"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_written_is_refused(what: str) -> None:
    changed, sentence = REFUSED[what]
    with pytest.raises(InputError, match=sentence):
        combined(**{"entries": [Entry("a", -1.0)], **HEADER, **changed})


def test_locales_are_written_as_android_does() -> None:
    assert "dictionary=main:pt_br,locale=pt_BR," in combined([Entry("a", -1.0)], **{**HEADER, "locale": "pt-BR"})


# -- what a model knows --------------------------------------------------------------------------------------------


def shares_in_text(reader: Tabled) -> Any:
    """(V,) of the words of an endless text, where a sentence is cut after LONGEST_SENTENCE words, as computed here."""
    table = np.exp(reader.logs.astype(np.float64))
    here, sums = np.eye(len(table))[1], np.zeros(len(table))
    for _ in range(dictionary.LONGEST_SENTENCE + 1):
        sums += here @ table
        here = here @ table
        here[EOS] = 0.0
    sums[EOS] = 0.0
    return sums / sums.sum()


def test_unigrams_and_bigrams_are_those_of_the_model() -> None:
    """Of a chain they are known: bigrams are its rows, exactly; shares are sampled, to about a step of 1.15."""
    vocabulary = words_of(*(f"w{chr(97 + number)}" for number in range(20)))
    reader = drawn(3, vocabulary.size, 2.0)
    entries = {entry.word: entry for entry in word_entries(reader, vocabulary, bigrams=True)}
    shares = shares_in_text(reader)
    found = np.exp([entries[word].log_probability for word in vocabulary.words])
    np.testing.assert_allclose(found, shares[SPECIALS:], rtol=0.15)
    assert np.abs(found / shares[SPECIALS:] - 1).mean() < 0.05
    flat = np.exp(reader.logs.astype(np.float64)).mean(axis=0)[SPECIALS:]  # contexts that all count the same are wrong
    assert np.abs(flat / flat.sum() / shares[SPECIALS:] - 1).max() > 0.5
    for word, entry in entries.items():
        row = np.exp(reader.logs[vocabulary.id_of(word)].astype(np.float64))
        assert entry.followers and len(entry.followers) <= dictionary.FOLLOWERS
        for follower, log in entry.followers:
            id = vocabulary.id_of(follower)
            assert math.exp(log) == pytest.approx(row[id] / (1 - row[EOS]), rel=1e-5)
            assert log > entries[follower].log_probability  # a bigram is for what is likelier there than elsewhere


class Before:
    """What follows the word "b" depends on the word before it: "x" after "a b" (one time in five), else "y"."""

    words = ("a", "b", "c", "x", "y")  # with the ids 4 to 8

    def begin(self) -> tuple[int, ...]:
        return ()

    def step(self, state: tuple[int, ...], token: int) -> tuple[tuple[int, ...], Any]:
        chances = np.zeros(9)
        tokens = (*state, token)
        if token == 1:
            chances[[4, 6]] = 0.2, 0.8
        elif token in (4, 6):
            chances[5] = 1.0
        elif token == 5:
            chances[7 if tokens[-2] == 4 else 8] = 1.0
        else:
            chances[EOS] = 1.0
        with np.errstate(divide="ignore"):
            return tokens, np.log(chances).astype(np.float32)


def test_followers_are_asked_where_the_word_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    """p(x | b) = p(a b) = 0.2, from places drawn in proportion; from all places alike it would be 0.5 or nothing."""
    monkeypatch.setattr(dictionary, "CONTEXTS", 400)
    entries = {entry.word: entry for entry in word_entries(Before(), words_of(*Before.words), bigrams=True)}
    after = dict(entries["b"].followers)
    assert math.exp(after["x"]) == pytest.approx(0.2, abs=0.06) and math.exp(after["y"]) == pytest.approx(0.8, abs=0.06)
    assert dict(entries["a"].followers).keys() == {"b"}
    assert math.exp(entries["b"].log_probability) == pytest.approx(1 / 3, rel=0.01)


def phone(vocabulary: Vocabulary) -> PhoneModel:
    return PhoneModel(name="m", reader=drawn(1, vocabulary.size, 1.0), vocabulary=vocabulary, digest="0")


def test_discovered_words_are_marked_and_unwritable_ones_left_out() -> None:
    found = Provenance(kind="discovered", description="by a run", discovered=2)
    vocabulary = replace(words_of("a", "1,000", "selfie", "brunch"), provenance=found)
    text = dictionary_of(phone(vocabulary), PUBLIC, locale="en_GB", date=7)
    listed = read(text)
    assert {word for word, also in listed.attributes.items() if also} == {"selfie", "brunch"}
    assert listed.words.keys() == {"a", "selfie", "brunch"} and listed.header["date"] == "7"
    assert listed.header["description"].endswith("without 1 that cannot be written so")
    assert text == dictionary_of(phone(vocabulary), PUBLIC, locale="en_GB", date=7)


def test_no_word_that_can_be_written_is_refused() -> None:
    with pytest.raises(InputError, match="no word of the model"):
        dictionary_of(phone(words_of("1,000")), PUBLIC, date=0)
    with pytest.raises(InputError, match="no finite numbers"):
        reader = table_of(words_of("a"), {})
        reader.logs = reader.logs * np.nan
        word_entries(reader, words_of("a"), bigrams=False)


STATEMENT = {
    "private": True,
    "delta": 1e-10,
    "key_source": "operating system",
    "labels": [],
    "realised": {"zcdp": 0.5, "epsilon": 6.1234567},
}
PROMISES: dict[str, tuple[Promise, str, bool]] = {
    "public": (PUBLIC, "public text alone", True),
    "unknown": (Promise(kind="unknown", says=""), "no guarantee and so without bigrams", False),
    "private": (
        Promise(kind="statement", says="", statement=STATEMENT),
        "zCDP 0.5 and epsilon 6.124 at delta 1e-10 for each client",
        True,
    ),
    "several releases": (
        Promise(kind="statement", says="", statement={**STATEMENT, "in_all": {"realised": {"zcdp": 1, "epsilon": 9}}}),
        "zCDP 1 and epsilon 9 at",
        True,
    ),
    "a fixed seed": (
        Promise(kind="statement", says="", statement={**STATEMENT, "key_source": "fixed seed 7"}),
        "noise of a known seed and so without bigrams",
        False,
    ),
    "a label": (
        Promise(kind="statement", says="", statement={**STATEMENT, "labels": [{"name": "WEAKER THAN PLANNED"}]}),
        "; labelled WEAKER THAN PLANNED",
        True,
    ),
    "without noise": (
        Promise(kind="statement", says="", statement={**STATEMENT, "private": False}),
        "no guarantee and so without bigrams",
        False,
    ),
}


@pytest.mark.parametrize("what", PROMISES)
def test_bigrams_are_shown_under_a_guarantee_only_and_the_description_names_it(what: str) -> None:
    privacy, says, shown = PROMISES[what]
    said, bigrams = promised(privacy)
    assert says in said and bigrams == shown
    listed = read(dictionary_of(phone(words_of("a", "b", "c")), privacy, date=0))
    assert says in listed.header["description"] and any(listed.bigrams.values()) == shown
