"""Clients in Parquet files: columns `client_id`, `text` and, if known, `timestamp`.

A prefix `DIR/blogs` for which `blogs.train.parquet`, `blogs.validation.parquet` and `blogs.test.parquet`
exist fixes the split by file. Files whose rows are grouped by client are streamed; others are sorted in
memory first.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from tacit.data.clients import NO_TIME, SPLITS, ClientText
from tacit.errors import SourceError

ROWS_AT_ONCE = 20_000  # a few megabytes of text; memory does not grow with the file


class ParquetClients:
    """A Source over Parquet files that hold each client in one split only."""

    def __init__(self, files: Sequence[tuple[Path, str | None]]) -> None:
        """`files`: path and the split it fixes, or None. SourceError when columns are missing or no text."""
        self._files = [(path, split, _columns(path)) for path, split in files]
        self.description = "Parquet " + ", ".join(path.name for path, _ in files)
        self.expected_clients: int | None = None
        self.left_out: dict[str, int] = {}

    @classmethod
    def open(cls, path: Path) -> "ParquetClients":
        """A file, a folder of files, or a prefix of `.train`, `.validation` and `.test` files."""
        if path.is_file():
            return cls([(path, None)])
        if path.is_dir():
            found = sorted(path.glob("*.parquet"))
            if not found:
                raise SourceError(f"{path} has no *.parquet files; for a folder of text files write folder:{path}.")
            return cls([(file, None) for file in found])
        by_split = {split: path.with_name(f"{path.name}.{split}.parquet") for split in SPLITS}
        if not by_split["train"].is_file():
            raise SourceError(
                f"there is no Parquet file, folder or prefix {path} (no {by_split['train'].name} either); "
                "check the path."
            )
        return cls([(file, split) for split, file in by_split.items() if file.is_file()])

    def clients(self) -> Iterator[ClientText]:
        """All clients; those of a fixed split in the order train, validation, test."""
        grouped, splits = self._survey()
        self.expected_clients = len(splits)
        tables = self._tables() if grouped else [self._sorted_table()]
        for client_id, table in _runs(tables):
            yield _client(client_id, table, splits[client_id])

    def _survey(self) -> tuple[bool, dict[str | None, str | None]]:
        """Whether rows are grouped by client, and each client's split; SourceError when it is in two."""
        grouped = True
        last: tuple[str | None, str | None] | None = None
        splits: dict[str | None, str | None] = {}
        for path, split, columns in self._files:
            for table in _read(path, {"client_id": columns["client_id"]}):
                ids = [(name, split) for name in _pylist(table["client_id"], "client_id", path)]
                changes = [row for before, row in zip([last, *ids], ids, strict=False) if row != before]
                for client_id, _ in changes:
                    grouped = grouped and client_id not in splits
                    if splits.setdefault(client_id, split) != split:
                        raise SourceError(
                            f"client {client_id!r} is in {path.name} and in the {splits[client_id]} file; "
                            "a client belongs to one split: split by client, or give one file."
                        )
                last = ids[-1] if ids else last
        return grouped, splits

    def _tables(self) -> Iterator[pa.Table]:
        for path, _, columns in self._files:
            yield from _read(path, columns)

    def _sorted_table(self) -> pa.Table:
        table = pa.concat_tables(list(self._tables()), promote_options="default")
        table = table.append_column("row", pa.array(np.arange(len(table))))  # keeps a client's rows in order
        return table.sort_by([("client_id", "ascending"), ("row", "ascending")])


def read_texts(path: Path) -> Iterator[str]:
    """The `text` column of a Parquet file, for public text; SourceError as for clients."""
    columns = _columns(path, needed=("text",))
    for table in _read(path, {"text": columns["text"]}):
        yield from (text for text in _pylist(table["text"], "text", path) if text is not None)


def row_count(path: Path) -> int:
    """How many rows a Parquet file has; SourceError if it is none."""
    try:
        return int(pq.read_metadata(path).num_rows)
    except (pa.ArrowException, OSError) as error:
        raise SourceError(f"{path} cannot be read as Parquet ({error}); check the path or write it anew.") from error


def has_clients(path: Path) -> bool:
    """Whether a Parquet file says whose its rows are; SourceError if it is no Parquet file."""
    return "client_id" in _schema(path).names


