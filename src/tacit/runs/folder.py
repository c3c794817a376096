"""The run folder: the only format in which a run of any kind is written, and all that others may read of it.

    runs/NAME/
      settings.toml   what was asked: kind = "train" | "discover" | "evaluate" | ..., then the settings
      strategy.json   the strategy matrix, where the recipe asks for one: rows of the ledger name it by its digest
      run.db          SQLite (WAL): metadata, steps with the ledger, participations, metrics, times, notes
      steps/          the state or the output after the last steps, one file a step
      model/          the released model and its vocabulary
      report/         what people read
      noise.key       the key of the noise while the run is unfinished; destroyed when it ends
      lock            held by the one process that works on it

A step is a training round, a layer of a discovery, a released set of histograms, or an evaluation of a pre-training.
It is done when its row is committed, and its row is committed after the file it names is on disk: a process killed at
any instant leaves the step either done or not begun. One row holds the ledger entries and the digest of the file, so
the state and what was released can never disagree.
"""

import fcntl
import functools
import json
import os
import re
import secrets
import shutil
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError, RunError
from tacit.files import PathLike, as_path, held, sweep_dead_folders, sync_folder
from tacit.records import from_plain, to_plain
from tacit.runs.metadata import METADATA, Metadata

M = TypeVar("M", bound=Metadata)

FORMAT = "tacit run 2"
NOBODY: NDArray[np.int64] = np.zeros(0, np.int64)
PATIENCE = 30.0  # seconds that a writer waits for another to finish its transaction

SETTINGS = "settings.toml"
_KIND = re.compile(r'\Akind = "([a-z]+)"\n')

_SCHEMA = """
CREATE TABLE metadata (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE notes (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE steps (step INTEGER PRIMARY KEY, file TEXT NOT NULL, digest TEXT NOT NULL,
                    releases TEXT NOT NULL, measures TEXT NOT NULL);
CREATE TABLE participations (step INTEGER NOT NULL, client INTEGER NOT NULL,
                             PRIMARY KEY (step, client)) WITHOUT ROWID;
CREATE TABLE metrics (step INTEGER NOT NULL, split TEXT NOT NULL, name TEXT NOT NULL, value REAL NOT NULL,
                      PRIMARY KEY (step, split, name)) WITHOUT ROWID;
CREATE TABLE times (step INTEGER PRIMARY KEY, finished REAL NOT NULL, seconds REAL NOT NULL);
"""


