"""Unicode's own tests of word and sentence breaks: each is passed, or differs by a named exception alone."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.text.slow_words import (
    ALL,
    SENTENCES,
    WORDS,
    canonical,
    is_word,
    sentence_segments,
    slow_sentences,
    word_segments,
)

from tacit.text.words import Writing, sentences

GOLDEN = Path(__file__).parents[1] / "golden"
NONE: frozenset[str] = frozenset()


def rows(name: str) -> Iterator[list[str]]:
    """The parts between breaks of each row of a test file."""
    for line in (GOLDEN / name).read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            parts = [part for part in line.replace("×", " ").split("÷") if part.strip()]
            yield ["".join(chr(int(point, 16)) for point in part.split()) for part in parts]


WORD_ROWS, SENTENCE_ROWS = list(rows("WordBreakTest.txt")), list(rows("SentenceBreakTest.txt"))


def test_the_files_are_whole() -> None:
    assert (len(WORD_ROWS), len(SENTENCE_ROWS)) == (1823, 502)


def test_the_reference_without_exceptions_is_unicode() -> None:
    assert [word_segments("".join(row)) for row in WORD_ROWS] == WORD_ROWS
    assert [sentence_segments("".join(row)) for row in SENTENCE_ROWS] == SENTENCE_ROWS


def words(text: str, exceptions: frozenset[str]) -> list[str]:
    """The segments with a letter or a number, of a text in canonical form."""
    return [each for each in word_segments(canonical(text), exceptions) if is_word(each)]


def words_of_sentences(text: str, exceptions: frozenset[str]) -> list[list[str]]:
    """The sentences by these exceptions, cut into tacit's words."""
    return slow_sentences(canonical(text), exceptions=exceptions | WORDS.keys())


def test_words_differ_from_unicode_by_named_exceptions_alone() -> None:
    used: Counter[str] = Counter()
    for row in WORD_ROWS:
        text = "".join(row)
        found = [word for sentence in sentences(text) for word in sentence]
        if found == [each for each in row if is_word(each)]:
            continue
        names = [name for name in WORDS if words(text, frozenset([name])) != words(text, NONE)]
        assert found == words(text, frozenset(names)), (row, names)
        used.update(names or ["canonical form"])
    assert used == {"canonical form": 177, "underscore": 110, "apostrophe": 34, "colon": 10}


def test_sentences_differ_from_unicode_by_named_exceptions_alone() -> None:
    used: Counter[str] = Counter()
    for row in SENTENCE_ROWS:
        text = "".join(row)
        found = sentences(text)
        if found == words_of_sentences(text, NONE):
            continue
        names = [name for name in SENTENCES if words_of_sentences(text, ALL - {name}) != found]
        assert names, row
        used.update(names)
    assert used == {"blank": 6, "lower case": 8}


@pytest.mark.parametrize("name", sorted(ALL))
def test_every_exception_changes_something(name: str) -> None:
    example = {
        "underscore": "foo_bar",
        "point": "end.Then",
        "apostrophe": "1980's",
        "colon": "10:30",
        "number": "m²",
        "run": "東京",
        "picture": "©\u200d❤\ufe0f",
        "address": "www.a",
        "blank": "a?b",
        "lower case": "so. it is",
        "comma": "so! - it is",
        "title": "Dr. Who",
        "letter": "J. Smith",
        "ellipsis": "so… Then",
        "line": "ab\vcd",
    }[name]
    found = sentences(example, Writing(emoji=True))
    assert found == slow_sentences(example, emoji=True)
    assert found != slow_sentences(example, emoji=True, exceptions=ALL - {name})
