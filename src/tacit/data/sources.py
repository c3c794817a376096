"""Where clients come from, by one line of text: `blogs.parquet`, `csv:posts.csv`, `folder:notes`, `git:A,B` ..."""

import inspect
from pathlib import Path
from typing import ClassVar, Protocol, Self, TypedDict, Unpack

from tacit.data.clients import Source
from tacit.data.formats.arrow_files import ArrowFiles
from tacit.data.formats.delimited import Csv, Tsv
from tacit.data.formats.docstrings import Docstrings
from tacit.data.formats.file_names import name_of_file
from tacit.data.formats.git_history import GitHistory
from tacit.data.formats.json_lines import JsonLines
from tacit.data.formats.leaf import Leaf
from tacit.data.formats.lines import PACKED
from tacit.data.formats.mail import Mail
from tacit.data.formats.manuals import Manuals
from tacit.data.formats.parquet import ParquetClients
from tacit.data.formats.public_text import PublicText
from tacit.data.formats.shipped import Chat, Novels
from tacit.data.formats.sqlite_query import SqliteQuery
from tacit.data.formats.stackoverflow import StackOverflow, StackOverflowUnseen
from tacit.data.formats.tables import Columns
from tacit.data.formats.telegram import Telegram
from tacit.data.formats.text_folder import TextFolder
from tacit.data.formats.whatsapp import WhatsApp
from tacit.errors import SourceError


class HowToRead(TypedDict, total=False):
    """What further may be said of a source that is named; None says nothing. Each source takes some of these."""

    encoding: str | None  # of a text file, as Python calls it
    delimiter: str | None  # between fields, one sign or `tab`
    quotes: str | None  # `double`, or `none` where quotes are text
    lines: str | None  # of text files: `paragraphs` or `messages`
    query: str | None  # one SELECT
    time_zone: str | None  # of times that do not say theirs, "Europe/Madrid"
    date_order: str | None  # of a chat: dmy, mdy or ymd


class NamedSource(Source, Protocol):
    """A source that a line of text can open: `NAME`, or `NAME:PLACE` where it takes one.

    What `open` takes besides the place are the options of its own: `called` (the columns), `encoding` ...
    """

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
        Chat,
        Novels,
        Docstrings,
        Manuals,
        TextFolder,
        JsonLines,
        Csv,
        Tsv,
        SqliteQuery,
        ArrowFiles,
        WhatsApp,
        Telegram,
        Mail,
        GitHistory,
        Leaf,
        StackOverflow,
        StackOverflowUnseen,
        PublicText,
        ParquetClients,
    )
}
# What a path alone is by the end of its name; any other is Parquet.
BY_SUFFIX = {
    suffix: each.name for each in (JsonLines, Csv, Tsv, SqliteQuery, ArrowFiles, Mail) for suffix in each.suffixes
}
AMBIGUOUS = {".json": "jsonl:PATH, leaf:PATH or telegram:PATH", ".txt": "whatsapp:PATH, or folder:PATH of its folder"}


def open_source(spec: str, *, called: Columns | None = None, **how: Unpack[HowToRead]) -> Source:
    """The source that one line describes; SourceError when it is unknown or what it names cannot be read.

    A name of SOURCES, with `:PLACE` behind it where it takes one; or just a path, which means what the end of its name
    says (`.jsonl`, `.csv` ..., in capitals or packed, too), else Parquet. called: what the columns are called, where
    they have other names than client_id, text and timestamp. how: what else a source takes, `options_of` says which.
    """
    name, place = _parted(spec)
    if name not in SOURCES or bool(SOURCES[name].takes) != bool(place) or (spec.startswith(f"{name}:") and not place):
        alone = ", ".join(name for name, each in SOURCES.items() if not each.takes)
        placed = ", ".join(f"{name}:{each.takes}" for name, each in sorted(SOURCES.items()) if each.takes)
        raise SourceError(f"the source {spec!r} is unknown; give {alone}, {placed}, or the path of a file.")
    given = {option: value for option, value in {"called": called, **how}.items() if value is not None}
    takes = options_of(SOURCES[name])
    if foreign := [option for option in given if option not in takes]:
        if foreign == ["called"]:
            raise SourceError(f"the source {spec!r} has no columns of clients to name; leave the columns' names out.")
        option = next(each for each in foreign if each != "called")
        able = ", ".join(name for name, each in SOURCES.items() if option in options_of(each))
        raise SourceError(
            f"the source {spec!r} takes no --{option.replace('_', '-')}, which is for {able or 'none'}; leave it out."
        )
    try:
        return SOURCES[name].open(place, **given)
    except (OSError, UnicodeError) as error:  # of looking at the place: a name too long, or one that is not UTF-8
        why = getattr(error, "strerror", None) or "its name, or one in it, is not UTF-8"
        raise SourceError(f"{name_of_file(spec)!r:.200} cannot be read ({why}); check the path.") from error


def options_of(source: type[NamedSource]) -> frozenset[str]:
    """What a source takes besides its place."""
    return frozenset(inspect.signature(source.open).parameters) - {"place"}


def _parted(spec: str) -> tuple[str, str]:
    """Name and place of a source. Raises: SourceError for a path of a kind of which there are several."""
    name, colon, place = spec.partition(":")
    if colon or (name in SOURCES and not SOURCES[name].takes):
        return name, place
    ending = Path(spec.lower().removesuffix(PACKED)).suffix
    if ending in AMBIGUOUS and Path(spec).expanduser().is_file():
        raise SourceError(f"{spec!r} may be of several kinds; say which, {AMBIGUOUS[ending]}.")
    return BY_SUFFIX.get(ending, ParquetClients.name), spec


def absolute(spec: str) -> str:
    """The same source, named so that it is found from any folder."""
    name, colon, place = spec.partition(":")
    if name not in SOURCES or not colon:
        return spec if name in SOURCES and not SOURCES[name].takes else _found(spec)
    if SOURCES[name].takes in ("FILES", "PATHS") and not Path(place).expanduser().exists():
        return f"{name}:" + ",".join(map(_found, place.split(",")))
    if SOURCES[name].takes == SqliteQuery.takes and not Path(place).expanduser().exists():
        file, mark, query = place.partition("?")
        return f"{name}:{_found(file)}{mark}{query}"
    return f"{name}:{_found(place)}"


def _found(path: str) -> str:
    return str(Path(path).expanduser().resolve())
