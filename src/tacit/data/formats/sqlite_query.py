"""Rows that a query of an SQLite file gives, with columns `client_id`, `text` and, if known, `timestamp`.

The file is opened read-only, and a query may do nothing but read: it cannot change the file or attach another.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import ClassVar

from tacit.data.formats.file_names import name_of_file
from tacit.data.formats.row_files import Here, Row, RowFiles, client_of, seconds_of, text_of, zone_of
from tacit.data.formats.tables import Columns, said_of
from tacit.errors import SourceError

AS_EVERYWHERE = Columns()
WAY_OUT = "Say in the query which column is meant, SELECT author AS {column} ..., or {option} NAME."
READING = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}


class SqliteQuery(RowFiles):
    """A Source over the rows of one SELECT."""

    name: ClassVar[str] = "sqlite"
    takes: ClassVar[str] = "FILE?QUERY"
    says: ClassVar[str] = "the rows of a SELECT with columns client_id, text and perhaps timestamp"
    called_kind: ClassVar[str] = "SQLite"
    suffixes: ClassVar[tuple[str, ...]] = (".sqlite", ".sqlite3", ".db")

    def __init__(
        self, path: Path, query: str, *, called: Columns = AS_EVERYWHERE, time_zone: str | None = None
    ) -> None:
        """called: the columns of the query; time_zone: of times that say none. SourceError for what is no query."""
        self._query, self._called, self._zone = query, called, zone_of(time_zone)
        super().__init__([(path, None)])

    @classmethod
    def open(
        cls,
        place: str,
        *,
        called: Columns = AS_EVERYWHERE,
        query: str | None = None,
        time_zone: str | None = None,
    ) -> "SqliteQuery":
        """The file at a path, and the query behind a `?` or as an option."""
        path = Path(place).expanduser()
        if not path.is_file():
            named, mark, behind = place.partition("?")
            if mark and query:
                raise SourceError(f"{place!r:.100} has a query, and another is given; give one.")
            path, query = Path(named).expanduser(), query or behind
        if not path.is_file():
            raise SourceError(f"there is no file {name_of_file(path)}; give sqlite:FILE?QUERY.")
        if not query:
            raise SourceError(f"{name_of_file(path)} is read by a query; {_example(path)}.")
        return cls(path, query, called=called, time_zone=time_zone)

    def said_of(self, path: Path) -> str:
        """The columns of the query. Raises: SourceError where what is needed is not among them."""
        with _complaints(path), closing(_connect(path)) as connection:
            there = self._columns(connection.execute(self._query), path)
            return f"rows of the query; {said_of(self._names(there, path), there)}"

    def rows_of(self, path: Path) -> Iterator[Row]:
        """A row a row; SourceError naming the row of what is no text of a client."""
        with _complaints(path), closing(_connect(path)) as connection:
            rows = connection.execute(self._query)
            there = self._columns(rows, path)
            at = {column: there.index(given) for column, given in self._names(there, path).items()}
            owner, text, when = at["client_id"], at["text"], at.get("timestamp")
            kind: type | None = None
            for number, row in enumerate(rows, 1):
                here = Here(path, "row", number)
                client_id = client_of(row[owner], here)
                kind = kind or type(row[owner])
                if type(row[owner]) is not kind:
                    raise SourceError(
                        f"{here}: the client_id is {row[owner]!r:.40}, and in the first row another type; write "
                        "CAST(... AS TEXT) AS client_id, so that 7 and '7' are one client."
                    )
                time = None if when is None else seconds_of(row[when], here, self._zone)
                yield client_id, text_of(row[text], here), time

    def _columns(self, rows: sqlite3.Cursor, path: Path) -> list[str]:
        if rows.description is None:
            raise SourceError(f"{self._query!r:.60} gives no rows of {name_of_file(path)}; {_example(path)}.")
        return [column[0] for column in rows.description]

    def _names(self, there: list[str], path: Path) -> dict[str, str]:
        return self._called.found(there, f"the query of {name_of_file(path)}", WAY_OUT)


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
    connection.set_authorizer(_may)
    return connection


def _may(action: int, *_: str | None) -> int:
    return sqlite3.SQLITE_OK if action in READING else sqlite3.SQLITE_DENY


@contextmanager
def _complaints(path: Path) -> Iterator[None]:
    """SQLite's complaints, some of which it makes while rows are read, as ours."""
    try:
        yield
    except (sqlite3.Error, sqlite3.Warning, UnicodeError, OverflowError) as error:
        if isinstance(error, sqlite3.DatabaseError) and "not a database" in str(error):
            raise SourceError(f"{name_of_file(path)} is not SQLite; give the file of a database, unpacked.") from error
        raise SourceError(
            f"{name_of_file(path)} cannot be asked that ({error}); a query is one SELECT, and {_example(path)}."
        ) from error


def _example(path: Path) -> str:
    """What a query may look like, with a table that is there."""
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            tables = [
                row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' LIMIT 9")
            ]
    except (sqlite3.Error, UnicodeError):
        tables = []
    named = f" (tables: {', '.join(map(str, tables))})" if tables else ""
    return f"give --query 'SELECT author AS client_id, body AS text FROM posts'{named}"
