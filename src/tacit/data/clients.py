"""What a source of clients gives: one client at a time, with everything it typed.

A client is what privacy is counted in: the text of one device, of one user. So it is split whole, by a hash of its
name, and its texts are never spread over train, validation and test.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True)
class ClientText:
    """One client: its texts, in the order of time where times are known."""

    client_id: str
    texts: Sequence[str]
    timestamps: NDArray[np.int64] | None = None  # (texts,) seconds since 1970, NO_TIME where unknown
    split: str | None = None  # where the source fixes it; else the hash of the name decides


@runtime_checkable
class Source(Protocol):
    """A population of clients that can be read from the beginning, each client exactly once."""

    @property
    def description(self) -> str:
        """One line for manifests and statements: the kind of source, without machine paths."""
        ...

    @property
    def expected_clients(self) -> int | None:
        """How many clients there will be at most, when that is known before reading; for progress only."""
        ...

    @property
    def left_out(self) -> dict[str, int]:
        """What reading had to leave out so far, and how often: `{"messages that are not UTF-8": 3}`."""
        ...

    def clients(self) -> Iterator[ClientText]:
        """All clients, always in the same order; SourceError when the text is not as described."""
        ...


def split_of(client_id: str) -> str:
    """Train (80 of 100), validation (10) or test (10), by a SHA-256 of the client's name."""
    digest = hashlib.sha256(f"tacit-split-1:{client_id}".encode()).digest()
    share = int.from_bytes(digest[:8], "big") % 100
    return "train" if share < 80 else "validation" if share < 90 else "test"


def paragraphs(text: str) -> str:
    """Text of hard-wrapped lines as one line per paragraph; a blank line separates paragraphs."""
    lines = text.split("\n")
    joined: list[str] = []
    fresh = True
    for line in lines:
        line = line.strip()
        if line and not fresh:
            joined[-1] += " " + line
        elif line:
            joined.append(line)
        fresh = not line
    return "\n".join(joined)
