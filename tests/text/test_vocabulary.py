"""A vocabulary: its ids, its order, its origin, its file."""

import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import InputError
from tacit.text.counted_words import balanced, count_words, most_frequent
from tacit.text.vocabulary import BOS, EOS, OOV, PAD, Provenance, Vocabulary
from tacit.text.words import RULES, Writing

PUBLIC = Provenance(kind="public", description="a test")


def small(**changes: object) -> Vocabulary:
    settings: dict[str, object] = {"words": ("the", "Dog", "café"), "provenance": PUBLIC}
    return Vocabulary(**{**settings, **changes})  # type: ignore[arg-type]


def test_ids() -> None:
    vocabulary = small()
    assert (PAD, BOS, EOS, OOV, vocabulary.size) == (0, 1, 2, 3, 7)
    assert [vocabulary.id_of(word) for word in ("the", "Dog", "café", "dog", "<pad>", "")] == [
        4,
        5,
        6,
        OOV,
        OOV,
        OOV,
    ]
    assert [vocabulary.word_of(id) for id in range(7)] == [
        "<pad>",
        "<bos>",
        "<eos>",
        "<oov>",
        "the",
        "Dog",
        "café",
    ]
    with pytest.raises(InputError, match="ids go from 0 to 6"):
        vocabulary.word_of(7)


def test_lower_case_vocabularies_look_up_in_lower_case() -> None:
    assert small(words=("dog",), lowercase=True).id_of("DOG") == 4


def test_the_digest_says_what_decides_ids() -> None:
    private = Provenance(kind="private", description="elsewhere")
    assert small().sha256 != small(provenance=private).sha256, "where words come from is part of what they are"
    assert len({small().sha256, small(words=("Dog", "the", "café")).sha256, small(words=("the",)).sha256}) == 3


@given(
    words=st.lists(st.text("abcdéß", min_size=1, max_size=4), unique=True, min_size=1, max_size=9),
    kind=st.sampled_from(["public", "word list", "private"]),
)
def test_json_round_trip(words: list[str], kind: str) -> None:
    provenance = Provenance(kind=kind, description="ünïque")  # type: ignore[arg-type]
    vocabulary = Vocabulary(words=tuple(words), provenance=provenance, lowercase=True)
    assert Vocabulary.from_json(vocabulary.to_json()) == vocabulary


@given(texts=st.lists(st.text("ab ", max_size=12), max_size=5), kept=st.integers(1, 3))
def test_most_frequent_against_sorting_by_hand(texts: list[str], kept: int) -> None:
    counts = count_words(texts)
    assert counts == Counter(word for text in texts for word in text.split())
    if len(counts) < kept:
        with pytest.raises(InputError, match=f"has {len(counts)} different words"):
            most_frequent(counts, size=kept + 4, provenance=PUBLIC)
    else:
        best = sorted(sorted(counts), key=counts.__getitem__, reverse=True)
        assert most_frequent(counts, size=kept + 4, provenance=PUBLIC).words == tuple(best[:kept])


def test_texts_weigh_the_same_however_long_they_are() -> None:
    english, spanish = count_words(["the the the dog dog cat"] * 1000), count_words(["el el el perro perro gato"])
    shares = balanced([english, spanish])
    assert sum(shares.values()) == pytest.approx(2)
    assert most_frequent(shares, size=8, provenance=PUBLIC).words == ("el", "the", "dog", "perro")
    assert most_frequent(english + spanish, size=8, provenance=PUBLIC).words == ("the", "dog", "cat", "el")
    both = balanced([count_words(["a a b"]), count_words(["b b b c"]), count_words([])])
    assert both == {"a": 2 / 3, "b": 1 / 3 + 3 / 4, "c": 1 / 4}
    assert balanced([english]) == english


def test_placeholders_and_addresses_are_never_counted() -> None:
    assert count_words(["<url> see www.a.b https://c <user>"]) == {"see": 1}


def test_counting_in_lower_case() -> None:
    assert count_words(["The the THE"], Writing(lowercase=True)) == {"the": 3}


