"""Places given to many in one transaction, and reports received together, are what they would be one after another."""

from collections.abc import Iterator

import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st
from sqlalchemy import select
from tests.server.slow_rounds import SlowRound, SlowStore
from tests.support.server.stores import RUN, opened_round, quick_folder, sqlite_store, with_run

from tacit.server.store import schema
from tacit.server.store.assignments import (
    NEARLY_FULL,
    ArrivedReport,
    Assigned,
    ReportAnswer,
    ShownToken,
    assign_all,
    find_all,
    hash_of,
    receive_all,
)
from tacit.server.store.round_states import Lease, abandon, attempt_of, attempts
from tacit.server.store.store import Store

SHOWN = [None, *(ShownToken(letter * 64, 3) for letter in "abcd")]


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
    opened: tuple[Store, Lease], comes: list[list[ShownToken | None]], most: int
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
    for place, row in zip(places, find_all(store, [each.id for each in places]), strict=True):
        assert row is not None and (row.task, row.secret_hash) == (found.task, hash_of(place.secret))
    with store.writing() as connection:
        redeemed = {(each.hash, each.epoch) for each in connection.execute(select(schema.tokens))}
        connection.execute(schema.tokens.delete())
    assert redeemed == {(each, 3) for each in twin.redeemed}
    abandon(store, lease, found.task, "a test")


REPORTS = st.tuples(st.integers(0, 7), st.sampled_from(["cc" * 32, "cc" * 32, "dd" * 32]))  # (place, its body)


@settings(max_examples=30, phases=[Phase.explicit, Phase.generate])
@example([("a", [(0, "cc" * 32), (0, "cc" * 32), (0, "dd" * 32), (1, "cc" * 32), (2, "cc" * 32)])], 2)
@example([("a", [(0, "cc" * 32)]), ("b", [(1, "cc" * 32), (0, "cc" * 32)]), ("a", [(1, "cc" * 32)])], 3)
@given(st.lists(st.tuples(st.sampled_from("ab"), st.lists(REPORTS, max_size=6)), max_size=4), st.integers(1, 7))
def test_reports_received_together_are_received_as_one_after_another(
    opened: tuple[Store, Lease], comes: list[tuple[str, list[tuple[int, str]]]], goal: int
) -> None:
    """Six places of which some report, to two workers; and a place that there is not."""
    store, lease = opened
    found = opened_round(store, lease, attempt=len(attempts(store, RUN)), most=6, goal=goal, least=1)
    twin = SlowStore()
    twin.open(found.task, SlowRound(0, 0, goal, 1, 6))
    names = [each.id for each in assign_all(store, found.task, [None] * 6) if isinstance(each, Assigned)]
    for name in names:
        twin.assigned(found.task, name)
    names.append("f" * 32)
    for worker, reports in comes:
        came = [ArrivedReport(names[place % 7], body) for place, body in reports]
        answers = receive_all(store, came, task=found.task, worker=worker * 32)
        assert answers == [
            twin.receive(found.task, each.assignment, worker * 32, each.body_digest, True) for each in came
        ]
    assert attempt_of(store, found.task).received == twin.rounds[found.task].received
    for name, row in zip(names, find_all(store, names), strict=True):
        of_twin = twin.rounds[found.task].assignments.get(name)
        assert (row and (row.state, row.body_digest)) == (of_twin and (of_twin.state, of_twin.body))
    abandon(store, lease, found.task, "a test")


def test_of_the_last_reports_none_begins_to_be_alone(opened: tuple[Store, Lease]) -> None:
    """Two workers take reports in turn until few are wanted; then only who holds some takes more."""
    store, lease = opened
    goal = NEARLY_FULL + 2
    found = opened_round(store, lease, attempt=len(attempts(store, RUN)), most=goal, goal=goal, least=1)
    names = [each.id for each in assign_all(store, found.task, [None] * goal) if isinstance(each, Assigned)]

    def received(number: int, worker: str) -> ReportAnswer:
        (answer,) = receive_all(store, [ArrivedReport(names[number], "cc" * 32)], task=found.task, worker=worker * 32)
        return answer

    assert [received(number, "a") for number in range(2)] == [ReportAnswer.RECEIVED] * 2
    assert received(2, "b") is ReportAnswer.RECEIVED  # there may be more for it
    assert received(3, "b") is received(4, "a") is ReportAnswer.RECEIVED
    assert received(5, "c") is ReportAnswer.ELSEWHERE and received(5, "c") is ReportAnswer.ELSEWHERE
    assert received(5, "b") is ReportAnswer.RECEIVED
    assert attempt_of(store, found.task).received == 6
    abandon(store, lease, found.task, "a test")
