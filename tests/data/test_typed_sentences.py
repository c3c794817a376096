"""Sentences to be typed again: whose, how many, and the same from a source as from its cache."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.data import TextsOf, VocabularyChoice
from tacit.data.clients import split_of
from tacit.data.formats.parquet import ParquetClients
from tacit.data.manifest import SPLITS
from tacit.data.typed_sentences import (
    BY_NAME,
    BY_SOURCE,
    Share,
    TypedSentences,
    cached_typed_sentences,
    read_typed_sentences,
)
from tacit.errors import InputError, SourceError
from tacit.jobs.import_data import import_data
from tacit.text.counted_words import count_words
from tacit.text.vocabulary import SPECIALS, Vocabulary
from tacit.text.words import sentences

TYPED = {f"user {n}": [f"The dog sees {n} zebras. Who?", f"Dr. Ng's dog no. {n}\n...", ""] for n in range(60)}
TYPED["nobody"] = ["... !"]


def everybody(**share: int) -> dict[str, tuple[tuple[str | None, ...], ...]]:
    found = {}
    for split in SPLITS:
        typed = read_typed_sentences(TextsOf(TYPED), sentences, Share(split=split, **share))
        assert typed.split == split and typed.description == "texts in memory, a key is a client"
        found |= {user.name: user.sentences for user in typed.users}
    return found


def test_sentences_are_cut_as_the_keyboard_cuts() -> None:
    found = everybody()
    assert set(found) == set(TYPED) - {"nobody"}, "who typed no word types nothing"
    assert found["user 7"] == (("The", "dog", "sees", "7", "zebras"), ("Who",), ("Dr", "Ng's", "dog", "no"), ("7",))


def test_of_a_user_sentences_are_spread_over_the_text_and_the_first_words_are_taken() -> None:
    assert everybody(sentences=2, words=3)["user 7"] == (("The", "dog", "sees"), ("7",))
    assert everybody(sentences=9)["user 7"] == everybody()["user 7"]


def test_fewer_users_are_the_first_of_all() -> None:
    """Whatever the order of the source is."""
    backwards = dict(reversed(TYPED.items()))

    def names(texts: dict[str, list[str]], users: int) -> list[str]:
        typed = read_typed_sentences(TextsOf(texts), sentences, Share(split="train", users=users))
        assert all(list(texts)[user.number] == user.name for user in typed.users)
        return [user.name for user in typed.users]

    everyone = names(TYPED, 0)
    assert len(everyone) == sum(split_of(name) == "train" for name in TYPED if name != "nobody")
    assert everyone != sorted(everyone), "not those that come first by name"
    for users in (1, 5, 1000):
        assert names(TYPED, users) == names(backwards, users) == everyone[:users]


class TestFromACache:
    def typed(self, path: Path, known: Sequence[str] | None, **share: int) -> TypedSentences:
        """What a cache gives whose vocabulary is these words, or every word typed."""
        counts = count_words(text for texts in TYPED.values() for text in texts)
        listed = path / "words.txt"
        listed.write_text("\n".join(known or sorted(counts, key=lambda word: (-counts[word], word))))
        cache = import_data(TextsOf(TYPED), path / "cache", vocabulary=VocabularyChoice(word_list=listed))
        spelled = [None] * SPECIALS + list(Vocabulary.from_json(cache.vocabulary_json).words)
        return cached_typed_sentences(cache, spelled, Share(split="train", **share))

    def test_with_every_word_it_is_the_source(self, tmp_path: Path) -> None:
        source = read_typed_sentences(TextsOf(TYPED), sentences, Share(split="train", users=9, sentences=2, words=4))
        cached = self.typed(tmp_path, None, users=9, sentences=2, words=4)
        assert [user[1:] for user in cached.users] == [user[1:] for user in source.users]
        assert cached.unspelled == 0 and cached.words == source.words

    def test_words_that_it_does_not_spell_keep_their_place(self, tmp_path: Path) -> None:
        cached = self.typed(tmp_path, ["The", "dog", "Who"])
        assert cached.users[0].sentences[:2] == (("The", "dog", None, None, None), ("Who",))
        assert cached.unspelled == sum(sentence.count(None) for user in cached.users for sentence in user.sentences)
        assert cached.unspelled > 0


def test_another_text_has_another_digest() -> None:
    def digest(texts: dict[str, list[str]]) -> str:
        return read_typed_sentences(TextsOf(texts), sentences, Share(split="train")).sha256

    name = next(name for name in TYPED if split_of(name) == "train")
    assert digest(TYPED) == digest(dict(TYPED))
    assert digest(TYPED) != digest({**TYPED, name: ["The dog sees 7 zebra."]})


def test_nobody_and_less_than_nobody_are_refused() -> None:
    with pytest.raises(SourceError, match="no client with a sentence in the split 'test'"):
        read_typed_sentences(TextsOf({"nobody": "... !"}), sentences, Share())
    with pytest.raises(InputError, match=r"users=-1 must be 0 \(all\) or more"):
        Share(users=-1)


@given(st.text("ab .!?'\n…é", max_size=30))
def test_sentences_hold_the_words_that_are_counted(text: str) -> None:
    cut = sentences(text)
    assert all(cut) and sum(map(len, cut)) == count_words([text]).total()


def test_who_is_of_the_split_and_what_decided_it_is_said(tmp_path: Path) -> None:
    """Of a file that is the test split all are taken, of another those that their names' digests put there."""

    def typed(name: str, split: str = "test") -> TypedSentences:
        path = tmp_path / name
        rows = {"client_id": [str(n) for n in range(40)], "text": ["Hi."] * 40}
        pyarrow.parquet.write_table(pyarrow.table(rows), path)
        return read_typed_sentences(ParquetClients.open(str(path)), sentences, Share(split=split))

    whole, part = typed("chat.test.parquet"), typed("chat.parquet")
    assert (len(whole.users), whole.of_split, whole.clients, whole.split_by) == (40, 40, 40, BY_SOURCE)
    hashed = sum(split_of(str(n)) == "test" for n in range(40))
    assert 0 < hashed < 10
    assert (len(part.users), part.of_split, part.clients, part.split_by) == (hashed, hashed, 40, BY_NAME)
    with pytest.raises(SourceError, match="'train': 0 of its 40 clients are of it, split by the source itself"):
        typed("chat.test.parquet", "train")
