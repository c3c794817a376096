"""Clients in Parquet files: columns `client_id`, `text` and, if known, `timestamp`, or what these are called there.

A prefix `DIR/blogs` for which `blogs.train.parquet`, `blogs.validation.parquet` and `blogs.test.parquet`
exist fixes the split by file. A file of such a name (`test.parquet`, too) is that split whole wherever it is read, and
so are the files of a folder of such a name (`blogs.test`, `test`), where they say nothing else themselves. A folder is
read with all folders below it. Capitals in these names mean nothing. What is there and is not read is counted.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from tacit.data.clients import check_text
from tacit.data.formats.folder_files import files_below, is_hidden
from tacit.data.formats.tables import Columns, RowsOfClients, RowsPart, as_list, columns_of, plain, said_of
from tacit.data.manifest import SPLITS
from tacit.errors import SourceError
from tacit.extras import when_used

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq
else:
    pa = when_used("pyarrow")
    pq = when_used("pyarrow.parquet")

SUFFIX = ".parquet"
SHARD = re.compile("-[0-9]{5}-of-[0-9]{5}$")  # as data sets of Hugging Face name the parts of a split
ROWS_AT_ONCE = 20_000  # a few megabytes of text; memory does not grow with the file
AS_EVERYWHERE = Columns()
WAY_OUT = (
    "Needed are client_id, text and perhaps timestamp; say which column is meant, {option} NAME (in Python "
    "{column}=NAME), or rename it."
)
# Sources of files that are often taken for Parquet.
READERS = {".csv": "csv", ".tsv": "tsv", ".json": "jsonl", ".jsonl": "jsonl", ".feather": "arrow", ".arrow": "arrow"}


class ParquetClients(RowsOfClients):
    """A Source over Parquet files that hold each client in one split only."""

    name: ClassVar[str] = "parquet"
    takes: ClassVar[str] = "PATH"
    says: ClassVar[str] = "Parquet with columns client_id, text and perhaps timestamp: a file, a folder, a prefix"

    def __init__(
        self,
        files: Sequence[tuple[Path, str | None]],
        *,
        called: Columns = AS_EVERYWHERE,
        passed_over: Mapping[str, int] | None = None,
    ) -> None:
        """`files`: path and the split it fixes, or None; passed_over: files that are not read, by what they are.

        SourceError when a file is none, columns are missing or no text.
        """
        super().__init__([_part(path, split, called) for path, split in files], passed_over=passed_over)
        self.description = "Parquet " + ", ".join(path.name for path, _ in files)

    @classmethod
    def open(cls, place: str, *, called: Columns = AS_EVERYWHERE) -> "ParquetClients":
        """A file, a folder of files, or a prefix of `.train`, `.validation` and `.test` files."""
        path = Path(place).expanduser()
        if path.is_file():
            return cls([(path, split_named(path.name))], called=called)
        files, passed_over = _in_folder(path) if path.is_dir() else _of_prefix(path)
        return cls(files, called=called, passed_over=passed_over)


Found: TypeAlias = tuple[list[tuple[Path, str | None]], dict[str, int]]  # files with their splits, what is not read


def _in_folder(folder: Path) -> Found:
    """The Parquet files of a folder and of those below it. SourceError where there is none."""
    there = files_below(folder)
    found = [file for file in there if file.name.lower().endswith(SUFFIX) and not is_hidden(file, folder)]
    if not found:
        others = f" ({len(there):,} others)" if there else ""
        raise SourceError(f"{folder} has no *{SUFFIX} files{others}; for a folder of text files write folder:{folder}.")
    whole = split_named(folder.resolve().name)
    splits = (
        next(filter(None, map(split_named, reversed(file.relative_to(folder).parts))), whole)  # the nearest name
        for file in found
    )
    passed_over = {f"files that are hidden or not called *{SUFFIX}": len(there) - len(found)}
    return list(zip(found, splits, strict=True)), passed_over


def _of_prefix(prefix: Path) -> Found:
    """The files of a prefix, or the folders that are called so, in the order of splits. SourceError without train."""
    beside = sorted(prefix.parent.glob(f"{escape(prefix.name)}.*"))
    by_split: dict[str, Path] = {}
    for path in beside:
        split = path.name[len(prefix.name) + 1 :].lower().removesuffix(SUFFIX)
        if split not in SPLITS or not path.name.lower().endswith(SUFFIX):
            continue
        if split in by_split:
            raise SourceError(f"{by_split[split]} and {path} are both the split {split}; rename one.")
        by_split[split] = path
    if "train" not in by_split:
        sought = "file" if prefix.suffix.lower() == SUFFIX else "file, folder or prefix"
        other = f" (no {prefix.name}.train{SUFFIX} either)" if sought != "file" else ""
        raise SourceError(f"there is no Parquet {sought} {prefix}{other}; check the path.")
    passed_over = {f"files that begin with {prefix.name}. and are no split": len(beside) - len(by_split)}
    files: list[tuple[Path, str | None]] = []
    for split in filter(by_split.__contains__, SPLITS):
        path = by_split[split]
        below, others = _in_folder(path) if path.is_dir() else ([(path, split)], {})
        files += [(file, split) for file, _ in below]
        passed_over |= others
    return files, passed_over


def split_named(name: str) -> str | None:
    """The split that a file or folder is by its name, `NAME.test.parquet`, `test` or `test-00000-of-00001.parquet`.

    None where the name says none.
    """
    last = SHARD.sub("", name.lower().removesuffix(SUFFIX)).rpartition(".")[2]
    return last if last in SPLITS else None


def _part(path: Path, split: str | None, called: Columns) -> RowsPart:
    if not path.is_file():
        raise SourceError(f"{path} is a link to nothing, a pipe or a device, and Parquet is a file; move it away.")
    schema = _schema(path)
    names = called.found(schema.names, str(path), WAY_OUT)
    renamed = pa.schema([pa.field(column, schema.field(given).type) for column, given in names.items()])
    columns = columns_of(renamed, str(path))
    read, how = partial(_read, path, names), said_of(names, schema.names)
    return RowsPart(where=str(path), name=path.name, split=split, columns=columns, read=read, how=how)


def read_texts(path: Path) -> Iterator[str]:
    """The `text` column of a Parquet file, for public text; SourceError as for clients."""
    columns = columns_of(_schema(path), str(path), needed=("text",))
    for table in _read(path, {"text": "text"}, {"text": columns["text"]}):
        for text in as_list(table["text"], "text", str(path)):
            if text is not None:
                check_text(text, str(path))
                yield text


def row_count(path: Path) -> int:
    """How many rows a Parquet file has; SourceError if it is none."""
    try:
        return int(pq.read_metadata(path).num_rows)
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(path, error) from error


def owner_column(path: Path, called: str = "client_id") -> str | None:
    """The column of a Parquet file that says whose its rows are, if it has one; SourceError if it is none."""
    return next((name for name in ("client_id", called) if name in _schema(path).names), None)


def _unreadable(path: Path, error: Exception) -> SourceError:
    reader = READERS.get(path.suffix.lower())
    way_out = (
        "check the path or write it anew" if reader is None else f"write {reader}:{path}, if it is what its name says"
    )
    return SourceError(f"{path} cannot be read as Parquet ({error}); {way_out}.")


def _schema(path: Path) -> Any:
    try:
        return pq.read_schema(path)
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(path, error) from error


def _read(path: Path, names: Mapping[str, str], columns: Mapping[str, Any]) -> Iterator["pa.Table"]:
    """These columns; names: what they are called in the file."""
    given = [names[column] for column in columns]
    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=ROWS_AT_ONCE, columns=given):
                table = pa.Table.from_batches([batch]).select(given).rename_columns(list(columns))
                yield plain(table, columns, str(path))
    except (pa.ArrowException, OSError) as error:
        raise SourceError(f"{path} is damaged: {error}; copy or write it anew.") from error
