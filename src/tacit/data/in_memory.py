"""Clients that a program already holds: a mapping from names to texts, a table, or rows that are streamed."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tacit.data.batches import batches_of
from tacit.data.clients import ClientText
from tacit.data.formats.tables import Columns, RowsOfClients, RowsPart, columns_of, plain, said_of
from tacit.data.manifest import SPLITS
from tacit.errors import SourceError
from tacit.extras import when_used

if TYPE_CHECKING:
    import pyarrow as pa
else:
    pa = when_used("pyarrow")

WAY_OUT = (
    "Needed are client_id, text and perhaps timestamp; rename one, or say which it is, TableOf(table, {column}=...). "
    "For a mapping from names to texts there is TextsOf."
)


class TextsOf:
    """A Source over a mapping: a key is a client, its value what the client typed, oldest first (or one text)."""

    def __init__(
        self, texts: Mapping[str, str | Sequence[str]], *, description: str = "texts in memory, a key is a client"
    ) -> None:
        """`description` stands in the cache's manifest and in statements; SourceError for what is no text."""
        for name, typed in texts.items():
            several = [typed] if isinstance(typed, str) else typed
            if not isinstance(several, Sequence) or not all(isinstance(text, str) for text in several):
                raise SourceError(
                    f"client {name!r} has {typed!r:.60}, which is no text; give a text or a list of texts."
                )
        self._texts = {str(name): (typed,) if isinstance(typed, str) else tuple(typed) for name, typed in texts.items()}
        self.description = description
        self.expected_clients: int | None = len(self._texts)
        self.left_out: dict[str, int] = {}

    def clients(self) -> Iterator[ClientText]:
        """Each client, in the order of the mapping."""
        for name, typed in self._texts.items():
            yield ClientText(client_id=name, texts=typed)


class TableOf(RowsOfClients):
    """A Source over rows in memory or streamed: who typed, the text and, if known, when; other columns are ignored.

    The rows: a table of Arrow, pandas or polars, or anything that speaks Arrow's C stream or the dataframe protocol; a
    data set of Hugging Face, streaming ones too (read two or three times from the beginning); a mapping of columns; a
    list of rows as mappings. A mapping from "train", "validation" and "test" to any of these fixes the split.
    """

    def __init__(
        self,
        table: Any,
        *,
        client_id: str = "client_id",
        text: str = "text",
        timestamp: str | None = None,
        description: str = "a table in memory, client_id is a client",
    ) -> None:
        """client_id, text, timestamp: the columns' names in the table; without the last, "timestamp" if there is one.

        `description` stands in the cache's manifest and in statements. SourceError when columns do not fit.
        """
        by_split = isinstance(table, Mapping) and bool(table) and set(table) <= set(SPLITS)
        named = {split: table[split] for split in SPLITS if split in table} if by_split else {None: table}
        called = Columns(client_id=client_id, text=text, timestamp=timestamp)
        super().__init__([_part(rows, split, called) for split, rows in named.items()])
        self.description = description


def _part(rows: Any, split: str | None, called: Columns) -> RowsPart:
    where = "the table" if split is None else f"the table of {split}"
    batches = batches_of(rows, where)
    names = called.found(batches.schema.names, where, WAY_OUT)
    renamed = pa.schema([pa.field(column, batches.schema.field(given).type) for column, given in names.items()])
    columns = columns_of(renamed, where)

    def read(wanted: Mapping[str, Any]) -> Iterator["pa.Table"]:
        for table in batches.read():
            if lost := [names[column] for column in wanted if names[column] not in table.column_names]:
                raise SourceError(f"{where} loses its column {lost[0]!r} on the way; give rows that all have it.")
            taken = table.select([names[column] for column in wanted]).rename_columns(list(wanted))
            yield plain(taken, wanted, where)

    how = said_of(names, batches.schema.names)
    return RowsPart(where=where, name=where, split=split, columns=columns, read=read, how=how)
