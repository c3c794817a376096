"""Named statistics of one device's text: each against plain Python, and none tells of the text by failing."""

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tacit.errors import InputError
from tacit.evaluation.counts import device_part
from tacit.evaluation.counts.device_part import (
    StatisticHistogram,
    StatisticsQuestion,
    StatisticSum,
    SumsQuestion,
    question_in,
)
from tacit.evaluation.counts.statistics import STATISTICS, SUMS, TypedText
from tacit.evaluation.settings import CountSettings
from tacit.text.vocabulary import BOS, EOS, OOV, SPECIALS

Sentences = list[list[int]]
sentences_of_words = st.lists(st.lists(st.sampled_from([OOV, *range(SPECIALS, 12)]), max_size=6), max_size=5)


class OneClient:
    """A client's sentences as a cache has them: between their marks, one after another."""

    def __init__(self, sentences: Sentences) -> None:
        self.marked = [[BOS, *each, EOS] for each in sentences]

    def sentences(self, client: int) -> tuple[NDArray[Any], NDArray[np.int64]]:
        ids = np.array([id_ for each in self.marked for id_ in each], np.int32)
        return ids, np.array([len(each) for each in self.marked], np.int64)


def by_hand(sentences: Sentences) -> dict[str, float]:
    """What each statistic is, without NumPy."""
    typed = [word for each in sentences for word in each]
    return {
        "words": len(typed),
        "sentences": len(sentences),
        "sentence_words": len(typed) / len(sentences) if sentences else math.nan,
        "different_words": len({word for word in typed if word != OOV}),
        "unknown_share": typed.count(OOV) / len(typed) if typed else math.nan,
    }


@given(sentences=sentences_of_words)
def test_every_statistic_is_what_it_says(sentences: Sentences) -> None:
    text, slow = TypedText.from_cache(OneClient(sentences), 0), by_hand(sentences)
    assert slow.keys() == STATISTICS.keys(), "a new statistic is held to plain Python here"
    for name, statistic in STATISTICS.items():
        assert statistic(text) == pytest.approx(slow[name], nan_ok=True), name


@given(sentences=sentences_of_words, cuts=st.lists(st.integers(0, 12), min_size=1, max_size=4, unique=True))
def test_a_device_is_in_the_cell_of_its_value(sentences: Sentences, cuts: list[int]) -> None:
    asked = StatisticHistogram(
        statistic="words", cuts=tuple(map(float, sorted(cuts))), by="sentences", slices=(2.0, 4.0)
    )
    (cell,) = StatisticsQuestion((asked,)).cells_of(OneClient(sentences), 0)
    slow = by_hand(sentences)
    slice_, bin_ = sum(slow["sentences"] >= cut for cut in (2, 4)), sum(slow["words"] >= cut for cut in cuts)
    assert cell == slice_ * (len(cuts) + 1) + bin_ and cell < asked.cells.size - 1


def cells_by_hand(sentences: Sentences, words: int) -> dict[str, list[int]]:
    """How often each cell of each sum occurs, without NumPy."""
    counts, pairs = [0] * words, [0] * words**2
    for sentence in sentences:
        places = [word - SPECIALS for word in sentence]  # of an unknown word below 0
        for place in places:
            if 0 <= place < words:
                counts[place] += 1
        for first, second in pairwise(places):
            if 0 <= first < words and 0 <= second < words:
                pairs[first * words + second] += 1
    return {"word_counts": counts, "word_pairs": pairs}


@given(sentences=sentences_of_words, words=st.integers(2, 8))
def test_every_sum_is_what_it_says(sentences: Sentences, words: int) -> None:
    slow = cells_by_hand(sentences, words)
    assert slow.keys() == SUMS.keys(), "a new sum is held to plain Python here"
    for name, expected in slow.items():
        asked = StatisticSum(statistic=name, words=words, norm=60_000.0)
        report = SumsQuestion((asked,)).report_of(OneClient(sentences), 0)
        assert report.tolist() == expected and report.dtype == np.uint32


def test_a_sum_that_fails_on_a_text_is_zeros(monkeypatch: pytest.MonkeyPatch) -> None:
    """A refusal would tell whoever asks that it failed on this very text; other sums of the report stay."""

    def fails(text: TypedText) -> NDArray[np.int64]:
        raise RecursionError

    monkeypatch.setattr(device_part, "SUMS", {**SUMS, "word_pairs": (2, fails)})
    asked = (
        StatisticSum(statistic="word_pairs", words=2, norm=9.0),
        StatisticSum(statistic="word_counts", words=2, norm=9.0),
    )
    report = SumsQuestion(asked).report_of(OneClient([[SPECIALS, SPECIALS + 1, SPECIALS]]), 0)
    assert report.tolist() == [0, 0, 0, 0, 2, 1]


