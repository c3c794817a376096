"""A list of chosen cells: counted as by plain loops, read as it was written, and refused where it may not be sent."""

import math
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import InputError
from tacit.evaluation.counts.cell_list import CellList, CellSum, ListedSum
from tacit.evaluation.counts.device_part import StatisticSum, SumsQuestion
from tacit.evaluation.counts.statistics import TypedText
from tacit.federation.report_layout import MOST_NORM, clipped
from tacit.text.vocabulary import OOV, SPECIALS, Provenance, Vocabulary

WORDS = ("the", "of", "cat", "Cat", "sat")
PUBLIC = Provenance(kind="public", description="public text of a test")
VOCABULARY = Vocabulary(words=WORDS, provenance=Provenance(kind="word list", description="a test"))
LIST = CellList(
    norm=100,
    ngrams=(("the",), ("cat",), ("the", "cat"), ("of", "the", "cat"), ("cat", "cat", "cat")),
    units=(3, 10, 20, 65536, 1),
    provenance=PUBLIC,
)

sentences = st.lists(st.lists(st.sampled_from([OOV, *range(SPECIALS, SPECIALS + len(WORDS))]), max_size=9), max_size=6)
ngrams = st.lists(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(tuple), min_size=2, max_size=20, unique=True
)


def text_of(typed: list[list[int]]) -> TypedText:
    return TypedText(
        np.array([id for each in typed for id in each], np.int64), np.array(list(map(len, typed)), np.int64)
    )


class OneClient:
    """As a cache has the text: with the marks around each sentence."""

    def __init__(self, typed: list[list[int]]) -> None:
        self._typed = typed

    def sentences(self, client: int) -> tuple[Any, Any]:
        marked = [[1, *each, 2] for each in self._typed]
        return np.array([id for each in marked for id in each], np.int64), np.array(list(map(len, marked)), np.int64)


def by_hand(listed: CellList, typed: list[list[int]]) -> list[int]:
    """Units of each cell before clipping, in loops."""
    words = [[VOCABULARY.word_of(id) for id in sentence] for sentence in typed]
    found = []
    for ngram, unit in zip(listed.ngrams, listed.units, strict=True):
        times = sum(tuple(sentence[at : at + len(ngram)]) == ngram for sentence in words for at in range(len(sentence)))
        found.append(unit * (min(times, 1) if listed.once else times))
    return found


@settings(max_examples=200, deadline=None)
@given(typed=sentences, chosen=ngrams, draw=st.randoms(use_true_random=False), once=st.booleans())
def test_a_device_counts_what_plain_loops_count(typed: Any, chosen: Any, draw: Any, once: bool) -> None:
    units = tuple(draw.randint(1, 50) for _ in chosen)
    listed = CellList(norm=draw.randint(1, 300), ngrams=tuple(chosen), units=units, provenance=PUBLIC, once=once)
    cells, counts = ListedSum.over(listed, VOCABULARY).counted(text_of(typed))
    assert (np.diff(cells) > 0).all()
    whole = np.zeros(len(chosen), np.int64)
    whole[cells] = counts
    slow = by_hand(listed, typed)
    assert whole.tolist() == slow
    report = SumsQuestion((CellSum.of(listed),)).counting(listed, VOCABULARY).report_of(OneClient(typed), 0)
    assert report.tolist() == clipped(np.array(slow), float(listed.norm)).tolist()
    assert sum(int(each) ** 2 for each in report) <= listed.norm**2


def test_a_text_of_a_million_words_has_the_norm_of_any() -> None:
    question = SumsQuestion((CellSum.of(LIST), StatisticSum.from_text("word_counts:4 norm 7"))).counting(
        LIST, VOCABULARY
    )
    short, long = [[5, 4, 6]], [[5, 4, 6] * 350_000]
    for typed in (short, long):
        report = question.report_of(OneClient(typed), 0).astype(np.int64)
        of_list, of_words = question.sums.apart(report)
        assert math.isqrt(int((of_list**2).sum())) <= 100 and int((of_words**2).sum()) <= 49
        question.sums.check(report.astype(np.uint32))
    assert of_words.any()


