"""Formats 202 and 403 of Android's dictionaries: bytes by hand, what is written is read back, damage is told."""

from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tacit.errors import InputError
from tacit.keyboard.dictionaries import bigram_steps
from tacit.keyboard.dictionaries.bigram_steps import STEPS, follower_f, steps_of
from tacit.keyboard.dictionaries.binary_header import read_header
from tacit.keyboard.dictionaries.entries import (
    BEGINNING,
    CERTAIN,
    LONGEST,
    Context,
    Dictionary,
    Entry,
    Followers,
    Shortcut,
    by_f,
    has_room,
    header_attributes,
    whole,
)
from tacit.keyboard.dictionaries.format_202 import read_static_dictionary, static_dictionary
from tacit.keyboard.dictionaries.format_403 import (
    DynamicFiles,
    dictionary_of_files,
    dynamic_dictionary,
    read_dynamic_dictionary,
)
from tacit.keyboard.dictionaries.hash_trie import hash_trie, read_hash_trie, shuffled
from tacit.keyboard.dictionaries.patricia_trie import trie

ATTRIBUTES = {"dictionary": "main:en", "locale": "en", "version": "1"}
HOSTILE: tuple[str, ...] = (
    "don't",
    "a=b",
    "1,000",
    "#tag",
    "\x1f",
    "\x1f\x1f",
    "\x20",
    "\xff",
    "\u0100",
    "ñandú",
    "😀",
    "😀😀",
    "İ",
)
HOSTILE += ("a\nb", "The", "the", "THE", "\U0010ffff", "x" * LONGEST, "é", "e\u0301", "\t")
SIGNS = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
WORDS = st.one_of(
    st.sampled_from(HOSTILE), st.text("abAB'", min_size=1, max_size=6), st.text(SIGNS, min_size=1, max_size=LONGEST)
)
FREQUENCIES = st.one_of(st.integers(0, CERTAIN).map(float), st.floats(0, CERTAIN))
SHORTCUTS = st.lists(st.builds(Shortcut, WORDS, st.integers(0, 15)), max_size=3).map(tuple)


@st.composite
def dictionaries(draw: st.DrawFn, longest: int = 2) -> Dictionary:
    """With contexts of up to so many words."""
    words = draw(st.lists(WORDS, min_size=1, max_size=12, unique=True))
    flags = st.booleans()
    entries = tuple(
        Entry(word, draw(FREQUENCIES), offensive=draw(flags), not_a_word=draw(flags), shortcuts=draw(SHORTCUTS))
        for word in words
    )
    before = st.tuples(st.sampled_from([BEGINNING, *words]))
    two_before = st.tuples(st.sampled_from([BEGINNING, *words]), st.sampled_from(words))
    contexts = before if longest == 1 else st.one_of(before, two_before)
    pairs = st.lists(
        st.tuples(st.sampled_from(words), FREQUENCIES), min_size=1, max_size=5, unique_by=lambda pair: pair[0]
    )
    followers: dict[Context, Followers] = draw(st.dictionaries(contexts, pairs.map(tuple), max_size=8))
    return Dictionary(attributes=ATTRIBUTES, entries=entries, followers=followers)


def by_word(dictionary: Dictionary) -> dict[str, Entry]:
    return {entry.word: entry for entry in dictionary.entries}


def rounded(entry: Entry) -> Entry:
    return entry._replace(f=float(whole(entry.f)))


# -- format 202 ----------------------------------------------------------------------------------------------------


def test_the_bytes_of_format_202_by_hand() -> None:
    """By `FormatSpec.java`: "a" and "an", which follows "a"; "a" begins sentences, and "ω" is an offensive word with
    the shortcut "o".
    """
    dictionary = Dictionary(
        attributes={"k": "é\u0100"},
        entries=(
            Entry("a", 200.0),
            Entry("an", 100.0),
            Entry("ω", 7.0, offensive=True, shortcuts=(Shortcut("o", 15),)),
        ),
        followers={("a",): (("an", 250.0),), (BEGINNING,): (("a", 255.0),)},
    )
    assert static_dictionary(dictionary) == bytes(
        [
            *(0x9B, 0xC1, 0x3A, 0xFE, 0x00, 0xCA, 0x00, 0x00, 0x00, 0x00, 0x00, 0x13),  # magic, 202, flags, 19 bytes
            *(ord("k"), 0x1F, 0xE9, 0x00, 0x01, 0x00, 0x1F),  # a key and a value: é in one byte, U+0100 in three
            0x03,  # three nodes:
            # 1: address of one byte, a word, followers; "a", f=200; the array below is 20 bytes from here (4 to 24)
            *(0x40 | 0x10 | 0x04, ord("a"), 200, 20),
            # its follower: the last one, forward, one byte, step 15 of 100: 100 + floor(16 * 155 / 16.5) = 250
            *(0x10 | 15, 19),  # from 6 to the node at 25
            # 7: a word, shortcuts, offensive; ω = U+03C9, f=7; 5 bytes of shortcuts: the last, strength 15, "o"
            *(0x10 | 0x08 | 0x01, 0x00, 0x03, 0xC9, 7, 0x00, 0x05, 15, ord("o"), 0x1F),
            # 17: a word, followers, not a word; the beginning of a sentence U+110000, f=255
            *(0x10 | 0x04 | 0x02, 0x11, 0x00, 0x00, 255),
            # its follower: the last one, backward, one byte, step 15 of 200: 200 + floor(16 * 55 / 16.5) = 253
            *(0x40 | 0x10 | 15, 22),  # from 23 to the node at 1
            # 24: the array below "a": one node
            0x01,
            *(0x10, ord("n"), 100),  # a word; "n", f=100
        ]
    )


