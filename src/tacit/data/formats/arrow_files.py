"""Arrow's own files, and data sets of Hugging Face as `save_to_disk` leaves them; no package of theirs is needed.

A folder with `dataset_dict.json` has a folder for each split, one with `state.json` names its files in order.
"""

import mmap
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from tacit.data.formats.file_names import name_of_file
from tacit.data.formats.parquet import ROWS_AT_ONCE
from tacit.data.formats.row_files import WAY_OUT, files_at
from tacit.data.formats.tables import Columns, RowsOfClients, RowsPart, columns_of, plain, said_of
from tacit.data.manifest import SPLITS
from tacit.errors import InputError, SourceError
from tacit.extras import when_used
from tacit.files import read_bounded
from tacit.parsing import parsed_json

if TYPE_CHECKING:
    import pyarrow as pa
else:
    pa = when_used("pyarrow")

AS_EVERYWHERE = Columns()
SUFFIXES = (".arrow", ".feather", ".arrows", ".ipc")
OF_SPLITS, OF_FILES = "dataset_dict.json", "state.json"


class ArrowFiles(RowsOfClients):
    """A Source over Arrow IPC files and streams, or a data set that was saved."""

    name: ClassVar[str] = "arrow"
    takes: ClassVar[str] = "PATH"
    says: ClassVar[str] = "Arrow or Feather files with such columns, or a folder that Hugging Face's save_to_disk made"
    suffixes: ClassVar[tuple[str, ...]] = SUFFIXES

    def __init__(
        self,
        files: list[tuple[Path, str | None]],
        *,
        called: Columns = AS_EVERYWHERE,
        passed_over: Mapping[str, int] | None = None,
    ) -> None:
        """files: each with the split that it fixes, or None. SourceError when columns are missing or no text."""
        super().__init__([_part(path, split, called) for path, split in files], passed_over=passed_over)
        self.description = "Arrow " + ", ".join(name_of_file(path.name) for path, _ in files)

    @classmethod
    def open(cls, place: str, *, called: Columns = AS_EVERYWHERE) -> "ArrowFiles":
        """A file, a folder of files or of a data set, or a prefix of `.train`, `.validation` and `.test` files."""
        folder = Path(place).expanduser()
        if (folder / OF_SPLITS).is_file():
            splits = _names_in(folder / OF_SPLITS, "splits")
            if unknown := [split for split in splits if split not in SPLITS]:
                raise SourceError(
                    f"{name_of_file(folder)} has a split {unknown[0]!r:.40}, which is none of {', '.join(SPLITS)}; "
                    "give the folder of one split, or rename it in Python and save it anew."
                )
            return cls([(file, split) for split in splits for file in _saved(folder / split)], called=called)
        if (folder / OF_FILES).is_file():
            return cls([(file, None) for file in _saved(folder)], called=called)
        files, passed_over = files_at(place, SUFFIXES, "Arrow")
        return cls(files, called=called, passed_over=passed_over)


def _saved(folder: Path) -> list[Path]:
    """The files of a data set in order."""
    files = [folder / name for name in _names_in(folder / OF_FILES, "_data_files")]
    if not files:
        raise SourceError(f"{name_of_file(folder)} has no rows; save the data set anew.")
    if missing := [file for file in files if file.parent != folder or not file.is_file()]:
        raise SourceError(f"{name_of_file(missing[0])} is missing; copy the folder of the data set whole.")
    return files


def _names_in(path: Path, key: str) -> list[str]:
    """The names that a file of a data set lists: `"splits": ["train"]`, `"_data_files": [{"filename": "a.arrow"}]`."""
    try:
        given = parsed_json(read_bounded(path))[key]
        names = [each["filename"] if isinstance(each, dict) else each for each in given]
    except (OSError, InputError, ValueError, KeyError, TypeError) as error:
        raise SourceError(f"{name_of_file(path)} does not list {key}; save the data set anew.") from error
    if not all(isinstance(name, str) and name not in ("", ".", "..") and "\0" not in name for name in names):
        raise SourceError(f"{name_of_file(path)} lists what is no name of a file; save the data set anew.")
    return names


def _part(path: Path, split: str | None, called: Columns) -> RowsPart:
    shown = name_of_file(path)
    with_schema = next(_batches(path, None), None)
    if with_schema is None:
        raise SourceError(f"{shown} has no rows; give one that has.")
    schema = with_schema.schema
    names = called.found(schema.names, shown, WAY_OUT)
    renamed = pa.schema([pa.field(column, schema.field(given).type) for column, given in names.items()])
    columns, how = columns_of(renamed, shown), said_of(names, schema.names)
    return RowsPart(
        where=shown,
        name=name_of_file(path.name),
        split=split,
        columns=columns,
        read=partial(_read, path, names),
        how=how,
    )


def _read(path: Path, names: Mapping[str, str], columns: Mapping[str, Any]) -> Iterator["pa.Table"]:
    given = [names[column] for column in columns]
    for table in _batches(path, given):
        try:
            yield plain(table.rename_columns(list(columns)), columns, name_of_file(path))
        except pa.ArrowException as error:
            raise _damaged(path, error) from error


def _batches(path: Path, wanted: list[str] | None) -> Iterator["pa.Table"]:
    """Batches of the columns, ROWS_AT_ONCE at most; an empty first one where there is a schema and no rows."""
    try:
        with path.open("rb") as opened:  # by Python, which knows names that are not UTF-8
            source = pa.BufferReader(pa.py_buffer(mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)))
            try:
                file = pa.ipc.open_file(source)
                batches = (file.get_batch(number) for number in range(file.num_record_batches))
                schema = file.schema
            except pa.ArrowInvalid:
                source.seek(0)
                batches = pa.ipc.open_stream(source)
                schema = batches.schema
            if wanted is None:
                _ = schema.names  # which need not be UTF-8
                yield schema.empty_table()
                return
            for batch in batches:
                batch.validate(full=True)
                for at in range(0, len(batch), ROWS_AT_ONCE):
                    yield pa.Table.from_batches([batch.slice(at, ROWS_AT_ONCE)]).select(wanted)
    except (pa.ArrowException, OSError, ValueError) as error:
        if isinstance(error, SourceError):
            raise
        raise _damaged(path, error) from error


def _damaged(path: Path, error: Exception) -> SourceError:
    return SourceError(f"{name_of_file(path)} cannot be read as Arrow ({str(error)[:200]}); copy or write it anew.")
