"""Participation: two conventions of separation, and what a log says happened."""

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import AccountingError, InputError
from tacit.privacy import Participation


def slow_realised(rounds: int, log: list[tuple[int, int]]) -> tuple[int, int]:
    """(separation, count) by looking at each pair of rounds of each client."""
    rounds_of = defaultdict(list)
    for when, who in log:
        rounds_of[who].append(when)
    gaps = [abs(a - b) for visits in rounds_of.values() for i, a in enumerate(visits) for b in visits[:i]]
    return min(gaps, default=rounds), max((len(visits) for visits in rounds_of.values()), default=1)


@given(log=st.sets(st.tuples(st.integers(0, 19), st.integers(-3, 6)), max_size=40).map(list).flatmap(st.permutations))
def test_realised_is_what_the_log_says(log: list[tuple[int, int]]) -> None:
    happened = Participation.realised(
        20,
        np.array([when for when, _ in log], dtype=np.int64),
        np.array([who for _, who in log], dtype=np.int64),
    )
    assert (happened.min_separation, happened.max_participations) == slow_realised(20, log)
    assert happened.rounds == 20


def test_nobody_twice_is_one_participation_at_the_largest_separation() -> None:
    once = Participation.realised(5, [0, 0, 4], [1, 2, 3])
    assert once == Participation(rounds=5, min_separation=5, max_participations=1)
    assert Participation.realised(3, [], []) == Participation(rounds=3, min_separation=3, max_participations=1)


def test_a_client_twice_in_one_round_is_refused_by_name() -> None:
    with pytest.raises(AccountingError, match="client 7 is logged twice in round 2"):
        Participation.realised(4, [1, 2, 0, 2], [7, 7, 8, 7])


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
        Participation.realised(4, round_of, client_of)


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
