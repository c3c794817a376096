"""Rows of clients in Arrow tables: columns `client_id`, `text` and, if known, `timestamp`, from wherever they are read.

Rows that are grouped by client are streamed, part by part; others are put together first (`scattered_rows.py`).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.data.clients import ClientText
from tacit.data.formats.scattered_rows import by_client
from tacit.data.manifest import NO_TIME
from tacit.errors import SourceError
from tacit.extras import when_used
from tacit.local_times import LATEST

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc
else:
    pa = when_used("pyarrow")
    pc = when_used("pyarrow.compute")

EARLIEST = -62_135_596_800  # the year 1 in seconds since 1970
SECONDS_OF_A_YEAR = 31_556_952
UNITS = {"ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
PARTS = {"ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}  # of a second
ROWS_AT_ONCE = 20_000  # cut into clients; the texts of so many are in memory twice
OFTEN_CALLED = {  # elsewhere; parts of names, the likelier first
    "client_id": ("author", "user", "client", "device", "person", "owner", "name"),
    "text": ("body", "text", "content", "message", "comment", "sentence", "post"),
    "timestamp": ("time", "date", "created", "posted", "when"),
}


@dataclass(frozen=True, kw_only=True)
class Columns:
    """What the columns are called where the rows come from."""

    client_id: str = "client_id"
    text: str = "text"
    timestamp: str | None = None  # None: "timestamp", if there is one

    def found(self, there: Sequence[str], where: str, way_out: str) -> dict[str, str]:
        """The columns that are there: their names by what they are.

        way_out: what to do about a missing one, with a place for its name, `{column}`. Raises: SourceError that lists
        the columns, where one is missing or there twice.
        """
        called = {"client_id": self.client_id, "text": self.text, "timestamp": self.timestamp}
        names = {
            column: column if given is None else given
            for column, given in called.items()
            if given is not None or column in there
        }
        for column, given in names.items():
            if there.count(given) != 1:
                has = "has no" if given not in there else f"has {there.count(given)} columns called"
                meant = "" if given in there else _meant(column, given, there)
                advice = way_out.format(column=column, option=f"--{column.replace('_', '-')}")
                raise SourceError(
                    f"{where} {has} {given!r}: its columns are {', '.join(map(_shown, there)) or 'none'}{meant}. "
                    f"{advice}"
                )
        return names


def said_of(names: Mapping[str, str], there: Sequence[str]) -> str:
    """For a preview: which columns are which, and those that are not read."""
    read = ", ".join(f"{column} is {given!r}" for column, given in names.items())
    others = [name for name in there if name not in names.values()]
    return f"columns: {read}" + (f"; not read: {', '.join(map(_shown, others))}" if others else "")


def _shown(name: str) -> str:
    """A column's name in one line: a quote that is open in a header takes whole rows into it."""
    return name if name.isprintable() else repr(name)


def _meant(column: str, given: str, there: Sequence[str]) -> str:
    """A guess at the column, in brackets; empty where there is none."""
    alike = [name for part in OFTEN_CALLED[column] for name in there if part in name.lower()]
    near = (get_close_matches(given, there, n=1) or alike)[:1]
    return f" (did you mean {near[0]!r}?)" if near else ""


@dataclass(frozen=True, kw_only=True)
class RowsPart:
    """Some of the rows: where they stand (for sentences), the split that fixes, and how columns of it are read."""

    where: str
    name: str  # the short form of `where`
    split: str | None
    columns: dict[str, Any]  # the type each is read as, by name
    read: Callable[[dict[str, Any]], Iterator["pa.Table"]]
    how: str = ""  # for a preview: which columns are which, how lines are read


