"""The journal of a run in SQLite: everything that is written of it, in order, each entry sealed with those before it.

    metadata      one row: the format
    journal       (entry, kind, content, seal): seal = SHA-256(entry, seal of the entry before, kind, content)
    participants  (step, clients): numbers of who took part, int64, increasing; the step's entry has their SHA-256, or
                  says that they were counted only
    RUN/head      a file of its own: how many entries there are, and the seal of the last

Whoever changes, removes, adds or moves an entry must compute all later seals again, and so ends with another head.
`head` is written after the entry is on disk, so after a kill it may be behind and never ahead: a journal that ends
before its head has lost its end (a table that was cut, a write-ahead file that was removed).
"""

import hashlib
import os
import sqlite3
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tacit.errors import RunError
from tacit.files import transaction
from tacit.runs.copied_database import copied_database
from tacit.runs.entries import Done, Entry, RunBegunEntry, StepEntry, Written, content_of, entry_of

if TYPE_CHECKING:  # imported where it is used: who looks at a list of runs needs none of it
    import numpy as np
    from numpy.typing import NDArray

FORMAT = "tacit run 3"
DATABASE, HEAD = "run.db", "head"
PATIENCE = 30.0  # seconds that a writer waits for another to finish its transaction
RESTORE = "restore the folder from a copy"
DAMAGED = (sqlite3.Error, UnicodeDecodeError)  # SQLite's complaints may show a damaged page's own bytes
START = "0" * 64  # stands where the seal before the first would
_SCHEMA = """
CREATE TABLE metadata (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE journal (entry INTEGER PRIMARY KEY, kind TEXT NOT NULL, content TEXT NOT NULL, seal TEXT NOT NULL);
CREATE TABLE participants (step INTEGER PRIMARY KEY, clients BLOB NOT NULL);
"""


def seal_of(number: int, before: str, kind: str, content: str) -> str:
    """The seal of entry `number`, which follows one with the seal `before`."""
    return hashlib.sha256(f"{FORMAT}\n{number}\n{before}\n{kind}\n{content}".encode()).hexdigest()


def numbers_of(clients: "NDArray[np.int64]") -> bytes:
    """Different clients as `participants` keeps them."""
    import numpy as np

    return np.sort(clients).astype("<i8").tobytes()


def done_by(
    clients: "NDArray[np.int64] | int", *, step: StepEntry, finished: float, seconds: float
) -> tuple[Done, bytes]:
    """The entry of a step that different clients, or so many, took part in, and what `participants` keeps of it."""
    if isinstance(clients, int):
        return Done(step=step, clients=clients, participants=None, finished=finished, seconds=seconds), b""
    numbers = numbers_of(clients)
    sealed = hashlib.sha256(numbers).hexdigest()
    return Done(step=step, clients=len(clients), participants=sealed, finished=finished, seconds=seconds), numbers


