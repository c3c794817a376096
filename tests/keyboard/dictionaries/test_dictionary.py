"""A model's words as a dictionary: held against probabilities that are known, and the `.combined` list read back."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.keyboard.slow_combined import read
from tests.support.keyboard.tabled import Tabled, drawn, table_of, words_of

from tacit.errors import InputError
from tacit.jobs.dictionary_files import read_given, write_dictionary
from tacit.keyboard.dictionaries import from_model
from tacit.keyboard.dictionaries.bigram_steps import follower_f, sayable
from tacit.keyboard.dictionaries.combined_list import can_be_written, combined
from tacit.keyboard.dictionaries.entries import (
    BEGINNING,
    Dictionary,
    Entry,
    Shortcut,
    by_f,
    frequency,
    header_attributes,
    whole,
)
from tacit.keyboard.dictionaries.format_202 import read_static_dictionary
from tacit.keyboard.dictionaries.format_403 import read_dynamic_dictionary
from tacit.keyboard.dictionaries.from_model import Given, asked_of, dictionary_of, promised
from tacit.keyboard.exported import Promise
from tacit.keyboard.phone_model import PhoneModel
from tacit.text.vocabulary import BOS, EOS, SPECIALS, Provenance, Vocabulary

ATTRIBUTES = header_attributes(locale="en", description="for tests", date=0)
PUBLIC = Promise(kind="public text", says="public", public_text="a book")
FREQUENCIES = st.floats(1.0, 255.0)
WORDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=48)


@st.composite
def lists(draw: st.DrawFn) -> Dictionary:
    words = draw(st.lists(WORDS.filter(can_be_written), min_size=1, max_size=8, unique=True))
    pairs = st.lists(st.tuples(st.sampled_from(words), FREQUENCIES), max_size=3, unique_by=lambda pair: pair[0])
    flags, shortcut = st.booleans(), st.builds(Shortcut, WORDS.filter(can_be_written), st.integers(0, 15))
    shortcuts = st.lists(shortcut, max_size=2, unique_by=lambda each: each.target).map(tuple)
    entries = [Entry(word, draw(FREQUENCIES), draw(flags), draw(flags), draw(flags), draw(shortcuts)) for word in words]
    followers = {(word,): tuple(draw(pairs)) for word in words}
    return Dictionary(attributes=ATTRIBUTES, entries=tuple(entries), followers=followers)


@given(listed=lists())
def test_the_list_is_read_back(listed: Dictionary) -> None:
    found = read(combined(listed))
    assert found.header["dictionary"] == "main:en" and found.header["version"] == "1"
    assert list(found.words.values()) == sorted(found.words.values(), reverse=True)
    assert found.words == {entry.word: whole(entry.f) for entry in listed.entries}
    for entry in listed.entries:
        assert found.bigrams[entry.word] == {word: whole(f) for word, f in listed.followers[(entry.word,)]}
        assert found.shortcuts[entry.word] == dict(entry.shortcuts)
        flags = {"not_a_word": entry.not_a_word, "possibly_offensive": entry.offensive, "discovered": entry.discovered}
        assert found.attributes[entry.word] == {name: "true" for name, there in flags.items() if there}


def test_the_scale_is_that_of_the_sample() -> None:
    """The scale of LatinIME's dictionaries/sample.combined: 255 is 1, each decrement divides by 1.15."""
    f = [frequency(log) for log in (0.0, -math.log(1.15), -10 * math.log(1.15), -1000.0, -math.inf)]
    assert f == pytest.approx([255, 254, 245, 1, 1])  # 0 would be a word that is never suggested
    for wrong in (math.nan, 0.1):
        with pytest.raises(InputError, match="no logarithm of a probability"):
            frequency(wrong)


@pytest.mark.parametrize(
    ("word", "written"),
    [
        *[(word, True) for word in ("don't", "a=b", "3.14", "x" * 47)],
        *[(word, False) for word in ("", "1,000", "a\nb", "a\rb", " a", "x" * 48)],
    ],
)
def test_words_that_the_list_has_no_room_for(word: str, written: bool) -> None:
    assert can_be_written(word) == written


