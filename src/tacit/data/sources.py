"""Where clients come from, by one line of text: `blogs.parquet`, `folder:notes`, `git:.`, `docstrings` ..."""

from pathlib import Path
from typing import ClassVar, Protocol, Self

from tacit.data.clients import Source
from tacit.data.docstrings import Docstrings
from tacit.data.git_history import GitHistory
from tacit.data.manuals import Manuals
from tacit.data.parquet import ParquetClients
from tacit.data.public_text import PublicText
from tacit.data.stackoverflow import StackOverflow, StackOverflowUnseen
from tacit.data.tables import Columns
from tacit.data.text_folder import TextFolder
from tacit.errors import SourceError


class NamedSource(Source, Protocol):
    """A source that a line of text can open: `NAME`, or `NAME:PLACE` where it takes one."""

    name: ClassVar[str]
    takes: ClassVar[str]  # what stands behind the colon, "PATH" say; "" where nothing does
    says: ClassVar[str]  # what is read and what a client is, for help texts

    @classmethod
    def open(cls, place: str) -> Self:
        """The source at a place; SourceError when what it names cannot be read."""
        ...


SOURCES: dict[str, type[NamedSource]] = {
    each.name: each
    for each in (
        Docstrings,
        Manuals,
        TextFolder,
        GitHistory,
        StackOverflow,
        StackOverflowUnseen,
        PublicText,
        ParquetClients,
    )
}


def open_source(spec: str, *, called: Columns | None = None) -> Source:
    """The source that one line describes; SourceError when it is unknown or what it names cannot be read.

    A name of SOURCES, with `:PLACE` behind it where it takes one; or just a path, which means Parquet. called: what
    the columns of Parquet are called, where they have other names than client_id, text and timestamp.
    """
    name, colon, place = spec.partition(":")
    if not colon and not (name in SOURCES and not SOURCES[name].takes):
        name, place = ParquetClients.name, spec
    if name not in SOURCES or bool(SOURCES[name].takes) != bool(place) or (colon and not place):
        alone = ", ".join(name for name, each in SOURCES.items() if not each.takes)
        placed = ", ".join(f"{name}:PATH" for name, each in sorted(SOURCES.items()) if each.takes)
        raise SourceError(f"the source {spec!r} is unknown; give {alone}, {placed}, or the path of Parquet files.")
    if called is None:
        return SOURCES[name].open(place)
    if name != ParquetClients.name:
        raise SourceError(f"the source {spec!r} has no columns of clients to name; leave the columns' names out.")
    return ParquetClients.open(place, called=called)


def absolute(spec: str) -> str:
    """The same source, named so that it is found from any folder."""
    name, colon, place = spec.partition(":")
    if name in SOURCES and colon:
        parts = place.split(",") if SOURCES[name].takes == "FILES" else [place]
        return f"{name}:" + ",".join(str(Path(part).expanduser().resolve()) for part in parts)
    return spec if name in SOURCES and not SOURCES[name].takes else str(Path(spec).expanduser().resolve())