@given(dictionary=dictionaries(longest=1))
def test_what_is_written_in_format_202_is_read_back(dictionary: Dictionary) -> None:
    content = static_dictionary(dictionary)
    found = read_static_dictionary(content)
    own = {entry.word: whole(entry.f) for entry in dictionary.entries}
    assert found.attributes == ATTRIBUTES
    assert by_word(found) == {word: rounded(entry) for word, entry in by_word(dictionary).items()}
    assert found.followers.keys() == dictionary.followers.keys()
    for context, followers in dictionary.followers.items():
        read = dict(found.followers[context])
        assert read.keys() == dict(followers).keys()
        for word, f in read.items():
            assert f in {follower_f(own[word], step) for step in range(STEPS)}
    again = read_static_dictionary(static_dictionary(found))
    assert by_word(again) == by_word(found)
    assert {key: dict(value) for key, value in again.followers.items()} == {
        key: dict(value) for key, value in found.followers.items()
    }


def test_followers_of_two_words_are_left_out_of_format_202() -> None:
    dictionary = Dictionary(
        attributes=ATTRIBUTES, entries=(Entry("a", 9.0), Entry("b", 9.0)), followers={("a", "b"): (("a", 9.0),)}
    )
    assert read_static_dictionary(static_dictionary(dictionary)).followers == {}


