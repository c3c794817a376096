"""Public text, for pre-training: it is nobody's private typing, and nothing here is protected.

A cache is made of clients, so rows that follow one another are taken together as a passage, which is split into
train, validation and test as a client is. Passages are long, so that what is held out is a scene or a thread that was
not trained on, and not the sentence between two that were.
"""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import ClassVar

from tacit.data.clients import ClientText
from tacit.data.formats.parquet import owner_column, read_texts, row_count
from tacit.data.manifest import PUBLIC
from tacit.errors import SourceError

ROWS = 200  # of a passage


class PublicText:
    """A Source over Parquet files with a column `text`; ROWS consecutive rows of a file are one passage."""

    name: ClassVar[str] = "public"
    takes: ClassVar[str] = "FILES"
    says: ClassVar[str] = "nobody's text: Parquet with a column text, commas between files; a passage is a client"

    def __init__(self, files: list[Path]) -> None:
        for file in files:
            if not file.is_file():
                raise SourceError(f"there is no file {file}; give public:FILE[,FILE...] of Parquet with a column text.")
            if (owner := owner_column(file)) is not None:
                raise SourceError(f"{file} has a column {owner}, so it is clients' text and not public; give another.")
        self._files = files
        self.description = f"{PUBLIC} " + ", ".join(file.name for file in files)
        self.expected_clients: int | None = sum(-(-row_count(file) // ROWS) for file in files)
        self.left_out: dict[str, int] = {}

    @classmethod
    def open(cls, place: str) -> "PublicText":
        """One file or several, with commas between."""
        return cls([Path(part).expanduser() for part in place.split(",") if part])

    def clients(self) -> Iterator[ClientText]:
        """The passages of each file in order; SourceError when a file is damaged or has no text."""
        for file in self._files:
            texts, number = iter(read_texts(file)), 0
            while passage := tuple(islice(texts, ROWS)):
                yield ClientText(client_id=f"{file.stem} {number:06d}", texts=passage)
                number += 1
