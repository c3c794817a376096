"""Files whose rows are somebody's text, read row by row: what all formats of such files have in common.

A format is a class that says how a file becomes rows: who typed, what, and when. Rows of one client may stand anywhere.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from functools import partial
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias

from tacit.data.formats.file_names import name_of_file
from tacit.data.formats.folder_files import files_below, is_hidden
from tacit.data.formats.lines import PACKED
from tacit.data.formats.parquet import split_named
from tacit.data.formats.tables import RowsOfClients, RowsPart, plain
from tacit.data.manifest import SPLITS
from tacit.errors import InputError, SourceError
from tacit.extras import when_used
from tacit.local_times import LATEST, zone_called

if TYPE_CHECKING:
    import pyarrow as pa
else:
    pa = when_used("pyarrow")

Row: TypeAlias = tuple[str, str | None, int | None]  # who typed, what, and when in seconds since 1970

ROWS_AT_ONCE = 20_000
CHARACTERS_AT_ONCE = 4_000_000
MOST_SECONDS = 1 << 62
HALF = "halves of a character that JSON or its writer cut (lone surrogates), read as U+FFFD"
WAY_OUT = "Needed are client_id, text and perhaps timestamp; say which column is meant, {option} NAME."
_SURROGATES = re.compile("[\ud800-\udfff]")


class Here(NamedTuple):
    """Where a row stands, for sentences."""

    path: Path
    unit: str
    number: int

    def __str__(self) -> str:
        return f"{name_of_file(self.path)}, {self.unit} {self.number:,}"


class RowFiles(RowsOfClients, ABC):
    """A Source over files of rows; a format says `rows_of`."""

    called_kind: ClassVar[str]  # of the files, for people
    suffixes: ClassVar[tuple[str, ...]]  # in lower case

    def __init__(
        self, files: Sequence[tuple[Path, str | None]], *, passed_over: Mapping[str, int] | None = None
    ) -> None:
        """files: each with the split that it fixes, or None; passed_over: what is left out before rows are read."""
        parts = [
            RowsPart(
                where=name_of_file(path),
                name=name_of_file(path.name),
                split=split,
                columns={"client_id": pa.large_string(), "text": pa.large_string(), "timestamp": pa.int64()},
                read=partial(self._read, path),
                how=self.said_of(path),
            )
            for path, split in files
        ]
        super().__init__(parts, passed_over=passed_over)
        self.description = f"{self.called_kind} " + ", ".join(name_of_file(path.name) for path, _ in files)

    @abstractmethod
    def said_of(self, path: Path) -> str:
        """How the file is read, for a preview; SourceError where its beginning shows that it cannot be."""

    @abstractmethod
    def rows_of(self, path: Path) -> Iterator[Row]:
        """The rows of a file in order; SourceError for what is none."""

    def _read(self, path: Path, wanted: Mapping[str, Any]) -> Iterator["pa.Table"]:
        for rows in _some(self.rows_of(path)):
            names, texts, times = zip(*rows, strict=True)
            columns: dict[str, Sequence[Any]] = {"client_id": names, "text": texts, "timestamp": times}
            if "text" in wanted:
                columns["text"] = [self._whole(text) for text in texts]
            table = pa.table({column: pa.array(columns[column], of) for column, of in wanted.items()})
            yield plain(table, wanted, name_of_file(path))

    def _whole(self, text: str | None) -> str | None:
        if text is None or text.isascii() or not _SURROGATES.search(text):
            return text
        mended, count = _SURROGATES.subn("\ufffd", text)
        self.leave_out(HALF, count)
        return mended


def _some(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Rows in groups that fit in memory."""
    group: list[Row] = []
    characters = 0
    for row in rows:
        group.append(row)
        characters += len(row[1] or "")
        if len(group) >= ROWS_AT_ONCE or characters >= CHARACTERS_AT_ONCE:
            yield group
            group, characters = [], 0
    if group:
        yield group


