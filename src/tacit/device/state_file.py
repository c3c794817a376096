"""A file of a device's state: an SQLite database that knows whether it is the one that was written last.

A copy of it, a restored backup say, lacks what came after it. A copy is told by the number of the file on its disk (the
inode) and by when it was changed last, which a file beside it knows (the time of change, which no program can set).
Several processes may have it open: each transaction has the folder's lock, and finds the file as it was left.
"""

import fcntl
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from enum import Enum, auto
from pathlib import Path
from typing import Any, NamedTuple

from tacit.errors import DeviceError
from tacit.files import held, transaction

# Behind its name, of a file beside it: when it was changed last, in nanoseconds, or that it is being changed.
CHANGED = ".changed"
CHANGING = "changing"
GENERATION = 0x80087601  # FS_IOC_GETVERSION of linux/fs.h
PATIENCE = 10.0  # seconds for the lock, which others have for milliseconds
_ABOUT = "CREATE TABLE about (operator INTEGER NOT NULL, name TEXT NOT NULL, value, PRIMARY KEY (operator, name))"


class Standing(Enum):
    """What a file is when it is opened."""

    NEW = auto()  # nothing is in it
    LAST = auto()  # all that was ever written to it is in it
    COPY = auto()  # what was written later may be missing


class Form(NamedTuple):
    """What is in such a file."""

    format: str  # its name and version
    schema: str  # SQL that makes its tables
    anew: str  # what to do where it is damaged or foreign, for a sentence


