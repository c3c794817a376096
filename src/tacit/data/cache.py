"""Clients on disk, tokenised once and memory-mapped: client -> sentences -> word ids.

A cache is a folder of flat little-endian arrays and `manifest.json`, which is written last and lists the size of every
file and the SHA-256 of its blocks. It is built in a folder beside and renamed when complete, so that a cache is whole
or not there. Opening reads the manifest and maps the arrays: milliseconds, and no memory in the size of the data.
`Cache.verify` reads all of it; whatever trains on a cache or releases something of it does that first.

ids                  word ids of all sentences, each with its BOS and EOS; uint16 if the vocabulary fits, else int32
sentence_offsets     int64 (sentences + 1,): sentence s is ids[offsets[s]:offsets[s+1]]
client_offsets       int64 (clients + 1,): client c has the sentences offsets[c]..offsets[c+1]
timestamps           int64 (sentences,): seconds since 1970, NO_TIME where unknown
splits               uint8 (clients,): index into SPLITS
names, name_offsets  the clients' names in UTF-8, one after another
vocabulary.json      the vocabulary whose ids these are
"""

import os
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.manifest import BLOCK, VOCABULARY
from tacit.data.mapped_sentences import MappedSentences, changed
from tacit.errors import CacheError
from tacit.progress import Advanced, Progress, StageBegan, StageEnded, silent

VERIFYING = "checking the cache"  # the stage, a step a block
UNNOTICED = 2.0  # seconds that this may take before anybody is told


class Cache(MappedSentences):
    """A population that was imported: its sentences, the check that they are what was imported, and what it counts."""

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
                    raise CacheError(changed(self.path / blocks[done - 1][0]))
                if told:
                    progress(Advanced(VERIFYING, done))
                elif time.monotonic() - began > UNNOTICED:
                    progress(StageBegan(VERIFYING, len(blocks), done))
                    told = True
        finally:
            threads.shutdown(cancel_futures=True)
        if told:
            progress(StageEnded(VERIFYING))

    @property
    def vocabulary_path(self) -> Path:
        """Where the vocabulary of these ids is kept, in keyboard's format."""
        return self.path / VOCABULARY

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

    def words(self, client: int) -> int:
        """How many words the client typed, known or not, without BOS and EOS."""
        begin, end = self._span(client)
        offsets = self._checked_offsets(self._sentence_offsets[begin : end + 1])
        return int(offsets[-1] - offsets[0]) - 2 * (end - begin)

    def words_per_client(self) -> NDArray[np.int64]:
        """`words` of every client (clients,)."""
        first, last = self._client_offsets[0], self._client_offsets[-1]
        if first != 0 or last != self.manifest.sentences or (np.diff(self._client_offsets) < 1).any():
            raise CacheError(changed(self.path / "client_offsets"))
        ids = np.diff(self._checked_offsets(self._sentence_offsets)[self._client_offsets])
        words: NDArray[np.int64] = ids - 2 * np.diff(self._client_offsets)
        return words

    def name(self, client: int) -> str:
        """The client's name in its source."""
        self._span(client)
        begin, end = self._name_offsets[client : client + 2]
        try:
            return bytes(self._names[begin:end]).decode("utf-8")
        except UnicodeDecodeError as error:
            raise CacheError(changed(self.path / "names")) from error

    def pieces(self, name: str) -> Iterator[NDArray[Any]]:
        """The items of one of its files in their order, a few megabytes at a time."""
        file = self.manifest.files[name]
        width = np.dtype(file.dtype).itemsize
        for at in range(0, file.bytes // width, BLOCK // width):
            yield self._read(name, at, min(at + BLOCK // width, file.bytes // width))

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
                "language": manifest.vocabulary.language,
                "emoji": manifest.vocabulary.emoji,
                "provenance": manifest.vocabulary.kind,
                "description": manifest.vocabulary.description,
                "sha256": manifest.vocabulary.sha256,
            },
            "tokenizer": manifest.tokenizer,
            "bytes": sum(file.bytes for file in manifest.files.values()),
        }

    def _advise(self, name: str, begins: Iterable[int], ends: Iterable[int]) -> None:
        size = np.dtype(self.manifest.files[name].dtype).itemsize
        for begin, end in zip(begins, ends, strict=True):
            os.posix_fadvise(
                self._descriptors[name], int(begin) * size, int(end - begin) * size, os.POSIX_FADV_WILLNEED
            )

    @cached_property
    def _names(self) -> NDArray[np.uint8]:
        return self._map("names")

    @cached_property
    def _name_offsets(self) -> NDArray[np.int64]:
        return self._map("name_offsets")


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