class RowsOfClients:
    """What a source over rows does, whatever they are read from: each client once, in one split."""

    description: str
    by_name: ClassVar[bool] = False  # always in the order of the clients' names, so that their order says nothing

    def __init__(self, parts: Sequence[RowsPart], *, passed_over: Mapping[str, int] | None = None) -> None:
        """passed_over: what was left out before any row is read, files say."""
        self._parts = parts
        self._passed_over = dict(passed_over or {})
        self.expected_clients: int | None = None
        self.left_out: dict[str, int] = dict(self._passed_over)
        self.doubts: list[str] = []

    @property
    def how_read(self) -> Sequence[str]:
        """How rows are read, a line for each way."""
        return tuple(dict.fromkeys(part.how for part in self._parts if part.how))

    def leave_out(self, what: str, count: int = 1) -> None:
        """Count what is not read."""
        self.left_out[what] = self.left_out.get(what, 0) + count

    def clients(self) -> Iterator[ClientText]:
        """All clients; those of a fixed split in the order train, validation, test."""
        grouped, splits = self._survey()
        self.expected_clients = len(splits)
        self.left_out = dict(self._passed_over)  # what the survey left out is left out again, and counted once
        tables = self._tables() if grouped and not self.by_name else by_client(self._tables())
        for client_id, texts, times in _runs(tables):
            if client_id not in splits:
                raise SourceError(
                    f"client {client_id!r} of '{self.description}' was not there when it was read before; give rows "
                    "that are the same each time they are read."
                )
            client = _client(client_id, texts, times, splits[client_id])
            if empty := sum(not text for text in client.texts):
                self.leave_out("rows without text", empty)
            yield client

    def _survey(self) -> tuple[bool, dict[str | None, str | None]]:
        """Whether rows are grouped by client, and each client's split; SourceError when it is in two."""
        grouped = True
        last: tuple[str | None, str | None] | None = None
        splits: dict[str | None, str | None] = {}
        for part in self._parts:
            for table in part.read({"client_id": part.columns["client_id"]}):
                ids = [(name, part.split) for name in as_list(table["client_id"], "client_id", part.where)]
                changes = [row for before, row in zip([last, *ids], ids, strict=False) if row != before]
                for client_id, _ in changes:
                    grouped = grouped and client_id not in splits
                    if splits.setdefault(client_id, part.split) != part.split:
                        raise SourceError(
                            f"client {client_id!r} is in {part.name} and in the {splits[client_id]} file; "
                            "a client belongs to one split: split by client, or give one file."
                        )
                last = ids[-1] if ids else last
        return grouped, splits

    def _tables(self) -> Iterator["pa.Table"]:
        for part in self._parts:
            yield from part.read(part.columns)


def columns_of(schema: Any, where: str, needed: Sequence[str] = ("client_id", "text")) -> dict[str, Any]:
    """The type each column is read as; SourceError when one is missing, or is no text or time."""
    for name in needed:
        if name not in schema.names:
            raise SourceError(
                f"{where} has columns {', '.join(schema.names)} but no {name!r}; rename the one that is meant."
            )
    columns: dict[str, Any] = {name: pa.large_string() for name in needed}
    if "client_id" in needed:
        owner = schema.field("client_id").type
        if not (_is_text(owner) or pa.types.is_integer(_values_of(owner))):
            raise SourceError(
                f"{where}: column 'client_id' is {owner}, which is no name; say which column tells who typed, or make "
                "it text or whole numbers."
            )
    given = schema.field("text").type
    if not _is_text(given):
        raise SourceError(f"{where}: column 'text' is {given}, not text; cast it to string (UTF-8).")
    if "client_id" in needed and "timestamp" in schema.names:
        given = schema.field("timestamp").type
        if not (pa.types.is_integer(given) or _is_time(given) or pa.types.is_null(given)):
            raise SourceError(f"{where}: column 'timestamp' is {given}; make it int64 unix seconds or a timestamp.")
        columns["timestamp"] = given
    return columns


def _values_of(given: Any) -> Any:
    """The type of the values behind categories."""
    while pa.types.is_dictionary(given):
        given = given.value_type
    return given


def _is_text(given: Any) -> bool:
    """Polars keeps text as views; a column without any value has no type."""
    given = _values_of(given)
    kinds = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view, pa.types.is_null)
    return any(kind(given) for kind in kinds)


def _is_time(given: Any) -> bool:
    return bool(pa.types.is_timestamp(given) or pa.types.is_date(given))


