"""Whether rounds can fill is said at once: by the codes at the start, by check-ins while a round waits."""

import logging
import threading
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.server.documents import a_plan
from tests.support.server.fleet import TIMES, Fleet, a_training_task
from tests.support.server.stores import quick_folder
from tests.support.training.tiny import tiny_cache, tiny_recipe

import tacit
from tacit.errors import TrainingError
from tacit.protocol.address import Address
from tacit.server.http.check_in_rates import tell
from tacit.server.http.pace_steering import SharedRates, period_of
from tacit.server.rounds.who_could_come import LEAST_S, SEEN, devices_seen, needed, too_few_codes, waits_in_vain
from tacit.server.serve import Serving

SEED = bytes(32)


@pytest.fixture
def fleet() -> Iterator[Fleet]:
    with quick_folder() as folder:
        yield Fleet(folder)


@given(goal=st.integers(1, 3), separation=st.integers(1, 4), rounds=st.integers(1, 4), devices=st.integers(1, 12))
def test_so_many_fill_all_rounds_and_fewer_do_not(goal: int, separation: int, rounds: int, devices: int) -> None:
    """Played: in each round the goal comes of those who stayed away long enough."""
    last = dict.fromkeys(range(devices), -separation)
    filled = 0
    for round in range(rounds):
        ready = [device for device, when in last.items() if round - when >= separation]
        if len(ready) < goal:
            break
        last.update(dict.fromkeys(sorted(ready, key=lambda device: last[device])[:goal], round))
        filled += 1
    assert (filled == rounds) == (devices >= needed(goal, separation, rounds))


def test_codes_are_counted() -> None:
    for codes, needs in product(range(1, 8), range(1, 8)):
        said = too_few_codes("run", codes=codes, needs=needs, goal=3)
        assert (said is None) == (codes >= needs)
        assert said is None or f"at most {codes} device{'s' * (codes != 1)} could come" in said


@given(
    came=st.integers(0, 5),
    least=st.integers(1, 5),
    waited=st.floats(0, 1e5),
    seen=st.none() | st.floats(0, 1e7),
    separation=st.none() | st.integers(1, 5),
)
def test_nothing_is_said_while_somebody_may_yet_come(
    came: int, least: int, waited: float, seen: float | None, separation: int | None
) -> None:
    said = waits_in_vain(came=came, least=least, waited=waited, seen=seen, separation=separation, needs=9)
    may = came >= least or seen is None or waited < LEAST_S or waited < SEEN * period_of(seen)
    assert (said is None) == may
    if said is not None:
        assert f"{came} of {least} device{'s' * (least != 1)} took part" in said and "lower rounds.report_goal" in said
        assert ("9 that may take part are needed" in said) == (separation is not None and separation > 1)


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if "cannot fill" in each.getMessage()]


def test_a_round_that_waits_in_vain_says_so_once_while_it_waits(fleet: Fleet, caplog: pytest.LogCaptureFixture) -> None:
    fleet.left = 2  # of the 4 that it needs
    rates = {a_plan().population: (SharedRates(5.0, 0.0), 5.0)}
    tell(fleet.store, "a" * 32, rates)
    assert devices_seen(fleet.store, a_plan().population) == 5.0 and devices_seen(fleet.store, "nobody") is None
    collector = fleet.collector(TIMES.__class__(**{**TIMES.__dict__, "attempts": 1}))
    with caplog.at_level(logging.WARNING, "tacit.server"), pytest.raises(TrainingError, match="attempt gave a sum"):
        collector.collect((), a_training_task(), seed=SEED)
    (said,) = told(caplog)
    assert "2 of 4 devices took part in 20 s, in which each of about 5 that check in came 3 times" in said
    assert caplog.records[-1].created >= caplog.records[0].created
    assert "abandoned" in caplog.records[-1].getMessage(), "the round says so before it is given up, and not after"


def test_a_round_that_fills_says_nothing(fleet: Fleet, caplog: pytest.LogCaptureFixture) -> None:
    tell(fleet.store, "a" * 32, {a_plan().population: (SharedRates(500.0, 0.0), 500.0)})
    with caplog.at_level(logging.WARNING, "tacit.server"):
        fleet.collector().collect((), a_training_task(), seed=SEED)
    assert not told(caplog)


def test_too_few_codes_are_said_before_anybody_comes(tmp_path: Path) -> None:
    ours = tiny_cache(tmp_path / "ours", {"validation": 5, "test": 6})
    asked = tiny_recipe(
        ours.path,
        deployment={"population": "phones", "devices": 40},
        rounds={"rounds": 3, "report_goal": 3, "min_separation": 2},
        privacy={"mechanism": {"name": "independent"}, "noise_multiplier": 4.0},
    ).changed({"run.seed": None})
    for count, warned in ((5, True), (6, False)):
        codes = tmp_path / f"codes-{count}"
        codes.write_text("".join(f"correct-horse-battery-staple-{each}\n" for each in range(count)) + "\n")
        stop, heard = threading.Event(), list[Serving]()

        def serving(each: Serving, heard: list[Serving] = heard, stop: threading.Event = stop) -> None:
            heard.append(each)
            stop.set()

        tacit.serve(
            [asked],
            tmp_path / f"out-{count}",
            workers=1,
            address=Address(port=0),
            enrolment_codes=codes,
            serving=serving,
            stop=stop,
        )
        (said,) = heard
        assert bool(said.warnings) == warned and str(said).startswith("warning: " if warned else "serving ")
        if warned:
            assert "at most 5 devices could come, by the enrolment codes, and 6 are needed for 3 reports" in str(said)
