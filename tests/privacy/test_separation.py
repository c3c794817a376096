"""What devices keep by themselves, against every pattern of participation that the rules allow, one by one."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import InputError
from tacit.privacy.measured_participation import timed_participation
from tacit.privacy.participation import Participation
from tacit.privacy.separation import DeviceSeparation


def keeps(separation: DeviceSeparation, pattern: tuple[int, ...], began: float, finished: list[float]) -> bool:
    """Whether a device can take part in just these rounds: as early in each as its timer lets it."""
    if separation.most is not None and len(pattern) > separation.most:
        return False
    opened, free = [began, *finished[:-1]], -np.inf
    for at, round in enumerate(pattern):
        if separation.rounds is not None and at and round - pattern[at - 1] < separation.rounds:
            return False
        came = max(opened[round], free)
        if came > finished[round]:
            return False
        free = came + (separation.timer_seconds or 0.0)
    return True


@given(
    lengths=st.lists(st.integers(1, 5), min_size=1, max_size=8),
    rounds=st.one_of(st.none(), st.integers(1, 10)),
    timer=st.one_of(st.none(), st.integers(1, 30)),
    most=st.one_of(st.none(), st.integers(1, 4)),
)
def test_no_device_that_keeps_it_comes_sooner_or_more_often(
    lengths: list[int], rounds: int | None, timer: int | None, most: int | None
) -> None:
    """The times are whole seconds, so that rounds close just as timers run out."""
    if rounds is None and timer is None:
        return
    separation = DeviceSeparation(rounds=rounds, timer_seconds=timer, most=most)
    finished = [100.0 + each for each in np.cumsum(lengths)]
    found = separation.realised(finished, began=100.0)
    patterns = [
        pattern
        for size in range(1, len(lengths) + 1)
        for pattern in combinations(range(len(lengths)), size)
        if keeps(separation, pattern, 100.0, finished)
    ]
    gaps = [later - round for pattern in patterns for round, later in pairwise(pattern)]
    assert max(map(len, patterns)) <= found.max_participations
    assert min(gaps, default=len(lengths)) == found.min_separation, "no sooner, and it is not promised too little"
    assert found.rounds == len(lengths)
    if timer is None:
        assert max(map(len, patterns)) == found.max_participations
        assert found == separation.by_index(len(lengths))


def test_the_round_index_is_known_before_training() -> None:
    separation = DeviceSeparation(rounds=400)
    assert separation.realised(np.arange(2000.0), began=0.0) == Participation.worst_case(2000, 400)
    assert separation.realised([1.0] * 7, began=0.0) == Participation(
        rounds=7, min_separation=7, max_participations=1
    ), "the times count for nothing"


def test_a_first_round_that_was_open_for_long_lets_a_device_come_back_in_the_next() -> None:
    """Without `began` it is taken to be as long as the longest, and the device is thought to be still waiting."""
    finished = [48 * 3600.0 + 3600.0 * round for round in range(4)]
    waited = DeviceSeparation(timer_seconds=48 * 3600.0)
    assert waited.realised(finished, began=0.0).min_separation == 1
    assert timed_participation(finished, timer=48 * 3600.0, clock="upload").min_separation == 4


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({}, "keep no separation"),
        ({"rounds": 0}, "rounds=0"),
        ({"timer_seconds": 0.0}, "timer_seconds=0"),
        ({"timer_seconds": float("nan")}, "timer_seconds=nan"),
    ],
)
def test_what_nobody_can_keep_is_refused(given: dict[str, float], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        DeviceSeparation(**given)  # type: ignore[arg-type]


def test_times_that_fall_or_begin_after_they_ended_are_refused() -> None:
    timer = DeviceSeparation(timer_seconds=5.0)
    with pytest.raises(InputError, match="before round 0"):
        timer.realised([2.0, 1.0], began=0.0)
    with pytest.raises(InputError, match=r"the first round began at 3 s and finished at 2 s"):
        timer.realised([2.0, 4.0], began=3.0)
