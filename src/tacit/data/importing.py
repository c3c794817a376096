"""Building a cache: clients stream in, arrays grow on disk, a rename makes it real."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np
from numpy.typing import NDArray

from tacit.data.cache import Cache
from tacit.data.clients import ClientText, Source, checked_clients, split_of
from tacit.data.manifest import (
    BLOCK,
    FILES,
    MANIFEST,
    NO_TIME,
    SPLITS,
    VOCABULARY,
    CacheManifest,
    FileRecord,
    VocabularyRecord,
)
from tacit.errors import CacheError, SourceError
from tacit.folders import folder_beside, place_of, replace_folder
from tacit.progress import Advanced, Progress, StageBegan, StageEnded, silent

CHARACTERS_AT_ONCE = 4_000_000  # of text held in memory between two writes
TOKENISING = "tokenising clients"  # the stage, a step a client


class EncodedText(Protocol):
    """What `encode` returns; `tacit.text.tokens.Encoded` is one."""

    @property
    def ids(self) -> NDArray[np.int32]:
        """All sentences' ids one after another, with BOS and EOS."""
        ...

    @property
    def lengths(self) -> NDArray[np.int32]:
        """(sentences,) in ids."""
        ...

    @property
    def text_of(self) -> NDArray[np.int32]:
        """(sentences,) the number of the text each stood in, never decreasing."""
        ...


Encode = Callable[[Sequence[str]], EncodedText]


def build_cache(
    source: Source,
    encode: Encode,
    out: Path,
    *,
    vocabulary: VocabularyRecord,
    vocabulary_json: str,
    tokenizer: str,
    progress: Progress = silent,
) -> Cache:
    """Tokenise every client of a source into a new cache at `out`.

    Clients without a sentence are left out and counted. An old cache at `out` is replaced once the new one is
    whole. Raises: CacheError when `out` is something else than a cache; SourceError from the source, or when
    no client has a sentence.
    """
    out = place_of(out)
    _check_place(out)
    with folder_beside(out) as folder:
        with _Arrays(folder, vocabulary) as arrays:
            for batch in _batches(checked_clients(source)):
                if not arrays.clients + arrays.empty:
                    progress(StageBegan(TOKENISING, source.expected_clients))  # known once reading has begun
                arrays.add(batch, encode([text for client in batch for text in client.texts]))
                progress(Advanced(TOKENISING, arrays.clients + arrays.empty, {"words": arrays.words}))
            progress(StageEnded(TOKENISING))
            files = arrays.finish(vocabulary_json)
        if not arrays.clients:
            raise SourceError(
                f"none of the {arrays.empty} clients of '{source.description}' has a sentence; give another source."
            )
        CacheManifest(
            source=source.description,
            tokenizer=tokenizer,
            vocabulary=vocabulary,
            clients=arrays.clients,
            sentences=arrays.sentences,
            words=arrays.words,
            oov_words=arrays.oov_words,
            splits={name: arrays.splits[name] for name in SPLITS},
            clients_without_sentences=arrays.empty,
            left_out=dict(source.left_out),
            files=files,
        ).save(folder)
        replace_folder(out, folder)
    return Cache.open(out)


def add_clients(cache: Cache, more: Mapping[str, Sequence[Sequence[int]]], out: Path, *, description: str) -> Cache:
    """A new cache at `out` with the clients of another as they are, and behind them, all to train, some more.

    more: name -> the ids of each sentence, with BOS and EOS. description: of the source, in place of the other's.
    Raises: CacheError when `out` is something else than a cache; SourceError for a name that is there already.
    """
    out, said = place_of(out), cache.manifest
    _check_place(out)
    with folder_beside(out) as folder:
        with _Arrays(folder, said.vocabulary) as arrays:
            arrays.copy(cache)
            batch = [ClientText(client_id=name, texts=("",) * len(ids), split="train") for name, ids in more.items()]
            arrays.add(batch, _Ids([ids for sentences in more.values() for ids in sentences]))
            files = arrays.finish(cache.vocabulary_json)
        replace(
            said,
            source=description,
            clients=arrays.clients,
            sentences=arrays.sentences,
            words=arrays.words,
            oov_words=arrays.oov_words,
            splits={name: arrays.splits[name] for name in SPLITS},
            files=files,
        ).save(folder)
        replace_folder(out, folder)
    return Cache.open(out)


class _Ids:
    """Sentences that are ids already, as `EncodedText`: each stands in a text of its own."""

    def __init__(self, sentences: Sequence[Sequence[int]]) -> None:
        self.ids = np.array([word for sentence in sentences for word in sentence], np.int32)
        self.lengths = np.array([len(sentence) for sentence in sentences], np.int32)
        self.text_of = np.arange(len(sentences), dtype=np.int32)


