"""The run folder: the only format in which a run is written, and all that those who look at it may read.

    runs/NAME/
      recipe.toml     what was asked
      strategy.json   the strategy matrix, where the recipe asks for one: rows of the ledger name it by its digest
      run.db          SQLite (WAL): facts, rounds with the ledger, participations, metrics, times
      checkpoints/    the state after the last rounds, as safetensors
      model/          the released model and its vocabulary
      report/         what people read
      noise.key       the key of the noise while the run is unfinished; destroyed when it ends
      lock            held by the one process that trains

A round is done when its row is committed, and its row is committed after the checkpoint it names is on disk: a
process killed at any instant leaves the round either done or not begun. One row holds the ledger entry and the name of
the checkpoint, so the state and what was released can never disagree.
"""

import fcntl
import json
import os
import re
import secrets
import shutil
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tacit.errors import RunError
from tacit.files import sync_folder

FORMAT = "tacit run 1"
PATIENCE = 30.0  # seconds that a writer waits for another to finish its transaction

_SCHEMA = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE rounds (round INTEGER PRIMARY KEY, checkpoint TEXT NOT NULL, digest TEXT NOT NULL,
                     release TEXT NOT NULL, measures TEXT NOT NULL);
CREATE TABLE participations (round INTEGER NOT NULL, client INTEGER NOT NULL,
                             PRIMARY KEY (round, client)) WITHOUT ROWID;
CREATE TABLE metrics (round INTEGER NOT NULL, split TEXT NOT NULL, name TEXT NOT NULL, value REAL NOT NULL,
                      PRIMARY KEY (round, split, name)) WITHOUT ROWID;
