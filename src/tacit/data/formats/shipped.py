"""The two texts that tacit ships, the same on every machine: people's messages on a help channel, and old novels.

`shipped/README.md` says where they come from, under which licences, and what was left out.
"""

from collections.abc import Iterator
from importlib.resources import files
from itertools import islice
from pathlib import Path
from typing import ClassVar

from tacit.data.clients import ClientText
from tacit.data.formats.parquet import ParquetClients
from tacit.data.formats.public_text import PublicText
from tacit.data.manifest import PUBLIC


def shipped(name: str) -> Path:
    """Where a shipped file is."""
    return Path(str(files("tacit.data") / "shipped" / name))


class Chat(ParquetClients):
    """A Source of clients: real people, each a number, and what they typed on a public channel for help with Linux."""

    name: ClassVar[str] = "chat"
    takes: ClassVar[str] = ""
    says: ClassVar[str] = "what 16,827 people typed on a help channel, shipped with tacit: a person is a client"

    def __init__(self, people: int | None = None) -> None:
        """people: so many, the first; None: all."""
        super().__init__([(shipped("chat.parquet"), None)])
        self.description = "messages of a public help channel that tacit ships, a person is a client"
        self._people = people
        if people is not None:
            self.expected_clients = people

    @classmethod
    def open(cls, place: str) -> "Chat":  # type: ignore[override]  # there are no columns to name
        """All of it; there is no place to name."""
        return cls()

    def clients(self) -> Iterator[ClientText]:
        """The people in the order of their numbers."""
        yield from islice(super().clients(), self._people)


class Novels(PublicText):
    """A Source of public text: passages of novels in the public domain."""

    name: ClassVar[str] = "novels"
    takes: ClassVar[str] = ""
    says: ClassVar[str] = "nobody's text: passages of English novels to 1899, shipped with tacit"

    def __init__(self) -> None:
        super().__init__([shipped("novels.parquet")])
        self.description = f"{PUBLIC}: English novels to 1899 that tacit ships"

    @classmethod
    def open(cls, place: str) -> "Novels":
        """All of it; there is no place to name."""
        return cls()
