"""Clients in Parquet files: columns `client_id`, `text` and, if known, `timestamp`.

A prefix `DIR/blogs` for which `blogs.train.parquet`, `blogs.validation.parquet` and `blogs.test.parquet`
exist fixes the split by file.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq

from tacit.data.clients import SPLITS
from tacit.data.tables import Part, RowsOfClients, as_list, columns_of, plain
from tacit.errors import SourceError

ROWS_AT_ONCE = 20_000  # a few megabytes of text; memory does not grow with the file


class ParquetClients(RowsOfClients):
    """A Source over Parquet files that hold each client in one split only."""

    name: ClassVar[str] = "parquet"
    takes: ClassVar[str] = "PATH"
    says: ClassVar[str] = "Parquet with columns client_id, text and perhaps timestamp: a file, a folder, a prefix"

    def __init__(self, files: Sequence[tuple[Path, str | None]]) -> None:
        """`files`: path and the split it fixes, or None. SourceError when columns are missing or no text."""
        super().__init__([_part(path, split) for path, split in files])
        self.description = "Parquet " + ", ".join(path.name for path, _ in files)

    @classmethod
    def open(cls, place: str) -> "ParquetClients":
        """A file, a folder of files, or a prefix of `.train`, `.validation` and `.test` files."""
        path = Path(place).expanduser()
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


def _part(path: Path, split: str | None) -> Part:
    columns = columns_of(_schema(path), str(path))
    return Part(where=str(path), name=path.name, split=split, columns=columns, read=partial(_read, path))


def read_texts(path: Path) -> Iterator[str]:
    """The `text` column of a Parquet file, for public text; SourceError as for clients."""
    columns = columns_of(_schema(path), str(path), needed=("text",))
    for table in _read(path, {"text": columns["text"]}):
        yield from (text for text in as_list(table["text"], "text", str(path)) if text is not None)


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


def _read(path: Path, columns: dict[str, Any]) -> Iterator[pa.Table]:
    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=ROWS_AT_ONCE, columns=list(columns)):
                yield plain(pa.Table.from_batches([batch]), columns, str(path))
    except (pa.ArrowException, OSError) as error:
        raise SourceError(f"{path} is damaged: {error}; copy or write it anew.") from error