class StateFile:
    """One open file; `opened` makes it."""

    def __init__(self, path: Path, database: sqlite3.Connection, form: Form) -> None:
        self.path, self.database, self._form = path, database, form
        self._alone = False

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """What a query finds."""
        with self._complaints():
            return self.database.execute(query, values).fetchall()

    def about(self, name: str, operator: int = 0) -> Any:
        """A value by its name; None where it has none. operator: whose, 0 for the device's own."""
        found = self.rows("SELECT value FROM about WHERE name = ? AND operator = ?", name, operator)
        return found[0][0] if found else None

    def note(self, name: str, value: Any, operator: int = 0) -> None:
        """Keep a value; in a transaction."""
        self.database.execute("INSERT OR REPLACE INTO about VALUES (?, ?, ?)", (operator, name, value))

    def standing(self) -> Standing:
        """Whether the file is the one that was written last, and nobody else has changed it since.

        Raises: DeviceError for a damaged file, somebody else's, or another version's.
        """
        tables = {name for (name,) in self.rows("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if not tables:
            return Standing.NEW
        known = self.rows("SELECT value FROM about WHERE name = 'format'") if "about" in tables else []
        if known != [(self._form.format,)]:
            found = known[0][0] if known else None
            raise DeviceError(
                f"'{self.path}' has the format {found!r}, and this version keeps {self._form.format!r}; use the "
                f"version that wrote it, or {self._form.anew}."
            )
        if self.rows("PRAGMA quick_check(1)") != [("ok",)]:
            raise DeviceError(f"'{self.path}' is damaged; restore it from a copy, or {self._form.anew}.")
        return Standing.LAST if self._is_last() else Standing.COPY

    @contextmanager
    def alone(self) -> Iterator[None]:
        """No other process writes meanwhile. Raises: DeviceError where one does not end."""
        if self._alone:
            yield
            return
        until = time.monotonic() + PATIENCE
        with ExitStack() as stack:
            while not self._lock(stack):
                if time.monotonic() > until:
                    raise DeviceError(
                        f"another process has written to '{self.path}' for {PATIENCE:g} s; end it, and start again."
                    )
                time.sleep(0.01)
            self._alone = True
            try:
                yield
            finally:
                self._alone = False

    @contextmanager
    def writing(self) -> Iterator[None]:
        """One transaction: all of it is on disk afterwards, or nothing; inside another it is a part of that.

        Raises: DeviceError where the file is another than was opened, or cannot be written.
        """
        if self.database.in_transaction:
            with self._complaints():
                yield
            return
        with self.alone():
            if not self._is_last():
                raise DeviceError(
                    f"'{self.path}' was removed, or an older copy put in its place, while this device ran; start it "
                    "again, and it counts what it cannot know."
                )
            self._tell(changing=True)
            with self._transaction():
                yield

    @contextmanager
    def adopting(self) -> Iterator[None]:
        """The same for a file that is new or a copy: what is in it at the end counts as written last."""
        with self.alone():
            new = not self.rows("SELECT name FROM sqlite_master LIMIT 1")
            if new:  # a copy is not told of: whoever is killed now finds it a copy again
                self._tell(changing=True)
            with self._transaction():
                if new:
                    for statement in (_ABOUT, *self._form.schema.split(";")):
                        self.database.execute(statement)
                    self.note("format", self._form.format)
                yield
                self.note("inode", self._number())

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        try:
            with self._complaints(), transaction(self.database):
                yield
        except Exception:  # the file is as it was, and the process lives
            self._tell(changing=False)
            raise
        self._tell(changing=False)

    def _lock(self, stack: ExitStack) -> bool:
        try:
            stack.enter_context(held(self.path.parent))
        except BlockingIOError:
            return False
        except OSError as error:
            raise DeviceError(
                f"'{self.path.parent}' was removed while this device ran ({error.strerror}); start it again."
            ) from error
        return True

    def _tell(self, *, changing: bool) -> None:
        """Nothing waits for the disk: where a power cut takes it back, the file is trusted later than need be."""
        beside = self._beside
        try:
            beside.write_text(CHANGING if changing else _changed(self.path), encoding="ascii")
        except OSError as error:
            raise DeviceError(f"'{beside}' cannot be written ({error.strerror}); make room.") from error

    @property
    def _beside(self) -> Path:
        return self.path.with_name(self.path.name + CHANGED)

    def _number(self) -> str:
        return _number(self.path)

    def _is_last(self) -> bool:
        try:
            told = self._beside.read_text(encoding="ascii")
            return self.about("inode") == self._number() and told in (CHANGING, _changed(self.path))
        except (OSError, ValueError):
            return False

    @contextmanager
    def _complaints(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.IntegrityError:
            raise
        except (sqlite3.Error, UnicodeDecodeError) as error:  # which a damaged page may be shown in
            raise DeviceError(
                f"'{self.path}' cannot be used ({error}); make room on its disk, or see who else has it open. Where it "
                f"is damaged, {self._form.anew}."
            ) from error


class MemoryFile(StateFile):
    """One in memory, which nobody copies and no other process has."""

    def _lock(self, stack: ExitStack) -> bool:
        return True

    def _tell(self, *, changing: bool) -> None:
        """There is no file to tell of."""

    def _number(self) -> str:
        return "memory"

    def _is_last(self) -> bool:
        return True


@contextmanager
def opened(path: Path, form: Form) -> Iterator[StateFile]:
    """The file at `path`, made where there is none, in a folder that is there."""
    if not path.exists():
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
    with closing(sqlite3.connect(path, isolation_level=None, timeout=PATIENCE)) as database:
        file = StateFile(path, database, form)
        with file._complaints():
            # On disk before it counts, the journal's removal too: a power cut takes nothing back.
            database.execute("PRAGMA journal_mode = DELETE")
            database.execute("PRAGMA synchronous = EXTRA")
        yield file


@contextmanager
def read_only(path: Path, form: Form) -> Iterator[StateFile]:
    """A file that is there, to be read."""
    uri = f"{path.absolute().as_uri()}?mode=ro"
    with closing(sqlite3.connect(uri, uri=True, isolation_level=None, timeout=PATIENCE)) as database:
        yield StateFile(path, database, form)


def copied(database: sqlite3.Connection, form: Form) -> StateFile:
    """A copy that its owner opened and closes, to be read. Raises: DeviceError for what is no file of this form."""
    file = MemoryFile(Path(), database, form)
    file.standing()
    return file


@contextmanager
def in_memory(form: Form) -> Iterator[StateFile]:
    """A new one that is gone afterwards."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as database:
        yield MemoryFile(Path(), database, form)


def _changed(path: Path) -> str:
    """When the file was changed last, in nanoseconds."""
    return str(path.stat().st_ctime_ns)


def _number(path: Path) -> str:
    """Which file of its disk it is, and of which generation, where the file system counts them: numbers come again."""
    with path.open("rb") as file:
        found = bytearray(8)
        with suppress(OSError):
            fcntl.ioctl(file, GENERATION, found)
        return f"{os.fstat(file.fileno()).st_ino}:{int.from_bytes(found, 'little')}"
