"""Clients on disk, tokenised once and memory-mapped: client -> sentences -> word ids.

A cache is a folder of flat little-endian arrays and `manifest.json`, which is written last and lists the size of every
file and the SHA-256 of its blocks. It is built in a folder beside and renamed when complete, so that a cache is whole
or not there. Opening reads the manifest and maps the arrays: milliseconds, and no memory in the size of the data.
`verify` reads all of it; whatever trains on a cache or releases something of it does that first.

ids                  word ids of all sentences, each with its BOS and EOS; uint16 if the vocabulary fits, else int32
sentence_offsets     int64 (sentences + 1,): sentence s is ids[offsets[s]:offsets[s+1]]
client_offsets       int64 (clients + 1,): client c has the sentences offsets[c]..offsets[c+1]
timestamps           int64 (sentences,): seconds since 1970, NO_TIME where unknown
splits               uint8 (clients,): index into SPLITS
names, name_offsets  the clients' names in UTF-8, one after another
vocabulary.json      the vocabulary whose ids these are
"""

import hashlib
import mmap
import os
import time
import weakref
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tacit.data.clients import SPLITS
from tacit.data.manifest import BLOCK, FILES, VOCABULARY, CacheManifest
from tacit.errors import CacheError, InputError
from tacit.progress import Advanced, Progress, StageBegan, StageEnded, silent

VERIFYING = "checking the cache"  # the stage, a step a block
UNNOTICED = 2.0  # seconds that this may take before anybody is told