@pytest.mark.parametrize("word", ["", " a", "two words", "end.", "<url>", "\n", "cafe\u0301", "www.a.b"])
def test_words_that_no_text_is_cut_into_are_refused(word: str) -> None:
    with pytest.raises(InputError, match=r"vocabulary"):
        small(words=("the", word))


def test_other_refusals() -> None:
    with pytest.raises(InputError, match="twice"):
        small(words=("a", "a"))
    with pytest.raises(InputError, match="lower-case vocabulary"):
        small(words=("Dog",), lowercase=True)
    with pytest.raises(InputError, match="at least one word"):
        small(words=())
    with pytest.raises(InputError, match="'found' is unknown"):
        Provenance(kind="found", description="")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="ask for 5 or more"):
        most_frequent({"a": 1}, size=4, provenance=PUBLIC)


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "vocabulary.json"
    small().save(path)
    assert Vocabulary.load(path) == small()
    with pytest.raises(InputError, match="no vocabulary at"):
        Vocabulary.load(tmp_path / "none.json")
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="not UTF-8"):
        Vocabulary.load(path)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"words": ["the", "Dog", "cat"]}, "somebody changed it"),
        ({"format": "other"}, "not a vocabulary of format"),
        ({"provenance": {}}, "provenance lacks 'kind'"),
        ({"provenance": {"kind": "public", "description": "counted by a private hand"}}, "somebody changed it"),
        ({"words": None}, "words is None, and a list was expected"),
        ({"lowercase": 0}, "lowercase is 0, and true or false was expected"),
    ],
)
def test_changed_files_are_refused(tmp_path: Path, change: dict[str, object], complaint: str) -> None:
    path = tmp_path / "vocabulary.json"
    path.write_text(json.dumps({**json.loads(small().to_json()), **change}), encoding="utf-8")
    with pytest.raises(InputError, match=complaint):
        Vocabulary.load(path)


@pytest.mark.parametrize(("words", "ranked"), [("the of Apple", True), ("Apple of The", False), ("a Be c", False)])
def test_a_list_in_alphabetical_order_ranks_nothing(words: str, ranked: bool) -> None:
    provenance = Provenance(kind="word list", description="a test")
    assert Vocabulary(words=tuple(words.split()), provenance=provenance).ranked is ranked


@pytest.mark.parametrize(
    "said",
    [{"format": "tacit-vocabulary-1"}, {"format": "tacit-vocabulary-2"}, {"rules": "tacit-words-1"}],
    ids=lambda said: next(iter(said.values())),
)
def test_words_of_older_rules_are_refused_by_name(said: dict[str, str]) -> None:
    with pytest.raises(InputError, match=r"by the rules tacit-words-1, and this tacit cuts by tacit-words-2.*import"):
        Vocabulary.from_json(json.dumps({**json.loads(small().to_json()), **said}))


def test_the_digest_has_rules_language_and_emoji() -> None:
    made = [
        small(),
        small(language="tr"),
        small(emoji=True),
        small(words=("the",)),
        small(words=("the",), lowercase=True),
    ]
    assert len({each.sha256 for each in made}) == len(made)
    assert all(Vocabulary.from_json(each.to_json()) == each for each in made)
    assert json.loads(made[1].to_json())["rules"] == RULES and json.loads(made[1].to_json())["language"] == "tr"


def test_turkish_words_are_found_in_every_case() -> None:
    known = small(words=("istanbul", "ısparta"), lowercase=True, language="tr")
    assert [known.id_of(word) for word in ("İSTANBUL", "Istanbul", "ISPARTA", "isparta")] == [4, OOV, 5, OOV]


def test_half_a_character_is_refused() -> None:
    """JSON can say it and UTF-8 cannot, so that its digest was a traceback."""
    whole = json.loads(Vocabulary(words=("fine",), provenance=PUBLIC).to_json())
    for changed in ({"words": ["fi\ud800ne"]}, {"provenance": {"kind": "public", "description": "\udfff"}}):
        with pytest.raises(InputError, match="has half a character, a surrogate"):
            Vocabulary.from_json(json.dumps({**whole, **changed}))


def test_json_that_is_none() -> None:
    for text in ("{", "[]"):
        with pytest.raises(InputError, match="not a vocabulary"):
            Vocabulary.from_json(text)
