"""The transparency log: everything that the operator ever told devices to do, in one list that only grows (RFC 9162).

An entry is a line of text, `plan DIGEST`, and a leaf of a Merkle tree, whose head the operator signs. Whoever asks gets
all of it. An operator that shows one plan to one device and another list to everybody else has signed two heads of
lists that do not begin alike.

The list is kept twice: in the store, where workers read it, and in a file beside the operator's key, that is written
first, and on disk, before the head with the new entry is signed. So a store that was restored from an older copy, or
lost, is filled up from the file, and never does one key sign two heads of one size with different roots.
"""

import fcntl
import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Connection, insert, select, text

from tacit.errors import InputError, StoreError
from tacit.files import sync_folder
from tacit.protocol.fields import MOST_ENTRIES
from tacit.protocol.log_proofs import leaf_of
from tacit.protocol.messages import InclusionProof, ShownLog, Signed, TreeHead
from tacit.protocol.operator_key import OperatorKey
from tacit.server.log.merkle_tree import MerkleTree
from tacit.server.store.schema import log
from tacit.server.store.store import Store

ENTRY = re.compile(r"[a-z][a-z-]{0,30}( [0-9]{1,10})? [0-9a-f]{64}")  # `fields.Entry`
SUFFIX = ".log"  # of the file, beside the operator's key


class TransparencyLog:
    """The log as its operator's coordinators write it."""

    def __init__(self, store: Store, key: OperatorKey, file: Path) -> None:
        """file: made where there is none; one for each key, and shared by all that sign with it."""
        self._store, self._key, self._file = store, key, file

    @classmethod
    def beside(cls, store: Store, key: OperatorKey, path: Path) -> "TransparencyLog":
        """path: the key's."""
        return cls(store, key, path.with_suffix(SUFFIX))

    def append(self, entry: str) -> InclusionProof:
        """Enter a line, once: one that is there stays where it is. The proof is under the newest head.

        Raises: StoreError where file and store contradict each other, or cannot be written; InputError where the file
        is something else, or the log is full. Nothing is signed then.
        """
        assert ENTRY.fullmatch(entry), entry
        with self._writing() as (connection, file):
            stored, entries = self._both(connection, file)
            missing = stored[len(entries) :]  # in the file, which is then the longer one
            entries += missing
            if entry not in entries:
                if len(entries) >= MOST_ENTRIES:
                    raise InputError(
                        f"the log '{self._file}' has {len(entries):,} entries, and devices read no longer one; begin "
                        "another with another --operator-key, which devices are given with a new --state."
                    )
                missing, entries = [*missing, entry], [*entries, entry]
            _add(file, missing)
            tree = MerkleTree()
            for position, each in enumerate(entries):
                tree.append(leaf_of(each))
                if position >= len(stored):
                    head = self._key.signed(TreeHead(size=position + 1, root=tree.root().hex()))
                    row = {"position": position, "entry": each, "leaf": leaf_of(each).hex()}
                    connection.execute(insert(log).values(**row, head=head.to_json()))
        found = LogView(self._store).proof(leaf_of(entry).hex())
        assert found is not None
        return found

    def entries(self) -> list[str]:
        """All that was ever entered, in the store or in the file. Raises: as `append` does."""
        with self._writing() as (connection, file):
            return max(self._both(connection, file), key=len)

    def _both(self, connection: Connection, file: int) -> tuple[list[str], list[str]]:
        """(entries of the store, those of the file), of which one begins with the other. Raises: StoreError."""
        rows = connection.execute(select(log.c.entry).order_by(log.c.position)).scalars().all()
        stored, entries = list(rows), _entries(file, self._file)
        if stored[: len(entries)] != entries[: len(stored)]:
            raise StoreError(
                f"the log in '{self._file}' and the one in the store differ where both have entries, so one of them is "
                "another log's: give the store and the file that belong to this key. Nothing was signed."
            )
        return stored, entries

    @contextmanager
    def _writing(self) -> Iterator[tuple[Connection, int]]:
        """The store's table and the file, for this one alone."""
        try:
            file = os.open(self._file, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise StoreError(
                f"the log '{self._file}' cannot be opened ({error.strerror}); nothing was signed."
            ) from None
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            sync_folder(self._file.parent)
            with self._store.writing() as connection:
                if connection.dialect.name == "postgresql":
                    connection.execute(text("LOCK TABLE log IN EXCLUSIVE MODE"))
                yield connection, file
        except OSError as error:
            raise StoreError(
                f"the log '{self._file}' cannot be written ({error.strerror}); make room for it."
            ) from None
        finally:
            os.close(file)


def entries_of(content: bytes, where: object) -> list[str]:
    """The lines of a log. where: it came from. Raises: InputError for what is none."""
    lines = content.decode("ascii", "replace").split("\n")
    if strange := next((each for each in lines[:-1] if not ENTRY.fullmatch(each)), lines[-1]):
        raise InputError(f"'{where}' is no log: {strange[:80]!r} is no entry of one; see whose file it is.")
    return lines[:-1]


def _entries(file: int, path: Path) -> list[str]:
    """The lines of the file; one that was cut off goes, for nothing was signed with it. Raises: InputError."""
    content = bytearray()
    while block := os.pread(file, 1 << 20, len(content)):
        content += block
    whole = content.rfind(b"\n") + 1
    os.ftruncate(file, whole)
    return entries_of(bytes(content[:whole]), path)


def _add(file: int, entries: list[str]) -> None:
    """On disk when this returns."""
    if entries:
        os.lseek(file, 0, os.SEEK_END)
        content = "".join(f"{each}\n" for each in entries).encode()
        while content:
            content = content[os.write(file, content) :]
        os.fsync(file)


class LogView:
    """The log as it is read: from the store, where its heads are signed already."""

    def __init__(self, store: Store) -> None:
        self._store, self._tree, self._lock = store, MerkleTree(), threading.Lock()
        self._entries: list[str] = []
        self._positions: dict[str, int] = {}
        self._head: Signed | None = None
        self._shown: bytes | None = None  # as devices get it

    def head(self) -> Signed | None:
        """The newest; None of a log without entries. Raises: StoreError."""
        with self._lock:
            return self._grown()

    def proof(self, leaf: str) -> InclusionProof | None:
        """That this leaf (64 hexadecimal digits) is in the log, under the newest head; None where it is not."""
        with self._lock:
            head = self._grown()
            if head is None or leaf not in self._positions:
                return None
            path = self._tree.inclusion(self._positions[leaf], head.read(TreeHead).size)
            return InclusionProof(index=self._positions[leaf], head=head, path=tuple(each.hex() for each in path))

    def shown(self) -> bytes | None:
        """All of it, as a `ShownLog` in JSON; None of a log without entries. Raises: StoreError."""
        with self._lock:
            head = self._grown()
            if head is not None and self._shown is None:
                self._shown = ShownLog(head=head, entries=tuple(self._entries)).to_json().encode()
            return self._shown

    def entries(self) -> list[str]:
        """Its lines. Raises: StoreError."""
        with self._lock:
            self._grown()
            return list(self._entries)

    def _grown(self) -> Signed | None:
        """Read what is new."""
        columns = select(log.c.position, log.c.entry, log.c.leaf, log.c.head).order_by(log.c.position)
        with self._store.reading() as connection:
            rows = connection.execute(columns.where(log.c.position >= len(self._tree))).all()
        for row in rows:
            self._tree.append(bytes.fromhex(row.leaf))
            self._entries.append(row.entry)
            self._positions[row.leaf] = row.position
        if rows:
            self._shown = None
            self._head = Signed.from_json(rows[-1].head)
        return self._head