def test_what_the_sums_of_many_reports_cannot_hold_is_refused() -> None:
    """2^32 is not reached by any reports that are let in: each cell of one is at most the norm."""
    layout = CellSum.of(CellList(norm=MOST_NORM, ngrams=LIST.ngrams, units=LIST.units, provenance=PUBLIC)).layout
    most = ((1 << 32) - 1) // MOST_NORM
    layout.check_reports(most)
    assert most * layout.largest < 1 << 32
    with pytest.raises(InputError, match="may sum to"):
        layout.check_reports(most + 1)


@settings(max_examples=50, deadline=None)
@given(chosen=ngrams, norm=st.integers(1, MOST_NORM), once=st.booleans())
def test_it_is_read_as_it_was_written(chosen: Any, norm: int, once: bool) -> None:
    listed = CellList(
        norm=norm, ngrams=tuple(chosen), units=tuple(range(1, len(chosen) + 1)), provenance=PUBLIC, once=once
    )
    again = CellList.from_content(listed.text.encode())
    assert again == listed and again.sha256 == listed.sha256
    other = CellList(norm=norm, ngrams=listed.ngrams, units=listed.units, provenance=PUBLIC, once=not once)
    assert other.sha256 != listed.sha256


def test_a_file_says_where_it_is_wrong(tmp_path: Path) -> None:
    file = tmp_path / "cells.txt"
    assert LIST.save(file).path == file and CellList.load(file) == LIST
    lines = LIST.text.splitlines()
    for at, line, said in (
        (0, "# tacit cells 2", "begins with the lines"),
        (1, "# norm much", "begins with the lines"),
        (2, "# everywhere: x", "begins with the lines"),
        (2, "# private: counted on clients", "were chosen by clients' own text"),
        (4, "the", "line 5 is 'the'"),
        (4, "-1\tcat", "line 5 is"),
        (4, "0\tcat", "counts 0, and a whole number from 1"),
        (4, "65537\tcat", "counts 65537, and a whole number from 1"),
        (4, "3\tthe", "'the' is in the list twice"),
        (4, "3\tthe cat sat of", "is not one to 3 words"),
        (4, "3\tthe  cat", "is not one to 3 words"),
        (1, "# norm 0", "must lie between 1"),
        (1, "# norm 70000", "must lie between 1"),
    ):
        file.write_text("\n".join([*lines[:at], line, *lines[at + 1 :]]) + "\n")
        with pytest.raises(InputError, match=re.escape(said)):
            CellList.load(file)
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="not UTF-8"):
        CellList.load(file)
    for content in ("", "# tacit cells 1\n", "\n".join(lines[:4]) + "\n"):
        file.write_text(content)
        with pytest.raises(InputError):
            CellList.load(file)
    with pytest.raises(InputError, match="there is no list of cells"):
        CellList.load(tmp_path / "none.txt")


def test_a_list_of_other_words_is_refused() -> None:
    unknown = CellList(norm=9, ngrams=(("the",), ("the", "dog")), units=(1, 1), provenance=PUBLIC)
    with pytest.raises(InputError, match="the word 'dog' of cell 2 is not in the vocabulary"):
        ListedSum.over(unknown, VOCABULARY)
    lower = Vocabulary(words=("the", "cat"), provenance=VOCABULARY.provenance, lowercase=True)
    twice = CellList(norm=9, ngrams=(("cat",), ("Cat",)), units=(1, 1), provenance=PUBLIC)
    assert ListedSum.over(twice, VOCABULARY).cells == 2
    with pytest.raises(InputError, match="two cells are of the same words"):
        ListedSum.over(twice, lower)


def test_only_the_list_that_was_asked_for_is_counted() -> None:
    asked = SumsQuestion((CellSum.of(LIST),))
    other = CellList(norm=100, ngrams=LIST.ngrams, units=(4, *LIST.units[1:]), provenance=PUBLIC)
    with pytest.raises(InputError, match="is not the one that is asked for"):
        asked.counting(other, VOCABULARY)
    assert Counter(map(str, asked.counting(LIST, VOCABULARY).statistics)) == {"cells": 1}
    assert not asked.report_of(OneClient([[4]]), 0).any()  # a digest counts nothing
    with pytest.raises(InputError, match="summed twice"):
        SumsQuestion((CellSum.of(LIST), CellSum.of(LIST)))