def test_addresses_of_two_and_three_bytes() -> None:
    """Enough words for addresses of every size, both ways."""
    words = [f"{number:05d}".translate(str.maketrans("0123456789", "abcdefghij")) for number in range(9_000)]
    followers: dict[Context, Followers] = {
        (word,): tuple({words[-1 - at]: 250.0, words[at // 2]: 240.0, words[7]: 230.0}.items())
        for at, word in enumerate(words)
    }
    entries = tuple(Entry(word, 100.0) for word in words)
    dictionary = Dictionary(attributes=ATTRIBUTES, entries=entries, followers=followers)
    content = static_dictionary(dictionary)
    assert len(content) > 1 << 16
    found = read_static_dictionary(content)
    for context, expected in followers.items():
        assert [word for word, _ in found.followers[context]] == [word for word, _ in by_f(expected)]


def test_trie_arrays_of_more_than_127_nodes() -> None:
    signs = [chr(0x4E00 + number) for number in range(300)]
    dictionary = Dictionary(attributes=ATTRIBUTES, entries=tuple(Entry(sign, 3.0) for sign in signs))
    content = static_dictionary(dictionary)
    at = read_header(content, "").size
    assert content[at : at + 2] == (0x8000 | 300).to_bytes(2, "big")
    assert {entry.word for entry in read_static_dictionary(content).entries} == set(signs)
    with pytest.raises(InputError, match="32,768 different characters follow"):
        trie([(number,) for number in range(0x8000)])


def test_a_table_of_code_points_is_read() -> None:
    """Its first character stands for 20, the next for 21: LatinIME's newer files have one."""
    plain = Dictionary(attributes={**ATTRIBUTES, "codePointTable": "ω "}, entries=(Entry(" !", 5.0),))
    assert read_static_dictionary(static_dictionary(plain)).entries == (Entry("ω ", 5.0),)


@given(data=st.data(), kind=st.sampled_from(["202", "403"]), dictionary=dictionaries())
def test_damage_is_told(data: st.DataObject, kind: str, dictionary: Dictionary) -> None:
    """A file with a wrong byte, or cut, is read as something or refused with a sentence: never anything else."""
    files = dynamic_dictionary(dictionary)
    content = static_dictionary(dictionary) if kind == "202" else files.body
    at = data.draw(st.integers(0, len(content) - 1))
    damaged = data.draw(
        st.sampled_from([content[:at], content[:at] + bytes([data.draw(st.integers(0, 255))]) + content[at + 1 :]])
    )
    with suppress(InputError):
        read_static_dictionary(damaged) if kind == "202" else dictionary_of_files(DynamicFiles(files.header, damaged))


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no binary dictionary of Android"):
        read_static_dictionary(b"dictionary=main:en")
    files = dynamic_dictionary(Dictionary(attributes=ATTRIBUTES, entries=(Entry("a", 1.0),)))
    with pytest.raises(InputError, match="has the format 403"):
        read_static_dictionary(files.header)
    with pytest.raises(InputError, match="a folder must be called as its files are"):
        read_dynamic_dictionary(tmp_path)


# -- the sixteen steps ---------------------------------------------------------------------------------------------


def test_steps_are_those_of_the_reader() -> None:
    """255 - 90 = 165 is ten a step, of 16.5; and the native code computes in float32."""
    assert [follower_f(90, step) for step in range(STEPS)] == list(range(100, 260, 10))
    assert follower_f(255, 0) == 255 and follower_f(0, 15) == 247


@given(pairs=st.lists(st.tuples(st.floats(1, 255), st.integers(1, 255)), max_size=4))
@example(pairs=[(250.0, 90), (240.0, 231), (180.0, 90)])
def test_steps_are_the_best_of_all(pairs: list[tuple[float, int]]) -> None:
    """Against every choice there is, for few followers: order first, then distance."""
    pairs.sort(key=lambda pair: -pair[0])
    wanted, own = [f for f, _ in pairs], [u for _, u in pairs]

    def cost(steps: tuple[int, ...]) -> float:
        read = [follower_f(u, step) for u, step in zip(own, steps, strict=True)]
        total = sum(abs(one - other) for one, other in zip(read, wanted, strict=True))
        for at in range(1, len(read)):
            total += bigram_steps.INVERTED * (read[at - 1] < read[at])
            total += bigram_steps.TIED * (read[at - 1] == read[at] and wanted[at - 1] > wanted[at])
        return total

    few = pairs[:3]
    chosen = steps_of(wanted[: len(few)], own[: len(few)])
    wanted, own = wanted[: len(few)], own[: len(few)]
    assert cost(tuple(chosen)) == pytest.approx(min(map(cost, product(range(STEPS), repeat=len(few)))))


# -- format 403 ----------------------------------------------------------------------------------------------------


def test_the_bytes_of_format_403_by_hand() -> None:
    """By the native code of LatinIME: "a" (id 0) and "an" (id 1), which follows "a"; "an" after "an a"."""
    dictionary = Dictionary(
        attributes=ATTRIBUTES,
        entries=(Entry("a", 200.0), Entry("an", 100.0, offensive=True, shortcuts=(Shortcut("o", 3),))),
        followers={("a",): (("an", 250.0),), ("an", "a"): (("an", 254.0),)},
    )
    files = dynamic_dictionary(dictionary)
    parts, at = [], 0
    while at < len(files.body):
        size = int.from_bytes(files.body[at : at + 4], "big")
        parts.append(files.body[at + 4 : at + 4 + size])
        at += 4 + size
    nodes, places, ngrams, counters, index, table, lists = parts
    assert nodes == bytes(
        [
            *(0x80, 0x01),  # 0: an array of one node
            # 2: not moved, a word; no node above; "a"; id 0; the array below is 6 bytes from here (11 to 17)
            *(0xC0 | 0x10, 0, 0, 0, ord("a"), 0, 0, 0, 0, 0, 0, 6),
            *(0, 0, 0),  # 14: no array goes on with this one
            *(0x80, 0x01),  # 17
            # 19: the node above is 17 bytes before; "n"; id 1; nothing below
            *(0xC0 | 0x10, 0x80, 0, 17, ord("n"), 0, 0, 0, 1, 0, 0, 0),
            *(0, 0, 0),
        ]
    )
    assert places == bytes([0, 0, 2, 0, 0, 19])
    # Labels are the lowest five bits of shuffled keys: 0 of id 0, and of id 1 (01 -> 1 + 80 + 4000 + 200000, of which
    # those at every fourth place stay: 1), 1.
    assert (shuffled(0), shuffled(1)) == (0, 1)
    assert ngrams[:128] == bytes(128)
    entries = [ngrams[at : at + 7].hex(" ", -4).replace(" ", "") for at in range(128, len(ngrams), 7)]
    assert entries == [
        "00000003000001",  # 0, the root: labels 0 and 1, table at 1
        "00000000800003",  # 1: key 0, more at 3
        "00000001401064",  # 2: key 1, offensive, f=100
        "000000000000c8",  # 3: of key 0: f=200
        "00000002000005",  # 4: below it: label 1, table at 5
        "00000001800006",  # 5: key 1, more at 6
        "000000000000fa",  # 6: "an" after "a": f=250
        "00000002000008",  # 7: below it: label 1, table at 8
        "000000014000fe",  # 8: "an" after "an a": f=254
    ]
    assert counters == bytes(8)
    assert index == bytes(4)  # block 0 is the first
    assert table == b"\xff" * 4 + bytes(4) + b"\xff" * 4 * 62  # nothing of id 0; of id 1 the list at 0
    assert lists == bytes([3, ord("o"), 0x1F])
    assert read_header(files.header, "").attributes == {
        **ATTRIBUTES, "UNIGRAM_COUNT": "2", "BIGRAM_COUNT": "1", "TRIGRAM_COUNT": "1"
    }  # fmt: skip


@given(dictionary=dictionaries())
def test_what_is_written_in_format_403_is_read_back(dictionary: Dictionary) -> None:
    files = dynamic_dictionary(dictionary)
    found = dictionary_of_files(files)
    assert by_word(found) == {word: rounded(entry) for word, entry in by_word(dictionary).items()}
    assert {key: dict(value) for key, value in found.followers.items()} == {
        key: {word: float(whole(f)) for word, f in value} for key, value in dictionary.followers.items()
    }
    assert dynamic_dictionary(found).body == files.body


def test_a_pair_that_only_begins_others_weighs_as_its_word_does() -> None:
    """A reader that weighs "b" after "a" finds the entry that holds what follows "b a": it must not be certain."""
    entries = (Entry("a", 150.0), Entry("b", 90.0), Entry("c", 10.0))
    files = dynamic_dictionary(
        Dictionary(attributes=ATTRIBUTES, entries=entries, followers={("b", "a"): (("c", 200.0),)})
    )
    level = read_hash_trie(_part(files.body, 2))[0][1]
    assert level is not None and level.numbers[1][0] == 0x02 << 8 | 90
    assert dictionary_of_files(files).followers == {("b", "a"): (("c", 200.0),)}


def _part(body: bytes, wanted: int) -> bytes:
    at = 0
    for _ in range(wanted):
        at += 4 + int.from_bytes(body[at : at + 4], "big")
    return body[at + 4 : at + 4 + int.from_bytes(body[at : at + 4], "big")]


@given(numbers=st.dictionaries(st.integers(0, 2**32 - 1), st.integers(0, 0x1FFF), max_size=200))
def test_hash_tries_hold_any_keys(numbers: dict[int, int]) -> None:
    """The shuffling of bits is a bijection, so that no two keys share all their labels."""
    found = read_hash_trie(hash_trie({key: (number, None) for key, number in numbers.items()}))
    assert found == {key: (number, None) for key, number in numbers.items()}


# -- what a dictionary is ------------------------------------------------------------------------------------------

REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "twice": ({"entries": (Entry("a", 1.0), Entry("a", 2.0))}, "in the dictionary twice"),
    "no word": ({"entries": (Entry("", 1.0),)}, "words of 1 to 48 characters"),
    "too long": ({"entries": (Entry("x" * 49, 1.0),)}, "words of 1 to 48 characters"),
    "half a character": ({"entries": (Entry("\ud83d", 1.0),)}, "words of 1 to 48 characters"),
    "f": ({"entries": (Entry("a", 256.0),)}, "outside of 0 to 255"),
    "no number": ({"entries": (Entry("a", float("nan")),)}, "outside of 0 to 255"),
    "a shortcut's strength": ({"entries": (Entry("a", 1.0, shortcuts=(Shortcut("b", 16),)),)}, "give 0 to 15"),
    "an unknown follower": ({"followers": {("a",): (("b", 1.0),)}}, "'b' follows 'a' and is no word"),
    "a follower twice": ({"followers": {("a",): (("a", 1.0), ("a", 2.0))}}, "a word follows 'a' twice"),
    "an unknown head": ({"followers": {("b",): (("a", 1.0),)}}, "'b' comes before others and is no word"),
    "a late beginning": ({"followers": {("a", ""): (("a", 1.0),)}}, "'' comes before others"),
    "three before": ({"followers": {("a", "a", "a"): (("a", 1.0),)}}, "give one or two"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_no_dictionary_is_is_refused(what: str) -> None:
    changed, sentence = REFUSED[what]
    asked: dict[str, Any] = {"attributes": ATTRIBUTES, "entries": (Entry("a", 1.0),), **changed}
    with pytest.raises(InputError, match=sentence):
        Dictionary(**asked)


def test_headers() -> None:
    assert header_attributes(locale="pt-BR", description="d", date=7) == {
        "dictionary": "main:pt_br", "locale": "pt_BR", "description": "d", "date": "7", "version": "1"
    }  # fmt: skip
    for refused in ("epsilon=8, or so", " ", "a\x1f"):
        with pytest.raises(InputError, match="leave out commas"):
            header_attributes(locale="en", description=refused, date=0)
    with pytest.raises(InputError, match="give a language"):
        header_attributes(locale="English", description="d", date=0)
    assert has_room("x" * 48) and not has_room("x" * 49)