CREATE TABLE times (round INTEGER PRIMARY KEY, finished REAL NOT NULL, seconds REAL NOT NULL);
"""


@dataclass(frozen=True, kw_only=True)
class RoundRow:
    """One finished round: what was released (the ledger entries), the checkpoint after it, and what was measured."""

    round: int
    checkpoint: str
    digest: str  # SHA-256 of the whole state after the round: model, optimizer, noise, clock, clip norm
    release: Mapping[str, Any]
    measures: Mapping[str, float]
    also: tuple[Mapping[str, Any], ...] = ()  # what was released beside it in the same round

    @property
    def releases(self) -> tuple[Mapping[str, Any], ...]:
        """All of the round: what the ledger of the run is made of."""
        return (self.release, *self.also)


@dataclass(frozen=True, kw_only=True)
class Metric:
    """One number of an evaluation after `round` rounds (0: the initial model)."""

    round: int
    split: str
    name: str
    value: float


class Run:
    """An open run folder. Reading needs nothing; writing needs `locked()`."""

    def __init__(self, path: Path, database: sqlite3.Connection) -> None:
        self.path = path
        self._database = database

    # -- birth and opening -----------------------------------------------------------------------------------------

    @classmethod
    def create(
        cls, path: Path, recipe: str, facts: Mapping[str, Any], noise_key: bytes, *, strategy: str | None = None
    ) -> Self:
        """A new run folder; all of it exists when this returns, or none of it under its name.

        strategy: the JSON of a strategy that the recipe does not say in numbers.

        Raises: RunError when `path` is there already.
        """
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise RunError(
                f"'{path}' exists already and a run never overwrites another; choose another --out, "
                f"or continue it with `tacit resume {path}`."
            )
        path = path if path.name else path.resolve()
        path.parent.mkdir(parents=True, exist_ok=True)
        _sweep_dead_folders(path)
        draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}.draft")
        draft.mkdir()
        try:
            with _held(draft), _writing(path):
                _write_draft(draft, recipe, {"format": FORMAT, **facts}, noise_key, strategy)
                if path.exists():
                    path.rmdir()  # empty, as checked above
                draft.rename(path)
        except BaseException:
            shutil.rmtree(draft)
            raise
        sync_folder(path.parent)
        return cls.open(path)

    @classmethod
    def open(cls, path: Path) -> Self:
        """An existing run folder. Raises: RunError when it is not one, or one of another version."""
        if not (path / "run.db").is_file():
            raise RunError(
                f"'{path}' is no run folder (it has no run.db); start one with `tacit train RECIPE --out {path}`."
            )
        database = sqlite3.connect(path / "run.db", timeout=PATIENCE)
        try:
            found = database.execute("SELECT value FROM facts WHERE name = 'format'").fetchone()
            kind = json.loads(found[0]) if found else "unknown"
            if kind != FORMAT:
                raise RunError(
                    f"'{path}' has the format '{kind}', this version reads '{FORMAT}'; use the version that wrote it."
                )
            _make_durable(database)  # only now: a foreign database is left as it was
        except (sqlite3.DatabaseError, json.JSONDecodeError) as error:
            database.close()
            raise RunError(f"'{path}/run.db' is not a run of tacit's ({error}); name the folder of a run.") from error
        except RunError:
            database.close()
            raise
        return cls(path, database)

    def close(self) -> None:
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """The right to write. The kernel frees it when the process dies, however it dies."""
        with open(self.path / "lock", "a+") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.seek(0)
                owner = file.read().strip() or "unknown"
                raise RunError(
                    f"'{self.path}' is being trained by process {owner}, and a run has one trainer at a time; "
                    "wait for it, or stop it and run `tacit resume` again."
                ) from None
            file.truncate(0)
            file.write(str(os.getpid()))
            file.flush()
            yield

    # -- writing ---------------------------------------------------------------------------------------------------

    def commit(self, row: RoundRow, *, clients: NDArray[np.int64], finished: float, seconds: float) -> None:
        """Make a round done: its ledger entry, its checkpoint's name and who took part, in one transaction.

        clients: (participants,) numbers of the clients. Raises: RunError when the round is not the next one, or
        cannot be written (a full disk, say).
        """
        with _writing(self.path), self._database as database:
            if row.round != self.rounds_done:
                raise RunError(
                    f"round {row.round} of '{self.path}' cannot be released: round {self.rounds_done} is the next; "
                    "two processes wrote to one run, resume it with one."
                )
            database.execute(
                "INSERT INTO rounds VALUES (?, ?, ?, ?, ?)",
                (
                    row.round,
                    row.checkpoint,
                    row.digest,
                    _sorted_json(row.releases if row.also else row.release),
                    _sorted_json(row.measures),
                ),
            )
            database.executemany("INSERT INTO participations VALUES (?, ?)", [(row.round, int(c)) for c in clients])
            database.execute("INSERT INTO times VALUES (?, ?, ?)", (row.round, finished, seconds))

    def record_metrics(self, metrics: list[Metric]) -> None:
        """Write an evaluation; measuring the same model twice replaces the same numbers by themselves."""
        with _writing(self.path), self._database as database:
            database.executemany(
                "INSERT OR REPLACE INTO metrics VALUES (?, ?, ?, ?)",
                [(m.round, m.split, m.name, m.value) for m in metrics],
            )

    def set_fact(self, name: str, value: Any) -> None:
        with _writing(self.path), self._database as database:
            database.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, json.dumps(value)))

    def destroy_noise_key(self) -> None:
        """Forget the key: whoever has it could subtract the noise from the released rounds."""
        key = self.path / "noise.key"
        if key.exists():
            with open(key, "r+b") as file:
                file.write(os.urandom(max(16, key.stat().st_size)))
                file.flush()
                os.fsync(file.fileno())
            key.unlink()

    # -- reading ---------------------------------------------------------------------------------------------------

    @property
    def recipe(self) -> str:
        return (self.path / "recipe.toml").read_text(encoding="utf-8")

    @property
    def strategy(self) -> dict[str, Any] | None:
        """The record of the strategy matrix; None where the recipe says the strategy. Raises: RunError (damaged)."""
        path = self.path / "strategy.json"
        try:
            return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else None
        except (ValueError, TypeError) as error:
            raise RunError(f"'{path}' is damaged ({error}); restore it from a copy.") from error

    @property
    def noise_key(self) -> bytes:
        """The key of an unfinished run. Raises: RunError when the run has ended and its key is gone."""
        try:
            return (self.path / "noise.key").read_bytes()
        except FileNotFoundError:
            raise RunError(
                f"'{self.path}' is finished and its noise key destroyed: no further round can be released from it; "
                "start a new run."
            ) from None

    @property
    def rounds_done(self) -> int:
        return int(self._database.execute("SELECT COUNT(*) FROM rounds").fetchone()[0])

    def fact(self, name: str) -> Any:
        """Raises: RunError when the run does not know it."""
        found = self._database.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        if found is None:
            raise RunError(f"'{self.path}' has no fact '{name}'; it was written by another version or damaged.")
        return json.loads(found[0])

    def facts(self) -> dict[str, Any]:
        return {name: json.loads(value) for name, value in self._database.execute("SELECT * FROM facts ORDER BY name")}

    def rounds(self) -> list[RoundRow]:
        rows = self._database.execute("SELECT round, checkpoint, digest, release, measures FROM rounds ORDER BY round")
        return [_round_row(*row) for row in rows]

    def participations(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(rounds, clients), each (participations,), ordered by round: the log that post-hoc accounting measures."""
        rows = self._database.execute("SELECT round, client FROM participations ORDER BY round, client").fetchall()
        both = np.asarray(rows, np.int64).reshape(-1, 2)
        return both[:, 0], both[:, 1]

    def metrics(self) -> list[Metric]:
        rows = self._database.execute("SELECT round, split, name, value FROM metrics ORDER BY split, name, round")
        return [Metric(round=r, split=s, name=n, value=v) for r, s, n, v in rows]

    def times(self) -> list[tuple[int, float, float]]:
        """(round, when it finished in Unix seconds, its seconds) of each round."""
        return [
            tuple(row) for row in self._database.execute("SELECT round, finished, seconds FROM times ORDER BY round")
        ]

    @property
    def last_checkpoint(self) -> Path | None:
        """The checkpoint that the last done round names; None before the first round."""
        found = self._database.execute("SELECT checkpoint FROM rounds ORDER BY round DESC LIMIT 1").fetchone()
        return None if found is None else self.path / "checkpoints" / str(found[0])