class _Arrays:
    """The growing files of a cache."""

    def __init__(self, folder: Path, vocabulary: VocabularyRecord) -> None:
        self.clients = self.sentences = self.words = self.oov_words = self.empty = 0
        self.splits: Counter[str] = Counter()
        self._oov = vocabulary.oov_id
        self._folder = folder
        self._stack = ExitStack()
        ids = "<u2" if vocabulary.size <= 2**16 else "<i4"
        dtypes = {"ids": ids, "splits": "|u1", "names": "|u1", "timestamps": "<i8"}
        offsets = dict.fromkeys(("sentence_offsets", "client_offsets", "name_offsets"), "<i8")
        self._files = {
            name: _GrowingFile(self._stack.enter_context((folder / name).open("wb")), dtype)
            for name, dtype in {**dtypes, **offsets}.items()
        }
        self._ends = dict.fromkeys(offsets, 0)
        self._seen: set[str] = set()
        for name in offsets:
            self._files[name].write(np.zeros(1))

    def __enter__(self) -> "_Arrays":
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def add(self, batch: Sequence[ClientText], encoded: EncodedText) -> None:
        """Append some clients whose texts, one after another, were encoded."""
        client_of_text = np.repeat(np.arange(len(batch)), [len(client.texts) for client in batch])
        sentences = np.bincount(client_of_text[encoded.text_of], minlength=len(batch))
        kept = [client for client, count in zip(batch, sentences, strict=True) if count]
        self._check_names(batch)
        self._files["ids"].write(encoded.ids)
        self._files["timestamps"].write(_times(batch)[encoded.text_of])
        self._grow("sentence_offsets", encoded.lengths)
        self._grow("client_offsets", sentences[sentences > 0])
        names = [client.client_id.encode() for client in kept]
        self._files["names"].write(np.frombuffer(b"".join(names), np.uint8))
        self._grow("name_offsets", np.array([len(name) for name in names], np.int64))
        splits = [client.split or split_of(client.client_id) for client in kept]
        self._files["splits"].write(np.array([SPLITS.index(split) for split in splits]))
        self.splits.update(splits)
        self.clients += len(kept)
        self.empty += len(batch) - len(kept)
        self.sentences += len(encoded.lengths)
        self.words += len(encoded.ids) - 2 * len(encoded.lengths)
        self.oov_words += int(np.count_nonzero(encoded.ids == self._oov))

    def copy(self, cache: Cache) -> None:
        """Begin with all that is in another cache of the same vocabulary."""
        said = cache.manifest
        for name, file in self._files.items():
            skipped = 1 if name in self._ends else 0  # the 0 that offsets begin with is written
            for items in cache.pieces(name):
                file.write(items[skipped:])
                skipped = 0
            if name in self._ends:
                self._ends[name] = int(items[-1])
        self._seen |= set(map(cache.name, range(said.clients)))
        self.clients, self.sentences, self.words = said.clients, said.sentences, said.words
        self.oov_words, self.empty = said.oov_words, said.clients_without_sentences
        self.splits.update(said.splits)

    def _check_names(self, batch: Sequence[ClientText]) -> None:
        for client in batch:
            if not client.client_id:
                raise SourceError("a client has an empty name; every text is somebody's: name it or drop it.")
            if client.client_id in self._seen:
                raise SourceError(f"client {client.client_id!r} came twice; a source gives each client once.")
            self._seen.add(client.client_id)

    def _grow(self, name: str, lengths: NDArray[Any]) -> None:
        ends = self._ends[name] + np.cumsum(lengths, dtype=np.int64)
        self._files[name].write(ends)
        self._ends[name] = int(ends[-1]) if len(ends) else self._ends[name]

    def finish(self, vocabulary_json: str) -> dict[str, FileRecord]:
        """Close all files and say what is in them."""
        with (self._folder / VOCABULARY).open("wb") as file:
            words = _GrowingFile(file, "|u1")
            words.write(np.frombuffer(vocabulary_json.encode(), np.uint8))
        self._stack.close()
        return {name: file.record() for name, file in {**self._files, VOCABULARY: words}.items()}


class _GrowingFile:
    """A file that an array is appended to, with its digests."""

    def __init__(self, file: BinaryIO, dtype: str) -> None:
        self._file, self._dtype = file, dtype
        self._digests, self._bytes = BlockDigests(), 0

    def write(self, items: NDArray[Any]) -> None:
        """Append items, converted to the file's type."""
        content = np.ascontiguousarray(items, dtype=self._dtype).tobytes()
        self._file.write(content)
        self._digests.update(content)
        self._bytes += len(content)

    def record(self) -> FileRecord:
        """The file as the manifest lists it."""
        return FileRecord(dtype=self._dtype, bytes=self._bytes, blocks=self._digests.hexdigests())


def _batches(clients: Iterator[ClientText]) -> Iterator[list[ClientText]]:
    """Clients in groups of about CHARACTERS_AT_ONCE."""
    batch: list[ClientText] = []
    characters = 0
    for client in clients:
        batch.append(client)
        characters += sum(map(len, client.texts)) + 100  # empty clients fill memory too
        if characters >= CHARACTERS_AT_ONCE:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


def _times(batch: Sequence[ClientText]) -> NDArray[np.int64]:
    """The time of every text of the batch."""
    parts = [
        np.full(len(client.texts), NO_TIME, np.int64) if client.timestamps is None else client.timestamps
        for client in batch
    ]
    return np.concatenate(parts)


def _check_place(out: Path) -> None:
    arrays = FILES.keys() - {VOCABULARY}  # other folders have a manifest and a vocabulary, too
    cache = (out / MANIFEST).is_file() and any((out / name).exists() for name in arrays)
    if (out.exists() and not out.is_dir()) or (out.is_dir() and any(out.iterdir()) and not cache):
        raise CacheError(f"{out} exists and is not a cache, so it is not replaced; give another --out or remove it.")


class BlockDigests:
    """The digests of what is appended, block by block."""

    def __init__(self) -> None:
        self._done: list[str] = []
        self._block, self._room = hashlib.sha256(), BLOCK

    def update(self, content: bytes) -> None:
        """Append bytes."""
        rest = memoryview(content)
        while len(rest):
            part, rest = rest[: self._room], rest[self._room :]
            self._block.update(part)
            self._room -= len(part)
            if not self._room:
                self._done.append(self._block.hexdigest())
                self._block, self._room = hashlib.sha256(), BLOCK

    def hexdigests(self) -> tuple[str, ...]:
        """Of every block so far, the last of which may be short."""
        return (*self._done, self._block.hexdigest()) if self._room < BLOCK else tuple(self._done)
