"""What the user called their clients' text, as a source: one way for an import and for its preview."""

from types import NoneType
from typing import Any, Unpack

from tacit.data import Source, TableOf, open_source
from tacit.data.batches import holds_rows
from tacit.data.formats.tables import Columns
from tacit.data.sources import HowToRead
from tacit.errors import SourceError, of_type


def columns_called(client_id: str | None, text: str | None, timestamp: str | None) -> Columns:
    """What the columns are called; None for what is called as everywhere."""
    named = {"client_id": client_id, "text": text, "timestamp": timestamp}
    for column, name in named.items():
        of_type(column, name, str, NoneType)
    return Columns(**{column: name for column, name in named.items() if name is not None})


def source_of(given: Any, called: Columns, **how: Unpack[HowToRead]) -> Source:
    """The source that somebody gave, or named, or whose rows they gave.

    Raises: InputError for what is none; SourceError, also where columns or ways of reading are named of what has none.
    """
    if not holds_rows(given):
        of_type("source", given, str, Source)
    for option, value in how.items():
        of_type(option, value, str, NoneType)
    other = called if called != Columns() else None
    if isinstance(given, str):
        return open_source(given, called=other, **how)
    if said := [option for option, value in how.items() if value is not None]:
        raise SourceError(f"{said[0]} is for a source that is named, as 'csv:posts.csv'; leave it out.")
    if not isinstance(given, Source):
        return TableOf(given, client_id=called.client_id, text=called.text, timestamp=called.timestamp)
    if other is not None:
        raise SourceError(f"{given.description} gives clients as they are; leave the columns' names out.")
    return given
