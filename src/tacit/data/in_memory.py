"""Clients that a program already holds: a mapping from names to texts, or a table."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from tacit.data.clients import ClientText
from tacit.data.tables import Part, RowsOfClients, columns_of, plain
from tacit.errors import SourceError


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
    """A Source over a table in memory with columns `client_id`, `text` and, if known, `timestamp`; others are ignored.

    The table: Arrow's, pandas', polars', any that speaks Arrow's C stream, or a mapping of columns.
    """

    def __init__(self, table: Any, *, description: str = "a table in memory, client_id is a client") -> None:
        """`description` stands in the cache's manifest and in statements; SourceError when columns do not fit."""
        where = "the table"
        try:
            rows = table if isinstance(table, pa.Table) else pa.table(table)
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise SourceError(
                f"{where} cannot be read ({error}); give columns client_id, text and perhaps timestamp."
            ) from error
        columns = columns_of(rows.schema, where)

        def read(wanted: dict[str, Any]) -> Iterator[pa.Table]:
            yield plain(rows.select(list(wanted)), wanted, where)

        super().__init__([Part(where=where, name=where, split=None, columns=columns, read=read)])
        self.description = description