def _write_draft(draft: Path, recipe: str, facts: Mapping[str, Any], key: bytes, strategy: str | None) -> None:
    """All of a new run folder, on disk when this returns."""
    for folder in ("checkpoints", "model", "report"):
        (draft / folder).mkdir()
    files = [("recipe.toml", recipe.encode(), 0o666), ("noise.key", key, 0o600)]
    kept = [] if strategy is None else [("strategy.json", strategy.encode(), 0o666)]
    for name, content, mode in files + kept:
        descriptor = os.open(draft / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    with closing(sqlite3.connect(draft / "run.db", timeout=PATIENCE)) as database:
        _make_durable(database)
        database.executescript(_SCHEMA)
        with database:
            database.executemany("INSERT INTO facts VALUES (?, ?)", [(k, json.dumps(v)) for k, v in facts.items()])
    sync_folder(draft)


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    """A lock on a folder; the kernel frees it when the process dies. Raises: BlockingIOError when it is held."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def _sweep_dead_folders(path: Path) -> None:
    """Remove what killed processes left of a folder that was to become `path`: those that nobody holds."""
    pattern = re.compile(rf"\.{re.escape(path.name)}\.[0-9a-f]{{8}}\.draft")
    for draft in [each for each in path.parent.iterdir() if pattern.fullmatch(each.name)]:
        with suppress(BlockingIOError, FileNotFoundError), _held(draft):
            shutil.rmtree(draft)


def _make_durable(database: sqlite3.Connection) -> None:
    """Readers never wait for the writer, and what is committed survives a power cut."""
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """SQLite's complaints (a full disk, a folder that may not be written) as ours."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise RunError(
            f"'{path}/run.db' cannot be written ({error}); what was complete before is safe: free space or give the "
            "right to write, and run the same command again, or `tacit resume`."
        ) from error


def _round_row(round: int, checkpoint: str, digest: str, releases: str, measures: str) -> RoundRow:
    """One release is written as an object, several as a list of them."""
    found = json.loads(releases)
    first, *also = found if isinstance(found, list) else [found]
    return RoundRow(
        round=round,
        checkpoint=checkpoint,
        digest=digest,
        release=first,
        measures=json.loads(measures),
        also=tuple(also),
    )


def _sorted_json(values: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> str:
    return json.dumps(values, sort_keys=True)
