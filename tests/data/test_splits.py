"""A cut in time never lets a later text into train than into test, whatever the timestamps."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tacit.data.manifest import NO_TIME
from tacit.data.splits import Parts, TemporalSplit, Unsplit
from tacit.errors import InputError

Times = NDArray[np.int64]

times = st.lists(st.one_of(st.just(NO_TIME), st.integers(-3, 12)), max_size=40).map(lambda t: np.array(t, np.int64))
rules = st.one_of(
    st.builds(TemporalSplit, rule=st.just("time"), value=st.floats(0.05, 0.95), gate=st.sampled_from([0.0, 0.2, 0.6])),
    st.builds(
        TemporalSplit, rule=st.just("count"), value=st.integers(1, 50).map(float), gate=st.sampled_from([0.0, 0.4])
    ),
    st.builds(
        TemporalSplit, rule=st.just("last"), value=st.integers(1, 50).map(float), gate=st.sampled_from([0.0, 0.4])
    ),
    st.builds(
        TemporalSplit, rule=st.just("date"), value=st.integers(-4, 14).map(float), gate=st.sampled_from([0.0, 0.4])
    ),
)


@given(timestamps=times, rule=rules, undated=st.sampled_from(["drop", "order"]), least=st.integers(1, 3))
def test_no_later_text_is_trained_on_than_tested_on(
    timestamps: Times, rule: TemporalSplit, undated: str, least: int
) -> None:
    rule = TemporalSplit(rule=rule.rule, value=rule.value, gate=rule.gate, undated=undated, least=least)  # type: ignore[arg-type]
    parts = rule.parts(timestamps)
    if isinstance(parts, Unsplit):
        return
    nobody_dated = bool((timestamps == NO_TIME).all())
    clock = np.arange(len(timestamps)) if nobody_dated else timestamps
    used = [part for part in (parts.train, parts.gate, parts.test) if len(part)]
    assert [len(part) >= least for part in used] == [True] * (3 if rule.gate else 2)
    for before, after in pairwise(used):
        assert clock[before].max() < clock[after].min(), "later text, or text of the same time, leaked"
    everything = np.concatenate(used)
    assert len(np.unique(everything)) == len(everything)
    assert len(everything) + parts.undated == len(timestamps), "every sentence is in a part or counted"
    if not nobody_dated:
        assert parts.undated == (timestamps == NO_TIME).sum()
        assert NO_TIME not in timestamps[everything]
        for part in used:
            assert (np.diff(timestamps[part]) >= 0).all(), "in the order of time"


@given(timestamps=times, rule=rules, seed=st.integers(0, 99))
def test_the_order_in_the_cache_is_of_no_weight(timestamps: Times, rule: TemporalSplit, seed: int) -> None:
    shuffled = np.random.default_rng(seed).permutation(len(timestamps))
    one, two = rule.parts(timestamps), rule.parts(timestamps[shuffled])
    if isinstance(one, Unsplit) or isinstance(two, Unsplit):
        assert one == two
        return
    for mine, other in zip(one[:3], two[:3], strict=True):
        assert sorted(mine) == sorted(shuffled[other])


DAYS = np.array([1, 1, 1, 2, 2, 3, 4, 4, 4, 5], np.int64)  # changes of time after 3, 5, 6 and 9 sentences


@pytest.mark.parametrize(
    ("rule", "train", "gate", "test"),
    [
        (TemporalSplit(rule="time", value=0.8), 9, 0, 1),  # 8 would part a day; 9 is the nearest that does not
        (TemporalSplit(rule="time", value=0.4), 3, 0, 7),  # 4 is as near to 3 as to 5: the earlier
        (TemporalSplit(rule="time", value=0.01), 3, 0, 7),  # never nothing to train on for want of a finer cut
        (TemporalSplit(rule="time", value=0.9, gate=0.3), 6, 3, 1),
        (TemporalSplit(rule="count", value=8), 6, 0, 4),  # at most 8 of train
        (TemporalSplit(rule="last", value=2), 6, 0, 4),  # at least 2 of test
        (TemporalSplit(rule="date", value=4), 6, 0, 4),
    ],
    ids=str,
)
def test_each_rule_cuts_where_it_says(rule: TemporalSplit, train: int, gate: int, test: int) -> None:
    parts = rule.parts(DAYS)
    assert isinstance(parts, Parts)
    assert (len(parts.train), len(parts.gate), len(parts.test)) == (train, gate, test)


@pytest.mark.parametrize(
    ("rule", "timestamps", "why"),
    [
        (TemporalSplit(), [NO_TIME] * 9, Unsplit.NO_TIME),
        (TemporalSplit(undated="order", rule="date", value=3.0), [NO_TIME] * 9, Unsplit.NO_TIME),
        (TemporalSplit(), [], Unsplit.NO_TIME),
        (TemporalSplit(), [7] * 9, Unsplit.ONE_TIME),
        (TemporalSplit(rule="count", value=2), [1, 1, 1, 2], Unsplit.NO_TRAIN),
        (TemporalSplit(rule="count", value=9), [1, 2, 3], Unsplit.NO_TEST),
        (TemporalSplit(rule="last", value=3), [1, 2, 3], Unsplit.NO_TRAIN),
        (TemporalSplit(rule="date", value=1), [1, 2, 3], Unsplit.NO_TRAIN),
        (TemporalSplit(rule="date", value=9), [1, 2, 3], Unsplit.NO_TEST),
        (TemporalSplit(rule="time", value=0.5, gate=0.5), [1, 2], Unsplit.NO_GATE),
        (TemporalSplit(rule="time", value=0.8, least=2), [1, 2, 3, 4, 5], Unsplit.NO_TEST),
    ],
    ids=lambda value: str(value) if not isinstance(value, list) else f"{len(value)} sentences",
)
def test_who_cannot_be_split_says_why(rule: TemporalSplit, timestamps: list[int], why: Unsplit) -> None:
    assert rule.parts(np.array(timestamps, np.int64)) is why


def test_undated_sentences_stay_out_wherever_the_cache_keeps_them() -> None:
    dated = list(range(1, 11))
    for timestamps in ([NO_TIME, NO_TIME, *dated], [*dated, NO_TIME, NO_TIME]):
        parts = TemporalSplit(undated="order").parts(np.array(timestamps, np.int64))
        assert isinstance(parts, Parts)
        assert (len(parts.train), len(parts.test), parts.undated) == (8, 2, 2)


def test_the_caches_order_is_used_when_it_is_declared_and_no_time_is_known() -> None:
    parts = TemporalSplit(undated="order").parts(np.full(10, NO_TIME))
    assert isinstance(parts, Parts)
    assert parts.train.tolist() == list(range(8))
    assert (parts.test.tolist(), parts.undated) == ([8, 9], 0)


@pytest.mark.parametrize("text", ["time:0.8", "count:100", "date:2004-06-01", "last:20"])
def test_rules_are_read_and_written(text: str) -> None:
    assert str(TemporalSplit.parse(text, gate=0.1)) == text


def test_a_date_is_midnight_in_utc() -> None:
    assert TemporalSplit.parse("date:1970-01-02").value == 86_400


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("time:1.2", "between 0 and 1"),
        ("time:nan", "between 0 and 1"),
        ("count:0", "at least 1"),
        ("last:2.5", "whole number"),
        ("last:inf", "whole number"),
        ("date:June", "cannot be read"),
        ("random:0.8", "unknown; write time:0.8"),
        ("time", "cannot be read"),
    ],
)
def test_wrong_rules_name_the_way_out(text: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        TemporalSplit.parse(text)


def test_a_wrong_gate_is_refused() -> None:
    with pytest.raises(InputError, match="gate's share 1 must be"):
        TemporalSplit(gate=1.0)
    with pytest.raises(InputError, match="least=0"):
        TemporalSplit(least=0)
