"""Sums in a worker: written by twos at least, never a report alone; lost with the worker, and never twice."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from tests.support.protocol.updates import words
from tests.support.server.documents import PARAMETERS
from tests.support.server.served import Served, a_body, served

from tacit.errors import StoreError
from tacit.protocol.bodies import ReportBody, sha256
from tacit.protocol.served_bodies import read_sum
from tacit.server.store import assignments, round_states
from tacit.server.store.assignments import ArrivedReport, ReportAnswer
from tacit.server.store.blobs import BlobStore
from tacit.server.store.store import Store
from tacit.server.sums import partial_sums
from tacit.server.sums.partial_sums import EVERY, PartialSums


def take(worker: Served, value: float, *sums: PartialSums) -> bytes:
    """One device's whole part, at the first of these workers that takes its report; its body."""
    given = assignments.assign(worker.store, worker.task.task)
    assert given is not None
    body = a_body(given.id, value)
    report = ReportBody(np.full(PARAMETERS, value, np.float32), True, None, None)
    for each in sums or [worker.services.sums]:
        answer = each.take(report, worker.task, given.id, sha256(body))
        if answer is not ReportAnswer.ELSEWHERE:
            break
    assert answer is ReportAnswer.RECEIVED
    return body


def later(worker: Served) -> None:
    worker.store.clock.now += EVERY  # type: ignore[attr-defined]
    worker.write()


def stored(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.rglob("*") if file.is_file())


def total(worker: Served) -> np.ndarray:
    (partial,) = round_states.partial_sums(worker.store, worker.task.task)
    return read_sum(worker.blobs.get(partial.blob, digest=partial.digest), worker.task)


def test_a_report_is_never_written_alone(tmp_path: Path) -> None:
    """Whatever is on disk at any moment, no file holds one report, and no two sums differ by one."""
    worker, bodies = served(tmp_path, goal=30, most=30), []
    for value in (0.11, 0.07, 0.03, 0.05, 0.13, 0.02):
        bodies.append(take(worker, value))
        later(worker)
        data = stored(tmp_path)
        for body, each in zip(bodies, (0.11, 0.07, 0.03, 0.05, 0.13, 0.02), strict=False):
            assert np.full(PARAMETERS, each, np.float32).tobytes() not in data and body not in data
        assert worker.attempt().counted == len(bodies) - len(bodies) % 2
    assert len(worker.blobs.names(f"partials/{worker.task.task}")) == 1  # the older ones went


def test_the_search_would_find_a_report_that_was_stored(tmp_path: Path) -> None:
    worker = served(tmp_path)
    body = take(worker, 0.11)
    worker.blobs.put("partials/x", body)
    assert np.full(PARAMETERS, 0.11, np.float32).tobytes() in stored(tmp_path)


def test_a_round_that_closes_has_all_but_reports_that_are_alone(tmp_path: Path) -> None:
    worker = served(tmp_path, goal=6)
    for value in (0.1, 0.2, 0.05):
        take(worker, value)
    round_states.begin_closing(worker.store, worker.lease, worker.task.task)
    worker.write()
    np.testing.assert_array_equal(total(worker), np.float32(0.1) + np.float32(0.2) + np.full(PARAMETERS, 0.05, "f4"))
    assert (worker.attempt().counted, worker.attempt().lost, worker.services.sums.held) == (3, 0, 0)

    (tmp_path / "other").mkdir()
    other = served(tmp_path / "other", goal=6)
    take(other, 0.1)
    round_states.begin_closing(other.store, other.lease, other.task.task)
    other.write()
    assert (other.attempt().counted, other.attempt().lost, other.services.sums.held) == (0, 1, 0)


def test_a_worker_that_ends_writes_what_it_may(tmp_path: Path) -> None:
    worker = served(tmp_path)
    take(worker, 0.1)
    take(worker, 0.2)
    worker.services.sums.write_all(worker.store.now())
    assert worker.attempt().counted == 2
    take(worker, 0.05)
    worker.services.sums.write_all(worker.store.now())
    assert (worker.attempt().counted, worker.attempt().lost) == (2, 1)


def test_a_sum_goes_with_its_round(tmp_path: Path) -> None:
    worker = served(tmp_path)
    take(worker, 0.1)
    round_states.abandon(worker.store, worker.lease, worker.task.task, "test")
    worker.write()
    assert worker.services.sums.held == 0


def test_a_worker_that_was_given_up_ends_and_its_reports_are_in_no_sum(tmp_path: Path) -> None:
    worker = served(tmp_path, goal=30)
    take(worker, 0.1)
    take(worker, 0.2)
    assignments.give_up(worker.store, worker.task.task, worker.services.worker)
    with pytest.raises(StoreError):
        later(worker)
    assert worker.buried == [True] and worker.attempt().counted == 0 and worker.services.sums.held == 0


def test_a_full_disk_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    worker, put = served(tmp_path, goal=30), BlobStore.put

    def full(self: BlobStore, name: str, content: bytes) -> None:
        raise StoreError("No space left on device")

    take(worker, 0.1)
    take(worker, 0.2)
    monkeypatch.setattr(BlobStore, "put", full)
    with pytest.raises(StoreError):
        later(worker)
    monkeypatch.setattr(BlobStore, "put", put)
    take(worker, 0.05)
    later(worker)
    np.testing.assert_array_equal(total(worker), np.float32(0.1) + np.float32(0.2) + np.full(PARAMETERS, 0.05, "f4"))
    assert not worker.buried


