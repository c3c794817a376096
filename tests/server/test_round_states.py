"""The store's rounds, assignments and leases do what their slow reference does, whatever comes in whatever order."""

import pytest
from hypothesis import settings
from tests.server.any_rounds import BODIES, OWNERS, WORKERS, Rounds
from tests.support.server.stores import RUN, Clock, new_round, quick_folder, sqlite_store, with_run

from tacit.errors import LeaseLost, StoreError
from tacit.server.coordinator import _leased
from tacit.server.store.assignments import (
    Flushed,
    assign,
    flush,
    receive,
)
from tacit.server.store.round_states import (
    attempt_of,
    open_round,
    take_lease,
)

Rounds.TestCase.settings = settings(max_examples=12, stateful_step_count=50)
TestRounds = Rounds.TestCase


@pytest.mark.nightly
class TestMoreRounds(Rounds.TestCase):  # type: ignore[misc]
    """The same at length."""

    settings = settings(max_examples=150, stateful_step_count=80)


def test_an_owner_that_takes_its_lease_again_writes_under_the_new_one_only() -> None:
    with quick_folder() as folder:
        store = sqlite_store(folder)
        old = with_run(store)
        new = take_lease(store, RUN, seconds=30, owner=old.owner)
        assert new is not None and new.term == old.term + 1
        with pytest.raises(LeaseLost):
            open_round(store, old, new_round())
        open_round(store, new, new_round())
        store.close()


def test_a_report_that_was_counted_is_not_counted_again() -> None:
    with quick_folder() as folder:
        store = sqlite_store(folder)
        found = open_round(store, with_run(store), new_round(goal=6))
        given = [each.id for _ in range(4) if (each := assign(store, found.task))]
        for name in given:
            receive(store, name, task=found.task, worker=WORKERS[0], body_digest=BODIES[0])
        flush(store, Flushed(found.task, WORKERS[0], 0, "partials/x", "ee" * 32, 2, given[:2]))
        with pytest.raises(StoreError, match="given up as lost"):
            flush(store, Flushed(found.task, WORKERS[0], 1, "partials/y", "ee" * 32, 4, given[:2]))
        assert attempt_of(store, found.task).counted == 2
        store.close()


def test_a_coordinator_that_is_started_again_waits_for_no_lease() -> None:
    """Whoever starts it has seen the one before end, and names the same owner; another one waits, and that one, if it
    lived, would write nothing more.
    """

    class Passing(Clock):
        def __call__(self) -> float:
            self.now += 1.0
            return self.now

    with quick_folder() as folder:
        store = sqlite_store(folder, Passing())
        with_run(store, seconds=1.0)
        dead = take_lease(store, RUN, seconds=100, owner=OWNERS[0])
        assert dead is not None and take_lease(store, RUN, seconds=100, owner=OWNERS[1]) is None
        with _leased(store, RUN, OWNERS[0]) as lease:
            assert lease.term == dead.term + 1
            with pytest.raises(LeaseLost):
                open_round(store, dead, new_round())
            open_round(store, lease, new_round())
        store.close()
