"""What a source of clients gives: one client at a time, with everything it typed.

A client is what privacy is counted in: the text of one device, of one user. So it is split whole, by a hash of its
name, and its texts are never spread over train, validation and test.
"""

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Protocol, runtime_checkable
from unicodedata import combining

import numpy as np
from numpy.typing import NDArray

from tacit.errors import SourceError

MOST_NAME = 10_000  # characters of a client's name
MOST_TEXT = 1 << 24  # of one text, which is cut as a whole: a book is a tenth of it
MOST_RUN = 1_000_000  # without a blank: the longest word
MOST_MARKS = 500  # on one letter; composing them takes time with the square of it
LONG_RUN = 1_000  # shorter texts, which are most, are not looked at
_RUNS = re.compile(rf"\S{{{LONG_RUN},}}")


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


@runtime_checkable
class SaysHow(Protocol):
    """A source that says more of itself: for a preview, and for warnings."""

    @property
    def how_read(self) -> Sequence[str]:
        """How rows and lines become texts, a line for each way."""
        ...

    @property
    def doubts(self) -> Sequence[str]:
        """What looked wrong when it was read to its end, with a way out."""
        ...


def checked_clients(source: Source) -> Iterator[ClientText]:
    """The clients of a source, none of whose texts is longer than what cuts text bears.

    Raises: SourceError for such a text; as the source. Rust aborts the process where memory for a text is not there.
    """
    for client in source.clients():
        if len(client.client_id) > MOST_NAME:
            raise SourceError(
                f"a client's name has {len(client.client_id):,} characters, above {MOST_NAME:,}: {client.client_id:.40}"
                "...; give the column or the files that are names."
            )
        for text in client.texts:
            check_text(text, f"client {client.client_id!r:.60}")
        yield client


def check_text(text: str, whose: str) -> None:
    """Raises: SourceError for a text, a word, or a letter with more marks than anybody types. whose: who typed it."""
    if len(text) < LONG_RUN:
        return
    if len(text) > MOST_TEXT:
        raise SourceError(
            f"{whose} has a text of {len(text):,} characters, above {MOST_TEXT:,}; give its parts as texts of their "
            "own, or leave it out."
        )
    for run in _RUNS.finditer(text):
        if len(run[0]) > MOST_RUN:
            raise SourceError(
                f"{whose} has {len(run[0]):,} characters without a blank, above {MOST_RUN:,}: {run[0]:.40}...; leave "
                "that text out."
            )
        streaks = (sum(1 for _ in same) for marks, same in groupby(run[0], key=_is_mark) if marks)
        if not run[0].isascii() and (most := max(streaks, default=0)) > MOST_MARKS:
            raise SourceError(f"{whose} has a letter with {most:,} marks, above {MOST_MARKS:,}; leave that text out.")


def _is_mark(letter: str) -> bool:
    return combining(letter) != 0


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
