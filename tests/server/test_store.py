"""A store is opened with its tables, or refused with a sentence that says what is wrong and what to do."""

import shutil
import sqlite3
import stat
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import create_engine, event
from tests.support.server.stores import RUN, Clock, opened_round, sqlite_store, with_run

from tacit.errors import InputError, StoreError
from tacit.server.store.assignments import assign, hash_of
from tacit.server.store.round_states import abandon, all_runs, take_lease
from tacit.server.store.schema import metadata
from tacit.server.store.store import Store
from tacit.server.store.store import __file__ as store_file


def test_the_migrations_make_the_tables_of_the_schema(tmp_path: Path) -> None:
    sqlite_store(tmp_path).close()
    engine = create_engine(f"sqlite:///{tmp_path / 'store.db'}")
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
    engine.dispose()


def test_a_store_is_opened_again_as_it_was(tmp_path: Path) -> None:
    store = sqlite_store(tmp_path)
    with_run(store)
    store.close()
    again = sqlite_store(tmp_path)
    with pytest.raises(StoreError, match="the store has no run 'other'"):
        take_lease(again, "other", seconds=1)


def revised(path: Path, revision: str) -> None:
    with sqlite3.connect(path) as database:
        database.execute("UPDATE alembic_version SET version_num = ?", (revision,))
    database.close()


def test_a_store_of_a_later_version_is_refused(tmp_path: Path) -> None:
    sqlite_store(tmp_path).close()
    revised(tmp_path / "store.db", "9999")
    with pytest.raises(StoreError, match="of a later version of tacit \\(its schema is '9999'"):
        sqlite_store(tmp_path)


def test_a_store_of_an_older_version_is_refused_and_brought_up_where_that_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if this version had one migration more: what is in the store stays."""
    store = sqlite_store(tmp_path)
    with_run(store)
    store.close()
    later = tmp_path / "later"
    shutil.copytree(Path(store_file).parent / "migrations", later / "migrations")
    (later / "migrations" / "versions" / "r9999_songs.py").write_text(
        "import sqlalchemy as sa\nfrom alembic import op\nrevision, down_revision = '9999', '0004'\n"
        "def upgrade():\n    op.create_table('songs', sa.Column('name', sa.Text()))\n"
    )
    monkeypatch.setattr("tacit.server.store.store.__file__", str(later / "store.py"))
    with pytest.raises(StoreError, match=r"has the schema '0004' of an older version, and lacks the migrations 9999;"):
        sqlite_store(tmp_path)
    again = Store.open(f"sqlite:///{tmp_path / 'store.db'}", clock=Clock(), upgrade=True)
    assert [run.name for run in all_runs(again)] == [RUN]
    again.close()
    sqlite_store(tmp_path).close()


def test_tables_of_others_are_left_alone(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "store.db") as database:
        database.execute("CREATE TABLE songs (name TEXT)")
    database.close()
    with pytest.raises(StoreError, match="none of tacit's"):
        sqlite_store(tmp_path)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("store.db", "is no database URL"),
        ("sqlite://", "is not a database that workers can share"),
        ("mysql://host/base", "is not a database that workers can share"),
        ("sqlite:////no/such/folder/store.db", "there is no folder '/no/such/folder'"),
    ],
)
def test_what_is_no_store_is_refused(url: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        Store.open(url)


def test_a_password_is_not_shown() -> None:
    with pytest.raises(StoreError) as refused:
        Store.open("postgresql://tacit:hunter2@/none?host=/no/such/folder&connect_timeout=1", clock=Clock())
    assert "hunter2" not in str(refused.value) and "tacit:***@" in str(refused.value)


def test_a_full_disk_is_said_and_changes_nothing(tmp_path: Path) -> None:
    store = sqlite_store(tmp_path)
    lease = with_run(store)
    found = opened_round(store, lease, goal=5_000, most=5_000)
    with store.reading() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
    event.listen(
        store._at_ease, "connect", lambda connection, _: connection.execute(f"PRAGMA max_page_count = {pages}")
    )
    store._at_ease.dispose()
    with pytest.raises(StoreError, match=r"is full\); nothing of it was written"):
        for _ in range(5_000):
            assert assign(store, found.task)
    assert Store.open(f"sqlite:///{tmp_path / 'store.db'}", clock=Clock())


def test_who_steals_the_file_finds_no_secret_and_no_device_of_a_round_that_ended(tmp_path: Path) -> None:
    """Not in its free pages, either; while the round lasts there are ids drawn for it and hashes."""
    store = sqlite_store(tmp_path)
    lease = with_run(store)
    found = opened_round(store, lease, goal=40, most=40)
    given = [each for _ in range(40) if (each := assign(store, found.task))]
    assert all(each.id.encode() in stored(tmp_path) for each in given)
    assert not any(each.secret.encode() in stored(tmp_path) for each in given)
    abandon(store, lease, found.task, "a test")
    with store.reading() as connection:
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    content = stored(tmp_path)
    assert not any(each.id.encode() in content or hash_of(each.secret).encode() in content for each in given)
    store.close()


def stored(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.iterdir() if file.is_file())


def test_the_file_is_its_owners_alone(tmp_path: Path) -> None:
    store = sqlite_store(tmp_path)
    with_run(store)
    assert {stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()} == {0o600}
    assert {file.name for file in tmp_path.iterdir()} >= {"store.db", "store.db-wal"}
    store.close()


@pytest.mark.parametrize(("durable", "level"), [(True, 2), (False, 1)], ids=["FULL", "NORMAL"])
def test_what_is_durable_waits_for_the_disk(tmp_path: Path, durable: bool, level: int) -> None:
    with sqlite_store(tmp_path).writing(durable=durable) as connection:
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar_one() == level
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar_one() == "wal"
