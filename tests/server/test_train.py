"""A collector of real devices gives one sum for a round, whatever dies in between, or says why there is none."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
import pytest
from tests.server.killed_coordinator import Killed, KilledAt
from tests.support.server.fleet import TIMES, Fleet, a_training_task, report, update_of
from tests.support.server.stores import new_round, quick_folder, with_run

from tacit.errors import LeaseLost, RunError, StoreError, TrainingError
from tacit.federation.collector import Answered
from tacit.protocol.bodies import ReportBody
from tacit.server.store import round_states
from tacit.server.store.blobs import BlobStore, model_name
from tacit.server.store.store import Store
from tacit.server.sums.round_blobs import remove_blobs

SEED = bytes(32)


@pytest.fixture
def fleet() -> Iterator[Fleet]:
    with quick_folder() as folder:
        yield Fleet(folder)


def assert_sum_of(got: Answered, devices: list[int], goal: int = 4) -> None:
    """It is of these devices' reports, in some order of additions."""
    assert got.reports == len(devices) == goal
    np.testing.assert_allclose(got.values, sum(map(update_of, devices)), atol=1e-6)
    assert got.beside.get("short") == sum(device % 2 == 0 for device in devices)
    assert got.beside.get("bounded_loss") == pytest.approx(sum(device / 8 - 2 for device in devices))


def test_a_round_gives_the_sum_of_the_first_reports(fleet: Fleet) -> None:
    got, _ = fleet.collector().collect((), a_training_task(), seed=SEED)
    (attempt,) = fleet.attempts()
    assert attempt.state == "closed" and attempt.least == 4 and attempt.most == 6
    assert_sum_of(got, fleet.came[attempt.task])
    assert got.clients == got.reports + got.dropped == attempt.assigned


def test_what_was_released_leaves_no_blob_and_no_device(fleet: Fleet) -> None:
    collector = fleet.collector()
    collector.collect((), a_training_task(), seed=SEED)
    collector.released(0)
    collector.released(0)  # told again after a kill
    assert [each.state for each in fleet.attempts()] == ["released"]
    assert fleet.blobs.names("") == []
    collector.collect((), a_training_task(1), seed=SEED)
    collector.released(1)
    first, second = fleet.attempts()
    assert second.opened - (first.opened + 1) >= TIMES.pause


def test_a_closed_round_gives_its_sum_again_to_the_bit(fleet: Fleet) -> None:
    got, _ = fleet.collector().collect((), a_training_task(), seed=SEED)
    fleet.left = 0
    again, _ = fleet.collector().collect((), a_training_task(), seed=SEED)
    np.testing.assert_array_equal(got.values, again.values)
    assert got._replace(values=None) == again._replace(values=None)


BEFORE_OR_AFTER = pytest.mark.parametrize("after", [False, True], ids=["before it", "after it"])


@BEFORE_OR_AFTER
def test_a_coordinator_killed_at_a_transaction_goes_on_to_one_sum(monkeypatch: pytest.MonkeyPatch, after: bool) -> None:
    killed_at_every(5, 1 if after else 3, after, monkeypatch)


@pytest.mark.long
@BEFORE_OR_AFTER
def test_a_coordinator_killed_at_any_transaction_goes_on_to_one_sum(
    monkeypatch: pytest.MonkeyPatch, after: bool
) -> None:
    killed_at_every(1, 1, after, monkeypatch)