@dataclass(frozen=True, kw_only=True)
class Step:
    """One finished step: the file after it, what was released (the ledger entries), and what was measured."""

    step: int
    file: str  # its name in `steps/`
    digest: str  # SHA-256: of a round, of the whole state after it (model, optimizer, noise, clock, clip norm)
    releases: tuple[Mapping[str, Any], ...] = ()
    measures: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Metric:
    """One number of an evaluation after so many steps (0: the initial model)."""

    step: int
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
        cls, path: Path, settings: str, metadata: Metadata, noise_key: bytes, *, strategy: str | None = None
    ) -> Self:
        """A new run folder; all of it exists when this returns, or none of it under its name.

        settings: TOML of what was asked. metadata: what the run records of itself, whose class is the kind of run.
        noise_key: empty where nothing is drawn from it (devices randomise, or text is public).
        strategy: the JSON of a strategy that the settings do not say in numbers.

        Raises: RunError when `path` is there already.
        """
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise RunError(
                f"'{path}' exists already and a run never overwrites another; choose another --out, "
                f"or continue it with `tacit resume {path}`."
            )
        path = path if path.name else path.resolve()
        path.parent.mkdir(parents=True, exist_ok=True)
        sweep_dead_folders(path)
        draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}.draft")
        draft.mkdir()
        try:
            with held(draft), _writing(path):
                _write_draft(draft, f'kind = "{metadata.kind}"\n{settings}', metadata, noise_key, strategy)
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
            found = database.execute("SELECT value FROM metadata WHERE name = 'format'").fetchone()
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
                    f"'{self.path}' is being worked on by process {owner}, and a run has one process at a time; "
                    "wait for it, or stop it and run `tacit resume` again."
                ) from None
            file.truncate(0)
            file.write(str(os.getpid()))
            file.flush()
            yield

    def _repr_html_(self) -> str:
        """What a notebook shows of a run."""
        state = "finished" if self.finished else "unfinished"
        return (
            f"<table><tr><th>run</th><td><code>{escape(str(self.path))}</code></td></tr>"
            f"<tr><th>kind</th><td>{self.kind}</td></tr>"
            f"<tr><th>steps done</th><td>{self.steps_done:,} ({state})</td></tr></table>"
        )

    # -- writing ---------------------------------------------------------------------------------------------------

    def commit(
        self, step: Step, *, clients: NDArray[np.int64] = NOBODY, finished: float | None = None, seconds: float = 0.0
    ) -> None:
        """Make a step done: its ledger entries, the name of its file and who took part, in one transaction.

        clients: (participants,) numbers of the clients. finished: Unix seconds (left out: now). Raises: RunError when
        the step is not the next one, or cannot be written (a full disk, say).
        """
        with _writing(self.path), self._database as database:
            if step.step != self.steps_done:
                raise RunError(
                    f"step {step.step} of '{self.path}' cannot be released: step {self.steps_done} is the next; "
                    "two processes wrote to one run, resume it with one."
                )
            database.execute(
                "INSERT INTO steps VALUES (?, ?, ?, ?, ?)",
                (step.step, step.file, step.digest, _sorted_json(step.releases), _sorted_json(step.measures)),
            )
            database.executemany("INSERT INTO participations VALUES (?, ?)", [(step.step, int(c)) for c in clients])
            when = time.time() if finished is None else finished
            database.execute("INSERT INTO times VALUES (?, ?, ?)", (step.step, when, seconds))

    def record_metrics(self, metrics: list[Metric]) -> None:
        """Write an evaluation; measuring the same model twice replaces the same numbers by themselves."""
        with _writing(self.path), self._database as database:
            database.executemany(
                "INSERT OR REPLACE INTO metrics VALUES (?, ?, ?, ?)",
                [(m.step, m.split, m.name, m.value) for m in metrics],
            )

    def note(self, name: str, value: Any) -> None:
        """Keep what was learnt after the run began: JSON under a name, in place of what was there."""
        with _writing(self.path), self._database as database:
            database.execute("INSERT OR REPLACE INTO notes VALUES (?, ?)", (name, json.dumps(value)))

    def finish(self) -> None:
        """Nothing of it is left to be done."""
        self.note("finished", True)

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
    def kind(self) -> str:
        """Of run: "train", "discover", "evaluate", "personalize", "pretrain" or "tune"."""
        return self.metadata.kind

    @property
    def settings(self) -> str:
        """What was asked, as TOML. Raises: RunError where the file is gone or of another kind than the run."""
        path = self.path / SETTINGS
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise RunError(f"'{path}' cannot be read ({error}); restore it from a copy of the run.") from error
        found = _KIND.match(text)
        if found is None or found[1] != self.kind:
            raise RunError(f"'{path}' does not begin with kind = \"{self.kind}\"; restore it from a copy.")
        return text[found.end() :]

    @functools.cached_property
    def metadata(self) -> Metadata:
        """What the run recorded of itself when it began. Raises: RunError (damaged, or of another version)."""
        rows = self._database.execute("SELECT * FROM metadata WHERE name != 'format'")
        record = {name: json.loads(value) for name, value in rows}
        cls = METADATA.get(record.get("kind", ""))
        if cls is None:
            raise RunError(
                f"'{self.path}' is of the unknown kind {record.get('kind')!r}; use the version that wrote it."
            )
        return from_plain(cls, record, error=RunError, where=f"the metadata of '{self.path}'")

    def of_kind(self, cls: type[M], otherwise: str) -> M:
        """The metadata, where the run is of the kind of `cls`.

        otherwise: what to do with a run of another kind, in words of its `{command}` and `{run}`. Raises: InputError.
        """
        if isinstance(self.metadata, cls):
            return self.metadata
        advice = otherwise.format(command=f"tacit {self.kind}", run=self.path)
        raise InputError(f"'{self.path}' is a run of `tacit {self.kind}` and not of `tacit {cls.kind}`; {advice}.")

    @property
    def finished(self) -> bool:
        return bool(self.notes.get("finished", False))

    @property
    def notes(self) -> dict[str, Any]:
        """What was learnt after the run began, by name."""
        return {name: json.loads(value) for name, value in self._database.execute("SELECT * FROM notes ORDER BY name")}

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
    def steps_done(self) -> int:
        return int(self._database.execute("SELECT COUNT(*) FROM steps").fetchone()[0])

    def steps(self) -> list[Step]:
        rows = self._database.execute("SELECT step, file, digest, releases, measures FROM steps ORDER BY step")
        return [
            Step(step=number, file=file, digest=digest, releases=tuple(json.loads(of)), measures=json.loads(measures))
            for number, file, digest, of, measures in rows
        ]

    def participations(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(steps, clients), each (participations,), ordered by step: the log that post-hoc accounting measures."""
        rows = self._database.execute("SELECT step, client FROM participations ORDER BY step, client").fetchall()
        both = np.asarray(rows, np.int64).reshape(-1, 2)
        return both[:, 0], both[:, 1]

    def metrics(self) -> list[Metric]:
        rows = self._database.execute("SELECT step, split, name, value FROM metrics ORDER BY split, name, step")
        return [Metric(step=r, split=s, name=n, value=v) for r, s, n, v in rows]

    def times(self) -> list[tuple[int, float, float]]:
        """(step, when it finished in Unix seconds, its seconds) of each step."""
        return [tuple(row) for row in self._database.execute("SELECT step, finished, seconds FROM times ORDER BY step")]

    @property
    def last_file(self) -> Path | None:
        """The file that the last done step names; None before the first step."""
        found = self._database.execute("SELECT file FROM steps ORDER BY step DESC LIMIT 1").fetchone()
        return None if found is None else self.path / "steps" / str(found[0])


def _write_draft(draft: Path, settings: str, metadata: Metadata, key: bytes, strategy: str | None) -> None:
    """All of a new run folder, on disk when this returns."""
    for folder in ("steps", "model", "report"):
        (draft / folder).mkdir()
    files = [(SETTINGS, settings.encode(), 0o666), *([("noise.key", key, 0o600)] if key else [])]
    kept = [] if strategy is None else [("strategy.json", strategy.encode(), 0o666)]
    for name, content, mode in files + kept:
        descriptor = os.open(draft / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    rows = {"format": FORMAT, **to_plain(metadata)}
    with closing(sqlite3.connect(draft / "run.db", timeout=PATIENCE)) as database:
        _make_durable(database)
        database.executescript(_SCHEMA)
        with database:
            database.executemany("INSERT INTO metadata VALUES (?, ?)", [(k, json.dumps(v)) for k, v in rows.items()])
    sync_folder(draft)


def _make_durable(database: sqlite3.Connection) -> None:
    """Readers never wait for the writer, and what is committed survives a power cut."""
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")


def open_run(path: PathLike) -> Run:
    """A run folder of any kind, to be read; close it, or use it in a `with`. Raises: RunError where it is none."""
    return Run.open(as_path("path", path))


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


def _sorted_json(values: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> str:
    return json.dumps(values, sort_keys=True)
