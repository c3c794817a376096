"""Files that are there whole or as they were before, and locks on folders."""

import fcntl
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from tacit.errors import InputError, conceivable

if TYPE_CHECKING:
    import sqlite3

MOST_BYTES = 1 << 26  # of what people write and read: settings, lists of words, statements
PathLike: TypeAlias = str | os.PathLike[str]


def as_path(name: str, value: object) -> Path:
    """The path that an argument called `name` says. Raises: InputError for what is none, or is not UTF-8."""
    if not isinstance(value, str | os.PathLike):
        raise InputError(f"{name}={value!r} is no path; give text or a pathlib.Path, or what `tacit` gave for one.")
    path = Path(value)
    conceivable(name, path)
    return path


def read_bounded(path: Path, most: int = MOST_BYTES) -> bytes:
    """The content of a file that somebody named, which may have so many bytes.

    Raises: InputError for a longer one, and for what is no file: a pipe is waited for, and /dev/zero read, for ever;
    OSError, as reading does.
    """
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:  # a pipe without a writer waits
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise InputError(f"'{path}' is a pipe or a device, whose end nobody knows; give a file.")
        content = file.read(most + 1)
    if len(content) > most:
        raise InputError(f"'{path}' has more than {most:,} bytes, so it is not what was asked for; give another file.")
    return content


def check_file(name: str, path: Path) -> None:
    """Raises: InputError where no file can be put at `path`, so that nobody finds out after the work.

    name: of the argument.
    """
    if path.exists() and not path.is_file():
        raise InputError(f"{name} '{path}' is no file and is not replaced by one; give the path of a file.")
    _check_above(name, path)


def check_folder(name: str, path: Path) -> None:
    """Raises: InputError where `path` is no folder and none can be made there. name: of the argument."""
    if path.exists() and not path.is_dir():
        raise InputError(f"{name} '{path}' is a file; give the path of a folder.")
    _check_above(name, path)


def _check_above(name: str, path: Path) -> None:
    above = next(folder for folder in path.absolute().parents if folder.exists())
    if not above.is_dir():
        raise InputError(f"{name} '{path}' cannot be: '{above}' is a file and no folder; give another path.")


def write_whole(path: Path, content: bytes | Iterable[bytes | memoryview]) -> None:
    """A file that is there whole and on disk, or as it was before, whoever reads at the same time.

    content: all of it, or its parts in order. A process that is killed leaves its hidden draft; `sweep_drafts` removes
    those.
    Raises: InputError where `path` is there and no file (a folder, a device); OSError (a full disk, say); the draft is
    removed then.
    """
    check_file("the path", path)
    draft = path.with_name(f".{path.name}.{os.getpid()}.draft")
    try:
        with open(draft, "wb") as file:
            file.writelines([content] if isinstance(content, bytes) else content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sweep_drafts(folder: Path) -> None:
    """Remove what killed processes left half written; for whoever alone may write to the folder."""
    for draft in folder.glob(".*.draft"):
        draft.unlink(missing_ok=True)


def sync_folder(path: Path) -> None:
    """Make renames inside a folder survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def transaction(database: "sqlite3.Connection") -> Iterator[None]:
    """All that is written in it is in the database when it ends, or nothing of it is; nobody else writes meanwhile."""
    database.execute("BEGIN IMMEDIATE")
    try:
        yield
        database.execute("COMMIT")
    except BaseException:
        if database.in_transaction:
            database.execute("ROLLBACK")
        raise


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """A lock on a folder; the kernel frees it when the process dies. Raises: BlockingIOError when it is held."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)
