"""StackOverflow (or any text) as TensorFlow Federated publishes it: one SQLite file.

Table `examples(split_name, client_id, serialized_example_proto)`, one row per sentence; the blob is a serialised
`tf.train.Example` with the features `tokens` (the text, words separated by blanks) and `creation_date`. The splits of
the published file, by its documentation:

train    what was written before 2018 by users who are not held out: 342,477 users
heldout  everything of the users whose number ends in 0: 38,758; our validation
test     what was written since 2018 by users who are not held out: 204,088, who may be users of train, too

A user is one client of a split. What a user of train wrote since 2018 is a client of test with a name of its own,
`1234#test`; other users of test keep theirs. A run learns from one split, so its unit of privacy is the user; runs on
train and on test reach the same users, and their costs add up. `stackoverflow-unseen` has each user in one split: the
test text of users of train is left out, and counted.

Sources: tensorflow_federated/python/simulation/datasets/stackoverflow.py (`load_data`) and sql_client_data.py.
TensorFlow is not needed.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from itertools import combinations, groupby
from pathlib import Path
from typing import ClassVar, Self

import numpy as np

from tacit.data.clients import ClientText
from tacit.data.manifest import NO_TIME
from tacit.errors import SourceError

SPLIT_NAMES = {"train": "train", "heldout": "validation", "validation": "validation", "test": "test"}
SHARED = {"train", "test"}  # splits by date, so that they have users in common
SEEN = "#test"  # behind the name of a user of test who is in train, too
MOST_SHIFT = 63  # of a number of a protocol buffer, which has ten bytes
COLUMNS = ("split_name", "client_id", "serialized_example_proto")
TEXT, TIME = "tokens", "creation_date"  # features of a post


class StackOverflow:
    """A Source over an SQLite file in TensorFlow Federated's layout, its three splits as they are."""

    name: ClassVar[str] = "stackoverflow"
    takes: ClassVar[str] = "PATH"
    says: ClassVar[str] = "StackOverflow's SQLite file of TensorFlow Federated: a user is a client of each split"
    _leaves_out_seen: ClassVar[bool] = False

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            raise SourceError(f"{path} is not a file; give stackoverflow:PATH of the SQLite file (decompressed).")
        self._path = path
        with closing(self._connect()) as connection:
            users = self._survey(connection)
        self._seen = users["train"] & users["test"]
        self.description = f"SQLite {path.name} in TensorFlow Federated's layout"
        self.left_out: dict[str, int] = {}
        self.expected_clients: int | None = sum(map(len, users.values()))
        if self._seen and self._leaves_out_seen:
            self.left_out["users of test who are in train, too"] = len(self._seen)
            self.expected_clients -= len(self._seen)
        elif self._seen:
            self.description += f"; users of test who are in train, too ({len(self._seen):,}), are named ID{SEEN}"

    @classmethod
    def open(cls, place: str) -> Self:
        """The file at a path."""
        return cls(Path(place).expanduser())

    def clients(self) -> Iterator[ClientText]:
        """Clients in the order of split and name, posts by time."""
        query = f"SELECT {', '.join(COLUMNS)} FROM examples ORDER BY split_name, client_id, rowid"
        with self._complaints(), closing(self._connect()) as connection:
            rows = connection.execute(query)
            for (split, user), posts in groupby(rows, key=lambda row: (row[0], row[1])):
                seen = split == "test" and str(user) in self._seen
                if seen and self._leaves_out_seen:
                    continue
                dated = sorted((_post(blob, user) for _, _, blob in posts), key=lambda post: post[0])
                yield ClientText(
                    client_id=f"{user}{SEEN}" if seen else str(user),
                    texts=[text for _, text in dated],
                    timestamps=np.array([time for time, _ in dated], np.int64),
                    split=SPLIT_NAMES[split],
                )

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(f"{self._path.resolve().as_uri()}?mode=ro", uri=True)

    @contextmanager
    def _complaints(self) -> Iterator[None]:
        """SQLite's complaints of a damaged page, which it may show in its own bytes, as ours."""
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise SourceError(f"{self._path} is damaged ({error}); copy it anew.") from error

    def _survey(self, connection: sqlite3.Connection) -> dict[str, set[str]]:
        """The users of each split; SourceError when the layout is another, or splits share users that must not."""
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
        users: dict[str, set[str]] = {split: set() for split in SPLIT_NAMES}
        for user, split in pairs:
            users[split].add(str(user))
        for one, other in combinations(SPLIT_NAMES, 2):
            if {one, other} != SHARED and (twice := users[one] & users[other]):
                raise SourceError(
                    f"client {min(twice)!r} of {self._path} is in {one} and in {other}; only train and test, which are "
                    "parted by date, may share one: move its rows into one split."
                )
        return users


class StackOverflowUnseen(StackOverflow):
    """The same with each user in one split: the test split has those alone who wrote nothing for train."""

    name: ClassVar[str] = "stackoverflow-unseen"
    says: ClassVar[str] = "that file without the test text of users of train: a user is a client, in one split"
    _leaves_out_seen: ClassVar[bool] = True


def _post(blob: object, client_id: object) -> tuple[int, str]:
    """Time and text of one post."""
    if client_id is None:
        raise SourceError("a post has no client_id; every text is somebody's: fill it or drop the row.")
    if not isinstance(blob, bytes):
        kind = "nothing" if blob is None else f"a value of the type {type(blob).__name__}"
        raise SourceError(f"a post of client {client_id!r} is {kind}, and a tf.train.Example is bytes; copy it anew.")
    try:
        features = read_example(blob)
        if TEXT not in features:
            has = ", ".join(sorted(features)) or "none"
            raise ValueError(f"its text would be the feature {TEXT!r}, and its features of bytes are {has}")
        text = b" ".join(features[TEXT]).decode("utf-8")
        date = b"".join(features.get(TIME, [])).decode("ascii")
        return _seconds(date), text
    except (ValueError, IndexError) as error:
        raise SourceError(
            f"a post of client {client_id!r} is no tf.train.Example of StackOverflow in UTF-8 ({error}); copy the file "
            "anew, or give one of this layout."
        ) from error


def _seconds(date: str) -> int:
    """`2010-01-08 09:34:05.767 UTC` in seconds since 1970; NO_TIME when empty, ValueError otherwise.

    The layout has all times in UTC, so one that names no zone is; one that names another is taken by its word.
    """
    if not date:
        return NO_TIME
    time = datetime.fromisoformat(date.removesuffix(" UTC"))
    return int((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp())


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
