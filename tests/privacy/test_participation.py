"""Participation: two conventions of separation, and what a log says happened."""

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import AccountingError, InputError
from tacit.privacy import Participation
from tacit.privacy.measured_participation import realised_participation, timed_participation


def slow_realised(rounds: int, log: list[tuple[int, int]]) -> tuple[int, int]:
    """(separation, count) by looking at each pair of rounds of each client."""
    rounds_of = defaultdict(list)
    for when, who in log:
        rounds_of[who].append(when)
    gaps = [abs(a - b) for visits in rounds_of.values() for i, a in enumerate(visits) for b in visits[:i]]
    return min(gaps, default=rounds), max((len(visits) for visits in rounds_of.values()), default=1)


@given(log=st.sets(st.tuples(st.integers(0, 19), st.integers(-3, 6)), max_size=40).map(list).flatmap(st.permutations))
def test_realised_is_what_the_log_says(log: list[tuple[int, int]]) -> None:
    happened = realised_participation(
        20,
        np.array([when for when, _ in log], dtype=np.int64),
        np.array([who for _, who in log], dtype=np.int64),
    )
    assert (happened.min_separation, happened.max_participations) == slow_realised(20, log)
    assert happened.rounds == 20


def test_nobody_twice_is_one_participation_at_the_largest_separation() -> None:
    once = realised_participation(5, [0, 0, 4], [1, 2, 3])
    assert once == Participation(rounds=5, min_separation=5, max_participations=1)
    assert realised_participation(3, [], []) == Participation(rounds=3, min_separation=3, max_participations=1)


def test_a_client_twice_in_one_round_is_refused_by_name() -> None:
    with pytest.raises(AccountingError, match="client 7 is logged twice in round 2"):
        realised_participation(4, [1, 2, 0, 2], [7, 7, 8, 7])