def files_at(place: str, suffixes: Sequence[str], kind: str) -> tuple[list[tuple[Path, str | None]], dict[str, int]]:
    """The files of a kind at a place, with the split that their names fix; and what else is there, counted.

    A file, whatever its name; a folder, with all below it whose names end so, in capitals or packed (.gz), too; or a
    prefix of `.train`, `.validation` and `.test` files. Raises: SourceError where there is none.
    """
    path, wanted = Path(place).expanduser(), (*suffixes, *(suffix + PACKED for suffix in suffixes))
    if path.is_file():
        return [(path, split_named(stem(path, suffixes)))], {}
    if path.is_dir():
        whole = split_named(path.resolve().name)
        there = files_below(path)
        found = [each for each in there if each.name.lower().endswith(wanted) and not is_hidden(each, path)]
        if not found:
            endings = ", ".join("*" + each for each in suffixes)
            raise SourceError(f"{name_of_file(path)} has no file {endings}; give another.")
        others = len(there) - len(found)
        passed_over = {f"files that are hidden or not called *{suffixes[0]}": others} if others else {}
        return [(each, split_named(stem(each, suffixes)) or whole) for each in found], passed_over
    beside = sorted(path.parent.iterdir()) if path.parent.is_dir() else []
    by_split = {
        split: each
        for split in SPLITS
        for each in beside
        if each.is_file() and each.name.lower() in {f"{path.name}.{split}{suffix}".lower() for suffix in wanted}
    }
    if not by_split:
        raise SourceError(f"there is no file, folder or prefix {name_of_file(path)} of {kind}; check the path.")
    return [(file, split) for split, file in by_split.items()], {}


def stem(path: Path, suffixes: Sequence[str]) -> str:
    """The name of a file without what says its format."""
    name = path.name[: -len(PACKED)] if path.name.lower().endswith(PACKED) else path.name
    ending = next((suffix for suffix in suffixes if name.lower().endswith(suffix)), "")
    return name[: len(name) - len(ending)]


def client_of(value: object, here: Here) -> str:
    """A client's name as text. Raises: SourceError for what is no name."""
    if isinstance(value, str) and value:
        if not value.isascii() and _SURROGATES.search(value):
            raise SourceError(f"{here}: the client_id {ascii(value)[:60]} is no text in Unicode; write it whole.")
        return value
    if value is None or value == "":
        raise SourceError(f"{here}: the row has no client_id; every text is somebody's: fill it or drop the row.")
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < MOST_SECONDS:
        return str(value)
    raise SourceError(
        f"{here}: the client_id is {value!r:.40}, which is no name; make it text or a whole number in all rows."
    )


def text_of(value: object, here: Here) -> str | None:
    """A text, or nothing. Raises: SourceError for anything else."""
    if value is None or isinstance(value, str):
        return value
    raise SourceError(f"{here}: the text is {value!r:.40}, which is no text; write it as text.")


def seconds_of(value: object, here: Here, zone: tzinfo | None) -> int | None:
    """When, in seconds since 1970: a number of them, or a date and time as ISO 8601 writes it; None for nothing.

    zone: where clocks showed the times that say no offset. Raises: SourceError for anything else.
    """
    if value is None or value == "":
        return None
    number = value
    if isinstance(value, str) and re.fullmatch(r"\s*[-+]?[0-9]{1,18}\s*", value):
        number = int(value)
    elif isinstance(value, float) and isfinite(value):
        number = int(value // 1)
    if isinstance(number, int) and not isinstance(number, bool) and abs(number) < MOST_SECONDS:
        return number
    try:
        if not isinstance(value, str):
            raise ValueError
        time = datetime.fromisoformat(value.strip().replace(" UTC", "+00:00"))
        if time.tzinfo is None:
            if zone is None:
                raise SourceError(
                    f"{here}: the timestamp {value!r:.40} does not say of which time zone; declare it, "
                    "--time-zone Europe/Madrid say."
                )
            time = time.replace(tzinfo=zone)
        return int((time - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() // 1)
    except (ValueError, OverflowError) as error:
        if isinstance(error, SourceError):
            raise
        raise SourceError(
            f"{here}: the timestamp {value!r:.40} is no time; write seconds since 1970, or 2024-05-01T12:30:00Z."
        ) from error


def believable(seconds: float) -> int | None:
    """A time that a program wrote and nobody can mend; None where nobody typed then."""
    return int(seconds) if 0 <= seconds < LATEST else None


def zone_of(name: str | None) -> tzinfo | None:
    """The time zone of a name. Raises: SourceError where the machine knows none of that name."""
    try:
        return None if name is None else zone_called(name)
    except InputError as error:
        raise SourceError(str(error)) from error
