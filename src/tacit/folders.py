"""Folders that are made beside their place and put there whole, and files that are removed for good."""

import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tacit.files import held, sync_folder


def place_of(path: Path) -> Path:
    """Where a folder is that somebody named: what a link leads to, which stays, and `.` by its own name."""
    return Path(os.path.realpath(path)) if path.is_symlink() or not path.name else path


@contextmanager
def folder_beside(path: Path) -> Iterator[Path]:
    """A new folder on the disk of `path`, a `place_of`, for its maker alone (0700), to be filled and renamed to it.

    What was not renamed is gone afterwards; what killed processes left of the same `path` goes first.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    sweep_dead_folders(path)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}.draft")
    draft.mkdir()
    draft.chmod(0o700)  # whatever the umask
    try:
        with held(draft):
            yield draft
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def replace_folder(path: Path, draft: Path) -> None:
    """Put a finished `folder_beside(path)` in the place of `path`, on disk; the old folder, if there is one, goes."""
    if path.exists():
        with folder_beside(path) as old:
            path.rename(old)
            draft.rename(path)
    else:
        draft.rename(path)
    sync_folder(path.parent)


def sweep_dead_folders(path: Path) -> None:
    """Remove what killed processes left of a folder that was to become `path`: those that nobody holds."""
    pattern = re.compile(rf"\.{re.escape(path.name)}\.[0-9a-f]{{8}}\.draft")
    for draft in [each for each in path.parent.iterdir() if pattern.fullmatch(each.name)]:
        with suppress(BlockingIOError, FileNotFoundError), held(draft):
            shutil.rmtree(draft)


def write_over(file: Path) -> None:
    """Put random bytes in the very place of a file's, on disk: for a secret that is to be removed."""
    with open(file, "r+b") as opened:
        opened.write(os.urandom(max(16, file.stat().st_size)))
        opened.flush()
        os.fsync(opened.fileno())
