"""On PostgreSQL the store does what it does on SQLite: the same tables, the same machine of states, in threads too."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test
from sqlalchemy import create_engine
from tests.server.any_rounds import Rounds
from tests.server.signs_once import SignsOnce, entry
from tests.support.server.stores import Clock, PostgreSQL, opened_round, postgresql, postgresql_programs, with_run

from tacit.errors import StoreError
from tacit.server.log.transparency import LogView, TransparencyLog
from tacit.server.store.assignments import Assigned, ReportAnswer, assign, receive
from tacit.server.store.round_states import attempt_of
from tacit.server.store.schema import metadata
from tacit.server.store.store import Store

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def server() -> Iterator[PostgreSQL]:
    programs = postgresql_programs()
    if programs is None:
        pytest.skip("PostgreSQL is not installed: no pg_ctl and initdb in /usr/lib/postgresql/*/bin or on the path")
    with postgresql(programs) as found:
        yield found


def test_the_migrations_make_the_tables_of_the_schema(server: PostgreSQL) -> None:
    url = server.new_database()
    Store.open(url).close()
    engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
    engine.dispose()


def test_the_machine_of_states_is_that_of_the_twin(server: PostgreSQL) -> None:
    class OnPostgreSQL(Rounds):
        def opened(self) -> Store:
            if not hasattr(self, "url"):
                self.url = server.new_database()
            return Store.open(self.url, clock=self.clock)

    run_state_machine_as_test(OnPostgreSQL, settings=settings(max_examples=30, stateful_step_count=60))


def test_threads_take_no_place_twice_and_add_no_report_twice(server: PostgreSQL) -> None:
    """Sixteen threads want the 60 places of a round, and each report is sent twice at a time."""
    store = Store.open(server.new_database(), clock=Clock())
    found = opened_round(store, with_run(store), goal=40, least=40, most=60)

    def comes(_: int) -> tuple[Assigned, list[ReportAnswer]] | None:
        given = assign(store, found.task)
        if given is None:
            return None
        with ThreadPoolExecutor(2) as both:
            sent = [
                both.submit(receive, store, given.id, task=found.task, worker="a" * 32, body_digest="cc" * 32)
                for _ in range(2)
            ]
            return given, [each.result() for each in sent]

    with ThreadPoolExecutor(16) as pool:
        came = [each for each in pool.map(comes, range(100)) if each is not None]
    assert len({given.id for given, _ in came}) == len(came) == 60
    answers = [sorted(answer.value for answer in both) for _, both in came]
    assert answers.count(["again", "received"]) == 40 and answers.count(["late", "late"]) == 20
    after = attempt_of(store, found.task)
    assert (after.assigned, after.received) == (60, 40)
    store.close()


def test_a_server_that_is_gone_is_said_and_comes_back(server: PostgreSQL) -> None:
    store = Store.open(server.new_database(), clock=Clock())
    found = opened_round(store, with_run(store))
    server.stop()
    with pytest.raises(StoreError, match="nothing of it was written") as refused:
        assign(store, found.task)
    assert "secret_hash" not in str(refused.value)  # no statement, no values
    server.start()
    tries = [answer for _ in range(10) if (answer := again(store, found.task)) is not None]
    assert tries and attempt_of(store, found.task).assigned == min(6, len(tries))
    store.close()


def again(store: Store, task: str) -> Assigned | None:
    """None while connections of before are found to be closed."""
    try:
        return assign(store, task)
    except StoreError:
        return None


@pytest.mark.parametrize(("durable", "level"), [(True, "on"), (False, "off")])
def test_what_is_durable_waits_for_the_disk(server: PostgreSQL, durable: bool, level: str) -> None:
    store = Store.open(server.new_database())
    with store.writing(durable=durable) as connection:
        assert connection.exec_driver_sql("SHOW synchronous_commit").scalar_one() == level
    store.close()


def test_coordinators_that_enter_at_once_sign_one_head_for_each_size(server: PostgreSQL, tmp_path: Path) -> None:
    """Threads with connections of their own, one file and one key."""
    url, key = server.new_database(), SignsOnce()
    stores = [Store.open(url) for _ in range(4)]

    def enter(worker: int) -> None:
        for number in range(5):
            TransparencyLog(stores[worker], key, tmp_path / "operator.log").append(entry(10 * worker + number))

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(enter, range(4)))
    entries = LogView(stores[0]).entries()
    assert len(set(entries)) == 20 == len(key.heads)
    assert entries == (tmp_path / "operator.log").read_text().splitlines()
    for store in stores:
        store.close()


def test_a_token_that_many_show_at_once_takes_one_place(server: PostgreSQL) -> None:
    store = Store.open(server.new_database(), clock=Clock())
    attempt = opened_round(store, with_run(store), most=40, goal=30)
    with ThreadPoolExecutor(8) as threads:
        given = list(threads.map(lambda _: assign(store, attempt.task, token_hash="ab" * 32), range(16)))
    assert sum(each is not None for each in given) == 1 == attempt_of(store, attempt.task).assigned
    store.close()
