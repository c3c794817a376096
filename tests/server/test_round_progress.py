"""A server that goes on says where, and a round that lacks reports says what is missing: now and then."""

import logging
import math
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.server.documents import a_plan
from tests.support.server.fleet import Fleet, a_training_task, report
from tests.support.server.stores import quick_folder
from tests.support.training.tiny import tiny_cache, tiny_recipe

import tacit
from tacit.errors import TrainingError
from tacit.protocol.address import Address
from tacit.server.rounds.round_progress import FIRST_S, Reminders, goes_on, lacks_reports, missing_reports, stands_at
from tacit.server.rounds.rounds import RoundTimes
from tacit.server.serve import Serving
from tacit.server.store import round_states
from tacit.server.store.round_states import STATES, Attempt
from tacit.server.store.store import Store

SEED, RUN = bytes(32), a_plan().run
SLOW = RoundTimes(selecting=600.0, reporting=36_000.0, closing=5.0, pause=10.0, silence=1e6, poll=30.0, attempts=1)


class Stopped(BaseException):
    """A coordinator that is killed."""


@pytest.fixture
def fleet() -> Iterator[Fleet]:
    with quick_folder() as folder:
        yield Fleet(folder)


def an_attempt(**changed: object) -> Attempt:
    values: dict[str, object] = {
        **{"run": RUN, "task": "ab" * 16, "round": 3, "attempt": 1, "state": "selecting", "signed_task": ""},
        **{"model_digest": "", "goal": 4, "least": 4, "most": 6, "opened": 0.0, "closes_selecting": 60.0},
        **{"deadline": 7200.0, "assigned": 5, "received": 1, "counted": 2, "lost": 0, "total_digest": None},
        **{"reports": None, "short_updates": None, "losses": None, "why": None},
    }
    return Attempt(**values | changed)  # type: ignore[arg-type]


# -- now and then ------------------------------------------------------------------------------------------------------


@given(lasts=st.floats(0, 1e5), poll=st.floats(20.0, 600.0))
def test_what_waits_is_told_seldom(lasts: float, poll: float) -> None:
    reminders, told = Reminders(), list[float]()
    for at in range(int(lasts / poll) + 1):
        if reminders.is_due("a", at * poll):
            told.append(at * poll)
    assert len(told) <= 1 + math.log2(max(1.0, lasts / FIRST_S)), "a line for each doubling of the time"
    assert all(each >= FIRST_S for each in told)
    assert bool(told) == (int(lasts / poll) * poll >= FIRST_S)


@given(st.lists(st.tuples(st.sampled_from("ab"), st.floats(-1e4, 1e4)), max_size=60))
def test_whatever_the_clock_does_a_minute_lies_between_two_lines_of_an_attempt(steps: list[tuple[str, float]]) -> None:
    reminders, now, last = Reminders(), 0.0, dict[str, float]()
    for task, later in steps:
        now += later
        if reminders.is_due(task, now):
            assert not 0 <= now - last.get(task, -math.inf) < FIRST_S
            last[task] = now


@given(
    state=st.sampled_from(STATES),
    assigned=st.integers(0, 6),
    received=st.integers(0, 4),
    counted=st.integers(0, 4),
)
def test_what_lacks_devices_does_not_lack_reports(state: str, assigned: int, received: int, counted: int) -> None:
    found = an_attempt(state=state, assigned=assigned, received=received, counted=counted)
    taking = state in ("selecting", "reporting")
    assert lacks_reports(found) == (taking and assigned >= 4 and received + counted < 4)


def test_what_is_missing_in_words() -> None:
    said = missing_reports(an_attempt(lost=1), now=7200.0 - 61)
    assert said.startswith(
        "waits for reports: 3 of 4 came, so 1 is missing; given its task: 5 devices, of which 1 report"
    )
    assert "It ends 1970-01-01 02:00 UTC at the latest, in 2 minutes; with fewer than 4 nothing of it" in said
    assert "1 minute;" in missing_reports(an_attempt(), now=7199.0) and "0 minutes" in missing_reports(
        an_attempt(), now=8000.0
    )


@given(
    state=st.sampled_from(STATES),
    received=st.integers(0, 2),
    counted=st.integers(0, 2),
    goal=st.integers(1, 4),
    now=st.floats(0, 1e5),
)
def test_an_attempt_in_words_has_no_wrong_plural(
    state: str, received: int, counted: int, goal: int, now: float
) -> None:
    came = received + counted
    found = an_attempt(state=state, received=received, counted=counted, assigned=came, goal=goal, reports=came, least=0)
    for said in [stands_at(found, now), *([missing_reports(found, now)] if lacks_reports(found) else [])]:
        assert not re.search(r"\b1 (reports|devices|minutes|rounds)\b|\b1 are missing|\b[02-9] is missing", said), said


# -- of a round --------------------------------------------------------------------------------------------------------