class Journal:
    """The open journal of a folder; what is read of it is checked against its seals, once."""

    def __init__(self, folder: Path, database: sqlite3.Connection, *, writable: bool) -> None:
        self.folder, self.writable = folder, writable
        self._database = database
        weakref.finalize(self, database.close)  # a run that nobody closed: from 3.13 on Python warns
        self._written = Written()

    @classmethod
    def create(cls, folder: Path, begun: RunBegunEntry) -> "Journal":
        """In a folder that has none, with its first entry; on disk when this returns."""
        database = _connected(folder / DATABASE, writable=True)
        _make_durable(database)
        database.executescript(_SCHEMA)
        database.execute("INSERT INTO metadata VALUES ('format', ?)", (f'"{FORMAT}"',))
        descriptor = os.open(folder / HEAD, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            journal = cls(folder, database, writable=True)
            with journal.writing():
                journal.append(begun)
            os.fsync(descriptor)  # later heads are written in its place: after a power cut the old one or the new
        finally:
            os.close(descriptor)
        return journal

    @classmethod
    def open(cls, folder: Path, *, read_only: bool = False) -> "Journal":
        """Of a folder, checked to its end. Raises: RunError where there is none, or it is not what was written.

        read_only: as it is at this moment, read so that no file of the folder is written, made, removed or locked.
        """
        path = folder / DATABASE
        if not path.is_file():
            within = ", ".join(f"'{each.parent}'" for each in sorted(folder.glob(f"*/{DATABASE}")))
            way_out = (
                f"name one of its own: {within}" if within else f"start one with `tacit train RECIPE --out {folder}`"
            )
            raise RunError(f"'{folder}' is no run folder (it has no {DATABASE}); {way_out}.")
        writable = not read_only and os.access(folder, os.W_OK) and os.access(path, os.W_OK)
        head = _head_of(folder) if read_only else None  # before the copy is made, as it is before the journal is read
        try:
            database = copied_database(path) if read_only else _connected(path, writable)
        except (OSError, *DAMAGED) as error:
            raise RunError(f"'{path}' cannot be read ({error}); {RESTORE}.") from error
        try:
            found = database.execute("SELECT value FROM metadata WHERE name = 'format'").fetchone()
            if found is None or found[0] != f'"{FORMAT}"':
                kind = "unknown" if found is None else str(found[0]).strip('"')
                raise RunError(
                    f"'{folder}' has the format '{kind}', this version reads '{FORMAT}'; use the version that wrote it."
                )
            if writable:
                _make_durable(database)  # only now: a foreign database is left as it was
            journal = cls(folder, database, writable=writable)
            journal.check_head(head)
        except DAMAGED as error:
            database.close()
            raise RunError(f"'{path}' is not a run of tacit's ({error}); name the folder of a run.") from error
        except RunError:
            database.close()
            raise
        return journal

    def close(self) -> None:
        self._database.close()

    # -- reading ---------------------------------------------------------------------------------------------------

    def read(self) -> Written:
        """What is written by now. Raises: RunError naming the first entry that is not what was written."""
        written, place = self._written, f"of the journal in '{self.folder / DATABASE}'"
        with self._complaints():
            rows = self._database.execute(
                "SELECT entry, kind, content, seal FROM journal WHERE entry >= ? ORDER BY entry", (len(written.seals),)
            )
            for number, kind, content, seal in rows:
                where = f"entry {len(written.seals)} {place}"
                before = written.seals[-1] if written.seals else START
                if number != len(written.seals) or seal != seal_of(number, before, kind, content):
                    raise RunError(
                        f"{where} is not what was written: it, or one before it, was changed, removed or moved; "
                        f"{RESTORE}."
                    )
                written.take(entry_of(kind, content, where), seal, where)
        return written

    def check_head(self, head: str | None = None) -> None:
        """Raises: RunError where the journal ends before `head` says, is empty, or has entries before its first.

        head: left out, what the file says now.
        """
        path, head = self.folder / HEAD, _head_of(self.folder) if head is None else head
        seals = self.read().seals  # after the head was read, so that a writer at work is never behind it
        if self._database.execute("SELECT COUNT(*) FROM journal WHERE entry < 0").fetchone()[0] or not seals:
            raise RunError(f"the journal in '{self.folder / DATABASE}' does not begin with its first entry; {RESTORE}.")
        numbered = head[:20]
        count = int(numbered) if numbered.isdecimal() else 0
        if 0 < count <= len(seals) and head == _head(count, seals[count - 1]):
            return
        raise RunError(
            f"'{path}' does not fit the journal beside it, which has {len(seals)} entries: the journal has lost its "
            f"end ({DATABASE}-wal was removed, or entries were), or the file was changed; {RESTORE}."
        )

    def participants(self) -> "tuple[NDArray[np.int64], NDArray[np.int64]]":
        """(steps, clients), each (participations,), ordered by step and client. Raises: RunError for the first step
        whose participants are not those that took part, or were only counted: what follows from a log without them
        would promise too much.
        """
        import numpy as np

        with self._complaints(), self._snapshot():
            done = self.read().done
            rows = iter(self._database.execute("SELECT step, clients FROM participants ORDER BY step").fetchall())
        row = next(rows, None)
        kept: list[NDArray[np.int64]] = []
        for entry in done:
            step, found = entry.step.step, b""
            if row is not None and row[0] == step:
                found, row = row[1], next(rows, None)
            if entry.participants is None:
                raise RunError(
                    f"step {step} in '{self.folder / DATABASE}' has {entry.clients:,} devices without identities, so "
                    "there is no log of who took part when; what each device kept by itself is what is accounted."
                )
            if not isinstance(found, bytes) or hashlib.sha256(found).hexdigest() != entry.participants:
                raise RunError(
                    f"the participants of step {step} in '{self.folder / DATABASE}' are not the {entry.clients:,} "
                    f"clients that took part: some were removed, added or changed; {RESTORE}."
                )
            kept.append(np.frombuffer(found, "<i8").astype(np.int64, copy=False))
        if row is not None:
            raise RunError(
                f"'{self.folder / DATABASE}' has participants of step {row[0]}, which was not done; {RESTORE}."
            )
        steps = np.repeat(np.arange(len(kept)), [each.size for each in kept])
        return steps, np.concatenate([np.zeros(0, np.int64), *kept])

    def check_counted(self) -> None:
        """RunError where a step names who took part, in a run whose devices have no identities."""
        named = next((each.step.step for each in self.read().done if each.participants is not None), None)
        with self._complaints():
            row = self._database.execute("SELECT MIN(step) FROM participants").fetchone()
        if named is not None or row[0] is not None:
            raise RunError(
                f"step {row[0] if named is None else named} in '{self.folder / DATABASE}' names who took part, and the "
                f"devices of this run have no identities; {RESTORE}."
            )

    # -- writing ---------------------------------------------------------------------------------------------------

    @contextmanager
    def writing(self) -> Iterator[None]:
        """One transaction, alone: what is appended in it is on disk when it ends, or nothing of it is."""
        if not self.writable:
            raise RunError(f"'{self.folder}' cannot be written; copy it to where it can, or give the right to write.")
        with writing(self.folder), transaction(self._database):
            yield
        seals = self.read().seals
        descriptor = os.open(self.folder / HEAD, os.O_WRONLY)
        try:
            os.pwrite(descriptor, _head(len(seals), seals[-1]).encode(), 0)  # of one length: written over in place
        finally:
            os.close(descriptor)

    def append(self, entry: Entry) -> None:
        """One more entry; within `writing`."""
        seals = self.read().seals
        before, content = seals[-1] if seals else START, content_of(entry)
        seal = seal_of(len(seals), before, entry.entry, content)
        self._database.execute("INSERT INTO journal VALUES (?, ?, ?, ?)", (len(seals), entry.entry, content, seal))

    def put_participants(self, step: int, numbers: bytes) -> None:
        """Who took part in a step, as `numbers_of` says it; within `writing`."""
        if numbers:
            self._database.execute("INSERT INTO participants VALUES (?, ?)", (step, numbers))

    # -- SQLite ----------------------------------------------------------------------------------------------------

    @contextmanager
    def _complaints(self) -> Iterator[None]:
        """SQLite's complaints of a damaged page as ours."""
        try:
            yield
        except DAMAGED as error:
            raise RunError(f"'{self.folder / DATABASE}' is damaged ({error}); {RESTORE}.") from error

    @contextmanager
    def _snapshot(self) -> Iterator[None]:
        """Several reads of one moment, whoever writes."""
        self._database.execute("BEGIN")
        try:
            yield
        finally:
            self._database.execute("ROLLBACK")


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """SQLite's complaints (a full disk, a folder that may not be written) as ours."""
    try:
        yield
    except sqlite3.Error as error:
        raise RunError(
            f"'{folder / DATABASE}' cannot be written ({error}); what was complete before is safe: free space or give "
            "the right to write, and run the same command again, or `tacit resume`."
        ) from error


def _head_of(folder: Path) -> str:
    """What the file says. Raises: RunError where it cannot be read."""
    path = folder / HEAD
    try:
        return path.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise RunError(f"'{path}' cannot be read ({error}); {RESTORE}.") from error


def _head(count: int, seal: str) -> str:
    return f"{count:020d} {seal}\n"


def _connected(path: Path, writable: bool) -> sqlite3.Connection:
    """On media that cannot be written SQLite may not make the files it shares with writers: there are none.

    Any thread may close it: whichever collects garbage closes what nobody closed.
    """
    database: str | Path = path
    if not writable:
        alone = not path.with_name(f"{path.name}-wal").exists()
        database = f"{path.resolve().as_uri()}?{'immutable=1' if alone else 'mode=ro'}"
    return sqlite3.connect(database, uri=not writable, timeout=PATIENCE, isolation_level=None, check_same_thread=False)


def _make_durable(database: sqlite3.Connection) -> None:
    """Readers never wait for the writer, and what is committed survives a power cut."""
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")