def test_what_the_list_cannot_hold_is_left_out_and_said() -> None:
    entries = (Entry("a", 9.0), Entry("1,000", 8.0), Entry("x" * 48, 7.0))
    followers = {("a",): (("1,000", 9.0), ("a", 8.0)), ("1,000",): (("a", 9.0),), (BEGINNING,): (("a", 9.0),)}
    found = read(combined(Dictionary(attributes=ATTRIBUTES, entries=entries, followers=followers)))
    assert found.words == {"a": 9} and found.bigrams == {"a": {"a": 8}}
    assert found.header["description"] == "for tests; without 2 that cannot be written so"
    with pytest.raises(InputError, match="no word of the model can be written"):
        combined(Dictionary(attributes=ATTRIBUTES, entries=entries[1:]))


@given(listed=lists())
def test_what_steps_say_is_in_order_and_no_likelier_than_it_is(listed: Dictionary) -> None:
    own = {entry.word: whole(entry.f) for entry in listed.entries}
    said = sayable(listed)
    for context, followers in said.followers.items():
        assert followers[:3] == by_f(listed.followers[context])[:3]  # a keyboard shows three
        assert all(follower_f(own[word], 0) <= whole(f) for word, f in followers[3:])


# -- what a model knows --------------------------------------------------------------------------------------------


def shares_in_text(reader: Tabled) -> Any:
    """(V,) of the words of an endless text, where a sentence is cut after LONGEST_SENTENCE words, as computed here."""
    table = np.exp(reader.logs.astype(np.float64))
    here, sums = np.eye(len(table))[1], np.zeros(len(table))
    for _ in range(from_model.LONGEST_SENTENCE + 1):
        sums += here @ table
        here = here @ table
        here[EOS] = 0.0
    sums[EOS] = 0.0
    return sums / sums.sum()


def shares_after(reader: Tabled, id: int) -> Any:
    """(V,) of the words that come after this one."""
    row = np.exp(reader.logs[id].astype(np.float64))
    row[EOS] = 0.0
    return row / row.sum()


def probability(f: float) -> float:
    return float(1.15 ** (f - 255))


def test_what_is_asked_is_what_the_model_knows() -> None:
    """Of a chain it is known: followers are its rows, exactly; shares are sampled, to about a step of 1.15."""
    vocabulary = words_of(*(f"w{chr(97 + number)}" for number in range(20)))
    reader = drawn(3, vocabulary.size, 2.0)
    asked = asked_of(reader, vocabulary, followers=True, pairs=True)
    shares = shares_in_text(reader)
    found = np.array([probability(entry.f) for entry in asked.entries])
    np.testing.assert_allclose(found, shares[SPECIALS:], rtol=0.15)
    assert np.abs(found / shares[SPECIALS:] - 1).mean() < 0.05
    flat = np.exp(reader.logs.astype(np.float64)).mean(axis=0)[SPECIALS:]  # contexts that all count the same are wrong
    assert np.abs(flat / flat.sum() / shares[SPECIALS:] - 1).max() > 0.5
    assert asked.followers.keys() >= {(BEGINNING,), *((word,) for word in vocabulary.words)}
    for context, followers in asked.followers.items():
        wanted = shares_after(reader, vocabulary.id_of(context[-1]) if context[-1] else BOS)
        assert [f for _, f in followers[:6]] == sorted((f for _, f in followers[:6]), reverse=True)
        for follower, f in followers:
            assert probability(f) == pytest.approx(wanted[vocabulary.id_of(follower)], rel=1e-4)
        if len(context) == 1:
            assert len(followers) == from_model.FOLLOWERS
            likeliest = np.argsort(-wanted[SPECIALS:])[: len(followers)] + SPECIALS
            assert {vocabulary.id_of(word) for word, _ in followers} == set(likeliest.tolist())


