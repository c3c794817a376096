"""Where clients come from, by one line of text: `blogs.parquet`, `folder:notes`, `git:.`, `docstrings` ..."""

from collections.abc import Callable
from pathlib import Path

from tacit.data.clients import Source
from tacit.data.docstrings import Docstrings
from tacit.data.git_history import GitHistory
from tacit.data.parquet import ParquetClients
from tacit.data.public_text import PublicText
from tacit.data.stackoverflow import StackOverflow
from tacit.data.text_folder import TextFolder
from tacit.errors import SourceError

KINDS: dict[str, Callable[[Path], Source]] = {
    "folder": TextFolder,
    "git": GitHistory,
    "parquet": ParquetClients.open,
    "public": PublicText.open,
    "stackoverflow": StackOverflow,
}


def open_source(spec: str) -> Source:
    """The source that one line describes; SourceError when it is unknown or what it names cannot be read.

    `docstrings`, or `KIND:PATH` with a kind of KINDS, or just a path, which means Parquet.
    """
    if spec == "docstrings":
        return Docstrings()
    kind, colon, path = spec.partition(":")
    if not colon:
        kind, path = "parquet", spec
    if kind not in KINDS or not path:
        known = ", ".join(f"{name}:PATH" for name in sorted(KINDS))
        raise SourceError(f"the source {spec!r} is unknown; give docstrings, {known}, or the path of Parquet files.")
    return KINDS[kind](Path(path).expanduser())
