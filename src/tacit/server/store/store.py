"""The store of a server: a database that workers and coordinators share, opened, checked and used in transactions.

SQLite (a file, nothing to install) or PostgreSQL. Its queries are in `round_states.py` and `assignments.py`.
"""

import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, Table, create_engine, event, inspect
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.exc import TimeoutError as NoConnectionInTime

from tacit.errors import InputError, StoreError

PATIENCE = 30.0  # seconds that a writer waits for another's transaction
CONNECTIONS = 8  # that a process keeps open to a PostgreSQL
Clock = Callable[[], float]


class Store:
    """An open store. Threads may share it; each process opens its own."""

    def __init__(self, engine: Engine, at_ease: Engine, *, clock: Clock) -> None:
        """at_ease: another to the same database, for what need not be on disk when it is committed."""
        self._engine, self._at_ease, self.clock = engine, at_ease, clock
        weakref.finalize(self, _close, engine, at_ease)  # a store that nobody closed: from 3.13 on Python warns
        self._is_sqlite = engine.dialect.name == "sqlite"
        # SQLite has one writer; threads of a process queue here, where nobody sleeps between tries
        self._one_writer: Any = threading.Lock() if self._is_sqlite else nullcontext()

    @classmethod
    def open(cls, url: str, *, clock: Clock = time.time, upgrade: bool = False) -> "Store":
        """The store at `sqlite:///PATH` or `postgresql://...`; an empty one is given its tables.

        upgrade: one of an older version is brought up to this one; else it is refused. clock: Unix seconds.
        Raises: InputError for another URL; StoreError where it cannot be reached, or is of another version.
        """
        checked = _checked_url(url)
        store = cls(_engine(checked, durable=True), _engine(checked, durable=False), clock=clock)
        try:
            store._check_schema(upgrade)
        except DBAPIError as error:
            store.close()
            raise _unreachable(store._engine.url, error) from error
        except StoreError:
            store.close()
            raise
        return store

    def close(self) -> None:
        """Close its connections."""
        _close(self._engine, self._at_ease)

    def now(self) -> float:
        """The caller's clock, in Unix seconds."""
        return self.clock()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection for single reads, each of which sees what is committed by then."""
        with self._complaints(), self._engine.connect() as connection:
            yield connection.execution_options(isolation_level="AUTOCOMMIT")

    @contextmanager
    def writing(self, *, durable: bool = True) -> Iterator[Connection]:
        """A transaction that is committed when the block ends, and rolled back where it raises.

        durable: it is on disk then; else it survives a killed process, and may be lost with the power. What is
        durable makes durable all that came before it.
        """
        engine = self._engine if durable else self._at_ease
        with self._complaints(), self._one_writer, engine.begin() as connection:
            yield connection

    @contextmanager
    def saying(self) -> Iterator[Connection]:
        """A transaction for a sign of life: it waits for no other thread of this process, and need not be on disk.

        On SQLite it waits for its turn among processes; none is so long that a sign of life would be late.
        """
        with self._complaints(), self._at_ease.begin() as connection:
            yield connection

    @contextmanager
    def _complaints(self) -> Iterator[None]:
        """The database's complaints (no connection, a full disk, no answer in time) as ours."""
        try:
            yield
        except (DBAPIError, NoConnectionInTime) as error:
            raise _unreachable(self._engine.url, error) from error

    # -- the schema --------------------------------------------------------------------------------------------------

    def _check_schema(self, upgrade: bool) -> None:
        """Raises: StoreError where the tables are not those of this version."""
        with self._one_writer, self._engine.connect() as connection, connection.begin():
            config = _alembic(connection)
            scripts = ScriptDirectory.from_config(config)
            found, wanted = MigrationContext.configure(connection).get_current_revision(), scripts.get_current_head()
            if found == wanted:
                return
            where = self._engine.url.render_as_string(hide_password=True)
            if found is None and inspect(connection).get_table_names():
                raise StoreError(f"the database '{where}' has tables, and they are none of tacit's; name an empty one.")
            if found is not None and found not in {script.revision for script in scripts.walk_revisions()}:
                raise StoreError(
                    f"the store '{where}' is of a later version of tacit (its schema is '{found}', this version's "
                    f"'{wanted}'); use the version that wrote it."
                )
            if found is not None and not upgrade:
                missing = [script.revision for script in scripts.iterate_revisions(wanted, found)]
                raise StoreError(
                    f"the store '{where}' has the schema '{found}' of an older version, and lacks the migrations "
                    f"{', '.join(reversed(missing))}; stop its workers, copy it, and start one with --upgrade-store."
                )
            command.upgrade(config, "head")


