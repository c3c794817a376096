"""Unknown words of clients: what the keyboard would cut, minus what it knows; from text, and from a larger cache."""

from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.data import Cache, ClientText, VocabularyChoice, open_source
from tacit.data.unknown_words import cached_typed_words, read_typed_words
from tacit.errors import SourceError
from tacit.jobs.import_data import import_data
from tacit.text.counted_words import count_words
from tacit.text.vocabulary import SPECIALS, Vocabulary

TYPED = {
    "a": ["The dog. The zebra", "a dog's zebra zebra <url>"],
    "b": ["Dog dog dog!"],
    "c": ["ñu. The ñu"],
    "d": ["..."],
    "e": ["the"],
}
KNOWN = frozenset({"The", "the", "dog", "a"})


class Typists:
    """A source of the clients given, all in train."""

    description = "typists"
    expected_clients = None
    left_out: dict[str, int] = {}  # noqa: RUF012

    def __init__(self, texts: dict[str, list[str]], split: str = "train") -> None:
        self._texts, self._split = texts, split

    def clients(self):  # type: ignore[no-untyped-def]
        for name, texts in self._texts.items():
            yield ClientText(client_id=name, texts=texts, split=self._split)


def test_each_client_has_its_unknown_words_and_counts() -> None:
    typed = read_typed_words(Typists(TYPED), count_words, KNOWN)
    assert typed.words == tuple(sorted({"zebra", "dog's", "Dog", "ñu"}))
    assert [typed.of(client) for client in range(5)] == [{"dog's": 1, "zebra": 3}, {"Dog": 1}, {"ñu": 2}, {}, {}]
    assert typed.typed.tolist() == [8, 3, 3, 0, 1]
    assert dict(zip(typed.words, typed.totals, strict=True)) == {"Dog": 1, "dog's": 1, "zebra": 3, "ñu": 2}
    assert typed.holders.tolist() == [1, 1, 1, 1]
    assert typed.oov_rate() == 7 / 15
    assert typed.oov_rate({"zebra", "ñu"}) == 2 / 15


texts_of_clients = st.lists(st.lists(st.text("ab .'é\n", max_size=12), max_size=3), min_size=1, max_size=5)


@given(texts_of_clients)
def test_the_compact_arrays_hold_what_counters_hold(clients: list[list[str]]) -> None:
    named = {f"client {number}": texts for number, texts in enumerate(clients)}
    typed = read_typed_words(Typists(named), count_words, {"a"})
    for number, texts in enumerate(clients):
        counted = Counter({word: n for word, n in count_words(texts).items() if word != "a"})
        assert typed.of(number) == counted
        assert list(typed.of(number)) == sorted(counted)
    assert typed.totals.sum() == typed.counts.sum()


def test_a_split_without_clients_is_refused_and_the_digest_tells_populations_apart() -> None:
    with pytest.raises(SourceError, match="no client in the split 'test'"):
        read_typed_words(Typists(TYPED), count_words, KNOWN, split="test")
    all_of_them = read_typed_words(Typists(TYPED, split="test"), count_words, KNOWN, split=None)
    same = read_typed_words(Typists(TYPED), count_words, KNOWN)
    other = read_typed_words(Typists(TYPED), count_words, KNOWN | {"zebra"})
    assert all_of_them.sha256 == same.sha256 != other.sha256


def test_a_cache_with_a_larger_vocabulary_gives_the_words_it_spells(tmp_path: Path) -> None:
    rows = [(name, text) for name, texts in TYPED.items() for text in texts]
    names, texts = zip(*rows, strict=True)
    clients = tmp_path / "typed.parquet"
    pq.write_table(pa.table({"client_id": names, "text": texts}), clients)
    listed = tmp_path / "words.txt"
    listed.write_text("\n".join([*KNOWN, "zebra", "Dog"]), encoding="utf-8")
    cache = import_data(str(clients), tmp_path / "cache", vocabulary=VocabularyChoice(word_list=listed))
    spelled = [None] * SPECIALS + list(Vocabulary.load(cache.vocabulary_path).words)

    from_cache = cached_typed_words(cache, spelled, KNOWN, split=None)
    from_text = read_typed_words(open_source(str(clients)), count_words, KNOWN | {"dog's", "ñu"}, split=None)
    with_words = np.flatnonzero(from_text.typed)  # a cache leaves out clients without a sentence
    assert [from_cache.of(client) for client in range(from_cache.clients)] == [from_text.of(c) for c in with_words]
    assert from_cache.beyond_spelling == 4  # dog's, twice ñu, and the placeholder
    assert from_cache.typed.sum() == from_text.typed.sum() + 1  # a cache counts the placeholder as a word

    with pytest.raises(SourceError, match="give --data the source"):
        cached_typed_words(Cache.open(cache.path), spelled, KNOWN | {"zebra", "Dog"}, split=None)
