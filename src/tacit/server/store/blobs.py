"""Models and sums: bytes by name in a folder, in memory (tests), or in any object store that obstore knows.

A blob is there whole or not at all. What is named by its own SHA-256 (models, totals) never changes and is checked when
it is read.
"""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import obstore
from obstore.exceptions import BaseError
from obstore.store import LocalStore, MemoryStore, from_url

from tacit.errors import InputError, StoreError
from tacit.files import sync_folder

SCHEMES = ("file", "memory", "s3", "s3a", "gs", "az", "azure", "abfs", "abfss", "https", "http")


def model_name(digest: str) -> str:
    """Of a broadcast model's blob."""
    return f"models/{digest}"


def partial_name(task: str, worker: str, generation: int) -> str:
    """Of a worker's partial sum of a round."""
    return f"partials/{task}/{worker}-{generation:06d}"


def total_name(task: str, digest: str) -> str:
    """Of a round's sum."""
    return f"totals/{task}/{digest}"


def one_message_name(task: str, assignment: str, digest: str) -> str:
    """Of a sealed report with this SHA-256, which a quorum of decryptors opens in a sum alone."""
    return f"sealed/{task}/{assignment}-{digest}"


class BlobStore:
    """Bytes by name. Threads may share it."""

    def __init__(self, store: LocalStore | MemoryStore | object, url: str) -> None:
        self._store, self.url = store, url
        self._folder = Path(str(store.prefix)) if isinstance(store, LocalStore) else None

    @classmethod
    def open(cls, url: str) -> "BlobStore":
        """Those at `file:///FOLDER`, `memory://`, `s3://BUCKET/PREFIX` and so on; a folder is made, its owner's alone.

        Credentials of an object store come from the environment, as its other tools take them. Raises: InputError.
        """
        scheme, separator, path = url.partition("://")
        if not separator or scheme not in SCHEMES:
            raise InputError(f"--blobs {url} is no place for blobs; give file:///FOLDER, s3://BUCKET/PREFIX, gs://...")
        if scheme == "memory":
            return cls(MemoryStore(), url)
        try:
            if scheme == "file":
                folder = Path(path)
                if not folder.is_absolute():
                    raise InputError(f"--blobs {url} names no absolute path; write file:///FOLDER.")
                folder.mkdir(parents=True, exist_ok=True, mode=0o700)
                return cls(LocalStore(folder), url)
            return cls(from_url(url), url)
        except (OSError, BaseError) as error:
            raise InputError(f"--blobs {url} cannot be opened ({_first_line(error)}).") from error

    def put(self, name: str, content: bytes | memoryview, *, synced: bool = True) -> None:
        """There whole when this returns, and what was there by this name is replaced.

        synced: on disk too, so that it outlives a power cut and not only this process. Raises: StoreError (a full
        disk, say); what was there before is still there then.
        """
        with self._complaints("written", name):
            obstore.put(self._store, name, content, use_multipart=False)  # type: ignore[arg-type]
            if self._folder is not None and synced:
                _sync(self._folder, name)

    def get(self, name: str, *, digest: str | None = None) -> bytes:
        """The blob. digest: the SHA-256 that it must have. Raises: StoreError where it is not there or another."""
        with self._complaints("read", name):
            content = bytes(obstore.get(self._store, name).bytes())  # type: ignore[arg-type]
        if digest is not None and hashlib.sha256(content).hexdigest() != digest:
            raise StoreError(f"{self._said(name)} is not what was written (its SHA-256 differs).")
        return content

    def part(self, name: str, start: int, length: int) -> bytes:
        """`length` bytes from `start`. Raises: StoreError."""
        with self._complaints("read", name):
            return bytes(obstore.get_range(self._store, name, start=start, length=length))  # type: ignore[arg-type]

    def size(self, name: str) -> int | None:
        """How many bytes it has; None where there is none. Raises: StoreError."""
        with self._complaints("read", name):
            try:
                return obstore.head(self._store, name)["size"]  # type: ignore[arg-type]
            except FileNotFoundError:
                return None

    def delete(self, name: str) -> None:
        """It is not there afterwards, whether it was or not. Raises: StoreError."""
        with self._complaints("deleted", name), suppress(FileNotFoundError):
            obstore.delete(self._store, name)  # type: ignore[arg-type]

    def names(self, prefix: str) -> list[str]:
        """All names below a prefix of whole parts (`partials/TASK`). Raises: StoreError."""
        with self._complaints("listed", prefix):
            pages = obstore.list(self._store, prefix=prefix)  # type: ignore[arg-type]
            return sorted(str(each["path"]) for page in pages for each in page)

    @contextmanager
    def _complaints(self, done: str, name: str) -> Iterator[None]:
        try:
            yield
        except (OSError, BaseError) as error:
            why = _first_line(error).replace(name, _loggable(name))
            raise StoreError(f"{self._said(name)} was not {done} ({why}).") from error

    def _said(self, name: str) -> str:
        return f"the blob '{_loggable(name)}' in '{self.url}'"


def _sync(folder: Path, name: str) -> None:
    """The file and the folders above it survive a power cut."""
    path = folder / name
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    for above in path.relative_to(folder).parents:
        sync_folder(folder / above)


def _loggable(name: str) -> str:
    """The name, without the assignment of a single report: logs do not tell devices apart."""
    place, _, own = name.rpartition("/")
    return f"{place}/..." if name.startswith("sealed/") and place != "sealed" and own else name


def _first_line(error: Exception) -> str:
    """What went wrong, without the library's own trace of it."""
    return str(error).partition("\n")[0].strip()