def _close(*engines: Engine) -> None:
    for engine in engines:
        engine.dispose()


def insert_into(connection: Connection, table: Table) -> "sqlite.Insert | postgresql.Insert":
    """An INSERT in the database's own words, which may pass over rows that are there."""
    return sqlite.insert(table) if connection.dialect.name == "sqlite" else postgresql.insert(table)


def _checked_url(url: str) -> URL:
    """Raises: InputError for what is neither SQLite in a file nor PostgreSQL."""
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError) as error:  # ValueError: a port that is no number
        raise InputError(f"--store {url} is no database URL; give sqlite:///PATH or postgresql://...") from error
    kind = parsed.get_backend_name()
    if kind == "postgresql":
        return parsed.set(drivername="postgresql+psycopg")
    if kind != "sqlite" or not parsed.database or parsed.database == ":memory:":
        shown = parsed.render_as_string(hide_password=True)
        raise InputError(f"--store {shown} is not a database that workers can share; give sqlite:///PATH or postgresql")
    above = Path(parsed.database).absolute().parent
    if not above.is_dir():
        raise InputError(f"--store {url}: there is no folder '{above}'; make it, or name another.")
    with suppress(FileExistsError):  # the owner's alone, and with it what SQLite makes beside it
        os.close(os.open(parsed.database, os.O_CREAT | os.O_EXCL, 0o600))
    return parsed


def _engine(url: URL, *, durable: bool) -> Engine:
    if url.get_backend_name() == "postgresql":
        # whether a connection outlived its server is asked first, but for what is done thousands of times a second
        engine = create_engine(url, pool_size=CONNECTIONS, max_overflow=CONNECTIONS, pool_pre_ping=durable)
        settings = [] if durable else ["SET synchronous_commit TO OFF"]
    else:
        engine = create_engine(url, connect_args={"timeout": PATIENCE, "check_same_thread": False})
        # what is deleted is overwritten: nobody reads old rows in the file's free pages
        settings = ["PRAGMA journal_mode = WAL", "PRAGMA foreign_keys = ON", "PRAGMA secure_delete = ON"]
        settings.append(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
        event.listen(engine, "begin", _begun)

    @event.listens_for(engine, "connect")
    def connected(connection: Any, _record: Any) -> None:
        before = None
        if url.get_backend_name() == "sqlite":
            connection.isolation_level = None  # transactions begin below, not where the driver thinks
        else:
            before, connection.autocommit = connection.autocommit, True
        for each in settings:
            connection.execute(each)
        if before is not None:
            connection.autocommit = before

    return engine


def _begun(connection: Connection) -> None:
    if connection.get_execution_options().get("isolation_level") != "AUTOCOMMIT":
        connection.exec_driver_sql("BEGIN IMMEDIATE")  # a reader that became a writer could be refused


def _alembic(connection: Connection) -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    return config


def _unreachable(url: URL, error: DBAPIError | NoConnectionInTime) -> StoreError:
    """In the database's own words, without the statement and its values, which are nobody's business."""
    where = url.render_as_string(hide_password=True)
    said = " ".join(str(error.orig if isinstance(error, DBAPIError) else error).split())
    return StoreError(
        f"the store '{where}' did not do what was asked ({said}); nothing of it was written. See that the database "
        "runs, that its disk has room and that it may be written."
    )
