"""Rows between delimiters, as spreadsheets and databases write them: CSV and TSV, with the columns' names on top."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from tacit.data.clients import MOST_TEXT
from tacit.data.formats.lines import UTF_8, lines_of
from tacit.data.formats.row_files import WAY_OUT, Here, Row, RowFiles, client_of, files_at, seconds_of, zone_of
from tacit.data.formats.tables import Columns, said_of
from tacit.errors import SourceError

AS_EVERYWHERE = Columns()
NAMED = {"tab": "\t", "\\t": "\t", "space": " "}  # what is hard to write on a command line
QUOTES = ("double", "none")
TRIED = {",": "','", ";": "';'", "\t": "tab", "|": "'|'"}  # where the one that was expected divides nothing


class Csv(RowFiles):
    """A Source over files as RFC 4180 has them: a field with delimiters, quotes or line breaks stands in quotes."""

    name: ClassVar[str] = "csv"
    takes: ClassVar[str] = "PATH"
    says: ClassVar[str] = "CSV with the columns client_id, text and perhaps timestamp named in its first row"
    called_kind: ClassVar[str] = "CSV"
    suffixes: ClassVar[tuple[str, ...]] = (".csv",)
    usual: ClassVar[str] = ","

    def __init__(
        self,
        files: Sequence[tuple[Path, str | None]],
        *,
        called: Columns = AS_EVERYWHERE,
        encoding: str = UTF_8,
        delimiter: str | None = None,
        quotes: str = "double",
        time_zone: str | None = None,
        passed_over: Mapping[str, int] | None = None,
    ) -> None:
        """delimiter: one sign, `tab`, or None for what the format has; quotes: `double`, or `none` where they are text.

        called: the columns; time_zone: of times that say none. Files and what is passed over: as `RowFiles`.
        """
        self._delimiter = self.usual if delimiter is None else NAMED.get(delimiter, delimiter)
        if len(self._delimiter) != 1 or self._delimiter in '"\r\n\0':
            raise SourceError(f"the delimiter {delimiter!r:.20} is not one sign; give one, like ';', or tab.")
        if quotes not in QUOTES:
            raise SourceError(f"quotes={quotes!r:.20} is unknown; give {' or '.join(QUOTES)}.")
        self._quoted = quotes == "double"
        self._called, self._encoding, self._zone = called, encoding, zone_of(time_zone)
        super().__init__(files, passed_over=passed_over)

    @classmethod
    def open(
        cls,
        place: str,
        *,
        called: Columns = AS_EVERYWHERE,
        encoding: str = UTF_8,
        delimiter: str | None = None,
        quotes: str = "double",
        time_zone: str | None = None,
    ) -> "Csv":
        """A file, a folder of files, or a prefix of `.train`, `.validation` and `.test` files."""
        files, passed_over = files_at(place, cls.suffixes, cls.called_kind)
        return cls(
            files,
            called=called,
            encoding=encoding,
            delimiter=delimiter,
            quotes=quotes,
            time_zone=time_zone,
            passed_over=passed_over,
        )

    def said_of(self, path: Path) -> str:
        """The columns of the first row. Raises: SourceError where what is needed is not among them."""
        head = self._head(next(self._fields(path), None), path)
        quoted = "fields may stand in double quotes" if self._quoted else "quotes are text"
        between = TRIED.get(self._delimiter, repr(self._delimiter))
        return f"fields with {between} between, {quoted}; {said_of(self._names(head, path), head)}"

    def rows_of(self, path: Path) -> Iterator[Row]:
        """A row a row; SourceError naming the line where one has more or fewer fields than the first."""
        rows = self._fields(path)
        head = self._head(next(rows, None), path)
        names = self._names(head, path)
        at = {column: head.index(given) for column, given in names.items()}
        owner, text, when = at["client_id"], at["text"], at.get("timestamp")
        for here, fields in rows:
            if len(fields) != len(head):
                raise SourceError(
                    f"{here}: the row has {len(fields):,} fields and the first row {len(head):,}; put a field that has "
                    "the delimiter, a quote or a line break in it in double quotes, or say --quotes none."
                )
            time = None if when is None else seconds_of(fields[when], here, self._zone)
            yield client_of(fields[owner], here), fields[text], time

    def _head(self, first: tuple[Here, list[str]] | None, path: Path) -> list[str]:
        if first is None:
            raise SourceError(f"{Here(path, 'line', 1)} has no names of columns; give a file that begins with them.")
        head = first[1]
        other = next((said for sign, said in TRIED.items() if len(head) == 1 and sign in head[0]), None)
        if other is not None:
            raise SourceError(f"{first[0]}: the first row is one column, {head[0]!r:.60}; say --delimiter {other}.")
        return head

    def _names(self, head: Sequence[str], path: Path) -> dict[str, str]:
        return self._called.found(head, str(Here(path, "line", 1)), WAY_OUT)

    def _fields(self, path: Path) -> Iterator[tuple[Here, list[str]]]:
        """Each row that is not blank, with the line it begins on."""
        csv.field_size_limit(max(csv.field_size_limit(), MOST_TEXT + 1))  # of the process: 131,072 is a long message
        lines = lines_of(path, self._encoding)
        quoting: Any = csv.QUOTE_MINIMAL if self._quoted else csv.QUOTE_NONE
        rows = csv.reader(lines, delimiter=self._delimiter, quoting=quoting, strict=True)
        number = 1
        while True:
            try:
                fields = next(rows, None)
            except csv.Error as error:
                raise SourceError(
                    f"{Here(path, 'line', number)}: the row is no {self.called_kind} ({error}); close its quotes and "
                    "write a quote inside as two, or say --quotes none where they are text."
                ) from error
            if fields is None:
                return
            if fields:
                yield Here(path, "line", number), fields
            number = rows.line_num + 1


class Tsv(Csv):
    """The same with tabs between the fields."""

    name: ClassVar[str] = "tsv"
    says: ClassVar[str] = "the same with tabs between the fields"
    called_kind: ClassVar[str] = "TSV"
    suffixes: ClassVar[tuple[str, ...]] = (".tsv", ".tab")
    usual: ClassVar[str] = "\t"
