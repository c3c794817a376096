"""Stores that tests open: a SQLite file each, or the databases of a PostgreSQL of their own; a clock of their own."""

import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg

from tacit.protocol.operator_key import OperatorKey
from tacit.server.store.round_states import Attempt, Lease, NewRound, enter_run, open_round, take_lease
from tacit.server.store.store import Store

RUN = "es-a"
KEY = OperatorKey(bytes(32))
MEMORY = Path("/dev/shm")  # where nobody waits for a disk


@contextmanager
def quick_folder() -> Iterator[Path]:
    """A folder in memory, where there is one: SQLite and blobs write to disk what they promise to, many times."""
    with TemporaryDirectory(prefix="tacit-", dir=MEMORY if MEMORY.is_dir() else None) as folder:
        yield Path(folder)


class Clock:
    """Unix seconds that pass when a test says so."""

    def __init__(self, now: float = 1_800_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def sqlite_store(folder: Path, clock: Clock | None = None) -> Store:
    return Store.open(f"sqlite:///{folder / 'store.db'}", clock=clock or Clock())


def with_run(store: Store, run: str = RUN, *, seconds: float = 30.0) -> Lease:
    """A run in the store, and its lease."""
    digest = run.encode().hex().ljust(64, "0")
    enter_run(store, run, population="es", kind="train", plan='{"plan": "signed"}', plan_digest=digest)
    lease = take_lease(store, run, seconds=seconds)
    assert lease is not None
    return lease


def new_round(round: int = 0, attempt: int = 0, *, now: float = 1_800_000_000.0, **changed: int) -> NewRound:
    sizes = {"goal": 4, "least": 4, "most": 6} | changed
    return NewRound(
        task=secrets.token_hex(16),
        round=round,
        attempt=attempt,
        signed_task='{"task": "signed"}',
        model_digest="ab" * 32,
        closes_selecting=now + 60,
        deadline=now + 600,
        **sizes,
    )


def opened_round(store: Store, lease: Lease, round: int = 0, attempt: int = 0, **changed: int) -> Attempt:
    return open_round(store, lease, new_round(round, attempt, now=store.now(), **changed))


def postgresql_programs() -> Path | None:
    """Where initdb and pg_ctl are; None where no PostgreSQL is installed."""
    found = shutil.which("pg_ctl")
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True) + ([Path(found).parent] if found else [])
    return next((place for place in places if (place / "initdb").exists()), None)


WAITS = ("-w", "-t", "600")  # of pg_ctl: seconds, for to recover on a busy disk took more than its minute


class PostgreSQL:
    """A server of a test's own on a socket in its folder: no port, no network."""

    def __init__(self, programs: Path, folder: Path) -> None:
        self._programs, self._folder = programs, folder
        # PostgreSQL refuses to run as root
        self._as = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"] if os.getuid() == 0 else []
        if self._as:
            shutil.chown(folder, "nobody", "nogroup")
        self._run("initdb", "-D", str(folder / "data"), "-U", "tacit", "-A", "trust", "--no-sync", "-E", "UTF8")
        self.start()

    def _run(self, program: str, *arguments: str) -> None:
        command = [*self._as, str(self._programs / program), *arguments]
        done = subprocess.run(command, cwd=self._folder, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        assert done.returncode == 0, done.stdout + done.stderr

    def start(self) -> None:
        options = f"-c listen_addresses='' -c unix_socket_directories='{self._folder}'"
        log = str(self._folder / "log")
        self._run("pg_ctl", "-D", str(self._folder / "data"), "-l", log, "-o", options, *WAITS, "start")

    def stop(self, mode: str = "immediate") -> None:
        """immediate: as if it was killed."""
        self._run("pg_ctl", "-D", str(self._folder / "data"), "-m", mode, *WAITS, "stop")

    def new_database(self) -> str:
        """The URL of an empty one."""
        name = f"t{secrets.token_hex(4)}"
        with psycopg.connect(f"host={self._folder} user=tacit dbname=postgres", autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return f"postgresql://tacit@/{name}?host={self._folder}"


@contextmanager
def postgresql(programs: Path) -> Iterator[PostgreSQL]:
    """One that is gone afterwards. Its folder has a short name: a socket's path has at most 107 characters."""
    with TemporaryDirectory(prefix="tacit-pg-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        server = PostgreSQL(programs, Path(folder))
        try:
            yield server
        finally:
            server.stop()