class Last:
    """The word after "x b" is "d", and after "y b" "e"; after any other "b" it is "c"."""

    words = ("b", "c", "d", "e", "x", "y")

    def begin(self) -> tuple[int, ...]:
        return ()

    def step(self, state: tuple[int, ...], token: int) -> tuple[tuple[int, ...], Any]:
        b, c, d, e, x, y = range(SPECIALS, SPECIALS + 6)
        chances, tokens = np.full(SPECIALS + 6, 1e-9), (*state, token)
        if token == BOS:
            chances[[b, x, y]] = 0.5, 0.3, 0.2
        elif token in (x, y):
            chances[b] = 1.0
        elif token == b:
            chances[{x: d, y: e}.get(tokens[-2], c)] = 1.0
        else:
            chances[EOS] = 1.0
        return tokens, np.log(chances).astype(np.float32)


def test_followers_of_two_words_are_told_apart_from_those_of_one() -> None:
    """Their first is what the pair brings, and what else would come before it there is listed behind it."""
    found = asked_of(Last(), words_of(*Last.words), followers=True, pairs=True).followers
    for pair, wanted in {("x", "b"): "d", ("y", "b"): "e", (BEGINNING, "b"): "c"}.items():
        assert found[pair][0][0] == wanted and found[pair][0][1] > 254.9
        usual, after = dict(found[("b",)]), dict(found[pair])
        assert all(after.get(word, usual.get(word, 0.0)) < 200 for word in "cde" if word != wanted)
    usual_first = found[("b",)][0]
    assert usual_first[0] == "c" and usual_first[1] < 254


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


class Earlier:
    """After "x h" comes "w" nine times in ten, and then "d"; after "y h" one time in ten, and then "e"."""

    words = ("h", "w", "c", "d", "e", "x", "y")

    def begin(self) -> tuple[int, ...]:
        return ()

    def step(self, state: tuple[int, ...], token: int) -> tuple[tuple[int, ...], Any]:
        h, w, c, d, e, x, y = range(SPECIALS, SPECIALS + 7)
        chances, tokens = np.full(SPECIALS + 7, 1e-9), (*state, token)
        if token == BOS:
            chances[[x, y]] = 0.5
        elif token in (x, y):
            chances[h] = 1.0
        elif token == h:
            chances[[w, c]] = (0.9, 0.1) if tokens[-2] == x else (0.1, 0.9)
        elif token == w:
            chances[d if x in tokens else e] = 1.0
        else:
            chances[EOS] = 1.0
        return tokens, np.log(chances).astype(np.float32)


def test_pairs_are_asked_where_both_come(monkeypatch: pytest.MonkeyPatch) -> None:
    """p(d | h w) = p(x | h w) = 0.9; places of "h" that all count alike would give a half."""
    monkeypatch.setattr(from_model, "PAIR_CONTEXTS", 200)
    found = asked_of(Earlier(), words_of(*Earlier.words), followers=True, pairs=True).followers
    after = dict(found[("w",)]) | dict(found.get(("h", "w"), ()))  # as a reader has it
    assert probability(after["d"]) == pytest.approx(0.9, abs=0.05)


def test_followers_are_asked_where_the_word_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    """p(x | b) = p(a b) = 0.2, from places drawn in proportion; from all places alike it would be 0.5 or nothing."""
    monkeypatch.setattr(from_model, "CONTEXTS", 400)
    asked = asked_of(Before(), words_of(*Before.words), followers=True)
    after = dict(asked.followers[("b",)])
    assert probability(after["x"]) == pytest.approx(0.2, abs=0.06)
    assert probability(after["y"]) == pytest.approx(0.8, abs=0.06)
    assert asked.followers[("a",)][0][0] == "b"
    assert probability({entry.word: entry.f for entry in asked.entries}["b"]) == pytest.approx(1 / 3, rel=0.01)


def phone(vocabulary: Vocabulary) -> PhoneModel:
    return PhoneModel(name="m", reader=drawn(1, vocabulary.size, 1.0), vocabulary=vocabulary, digest="0")


def test_discovered_words_are_marked_and_those_without_room_left_out() -> None:
    found = Provenance(kind="discovered", description="by a run", discovered=2)
    vocabulary = replace(words_of("a", "x" * 49, "selfie", "brunch"), provenance=found)
    made = dictionary_of(phone(vocabulary), PUBLIC, locale="en_GB", date=7)
    assert {entry.word for entry in made.entries if entry.discovered} == {"selfie", "brunch"}
    assert made.attributes["description"].endswith("without 1 that cannot be written so")
    assert made.attributes["date"] == "7" and made.attributes["locale"] == "en_GB"
    assert made == dictionary_of(phone(vocabulary), PUBLIC, locale="en_GB", date=7)