@pytest.mark.parametrize(
    ("round_of", "client_of", "complaint"),
    [
        ([0, 4], [1, 2], "round 4 is logged"),
        ([-1, 0], [1, 2], "round -1 is logged"),
        ([0, 1], [1], "same length"),
        ([0.0, 1.0], [1, 2], "give integers"),
    ],
)
def test_a_log_that_is_none_is_refused(round_of: list[float], client_of: list[int], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        realised_participation(4, round_of, client_of)


def test_the_papers_min_s_is_one_below_the_separation() -> None:
    # The tree colab's y - x - 1 = 313 is our 314.
    ours = Participation.from_rounds_between(rounds=2000, rounds_between=313, max_participations=6)
    assert (ours.min_separation, ours.rounds_between) == (314, 313)


@given(rounds=st.integers(1, 50), separation=st.integers(1, 60))
def test_the_worst_case_counts_as_many_as_fit(rounds: int, separation: int) -> None:
    worst = Participation.worst_case(rounds, separation)
    assert worst.max_participations == len(range(0, rounds, separation))
    assert worst == Participation.from_rounds_between(rounds=rounds, rounds_between=separation - 1)
    generous = Participation(rounds=rounds, min_separation=separation, max_participations=10**6)
    assert generous.effective == worst == worst.effective


def test_a_prefix_keeps_the_promise_and_nothing_speaks_of_later_rounds() -> None:
    promise = Participation(rounds=100, min_separation=10, max_participations=4)
    assert promise.first(7) == Participation(rounds=7, min_separation=10, max_participations=4)
    with pytest.raises(AccountingError, match="rounds=101 lie beyond the 100"):
        promise.first(101)


@pytest.mark.parametrize("name", ["rounds", "min_separation", "max_participations"])
@pytest.mark.parametrize("wrong", [0, -3, 1.5, True, "7", None])
def test_what_is_no_positive_whole_number_is_refused(name: str, wrong: object) -> None:
    values = {"rounds": 5, "min_separation": 2, "max_participations": 2, name: wrong}
    with pytest.raises(InputError, match=name):
        Participation(**values)  # type: ignore[arg-type]


def test_numpy_numbers_are_whole_numbers() -> None:
    taken = Participation(rounds=np.int64(5), min_separation=np.int32(2), max_participations=2)  # type: ignore[arg-type]
    assert type(taken.rounds) is int
    assert taken == Participation(rounds=5, min_separation=2, max_participations=2)


def slow_from_round_times(finished: list[float], timer: float, starts: list[float]) -> tuple[int, int]:
    """(separation, count) by looking at each pair of rounds, and at every chain of returns."""
    rounds = len(finished)
    allowed = [[finished[j] - starts[i] >= timer for j in range(rounds)] for i in range(rounds)]
    gaps = [j - i for i in range(rounds) for j in range(i + 1, rounds) if allowed[i][j]]
    longest = [1] * rounds
    for j in range(rounds):
        longest[j] = 1 + max((longest[i] for i in range(j) if allowed[i][j]), default=0)
    return min(gaps, default=rounds), max(longest)


@given(waits=st.lists(st.integers(0, 12), min_size=1, max_size=40), timer=st.integers(1, 60))
def test_a_timer_allows_what_the_round_times_say(waits: list[int], timer: int) -> None:
    finished = np.cumsum(waits)
    uploads = [finished[0] - max([0, *waits[1:]]), *finished[:-1].tolist()]
    for clock, starts in (("finish", finished.tolist()), ("upload", uploads)):
        measured = timed_participation(finished, timer=timer, clock=clock)
        wanted = slow_from_round_times(finished.tolist(), timer, starts)
        assert (measured.min_separation, measured.max_participations) == wanted
        assert measured.rounds == len(waits)
        assert measured.effective == measured  # as many as came fit the separation


@given(waits=st.lists(st.integers(1, 12), min_size=1, max_size=40), timer=st.integers(1, 60))
def test_the_separation_is_one_more_than_the_rounds_of_the_emptiest_window(waits: list[int], timer: int) -> None:
    """The colab's words: MinS is the smallest number of rounds completed in any period of the timer."""
    finished = np.cumsum(waits)
    inside = [int(((finished > start) & (finished < start + timer)).sum()) for start in finished]
    whole = [count for start, count in zip(finished, inside, strict=True) if start + timer <= finished[-1]]
    if whole:
        assert timed_participation(finished, timer=timer).rounds_between == min(whole)


def test_a_clock_that_starts_at_the_upload_lets_a_device_back_sooner() -> None:
    """Rounds of 10 hours, a timer of 24: who uploads an hour into a round is free before the second one after it."""
    finished = np.arange(8) * 36_000.0
    assert timed_participation(finished, timer=86_400.0).min_separation == 3
    assert timed_participation(finished, timer=86_400.0, clock="upload").min_separation == 2


def test_a_log_of_even_rounds() -> None:
    hours = 3600.0
    even = timed_participation(1.7e9 + np.arange(100) * 0.5 * hours, timer=24 * hours)
    assert even == Participation(rounds=100, min_separation=48, max_participations=3)
    late = timed_participation(1.7e9 + np.arange(100) * 0.5 * hours, timer=24 * hours + 1)
    assert (late.min_separation, late.rounds_between) == (49, 48)
    assert timed_participation([0.0, 5.0, 6.0], timer=7.0) == Participation(
        rounds=3, min_separation=3, max_participations=1
    )
    assert timed_participation([0.1, 0.1, 0.3], timer=1e-9).min_separation == 1
    assert timed_participation([0.1, 0.3], timer=0.2).max_participations == 2  # 0.3 - 0.1 < 0.2 in binary


@pytest.mark.parametrize(
    ("finished", "timer", "complaint"),
    [
        ([3.0, 2.0], 1.0, "round 1 finished at 2 s, before round 0 at 3 s"),
        ([], 1.0, "at least one"),
        ([[1.0]], 1.0, "shape"),
        ([1.0, float("nan")], 1.0, "round 1 finished at nan"),
        ([1.0, 2.0], 0.0, "timer=0.0 is no period"),
        ([1.0, 2.0], -5, "timer=-5 is no period"),
        ([1.0, 2.0], float("inf"), "timer=inf"),
    ],
)
def test_times_that_are_none_are_refused(finished: list[float], timer: float, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        timed_participation(finished, timer=timer)


@pytest.mark.parametrize("unit", ["h", "s", "ms", "ns"])
def test_times_of_a_unit_are_not_taken_for_seconds(unit: str) -> None:
    """A round an hour, a timer of a day: as numbers, hours would say that nobody came twice."""
    finished = np.datetime64("2026-10-24T12:00") + np.arange(100).astype("timedelta64[h]")
    as_seconds = finished.astype("datetime64[s]").astype(np.int64)
    assert timed_participation(as_seconds, timer=86_400.0).min_separation == 24
    for other in (finished.astype(f"datetime64[{unit}]"), finished.astype("datetime64[s]").tolist(), ["1.0", "2.0"]):
        with pytest.raises(InputError, match="and times are seconds"):
            timed_participation(other, timer=86_400.0)