def test_a_transaction_that_was_taken_and_not_heard_of_does_not_count_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker, flush = served(tmp_path, goal=30), assignments.flush

    def deaf(*given: object) -> None:
        flush(*given)  # type: ignore[arg-type]
        raise StoreError("the connection was lost")

    take(worker, 0.1)
    take(worker, 0.2)
    monkeypatch.setattr(assignments, "flush", deaf)
    with pytest.raises(StoreError):
        later(worker)
    monkeypatch.setattr(assignments, "flush", flush)
    assert worker.attempt().counted == 2 and worker.buried == [True]
    np.testing.assert_array_equal(total(worker), np.full(PARAMETERS, np.float32(0.1) + np.float32(0.2)))


def test_words_are_summed_modulo_the_word(tmp_path: Path) -> None:
    worker, each = served(tmp_path, encoded=True, asked=True, goal=30, most=30), [words(seed=seed) for seed in range(3)]
    for given_words in each:
        given = assignments.assign(worker.store, worker.task.task)
        assert given is not None
        report = ReportBody(given_words, True, None, None)
        worker.services.sums.take(report, worker.task, given.id, "ab" * 32)
    later(worker)
    np.testing.assert_array_equal(total(worker), sum(each, np.zeros_like(each[0])))


def test_bits_and_losses_are_summed_beside(tmp_path: Path) -> None:
    worker = served(tmp_path, asked=True, goal=30, most=30)
    for short, loss in ((True, 1.5), (False, -2.0), (True, 0.25)):
        given = assignments.assign(worker.store, worker.task.task)
        assert given is not None
        report = ReportBody(np.zeros(PARAMETERS, np.float32), True, short, loss)
        worker.services.sums.take(report, worker.task, given.id, "ab" * 32)
    later(worker)
    (partial,) = round_states.partial_sums(worker.store, worker.task.task)
    assert (partial.reports, partial.short_updates, partial.losses) == (3, 2, -0.25)


@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize(("seed", "goal"), [(0, 20), (1, 20), (2, 3)])
def test_a_round_becomes_full_whichever_worker_a_report_comes_to(
    tmp_path: Path, workers: int, seed: int, goal: int
) -> None:
    """Reports that are left alone are given up for others, until every worker that holds any can write them; where few
    are wanted none is left alone.
    """
    draw, worker = np.random.default_rng(seed), served(tmp_path, goal=goal, most=200)
    all_sums = [
        PartialSums(worker.store, worker.blobs, f"{each:032x}", evicted=lambda: None) for each in range(workers)
    ]
    came = 0
    while not (
        worker.attempt().received + worker.attempt().counted >= goal
        and min((each.held for each in all_sums if each.held), default=2) >= assignments.FEWEST
    ):
        if worker.attempt().received + worker.attempt().counted < goal:
            take(worker, 0.01, *draw.permutation(np.array(all_sums, object)))
            came += 1
        worker.store.clock.now += EVERY * draw.integers(2)  # type: ignore[attr-defined]
        for sums in all_sums:
            sums.write_what_is_due(assignments.open_rounds(worker.store), worker.store.now())
        assert came < 60
    round_states.begin_closing(worker.store, worker.lease, worker.task.task)
    for sums in all_sums:
        sums.write_what_is_due(assignments.open_rounds(worker.store), worker.store.now())
    attempt = worker.attempt()
    assert (attempt.counted, attempt.received) == (goal, 0) and attempt.lost == came - goal
    if workers == 1 or goal < assignments.NEARLY_FULL:
        assert came == goal  # nothing is ever lost in one, nor where one has all


def test_many_reports_are_written_before_their_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partial_sums, "MANY", 3)
    worker = served(tmp_path, goal=30, most=30)
    take(worker, 0.1)
    take(worker, 0.1)
    worker.write()
    assert worker.attempt().counted == 0
    take(worker, 0.1)
    worker.write()
    assert worker.attempt().counted == 3


@pytest.mark.parametrize("fails", [False, True])
def test_reports_that_wait_are_received_in_one_transaction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    """Three come while the store is asked about the first. Where it fails with all of them, one of the three is told
    so; of the others it is asked again.
    """
    worker, asked, receive_all = served(tmp_path, goal=30, most=30), list[int](), assignments.receive_all
    sums, begun, go_on = worker.services.sums, threading.Event(), threading.Event()

    def waits(store: Store, came: list[ArrivedReport], **named: str) -> list[ReportAnswer]:
        asked.append(len(came))
        if len(asked) == 1:
            begun.set()
            assert go_on.wait(60)
        elif fails and len(asked) == 2:
            raise StoreError("the database went away")
        return receive_all(store, came, **named)

    monkeypatch.setattr(assignments, "receive_all", waits)
    with ThreadPoolExecutor(4) as threads:
        sent = [threads.submit(take, worker, 0.25)]
        assert begun.wait(60)
        sent += [threads.submit(take, worker, 0.25) for _ in range(3)]
        (sum,) = sums._sums.values()
        while len(sum.coming) < 3:
            time.sleep(0.001)
        go_on.set()
        raised = [each.exception() for each in sent]
    assert asked == ([1, 3, 2] if fails else [1, 3])
    assert [type(each) for each in raised if each is not None] == [StoreError] * fails
    later(worker)
    np.testing.assert_array_equal(total(worker), np.full(PARAMETERS, 0.25 * (4 - fails), np.float32))
    assert worker.attempt().counted == 4 - fails