class Cache:
    """A population that was imported; clients are numbered from 0 in the order of the source.

    Its files are opened once: an import that replaces the folder meanwhile changes nothing here.
    """

    def __init__(self, path: Path, manifest: CacheManifest, descriptors: dict[str, int]) -> None:
        """`Cache.open` checks what it is given; this does not. descriptors: open files, closed with the cache."""
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
                    f"it was cut short or changed; {_AGAIN}."
                )
        return cache

    def __repr__(self) -> str:
        said = self.manifest
        return f"Cache({str(self.path)!r}: {said.clients:,} clients, {said.words:,} words, {said.oov_rate:.1%} unknown)"

    def verify(self, progress: Progress = silent) -> None:
        """Read everything, on all cores, and compare with the manifest; CacheError naming the file that differs."""
        blocks = [(name, at) for name, file in self.manifest.files.items() for at in range(len(file.blocks))]
        began, told = time.monotonic(), False
        threads = ThreadPoolExecutor()  # hashing lets go of the interpreter
        try:
            for done, same in enumerate(threads.map(self._is_as_listed, blocks), start=1):
                if not same:
                    raise CacheError(_other(self.path / blocks[done - 1][0]))
                if told:
                    progress(Advanced(VERIFYING, done))
                elif time.monotonic() - began > UNNOTICED:
                    progress(StageBegan(VERIFYING, len(blocks), done))
                    told = True
        finally:
            threads.shutdown(cancel_futures=True)
        if told:
            progress(StageEnded(VERIFYING))

    def _is_as_listed(self, block: tuple[str, int]) -> bool:
        name, at = block
        file = self.manifest.files[name]
        content = self._bytes(name, at * BLOCK, min(BLOCK, file.bytes - at * BLOCK))
        return hashlib.sha256(content).hexdigest() == file.blocks[at]

    @property
    def vocabulary_path(self) -> Path:
        """Where the vocabulary of these ids is kept, in keyboard's format."""
        return self.path / VOCABULARY

    @cached_property
    def vocabulary_json(self) -> str:
        """The vocabulary of these ids, in keyboard's format. CacheError when it is not the one of the import."""
        file = self.manifest.files[VOCABULARY]
        if not all(self._is_as_listed((VOCABULARY, at)) for at in range(len(file.blocks))):
            raise CacheError(_other(self.vocabulary_path))
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
        offsets = self._sentence_offsets[begin : end + 1]
        return self._ids[offsets[0] : offsets[-1]], np.diff(offsets)

    def padded(self, client: int, chosen: NDArray[np.int64], length: int) -> NDArray[np.int32]:
        """The chosen sentences of a client (chosen, length): cut at `length` ids, padded with zeros.

        Read, not mapped: whatever a process has touched of a map counts as its memory, which would grow round by round
        to the size of the data.
        """
        begin, end = self._span(client)
        offsets = self._read("sentence_offsets", begin, end + 1)
        ids = self._read("ids", offsets[0], offsets[-1])
        starts = offsets[chosen] - offsets[0]
        column = np.arange(length)
        inside = column < (offsets[chosen + 1] - offsets[chosen])[:, None]  # (chosen, length)
        rows = np.zeros(inside.shape, np.int32)
        rows[inside] = ids[(starts[:, None] + column)[inside]]
        return rows

    def read_ahead(self, clients: NDArray[np.int64]) -> None:
        """Ask the system to fetch these clients' sentences in the order of the disk, and go on meanwhile.

        Nothing but time depends on it; where the system cannot be asked (macOS) nothing is done.
        """
        if not hasattr(os, "posix_fadvise"):
            return
        begins, ends = (self._client_offsets[np.sort(clients) + side] for side in (0, 1))
        self._advise("sentence_offsets", begins, ends + 1)
        first, last = ([self._read("sentence_offsets", at, at + 1)[0] for at in of] for of in (begins, ends))
        self._advise("ids", first, last)

    def timestamps(self, client: int) -> NDArray[np.int64]:
        """When each sentence was typed, in seconds since 1970; NO_TIME where unknown."""
        begin, end = self._span(client)
        return self._timestamps[begin:end]

    def sentence_count(self, client: int) -> int:
        """How many sentences the client has; at least one."""
        begin, end = self._span(client)
        return end - begin

    def words(self, client: int) -> int:
        """How many words the client typed, known or not, without BOS and EOS."""
        begin, end = self._span(client)
        return int(self._sentence_offsets[end] - self._sentence_offsets[begin]) - 2 * (end - begin)

    def words_per_client(self) -> NDArray[np.int64]:
        """`words` of every client (clients,)."""
        ids = np.diff(self._sentence_offsets[self._client_offsets])
        words: NDArray[np.int64] = ids - 2 * np.diff(self._client_offsets)
        return words

    def name(self, client: int) -> str:
        """The client's name in its source."""
        self._span(client)
        begin, end = self._name_offsets[client : client + 2]
        return bytes(self._names[begin:end]).decode("utf-8")

    def to_record(self) -> dict[str, Any]:
        """What the cache holds as plain values: clients, words, words of a client, where the vocabulary comes from."""
        manifest, words = self.manifest, self.words_per_client()
        return {
            "schema": "tacit.data",
            "version": 1,
            "cache": str(self.path),
            "source": manifest.source,
            "clients": manifest.clients,
            "splits": dict(manifest.splits),
            "clients_without_sentences": manifest.clients_without_sentences,
            "left_out": dict(manifest.left_out),
            "sentences": manifest.sentences,
            "words": manifest.words,
            "oov_rate": manifest.oov_rate,
            "words_per_client": {
                "median": float(np.median(words)),
                "mean": float(np.mean(words)),
                "largest": int(np.max(words)),
                "histogram": _histogram(words),
            },
            "vocabulary": {
                "size": manifest.vocabulary.size,
                "lowercase": manifest.vocabulary.lowercase,
                "provenance": manifest.vocabulary.kind,
                "description": manifest.vocabulary.description,
                "sha256": manifest.vocabulary.sha256,
            },
            "tokenizer": manifest.tokenizer,
            "bytes": sum(file.bytes for file in manifest.files.values()),
        }

    def _span(self, client: int) -> tuple[int, int]:
        if not 0 <= client < self.manifest.clients:
            raise InputError(f"client {client} is not in this cache; clients are 0 to {self.manifest.clients - 1}.")
        begin, end = self._client_offsets[client : client + 2]
        return int(begin), int(end)

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
                raise CacheError(f"{self.path / name} was cut short while it was read; {_AGAIN}.")
            content += more
        return content

    def _advise(self, name: str, begins: Iterable[int], ends: Iterable[int]) -> None:
        size = np.dtype(self.manifest.files[name].dtype).itemsize
        for begin, end in zip(begins, ends, strict=True):
            os.posix_fadvise(
                self._descriptors[name], int(begin) * size, int(end - begin) * size, os.POSIX_FADV_WILLNEED
            )

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

    @cached_property
    def _names(self) -> NDArray[np.uint8]:
        return self._map("names")

    @cached_property
    def _name_offsets(self) -> NDArray[np.int64]:
        return self._map("name_offsets")


_AGAIN = "import the source again"


def _opened(path: Path) -> dict[str, int]:
    """The files of a cache, by name; CacheError where one is not there."""
    opened: dict[str, int] = {}
    try:
        for name in FILES:
            opened[name] = os.open(path / name, os.O_RDONLY)
    except OSError as error:
        for descriptor in opened.values():
            os.close(descriptor)
        raise CacheError(f"the cache {path} lacks its file {name} ({error.strerror}); {_AGAIN}.") from error
    return opened


def _other(path: Path) -> str:
    return f"{path} is not what was imported (its SHA-256 differs); {_AGAIN}."


def _histogram(words: Any) -> list[dict[str, int]]:
    """Clients by number of words: three bars a decade; `from` is inside, `below` is not."""
    decades = range(len(str(np.max(words))) + 1)
    edges = [step * 10**decade for decade in decades for step in (1, 2, 5)]
    edges = edges[: int(np.searchsorted(edges, np.max(words), side="right")) + 1]
    counts, _ = np.histogram(words, edges)
    return [
        {"from": begin, "below": end, "clients": int(count)}
        for begin, end, count in zip(edges, edges[1:], counts, strict=False)
    ]