def _schema(path: Path) -> Any:
    try:
        return pq.read_schema(path)
    except (pa.ArrowException, OSError) as error:
        raise SourceError(f"{path} cannot be read as Parquet ({error}); check the path or write it anew.") from error


def _columns(path: Path, needed: Sequence[str] = ("client_id", "text")) -> dict[str, Any]:
    """The type each column is read as; SourceError when one is missing, or is no text or time."""
    schema = _schema(path)
    for name in needed:
        if name not in schema.names:
            raise SourceError(
                f"{path} has columns {', '.join(schema.names)} but no {name!r}; "
                f"needed are {', '.join(needed)} (timestamp may be left out): rename the columns."
            )
    columns: dict[str, Any] = {name: pa.large_string() for name in needed}
    given = schema.field("text").type
    while pa.types.is_dictionary(given):
        given = given.value_type
    if not (pa.types.is_string(given) or pa.types.is_large_string(given)):
        raise SourceError(f"{path}: column 'text' is {given}, not text; cast it to string (UTF-8).")
    if "client_id" in needed and "timestamp" in schema.names:
        given = schema.field("timestamp").type
        if not (pa.types.is_integer(given) or pa.types.is_timestamp(given) or pa.types.is_null(given)):
            raise SourceError(f"{path}: column 'timestamp' is {given}; make it int64 unix seconds or a timestamp.")
        columns["timestamp"] = given
    return columns


def _read(path: Path, columns: dict[str, Any]) -> Iterator[pa.Table]:
    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=ROWS_AT_ONCE, columns=list(columns)):
                yield _plain(pa.Table.from_batches([batch]), columns, path)
    except (pa.ArrowException, OSError) as error:
        raise SourceError(f"{path} is damaged: {error}; copy or write it anew.") from error


def _plain(table: pa.Table, columns: dict[str, Any], path: Path) -> pa.Table:
    """The columns with names and texts as strings and times as int64 seconds."""
    for name in columns:
        column = table[name]
        if name == "timestamp":
            if pa.types.is_timestamp(column.type):
                column = column.cast(pa.timestamp("s"), safe=False)
            column = column.cast(pa.int64())
        else:
            column = column.cast(columns[name])
        table = table.set_column(table.schema.get_field_index(name), name, column)
    if "client_id" in columns and table["client_id"].null_count:
        raise SourceError(f"{path}: a row has no client_id; every text is somebody's: fill it or drop the row.")
    return table


def _runs(tables: Iterator[pa.Table] | list[pa.Table]) -> Iterator[tuple[str, pa.Table]]:
    """Tables cut where the client changes; a client that spans several tables is put together."""
    waiting: list[pa.Table] = []
    current: str | None = None
    for table in tables:
        if not len(table):
            continue
        names = table["client_id"].combine_chunks()
        starts = [0]
        if len(names) > 1:
            changed = pc.not_equal(names.slice(1), names.slice(0, len(names) - 1))
            starts += (np.flatnonzero(changed.to_numpy(zero_copy_only=False)) + 1).tolist()
        for begin, end in zip(starts, [*starts[1:], len(table)], strict=True):
            name = names[begin].as_py()
            if waiting and name != current:
                yield str(current), pa.concat_tables(waiting)
                waiting = []
            current = name
            waiting.append(table.slice(begin, end - begin))
    if waiting:
        yield str(current), pa.concat_tables(waiting)


def _client(client_id: str, table: pa.Table, split: str | None) -> ClientText:
    texts = [text or "" for text in _pylist(table["text"], f"text of client {client_id!r}", None)]
    if "timestamp" not in table.column_names:
        return ClientText(client_id=client_id, texts=texts, split=split)
    times: NDArray[np.int64] = table["timestamp"].fill_null(NO_TIME).to_numpy()
    order = np.argsort(times, kind="stable")  # unknown times come first
    texts = [texts[at] for at in order]
    return ClientText(client_id=client_id, texts=texts, timestamps=times[order], split=split)


def _pylist(column: Any, what: str, path: Path | None) -> list[str | None]:
    try:
        texts: list[str | None] = column.to_pylist()
    except UnicodeDecodeError as error:
        where = f"{path}: " if path else ""
        raise SourceError(f"{where}the {what} is not UTF-8 ({error.reason}); re-encode it before importing.") from error
    return texts
