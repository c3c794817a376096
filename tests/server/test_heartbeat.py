"""Signs of life come whatever a process is at, and nobody is taken for dead who could not be heard."""

import asyncio
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.exc import TimeoutError as NoConnectionInTime
from tests.support.server.served import Served, served
from tests.support.waiting import PATIENCE, until

from tacit.errors import StoreError
from tacit.server.http import application
from tacit.server.http.services import THREADS
from tacit.server.store.assignments import last_seen
from tacit.server.store.heartbeat import Heartbeat, Silence
from tacit.server.store.round_states import renew_lease
from tacit.server.store.store import Store


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[Served]:
    found = served(tmp_path)
    found.store.clock = time.monotonic
    yield found


def word(worker: Served) -> float | None:
    """When it was last seen, as the store has it."""
    with worker.store.reading() as connection:
        row = connection.exec_driver_sql("SELECT seen FROM workers").first()
    return None if row is None else float(row[0])


def lives_on(worker: Served) -> None:
    """Two more signs of life; blocks whoever calls it."""
    for _ in range(2):
        before = word(worker)
        until(lambda before=before: word(worker) != before)  # type: ignore[misc]


def test_a_worker_that_is_busy_in_every_thread_and_its_event_loop_says_that_it_lives(
    worker: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And while another of its threads has the store: nothing of its own process delays it."""
    monkeypatch.setattr(application, "BEAT_S", 0.01)
    done = threading.Event()

    async def busy() -> None:
        async with application._lifespan(worker.app.rest.state.worker)(worker.app.rest):
            for threads in (worker.services.threads, worker.services.own_thread, worker.services.signing_thread):
                for _ in range(THREADS):
                    threads.submit(done.wait, PATIENCE)
            with worker.store._one_writer:
                lives_on(worker)  # in the event loop
            done.set()

    asyncio.run(busy())
    assert word(worker) is None  # it left


def test_a_coordinator_renews_its_lease_while_it_has_the_store(worker: Served) -> None:
    with worker.store._one_writer:
        renew_lease(worker.store, worker.lease, seconds=30)


def test_what_the_store_does_not_take_is_said_again() -> None:
    said: list[int] = []

    def say() -> None:
        said.append(len(said))
        if len(said) < 3:
            raise StoreError("no room")

    with Heartbeat(say, every=0.001):
        until(lambda: len(said) >= 5)
    after = len(said)
    time.sleep(0.02)
    assert len(said) == after


def test_a_store_that_has_no_connection_in_time_is_one_that_does_not_answer(
    worker: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(*_: Any) -> None:
        raise NoConnectionInTime("QueuePool limit of size 8 overflow 8 reached")

    monkeypatch.setattr(type(worker.store._engine), "connect", none)
    with pytest.raises(StoreError, match="QueuePool limit"), worker.store.reading():
        pass


def looks(silence: Silence, words: list[float | None], *, every: float) -> list[list[str]]:
    """What a coordinator says of one worker, look by look."""
    return [silence.of({"a": each}, 1000.0 + number * every) for number, each in enumerate(words)]


def test_a_worker_that_says_nothing_is_silent_after_a_while() -> None:
    for first in (None, 7.0, 5000.0):  # its own clock, whatever that says
        found = looks(Silence(10.0), [first] * 12, every=1.0)
        assert found[:10] == [[]] * 10 and found[10:] == [["a"]] * 2
    found = looks(Silence(10.0), [7.0] * 9 + [6.0] * 10 + [None], every=1.0)  # any other word is one
    assert found == [[]] * 20


def test_time_in_which_nobody_could_look_says_nothing_of_a_worker() -> None:
    """A machine that slept for an hour, and one so busy that a look takes as long as a silence."""
    silence = Silence(10.0)
    assert silence.of({"a": 1.0}, 0.0) == silence.of({"a": 1.0}, 3600.0) == silence.of({"a": 1.0}, 3601.0) == []
    assert looks(Silence(10.0), [1.0] * 5, every=60.0) == [[]] * 5
    assert looks(Silence(10.0), [1.0] * 6, every=60.0)[-1] == ["a"]
    back = Silence(10.0)
    assert back.of({"a": 1.0}, 1000.0) == back.of({"a": 1.0}, 0.0) == []  # the clock was set back


def test_who_holds_nothing_is_forgotten() -> None:
    silence = Silence(10.0)
    for each in range(9):
        assert silence.of({"a": 1.0}, float(each)) == []
    assert silence.of({}, 9.0) == silence.of({"a": 1.0}, 10.0) == silence.of({"a": 1.0}, 11.0) == []


def test_nobody_looks_at_signs_of_life_while_a_store_takes_none(worker: Served) -> None:
    """Else whoever holds the database for a silence long would have buried every worker."""
    other = Store.open(worker.store._engine.url.render_as_string(hide_password=False))
    looked = threading.Event()

    def look() -> None:
        last_seen(other, ["ab" * 16])
        looked.set()

    thread = threading.Thread(target=look)
    with worker.store.writing():
        thread.start()
        assert not looked.wait(0.2)
    assert looked.wait(PATIENCE)
    thread.join()
    other.close()
