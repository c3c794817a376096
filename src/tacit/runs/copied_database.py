"""A database of SQLite's as it is at one moment, in memory: its file is read, and never opened by SQLite.

SQLite itself, asked to read only, makes an empty write-ahead file beside a database in that mode, and locks what a
writer would check in. Here two files are read as bytes. The database stays what it was while both are read, or they are
read again: what was checked in before is in the first, all later in the second, of which SQLite takes whole commits.
"""

import os
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from time import sleep

MODE = slice(18, 20)  # of the head of a database: 2, 2 where a write-ahead file belongs to it, else 1, 1
MAGIC = b"SQLite format 3\0"
TURNS, PAUSE = 50, 0.02  # of reading while somebody checks in; seconds between two
LARGEST = 2**30  # bytes


def copied_database(path: Path) -> sqlite3.Connection:
    """What is in the database now; what is written later is not. Raises: OSError, sqlite3.Error."""
    database, ahead = _both(path)
    if ahead:
        database = _checked_in(database, ahead)
    copied = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    if database.startswith(MAGIC):
        database[MODE] = b"\1\1"
        copied.deserialize(database)
    elif database:
        copied.close()
        raise sqlite3.DatabaseError("file is not a database")
    return copied


def _both(path: Path) -> tuple[bytearray, bytes]:
    """The database and its write-ahead file, of one moment."""
    beside = path.with_name(f"{path.name}-wal")
    for _ in range(TURNS):
        before = _written(path)
        if before[-1] > LARGEST:
            raise OSError(f"it has {before[-1]:,} bytes, more than {LARGEST:,}")
        database = _content(path, before[-1])
        try:
            ahead = beside.read_bytes()
        except FileNotFoundError:
            ahead = b""
        if _written(path) == before:
            return database, ahead
        sleep(PAUSE)
    raise OSError("it is written without a pause")


def _written(path: Path) -> tuple[int, int, int]:
    found = os.stat(path)
    return found.st_ino, found.st_mtime_ns, found.st_size


def _content(path: Path, size: int) -> bytearray:
    """Of a file of this size, in one piece of memory: what follows it would be of a later moment."""
    found = bytearray(size)
    with path.open("rb", buffering=0) as file:
        read = 0
        while read < size and (more := file.readinto(memoryview(found)[read:])):
            read += more
    return found[:read] if read < size else found


def _checked_in(database: bytearray, ahead: bytes) -> bytearray:
    """The database with all that was committed, by SQLite in a folder of our own."""
    with tempfile.TemporaryDirectory(prefix="tacit-") as folder:
        copy = Path(folder) / "copy.db"
        copy.write_bytes(database)
        copy.with_name("copy.db-wal").write_bytes(ahead)
        with closing(sqlite3.connect(copy, isolation_level=None)) as opened:
            opened.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        return _content(copy, copy.stat().st_size)
