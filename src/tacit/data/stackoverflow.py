"""StackOverflow (or any text) as TensorFlow Federated publishes it: one SQLite file.

Table `examples(split_name, client_id, serialized_example_proto)`, one row per post; the blob is a
serialised `tf.train.Example` with the features `tokens` (the text, words separated by blanks) and
`creation_date`. The splits are called train, heldout (our validation) and test; in the real file no
client is in two of them. The layout is documented in
tensorflow_federated/python/simulation/datasets/sql_client_data.py. TensorFlow is not needed.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import ClassVar

import numpy as np

from tacit.data.clients import ClientText
from tacit.data.manifest import NO_TIME
from tacit.errors import SourceError

SPLIT_NAMES = {"train": "train", "heldout": "validation", "validation": "validation", "test": "test"}
MOST_SHIFT = 63  # of a number of a protocol buffer, which has ten bytes
COLUMNS = ("split_name", "client_id", "serialized_example_proto")


class StackOverflow:
    """A Source over an SQLite file in TensorFlow Federated's layout."""

    name: ClassVar[str] = "stackoverflow"
    takes: ClassVar[str] = "PATH"
    says: ClassVar[str] = "an SQLite file as TensorFlow Federated publishes StackOverflow: a user is a client"

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            raise SourceError(f"{path} is not a file; give stackoverflow:PATH of the SQLite file (decompressed).")
        self._path = path
        self.description = f"SQLite {path.name} in TensorFlow Federated's layout"
        self.left_out: dict[str, int] = {}
        with closing(self._connect()) as connection:
            self.expected_clients: int | None = self._survey(connection)

    @classmethod
    def open(cls, place: str) -> "StackOverflow":
        """The file at a path."""
        return cls(Path(place).expanduser())

    def clients(self) -> Iterator[ClientText]:
        """Clients in the order of split and name, posts by time."""
        query = f"SELECT {', '.join(COLUMNS)} FROM examples ORDER BY split_name, client_id, rowid"
        with self._complaints(), closing(self._connect()) as connection:
            rows = connection.execute(query)
            for (split, client_id), posts in groupby(rows, key=lambda row: (row[0], row[1])):
                dated = sorted((_post(blob, client_id) for _, _, blob in posts), key=lambda post: post[0])
                times = np.array([time for time, _ in dated], np.int64)
                texts = [text for _, text in dated]
                yield ClientText(client_id=str(client_id), texts=texts, timestamps=times, split=SPLIT_NAMES[split])

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(f"file:{self._path.resolve().as_posix()}?mode=ro", uri=True)

    @contextmanager
    def _complaints(self) -> Iterator[None]:
        """SQLite's complaints of a damaged page, which it may show in its own bytes, as ours."""
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise SourceError(f"{self._path} is damaged ({error}); copy it anew.") from error

    def _survey(self, connection: sqlite3.Connection) -> int:
        """The number of clients; SourceError when the layout is another or a client is in two splits."""
        try:
            present = {row[1] for row in connection.execute("PRAGMA table_info(examples)")}
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise SourceError(f"{self._path} is not SQLite ({error}); if it ends in .lzma, unpack it first.") from error
        missing = [name for name in COLUMNS if name not in present]
        if missing:
            raise SourceError(
                f"{self._path} has no column {missing[0]!r} in a table 'examples'; "
                "give the SQLite file that TensorFlow Federated publishes."
            )
        with self._complaints():
            pairs = connection.execute("SELECT DISTINCT client_id, split_name FROM examples").fetchall()
        if unknown := {split for _, split in pairs} - set(SPLIT_NAMES):
            raise SourceError(
                f"{self._path} has a split {min(unknown, key=repr)!r}; known are {', '.join(SPLIT_NAMES)}: rename it."
            )
        splits: dict[str, str] = {}
        for client_id, split in pairs:
            if splits.setdefault(client_id, split) != split:
                raise SourceError(
                    f"client {client_id!r} of {self._path} is in {splits[client_id]} and in {split}; "
                    "a client belongs to one split: move its rows into one."
                )
        return len(splits)


def _post(blob: object, client_id: object) -> tuple[int, str]:
    """Time and text of one post."""
    if client_id is None:
        raise SourceError("a post has no client_id; every text is somebody's: fill it or drop the row.")
    if not isinstance(blob, bytes):
        kind = "nothing" if blob is None else f"a value of the type {type(blob).__name__}"
        raise SourceError(f"a post of client {client_id!r} is {kind}, and a tf.train.Example is bytes; copy it anew.")
    try:
        features = read_example(blob)
        text = b" ".join(features.get("tokens", [])).decode("utf-8")
        date = b"".join(features.get("creation_date", [])).decode("ascii")
        return _seconds(date), text
    except (ValueError, IndexError) as error:
        raise SourceError(
            f"a post of client {client_id!r} is no tf.train.Example in UTF-8 ({error}); copy the file anew."
        ) from error


def _seconds(date: str) -> int:
    """`2010-01-08 09:34:05.767 UTC` in seconds since 1970; NO_TIME when empty, ValueError otherwise."""
    if not date:
        return NO_TIME
    return int(datetime.fromisoformat(date.removesuffix(" UTC")).replace(tzinfo=UTC).timestamp())


def read_example(blob: bytes) -> dict[str, list[bytes]]:
    """The bytes features of a serialised tf.train.Example, others skipped; ValueError if malformed.

    Example.features = 1, Features.feature = 1 (a map: key = 1, value = 2), Feature.bytes_list = 1,
    BytesList.value = 1. Source: tensorflow/core/example/feature.proto and the protocol buffer encoding guide.
    """
    found: dict[str, list[bytes]] = {}
    for features in _fields(blob, 1):
        for entry in _fields(features, 1):
            name = b"".join(_fields(entry, 1)).decode("utf-8")
            lists = [bytes_list for feature in _fields(entry, 2) for bytes_list in _fields(feature, 1)]
            if lists:
                found[name] = [value for bytes_list in lists for value in _fields(bytes_list, 1)]
    return found


_FIXED = {1: 8, 5: 4}  # wire types of fixed width, in bytes


def _fields(message: bytes, number: int) -> Iterator[bytes]:
    """The length-delimited fields of one number; any other field is stepped over."""
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        wire = tag & 7
        if wire == 0:
            _, at = _varint(message, at)
        elif wire in _FIXED:
            at += _FIXED[wire]
        elif wire == 2:
            length, at = _varint(message, at)
            if tag >> 3 == number and at + length <= len(message):
                yield message[at : at + length]
            at += length
        else:
            raise ValueError(f"wire type {wire}")
    if at > len(message):
        raise ValueError("it is cut off")


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        if shift > MOST_SHIFT:
            raise ValueError("a number of more than 64 bits")
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
