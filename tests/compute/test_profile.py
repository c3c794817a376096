"""Seconds are counted where somebody counts, in the phase in which work was given out."""

import time

import pytest
from tests.support.training.tiny import cores

from tacit.compute.profile import READING, WRITING, Profile, beside, current, of_the_phase, phase


def test_phases_and_rest_add_up_to_the_time_that_passed() -> None:
    with Profile().counting() as profile:
        with phase("noise"):
            time.sleep(0.02)
        with phase("training"), of_the_phase(), beside(READING, out_of="training"):
            time.sleep(0.01)
        spent = profile.to_record(2)
    assert spent["phases"]["noise"] >= 0.02
    assert sum(spent["phases"].values()) == pytest.approx(spent["seconds"])
    workers = spent["workers"]
    assert workers["reading"] >= 0.01 and workers["training"] == pytest.approx(0.0, abs=0.005)
    assert sum(workers.values()) - 2 == pytest.approx(2 * spent["seconds"])


def test_threads_count_for_the_phase_that_gave_them_their_work() -> None:
    def nap(device: object, item: int) -> int:
        time.sleep(0.01)
        return item

    workers = cores(2).cores
    with Profile().counting() as profile:
        with phase("evaluation"):
            assert workers.map(nap, range(4)) == [0, 1, 2, 3]
        with phase("cohort"):
            workers.map(nap, range(2))
        spent = profile.to_record(2)["workers"]
    assert spent["evaluating"] >= 0.04 and spent["training"] == 0.0


def test_nothing_is_counted_where_nobody_counts() -> None:
    with phase("noise"), beside(WRITING):
        assert current() is None
    with Profile().counting() as profile:
        assert current() is profile
    with phase("noise"):
        time.sleep(0.01)
    assert profile.to_record(0)["phases"]["noise"] == 0.0