def test_what_is_given_is_added() -> None:
    omw = (Shortcut("on my way", 15),)
    made = dictionary_of(
        phone(words_of("a", "damn")), PUBLIC, date=0, given=Given(offensive={"damn"}, shortcuts={"omw": omw})
    )
    assert [entry[:1] + entry[3:] for entry in made.entries] == [
        ("a", False, False, ()),
        ("damn", True, False, ()),
        ("omw", False, True, omw),
    ]


def test_given_lines(tmp_path: Path) -> None:
    (tmp_path / "o").write_text("damn\n\nhell\n")
    (tmp_path / "s").write_text("omw\ton my way\nomw\tomelette\t3\n")
    found = read_given(tmp_path / "o", tmp_path / "s")
    assert found.offensive == {"damn", "hell"}
    assert found.shortcuts == {"omw": (Shortcut("on my way", 15), Shortcut("omelette", 3))}
    for wrong in ("omw", "omw\tx\t16", "\tx", "omw\tx\tmuch", f"omw\t{'x' * 49}"):
        (tmp_path / "s").write_text(f"lol\tlaughing\n{wrong}\n")
        with pytest.raises(InputError, match=r"line 2 of .* a shortcut is a word, a tab"):
            read_given(None, tmp_path / "s")
    with pytest.raises(InputError, match="cannot be read as text"):
        read_given(tmp_path / "none", None)


def test_both_formats_from_one_table(tmp_path: Path) -> None:
    vocabulary = words_of(*(f"w{chr(97 + number)}" for number in range(20)))
    model = PhoneModel(name="m", reader=drawn(3, vocabulary.size, 2.0), vocabulary=vocabulary, digest="0")
    made = dictionary_of(model, PUBLIC, date=0, pairs=True)
    assert write_dictionary(made, tmp_path / "en.dict", trigrams=False) == (tmp_path / "en.dict").stat().st_size
    write_dictionary(made, tmp_path / "folder", trigrams=True)
    one, two = read_static_dictionary((tmp_path / "en.dict").read_bytes()), read_dynamic_dictionary(tmp_path / "folder")
    assert {each.word: each.f for each in one.entries} == {each.word: each.f for each in two.entries}
    assert two.followers.keys() == made.followers.keys()
    assert len(made.followers) == 21  # of a chain, whose pairs say nothing that their second word does not
    for context in [(BEGINNING,), *((word,) for word in vocabulary.words)]:
        best = [word for word, _ in by_f(made.followers[context])[:3]]
        assert [word for word, _ in one.followers[context][:3]] == best  # in order, whatever the steps
        assert set(best) <= dict(two.followers[context]).keys()
    (tmp_path / "folder" / "mine").write_text("x")
    with pytest.raises(InputError, match=r"has 'mine' in it and is not replaced"):
        write_dictionary(made, tmp_path / "folder", trigrams=True)
    with pytest.raises(InputError, match="is no file"):
        write_dictionary(made, tmp_path / "folder", trigrams=False)


def test_no_word_that_has_room_is_refused() -> None:
    with pytest.raises(InputError, match="no word of the model"):
        dictionary_of(phone(words_of("x" * 49)), PUBLIC, date=0)
    with pytest.raises(InputError, match="no finite numbers"):
        reader = table_of(words_of("a"), {})
        reader.logs = reader.logs * np.nan
        asked_of(reader, words_of("a"), followers=False)


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
def test_what_follows_is_shown_under_a_guarantee_only_and_the_description_names_it(what: str) -> None:
    privacy, says, shown = PROMISES[what]
    said, followers = promised(privacy)
    assert says in said and followers == shown
    model = replace(phone(words_of(*Last.words)), reader=Last())
    made = dictionary_of(model, privacy, date=0, pairs=True)
    assert says in made.attributes["description"] and bool(made.followers) == shown
    assert any(len(context) == 2 for context in made.followers) == shown
    listed = read(combined(made))
    assert says in listed.header["description"] and any(listed.bigrams.values()) == shown