def test_nan_is_no_report() -> None:
    asked = StatisticHistogram(statistic="unknown_share", cuts=(0.1,))
    (cell,) = StatisticsQuestion((asked,)).cells_of(OneClient([]), 0)
    assert cell == asked.cells.size - 1


@pytest.mark.parametrize("wrong", [ValueError("a"), ZeroDivisionError(), RecursionError(), KeyError("word")])
def test_a_statistic_that_fails_on_a_text_is_no_report(wrong: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    """A refusal would tell whoever asks that it failed on this very text."""

    def fails(text: TypedText) -> float:
        raise wrong

    monkeypatch.setattr(device_part, "STATISTICS", {**STATISTICS, "words": fails})
    asked = StatisticHistogram(statistic="words", cuts=(1.0, 2.0))
    other = StatisticHistogram(statistic="sentences", cuts=(1.0,))
    cells = StatisticsQuestion((asked, other)).cells_of(OneClient([[SPECIALS]]), 0)
    assert cells.tolist() == [asked.cells.size - 1, 1]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("letters:1", "the statistic 'letters' is unknown; choose of words, sentences"),
        ("words", "tells no two devices apart"),
        ("words:a", "is no statistic with cuts"),
        ("words:5,5", "5"),
        ("words:5 by sentences", "a statistic and its cuts; give both"),
        ("words:5 by sentences:2 by words:3", "is sliced twice"),
        ("letters:5 norm 3", "the sum 'letters' is unknown; choose of word_counts, word_pairs"),
        ("word_pairs:100", "is no sum; write for example 'word_pairs:1000 norm 30'"),
        ("word_pairs norm 3", "is no sum"),
        ("word_pairs:1 norm 3", "of 1 words tells nothing apart"),
        ("word_pairs:3163 norm 3", "has 10,004,569 cells, and a report at most 10,000,000; give 3,162 words at most"),
        ("word_pairs:9 norm nan", "norm=nan must lie between 1"),
        ("word_pairs:9 norm 3 unit 0", "unit=0 must lie between 1 and 65,536"),
        ("word_pairs:9 norm 3 unit x", "is no sum"),
        ("word_pairs:9 norm 5000 unit 16", "norm=80000 must lie between 1"),
    ],
)
def test_what_cannot_be_counted_is_said(text: str, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        CountSettings.named_by([text])


@given(counts=st.lists(st.integers(1, 9), min_size=1, max_size=30), unit=st.integers(1, 200))
def test_in_units_less_is_lost_and_the_norm_is_kept(counts: list[int], unit: int) -> None:
    asked = StatisticSum.from_text(f"word_counts:40 norm 3 unit {unit}")
    words = [number + SPECIALS for number, often in enumerate(counts) for _ in range(often)]
    report = SumsQuestion((asked,)).report_of(OneClient([words]), 0).astype(np.float64) / unit
    exact = np.pad(counts, (0, 40 - len(counts))) * min(1.0, 3 / float(np.linalg.norm(counts)))
    assert np.linalg.norm(report) <= 3 + 1e-12
    assert (report <= exact + 1e-9).all() and (exact - report < 1 / unit + 1e-9).all()
    assert StatisticSum(**asked.to_plain()) == asked and ("unit" in asked.to_plain()) == (unit > 1)


def test_a_question_is_read_back() -> None:
    asked = StatisticHistogram.from_text("unknown_share:0.01,0.05 by words:100")
    assert (asked.statistic, asked.cuts, asked.by, asked.slices) == ("unknown_share", (0.01, 0.05), "words", (100.0,))
    assert str(asked) == "unknown_share by words" and asked.to_plain()["by"] == "words"
    with pytest.raises(InputError, match="counted twice"):
        StatisticsQuestion((asked, asked))
    with pytest.raises(InputError, match="no statistic is named"):
        StatisticsQuestion(())


def test_a_question_of_sums_is_read_back() -> None:
    (asked,) = CountSettings.named_by(["word_pairs:1000 norm 30"])["sums"]
    assert asked == StatisticSum(statistic="word_pairs", words=1000, norm=30.0) and asked.cells == 10**6
    plan = '[[settings.sums]]\nstatistic = "word_pairs"\nwords = 1000\nnorm = 30\n'
    assert question_in(plan) == SumsQuestion((asked,))
    for wrong in ("[settings]\nsums = 3\n", plan + '[[settings.statistics]]\nstatistic = "words"\ncuts = [1.0]\n'):
        with pytest.raises(InputError, match="neither statistics nor sums, or both"):
            question_in(wrong)
    with pytest.raises(InputError, match="summed twice"):
        SumsQuestion((asked, StatisticSum(statistic="word_pairs", words=9, norm=30.0)))
    with pytest.raises(InputError, match="have 10,000,001 cells"):
        SumsQuestion((replace(asked, words=3162), replace(asked, statistic="word_counts", words=1757)))
