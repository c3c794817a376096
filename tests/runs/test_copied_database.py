"""A database as it is at one moment: what SQLite itself would say, and not a file of it touched."""

import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tacit.runs.copied_database import copied_database

ROWS = "SELECT number FROM kept ORDER BY number"


@pytest.fixture(scope="module")
def ahead(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As a process leaves it that is killed: three rows are checked in, and seven commits are in the file beside it."""
    folder = tmp_path_factory.mktemp("ahead")
    writer = sqlite3.connect(folder / "a.db", isolation_level=None)
    writer.execute("PRAGMA journal_mode = WAL")
    writer.execute("CREATE TABLE kept (number INTEGER)")
    writer.executemany("INSERT INTO kept VALUES (?)", [(0,), (1,), (2,)])
    writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for number in range(3, 10):
        writer.execute("INSERT INTO kept VALUES (?)", (number,))
    shutil.copytree(folder, folder / "killed")
    writer.close()
    return folder / "killed"


def rows(database: sqlite3.Connection) -> list[int]:
    with closing(database):
        return [number for (number,) in database.execute(ROWS)]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(share=st.floats(0, 1))
def test_a_file_that_ends_anywhere_is_read_as_sqlite_reads_it(
    share: float, ahead: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    ours, theirs = (tmp_path_factory.mktemp("cut") for _ in range(2))
    beside = (ahead / "a.db-wal").read_bytes()
    for folder in (ours, theirs):
        shutil.copy(ahead / "a.db", folder)
        (folder / "a.db-wal").write_bytes(beside[: round(share * len(beside))])
    before = {each.name: (each.read_bytes(), each.stat().st_mtime_ns) for each in ours.iterdir()}
    found = rows(copied_database(ours / "a.db"))
    assert found == rows(sqlite3.connect(theirs / "a.db")) and found[:3] == [0, 1, 2]
    assert {each.name: (each.read_bytes(), each.stat().st_mtime_ns) for each in ours.iterdir()} == before


def test_a_database_without_a_file_beside_it_gets_none(ahead: Path, tmp_path: Path) -> None:
    """Where SQLite, asked to read only, would make one."""
    shutil.copy(ahead / "a.db", tmp_path)
    assert rows(copied_database(tmp_path / "a.db")) == [0, 1, 2]
    assert [each.name for each in tmp_path.iterdir()] == ["a.db"]


@pytest.mark.parametrize("content", [b"no database at all", b"SQLite format 3\0", b"\0" * 5000])
def test_what_is_no_database_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.db").write_bytes(content)
    with pytest.raises(sqlite3.Error):
        rows(copied_database(tmp_path / "a.db"))


WRITER = """
import sqlite3, sys
for number in range(10, 150):
    writer = sqlite3.connect(sys.argv[1], isolation_level=None)
    writer.execute("PRAGMA journal_mode = WAL")
    writer.execute("INSERT INTO kept VALUES (?)", (number,))
    writer.close()
"""


def test_beside_a_writer_who_comes_and_goes_each_copy_is_whole_and_later_than_the_last(
    ahead: Path, tmp_path: Path
) -> None:
    shutil.copytree(ahead, tmp_path / "now")
    path = tmp_path / "now" / "a.db"
    process = subprocess.Popen([sys.executable, "-c", WRITER, str(path)])
    last = 0
    while process.poll() is None:
        found = rows(copied_database(path))
        assert found == list(range(len(found))) and len(found) >= last
        last = len(found)
    assert process.returncode == 0 and rows(copied_database(path)) == list(range(150))
