"""The clients of a finished cache, read: the sentences of each, when they were typed, and the words behind their ids.

This is all that whoever trains or counts asks of a cache (`cache.py` says what its files hold), a device included.
"""

import hashlib
import mmap
import os
import weakref
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tacit.data.manifest import BLOCK, FILES, SPLITS, VOCABULARY, CacheManifest
from tacit.errors import CacheError, InputError

AGAIN = "import the source again"


class MappedSentences:
    """The sentences of a cache; clients are numbered from 0 in the order of the source.

    Its files are opened once: an import that replaces the folder meanwhile changes nothing here.
    """

    def __init__(self, path: Path, manifest: CacheManifest, descriptors: dict[str, int]) -> None:
        """`open` checks what it is given; this does not. descriptors: open files, closed with the cache."""
        self.path = path
        self.manifest = manifest
        self._descriptors = descriptors
        for descriptor in descriptors.values():
            weakref.finalize(self, os.close, descriptor)

    @classmethod
    def open(cls, path: Path) -> Self:
        """Map a finished cache. CacheError when there is none, it is half-written, foreign or cut short."""
        cache = cls(path, CacheManifest.load(path), _opened(path))
        for name, file in cache.manifest.files.items():
            found = os.fstat(cache._descriptors[name]).st_size
            if found != file.bytes:
                raise CacheError(
                    f"{path / name} has {found} bytes where the manifest promises {file.bytes}: "
                    f"it was cut short or changed; {AGAIN}."
                )
        return cache

    def _is_as_listed(self, block: tuple[str, int]) -> bool:
        name, at = block
        file = self.manifest.files[name]
        content = self._bytes(name, at * BLOCK, min(BLOCK, file.bytes - at * BLOCK))
        return hashlib.sha256(content).hexdigest() == file.blocks[at]

    @cached_property
    def vocabulary_json(self) -> str:
        """The vocabulary of these ids, in keyboard's format. CacheError when it is not the one of the import."""
        file = self.manifest.files[VOCABULARY]
        if not all(self._is_as_listed((VOCABULARY, at)) for at in range(len(file.blocks))):
            raise CacheError(changed(self.path / VOCABULARY))
        return self._bytes(VOCABULARY, 0, file.bytes).decode()

    def clients(self, split: str | None = None) -> NDArray[np.int64]:
        """The numbers of a split's clients, ascending; of all when None. InputError if unknown."""
        if split is None:
            return np.arange(self.manifest.clients, dtype=np.int64)
        if split not in SPLITS:
            raise InputError(f"the split {split!r} is unknown; it is one of {', '.join(SPLITS)}.")
        return np.flatnonzero(self._splits == SPLITS.index(split)).astype(np.int64)

    def sentences(self, client: int) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """The client's ids (a slice of the map) and each sentence's length, both with BOS and EOS."""
        begin, end = self._span(client)
        offsets = self._checked_offsets(self._sentence_offsets[begin : end + 1])
        return self._checked_ids(self._ids[offsets[0] : offsets[-1]]), np.diff(offsets)

    def padded(self, client: int, chosen: NDArray[np.int64], length: int) -> NDArray[np.int32]:
        """The chosen sentences of a client (chosen, length): cut at `length` ids, padded with zeros.

        Read, not mapped: whatever a process has touched of a map counts as its memory, which would grow round by round
        to the size of the data.
        """
        begin, end = self._span(client)
        offsets = self._checked_offsets(self._read("sentence_offsets", begin, end + 1))
        ids = self._checked_ids(self._read("ids", offsets[0], offsets[-1]))
        starts = offsets[chosen] - offsets[0]
        column = np.arange(length)
        inside = column < (offsets[chosen + 1] - offsets[chosen])[:, None]  # (chosen, length)
        rows = np.zeros(inside.shape, np.int32)
        rows[inside] = ids[(starts[:, None] + column)[inside]]
        return rows

    def timestamps(self, client: int) -> NDArray[np.int64]:
        """When each sentence was typed, in seconds since 1970; NO_TIME where unknown."""
        begin, end = self._span(client)
        return self._timestamps[begin:end]

    def sentence_count(self, client: int) -> int:
        """How many sentences the client has; at least one."""
        begin, end = self._span(client)
        return end - begin

    def _span(self, client: int) -> tuple[int, int]:
        if not 0 <= client < self.manifest.clients:
            raise InputError(f"client {client} is not in this cache; clients are 0 to {self.manifest.clients - 1}.")
        begin, end = map(int, self._client_offsets[client : client + 2])
        if not 0 <= begin < end <= self.manifest.sentences:
            raise CacheError(changed(self.path / "client_offsets"))
        return begin, end

    def _checked_offsets(self, offsets: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where sentences begin and end. Raises: CacheError where that is no place in `ids`: whoever does not verify
        all of a cache (a device does not) reads nothing beyond an end, and reserves no memory for it.
        """
        file = self.manifest.files["ids"]
        if offsets[0] < 0 or offsets[-1] > file.bytes // int(file.dtype[-1]) or (offsets[1:] < offsets[:-1]).any():
            raise CacheError(changed(self.path / "sentence_offsets"))
        return offsets

    def _checked_ids(self, ids: NDArray[Any]) -> NDArray[Any]:
        """Those of words that the vocabulary has. Raises: CacheError."""
        if len(ids) and not 0 <= int(ids.min()) <= int(ids.max()) < self.manifest.vocabulary.size:
            raise CacheError(changed(self.path / "ids"))
        return ids

    def _map(self, name: str) -> NDArray[Any]:
        # As a plain array: every slice of a np.memmap costs microseconds more.
        mapped = mmap.mmap(self._descriptors[name], 0, access=mmap.ACCESS_READ)
        return np.frombuffer(mapped, self.manifest.files[name].dtype)

    def _read(self, name: str, begin: int, end: int) -> NDArray[Any]:
        """The items begin to end of a file, in memory."""
        dtype = np.dtype(self.manifest.files[name].dtype)
        return np.frombuffer(self._bytes(name, int(begin) * dtype.itemsize, int(end - begin) * dtype.itemsize), dtype)

    def _bytes(self, name: str, at: int, wanted: int) -> bytes:
        """So many bytes of a file from a place on."""
        content = os.pread(self._descriptors[name], wanted, at)
        while len(content) < wanted:  # one call reads at most 2 GB
            more = os.pread(self._descriptors[name], wanted - len(content), at + len(content))
            if not more:
                raise CacheError(f"{self.path / name} was cut short while it was read; {AGAIN}.")
            content += more
        return content

    @cached_property
    def _ids(self) -> NDArray[Any]:
        return self._map("ids")

    @cached_property
    def _sentence_offsets(self) -> NDArray[np.int64]:
        return self._map("sentence_offsets")

    @cached_property
    def _client_offsets(self) -> NDArray[np.int64]:
        return self._map("client_offsets")

    @cached_property
    def _timestamps(self) -> NDArray[np.int64]:
        return self._map("timestamps")

    @cached_property
    def _splits(self) -> NDArray[np.uint8]:
        return self._map("splits")


def _opened(path: Path) -> dict[str, int]:
    """The files of a cache, by name; CacheError where one is not there."""
    opened: dict[str, int] = {}
    try:
        for name in FILES:
            opened[name] = os.open(path / name, os.O_RDONLY)
    except OSError as error:
        for descriptor in opened.values():
            os.close(descriptor)
        raise CacheError(f"the cache {path} lacks its file {name} ({error.strerror}); {AGAIN}.") from error
    return opened


def changed(path: Path) -> str:
    """What is said of a file that is not as its manifest lists it."""
    return f"{path} is not what was imported (its SHA-256 differs); {AGAIN}."