def plain(table: "pa.Table", columns: Iterable[str], where: str) -> "pa.Table":
    """The columns with names and texts as strings and times as int64 seconds; SourceError for a row of nobody's.

    Timestamps of a zone are times whatever the zone; those of none are taken as UTC; a date is its midnight in UTC.
    SourceError for a time at which nobody typed, as seconds are that were milliseconds.
    """
    for name in columns:
        column = _seconds(table[name], where) if name == "timestamp" else table[name].cast(pa.large_string())
        table = table.set_column(table.schema.get_field_index(name), name, column)
    if "client_id" in columns and table["client_id"].null_count:
        raise SourceError(f"{where}: a row has no client_id; every text is somebody's: fill it or drop the row.")
    return table


def _seconds(column: Any, where: str) -> Any:
    """Times as int64 seconds since 1970."""
    by_type = _is_time(column.type)
    seconds = column.cast(pa.timestamp("s"), safe=False).cast(pa.int64()) if by_type else column
    for time in filter(None, pc.min_max(seconds).as_py().values()):
        if EARLIEST <= time < LATEST or time == NO_TIME:
            continue
        way_out = "give seconds since 1970 or a timestamp, and leave unknown times empty"
        unit = next((unit for unit, parts in PARTS.items() if 0 < time // parts < LATEST), None)
        if unit and not by_type:
            way_out = (
                f"it looks like {UNITS[unit]}: divide it by {PARTS[unit]:,}, or, in Arrow and Parquet, make the "
                f"column a timestamp of that unit, column.cast(pyarrow.timestamp({unit!r}))"
            )
        year = 1970 + time // SECONDS_OF_A_YEAR
        raise SourceError(
            f"{where}: the timestamp {time} is in the year {year} as seconds since 1970, and nobody typed then; "
            f"{way_out}."
        )
    return seconds.cast(pa.int64())


def as_list(column: Any, what: str, where: str | None) -> list[str | None]:
    """A column of text as Python's; SourceError when it is not UTF-8."""
    try:
        texts: list[str | None] = column.to_pylist()
    except UnicodeDecodeError as error:
        place = f"{where}: " if where else ""
        raise SourceError(f"{place}the {what} is not UTF-8 ({error.reason}); re-encode it before importing.") from error
    return texts


def _runs(tables: Iterable["pa.Table"]) -> Iterator[tuple[str, list[str], NDArray[np.int64] | None]]:
    """Rows cut where the client changes: name, texts and times; a client that spans several tables is put together."""
    current: str | None = None
    texts: list[str] = []
    times: list[NDArray[np.int64]] = []
    for rows in _pieces(tables):
        names = rows["client_id"].combine_chunks()
        changed = pc.not_equal(names.slice(1), names.slice(0, len(names) - 1)).to_numpy(zero_copy_only=False)
        starts = [0, *(np.flatnonzero(changed) + 1).tolist()]
        said, when = _texts(rows), _times(rows)
        for name, begin, end in zip(names.take(pa.array(starts)).to_pylist(), starts, [*starts[1:], None], strict=True):
            if name != current:
                if current is not None:
                    yield current, texts, np.concatenate(times) if times else None
                current, texts, times = name, [], []
            texts += said[begin:end]
            if when is not None:
                times.append(when[begin:end])
    if current is not None:
        yield current, texts, np.concatenate(times) if times else None


def _pieces(tables: Iterable["pa.Table"]) -> Iterator["pa.Table"]:
    for table in tables:
        for begin in range(0, len(table), ROWS_AT_ONCE):
            yield table.slice(begin, ROWS_AT_ONCE)


def _texts(rows: "pa.Table") -> list[str]:
    try:
        return [text or "" for text in rows["text"].to_pylist()]
    except UnicodeDecodeError:
        for row, name in enumerate(rows["client_id"].to_pylist()):
            as_list(rows["text"].slice(row, 1), f"text of client {name!r}", None)
        raise


def _times(rows: "pa.Table") -> NDArray[np.int64] | None:
    if "timestamp" not in rows.column_names:
        return None
    times: NDArray[np.int64] = rows["timestamp"].fill_null(NO_TIME).to_numpy()
    return times


def _client(client_id: str, texts: list[str], times: NDArray[np.int64] | None, split: str | None) -> ClientText:
    if times is None:
        return ClientText(client_id=client_id, texts=texts, split=split)
    order = np.argsort(times, kind="stable")  # unknown times come first
    texts = [texts[at] for at in order.tolist()]
    return ClientText(client_id=client_id, texts=texts, timestamps=times[order], split=split)
