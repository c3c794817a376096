"""Files that are there whole or as they were before, and folders that survive a power cut."""

import os
from collections.abc import Iterable
from pathlib import Path


def write_whole(path: Path, content: bytes | Iterable[bytes | memoryview]) -> None:
    """A file that is there whole and on disk, or as it was before, whoever reads at the same time.

    content: all of it, or its parts in order. A process that is killed leaves its hidden draft; `sweep_drafts` removes
    those.
    Raises: OSError (a full disk, say); the draft is removed then.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}.draft")
    try:
        with open(draft, "wb") as file:
            file.writelines([content] if isinstance(content, bytes) else content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sweep_drafts(folder: Path) -> None:
    """Remove what killed processes left half written; for whoever alone may write to the folder."""
    for draft in folder.glob(".*.draft"):
        draft.unlink(missing_ok=True)


def sync_folder(path: Path) -> None:
    """Make renames inside a folder survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