def lines(caplog: pytest.LogCaptureFixture, words: str) -> list[str]:
    return [each.getMessage() for each in caplog.records if words in each.getMessage()]


def test_a_round_that_lacks_reports_says_so_until_it_ends(fleet: Fleet, caplog: pytest.LogCaptureFixture) -> None:
    """Devices came, and two of them never report: ten hours of silence before, a dozen lines now."""
    fleet.reports = lambda device, task: None if device in (2, 5) else report(device, task)
    fleet.left = 5
    with caplog.at_level(logging.INFO, "tacit.server"), pytest.raises(TrainingError, match="none of 1 attempt gave"):
        fleet.collector(SLOW).collect((), a_training_task(), seed=SEED)
    said = lines(caplog, "waits for reports")
    assert 8 <= len(said) <= 1 + math.log2((SLOW.selecting + SLOW.reporting) / FIRST_S)
    assert all(f"round 0 of '{RUN}' waits for reports: 3 of 4 came, so 1 is missing; given" in each for each in said)
    assert all(
        re.search(r"It ends 2027-01-\d\d \d\d:\d\d UTC at the latest, in \d+,?\d* minutes", each) for each in said
    )


def test_a_round_that_fills_in_time_says_nothing_of_reports(fleet: Fleet, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "tacit.server"):
        fleet.collector().collect((), a_training_task(), seed=SEED)
    assert not lines(caplog, "waits for reports") and not lines(caplog, "goes on")


def test_who_goes_on_with_a_round_says_where_it_stands(fleet: Fleet, caplog: pytest.LogCaptureFixture) -> None:
    assert goes_on(fleet.store, "another") is None
    assert goes_on(fleet.store, RUN) == f"goes on with '{RUN}': 0 of 20 rounds are released; the next one opens."
    first = fleet.collector()
    first.collect((), a_training_task(0), seed=SEED)
    assert "round 0, attempt 0, has its sum, of 4 reports, which is not released" in (goes_on(fleet.store, RUN) or "")
    first.released(0)
    assert f"goes on with '{RUN}': 1 of 20 rounds is released; the next" in (goes_on(fleet.store, RUN) or "")

    collector, waited, after = fleet.collector(), fleet.wait, []

    def killed(seconds: float) -> None:
        after.append(seconds)
        if len(after) == 2:
            raise Stopped
        waited(seconds)

    fleet.at_once, collector._wait = 2, killed
    with pytest.raises(Stopped):
        collector.collect((), a_training_task(1), seed=SEED)
    said = goes_on(fleet.store, RUN) or ""
    (open_one,) = [each for each in fleet.attempts() if each.round == 1]
    there, held = open_one.counted, open_one.received
    assert (
        there + held == 2 and f"1 of 20 rounds is released; round 1, attempt 0, is open: {there} of 4 reports" in said
    )
    assert ("more with a worker, lost if it ended" in said) == bool(held) and "2 devices came. It ends 2027-" in said
    round_states.pause_run(fleet.store, RUN, paused=True)
    assert (goes_on(fleet.store, RUN) or "").endswith(" It is paused: no device is given a task.")
    round_states.pause_run(fleet.store, RUN, paused=False)
    with caplog.at_level(logging.INFO, "tacit.server"):
        fleet.collector().collect((), a_training_task(1), seed=SEED)
    (line,) = lines(caplog, "goes on with")
    assert f"goes on with '{RUN}': round 1, attempt 0, is open: " in line


# -- of a server -------------------------------------------------------------------------------------------------------


def test_a_server_that_is_started_again_says_first_where_it_goes_on(tmp_path: Path) -> None:
    ours = tiny_cache(tmp_path / "ours", {"validation": 5, "test": 6})
    asked = tiny_recipe(
        ours.path, deployment={"population": "phones", "devices": 40}, rounds={"rounds": 3, "report_goal": 3}
    ).changed({"run.seed": None})
    out, said = tmp_path / "out", list[Serving]()

    def served() -> str:
        stop = threading.Event()

        def serving(each: Serving) -> None:
            said.append(each)
            for _ in range(600):  # until the coordinator has opened a round, a minute at most
                if any(known(out)) or stop.wait(0.1):
                    break
            stop.set()

        tacit.serve([asked], out, workers=1, address=Address(port=0), serving=serving, stop=stop)
        return str(said[-1])

    assert served().startswith("serving tiny at ") and not said[0].goes_on
    first, second = served().splitlines()[:2]
    assert first.startswith(
        "goes on with 'tiny': 0 of 3 rounds are released; round 0, attempt 0, is open: 0 of 3 reports"
    )
    assert "0 devices came. It ends 20" in first and second.startswith("serving tiny at ")


def known(out: Path) -> Iterator[Attempt]:
    store = Store.open(f"sqlite:///{out / 'store.db'}")
    try:
        yield from round_states.attempts(store, "tiny")
    finally:
        store.close()