def killed_at_every(stride: int, first: int, after: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two rounds each has one sum, of its goal; one that was bound is given again with the same digest."""
    for step in count(first, stride):
        with quick_folder() as folder:
            fleet = Fleet(folder, at_once=6)
            with monkeypatch.context() as patch:
                killed = KilledAt(fleet, step, after=after, patch=patch)
                died = played(fleet, killed.store)
            bound = {each.task: each.total_digest for each in fleet.attempts() if each.total_digest}
            if died:
                assert not played(fleet, fleet.store, first=died - 1)
            summed = [each for each in fleet.attempts() if each.total_digest]
            fleet.store.close()
        assert [(each.round, each.state, each.reports) for each in summed] == [(0, "released", 4), (1, "released", 4)]
        assert all(each.total_digest == bound.get(each.task, each.total_digest) for each in summed)
        if not died:
            assert step > 12  # it was killed at each step before
            return


def played(fleet: Fleet, store: Store, first: int = 0) -> int:
    """Two rounds, as training plays them; 1 + the round in which it was killed, or 0."""
    round, committed = first, first
    try:
        collector = fleet.collector(store=store)
        for round in range(first, 2):
            got, _ = collector.collect((), a_training_task(round), seed=SEED)
            assert_sum_of(got, fleet.came[[each for each in fleet.attempts() if each.round == round][-1].task])
            committed = round + 1
            collector.released(round)
    except Killed:
        if committed > round:  # the run folder has it: training tells it again
            fleet.collector().released(round)
        return committed + 1
    return 0


def test_a_round_to_which_too_few_come_is_tried_again(fleet: Fleet) -> None:
    fleet.left = 3
    collector = fleet.collector(replace(TIMES, attempts=1))
    with pytest.raises(TrainingError, match="3 devices came while it was open, of 4 that it needs"):
        collector.collect((), a_training_task(), seed=SEED)
    fleet.left = 6
    got, _ = fleet.collector().collect((), a_training_task(), seed=SEED)
    assert [(each.attempt, each.state) for each in fleet.attempts()] == [(0, "abandoned"), (1, "closed")]
    assert got.clients == 3 + 6 and got.dropped == 5  # those of the first attempt took part, too
    assert_sum_of(got, fleet.came[fleet.attempts()[1].task])


def test_devices_that_vanish_and_updates_that_are_not_finite_are_dropped(fleet: Fleet) -> None:
    def some(device: int, task: Any) -> ReportBody | None:
        if device % 5 == 0:
            return None
        if device % 5 == 1:
            return ReportBody(np.zeros_like(update_of(device)), False, False, 0.0)
        return report(device, task)

    fleet.reports = some
    got, _ = fleet.collector().collect((), a_training_task(goal=6, report_goal=6), seed=SEED)
    attempts = fleet.attempts()
    assert_sum_of(got, fleet.came[attempts[-1].task], goal=6)
    assert {device % 5 for device in fleet.came[attempts[-1].task]} <= {2, 3, 4}


def test_a_diverged_model_ends_training_and_says_so(fleet: Fleet) -> None:
    fleet.reports = lambda device, task: ReportBody(np.zeros_like(update_of(device)), False, False, 0.0)
    with pytest.raises(TrainingError, match=r"none of 5 attempts gave a sum.*0 reports came of 6 devices"):
        fleet.collector().collect((), a_training_task(), seed=SEED)
    assert {each.state for each in fleet.attempts()} == {"abandoned"}


def test_a_worker_that_dies_makes_place_for_other_devices(fleet: Fleet) -> None:
    """It had received one report and is not seen any more; the other worker takes the next."""
    fleet.at_once = 1
    collector, wait = fleet.collector(replace(TIMES, silence=1.5)), fleet.wait

    def dies(seconds: float) -> None:
        wait(seconds)
        if fleet.number == 1:
            fleet.workers = {name: sums for name, sums in fleet.workers.items() if not sums.held}

    collector._wait = dies
    got, _ = collector.collect((), a_training_task(), seed=SEED)
    (attempt,) = fleet.attempts()  # it closed with the first cohort
    assert attempt.lost == 1 and got.reports == 4 and got.dropped >= 1


def test_a_partial_sum_that_was_changed_is_in_no_total(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    put, damaged = BlobStore.put, []

    def once(blobs: BlobStore, name: str, content: bytes) -> None:
        if name.startswith("partials") and not damaged:
            damaged.append(name)
            content = content[:-1] + b"\x01"
        put(blobs, name, content)

    monkeypatch.setattr(BlobStore, "put", once)
    got, _ = fleet.collector().collect((), a_training_task(), seed=SEED)
    first, second = fleet.attempts()
    assert first.state == "abandoned" and "is not what was written (its SHA-256 differs)" in (first.why or "")
    assert_sum_of(got, fleet.came[second.task])


def test_a_full_disk_stops_the_round_where_it_is(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    put = BlobStore.put

    def full(blobs: BlobStore, name: str, content: bytes) -> None:
        if name.startswith("totals"):
            raise StoreError("No space left on device")
        put(blobs, name, content)

    monkeypatch.setattr(BlobStore, "put", full)
    with pytest.raises(StoreError, match="No space"):
        fleet.collector().collect((), a_training_task(), seed=SEED)
    assert fleet.attempts()[0].state == "summing"
    monkeypatch.setattr(BlobStore, "put", put)
    got, _ = fleet.collector().collect((), a_training_task(), seed=SEED)
    assert_sum_of(got, fleet.came[fleet.attempts()[0].task])


def test_a_model_stays_while_another_round_has_it(fleet: Fleet) -> None:
    collector = fleet.collector()
    collector.collect((), a_training_task(), seed=SEED)
    model = fleet.attempts()[0].model_digest
    lease = with_run(fleet.store, "other")
    other = round_states.open_round(fleet.store, lease, new_round()._replace(model_digest=model))
    collector.released(0)
    assert fleet.blobs.names("") == [model_name(model)]
    round_states.abandon(fleet.store, lease, other.task, "a test")
    remove_blobs(fleet.store, fleet.blobs, other)
    assert fleet.blobs.names("") == []


def test_a_model_that_was_removed_is_there_again_while_devices_may_want_it(fleet: Fleet) -> None:
    collector, wait, removed = fleet.collector(), fleet.wait, []

    def removes(seconds: float) -> None:
        wait(seconds)
        if not removed:
            removed.append(model_name(fleet.attempts()[0].model_digest))
            fleet.blobs.delete(removed[0])

    fleet.at_once, collector._wait = 1, removes
    collector.collect((), a_training_task(), seed=SEED)
    assert removed[0] in fleet.blobs.names("models")


# -- copies that were restored, clocks, and a second coordinator -------------------------------------------------------


def test_a_run_folder_that_is_an_older_copy_is_refused(fleet: Fleet) -> None:
    collector = fleet.collector()
    collector.collect((), a_training_task(), seed=SEED)
    collector.released(0)
    with pytest.raises(RunError, match=r"round 0 of the run 'es-1' is released.*restored from an older copy"):
        fleet.collector().collect((), a_training_task(), seed=SEED)


def test_a_sum_is_not_given_for_another_model(fleet: Fleet) -> None:
    fleet.collector().collect((), a_training_task(), seed=SEED)
    other = a_training_task()
    with pytest.raises(RunError, match="has a sum already, of devices that began with another model"):
        fleet.collector().collect((), replace(other, model=other.model + 1), seed=SEED)


def test_a_store_that_is_an_older_copy_binds_nothing_again(fleet: Fleet) -> None:
    """The copy has round 0 summing; the run folder has it, so it is never summed up again."""
    collector = fleet.collector()
    stop = round_states.bind

    def killed(*_given: object) -> bool:
        raise Killed

    with pytest.MonkeyPatch.context() as patch, pytest.raises(Killed):
        patch.setattr(round_states, "bind", killed)
        collector.collect((), a_training_task(), seed=SEED)
    assert round_states.bind is stop and fleet.attempts()[0].state == "summing"
    got, _ = fleet.collector().collect((), a_training_task(1), seed=SEED)
    first, second = fleet.attempts()
    assert (first.round, first.state, first.total_digest) == (0, "abandoned", None)
    assert_sum_of(got, fleet.came[second.task])


def test_a_clock_that_is_set_back_gives_the_attempt_up(fleet: Fleet) -> None:
    fleet.at_once, collector, wait = 1, fleet.collector(), fleet.wait

    def back(seconds: float) -> None:
        wait(seconds)
        if fleet.number == 1:
            fleet.number, fleet.clock.now = 2, fleet.clock.now - 86_400

    collector._wait = back
    got, _ = collector.collect((), a_training_task(), seed=SEED)
    first, second = fleet.attempts()
    assert first.state == "abandoned" and "the clock was set back" in (first.why or "")
    assert_sum_of(got, fleet.came[second.task])


def test_of_two_coordinators_the_older_writes_nothing(fleet: Fleet) -> None:
    old = fleet.collector()
    old.collect((), a_training_task(), seed=SEED)
    new = fleet.collector()
    with pytest.raises(LeaseLost, match="another coordinator took over the run 'es-1'"):
        old.released(0)
    assert fleet.attempts()[0].state == "closed"
    new.released(0)
    assert fleet.attempts()[0].state == "released"
