"""JSON Lines: an object a line, with keys `client_id`, `text` and, if known, `timestamp`, or by other names."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

from tacit.data.formats.json_values import value_of
from tacit.data.formats.lines import UTF_8, lines_of
from tacit.data.formats.row_files import WAY_OUT, Here, Row, RowFiles, client_of, files_at, seconds_of, text_of, zone_of
from tacit.data.formats.tables import Columns, said_of
from tacit.errors import SourceError

LOOKED_AT = 100  # rows whose keys are compared with what is asked for, before any is read
AS_EVERYWHERE = Columns()


class JsonLines(RowFiles):
    """A Source over files with a JSON object a line; blank lines are no rows."""

    name: ClassVar[str] = "jsonl"
    takes: ClassVar[str] = "PATH"
    says: ClassVar[str] = "JSON Lines, an object a line with client_id, text and perhaps timestamp"
    called_kind: ClassVar[str] = "JSON Lines"
    suffixes: ClassVar[tuple[str, ...]] = (".jsonl", ".ndjson")

    def __init__(
        self,
        files: Sequence[tuple[Path, str | None]],
        *,
        called: Columns = AS_EVERYWHERE,
        encoding: str = UTF_8,
        time_zone: str | None = None,
        passed_over: Mapping[str, int] | None = None,
    ) -> None:
        """called: the keys; time_zone: of times that say none. Files and what is passed over: as `RowFiles`."""
        self._called, self._encoding, self._zone = called, encoding, zone_of(time_zone)
        super().__init__(files, passed_over=passed_over)

    @classmethod
    def open(
        cls, place: str, *, called: Columns = AS_EVERYWHERE, encoding: str = UTF_8, time_zone: str | None = None
    ) -> "JsonLines":
        """A file, a folder of files, or a prefix of `.train`, `.validation` and `.test` files."""
        files, passed_over = files_at(place, cls.suffixes, cls.called_kind)
        return cls(files, called=called, encoding=encoding, time_zone=time_zone, passed_over=passed_over)

    def said_of(self, path: Path) -> str:
        """The keys of the first rows. Raises: SourceError where what is needed is not among them."""
        there = list(dict.fromkeys(key for _, row in islice(self._objects(path), LOOKED_AT) for key in row))
        names = self._called.found(there, f"{Here(path, 'line', 1)} and those after it", WAY_OUT)
        return f"a JSON object a line; {said_of(names, there)}"

    def rows_of(self, path: Path) -> Iterator[Row]:
        """An object a row; SourceError naming the line of what is none."""
        called, zone = self._called, self._zone
        when = called.timestamp or "timestamp"
        kinds: dict[type, Here] = {}
        for here, row in self._objects(path):
            owner = row.get(called.client_id)
            client_id = client_of(owner, here)
            if kinds.setdefault(type(owner), here) is here and len(kinds) > 1:
                raise SourceError(
                    f"{here}: the client_id is {owner!r:.40}, and on line {next(iter(kinds.values())).number:,} of "
                    "another type; write text in all rows, or whole numbers, so that 7 and '7' are one client."
                )
            yield client_id, text_of(row.get(called.text), here), seconds_of(row.get(when), here, zone)

    def _objects(self, path: Path) -> Iterator[tuple[Here, dict[str, Any]]]:
        for number, line in enumerate(lines_of(path, self._encoding, ends="\n"), 1):
            if line.isspace():
                continue
            here = Here(path, "line", number)
            row = value_of(line, here)
            if not isinstance(row, dict):
                raise SourceError(f"{here} is {line.strip():.20}... and no object; write one object a line, {{...}}.")
            yield here, row
