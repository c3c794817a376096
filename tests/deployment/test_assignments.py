"""Places given to many in one transaction are those that they would be given one after another."""

from collections.abc import Iterator

import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st
from sqlalchemy import select
from tests.deployment.slow_rounds import SlowRound, SlowStore
from tests.deployment.stores import RUN, opened_round, quick_folder, sqlite_store, with_run

from tacit.deployment import schema
from tacit.deployment.assignments import Assigned, Shown, assign_all, find, hash_of
from tacit.deployment.states import Lease, abandon, attempt_of, attempts
from tacit.deployment.store import Store

SHOWN = [None, *(Shown(letter * 64, 3) for letter in "abcd")]


@pytest.fixture(scope="module")
def opened() -> Iterator[tuple[Store, Lease]]:
    with quick_folder() as folder:
        store = sqlite_store(folder)
        yield store, with_run(store)
        store.close()


@settings(max_examples=30, phases=[Phase.explicit, Phase.generate])
@example([[SHOWN[1], SHOWN[1], SHOWN[2]], [SHOWN[2], SHOWN[3], SHOWN[4]]], 3)
@given(st.lists(st.lists(st.sampled_from(SHOWN), max_size=5), max_size=4), st.integers(1, 8))
def test_many_at_once_get_what_they_would_get_one_after_another(
    opened: tuple[Store, Lease], comes: list[list[Shown | None]], most: int
) -> None:
    store, lease = opened
    found = opened_round(store, lease, attempt=len(attempts(store, RUN)), most=most, goal=2, least=2)
    twin = SlowStore()
    twin.open(found.task, SlowRound(0, 0, 2, 2, most))
    places: list[Assigned] = []
    for shown in comes:
        answers = assign_all(store, found.task, shown)
        wanted = [twin.assign(found.task, each and each.hash) for each in shown]
        assert [None if isinstance(each, Assigned) else each for each in answers] == wanted
        places += [each for each in answers if isinstance(each, Assigned)]
    assert attempt_of(store, found.task).assigned == len({each.id for each in places}) == len(places)
    for place in places:
        row = find(store, place.id)
        assert row is not None and (row.task, row.secret_hash) == (found.task, hash_of(place.secret))
    with store.writing() as connection:
        redeemed = {(each.hash, each.epoch) for each in connection.execute(select(schema.tokens))}
        connection.execute(schema.tokens.delete())
    assert redeemed == {(each, 3) for each in twin.redeemed}
    abandon(store, lease, found.task, "a test")
