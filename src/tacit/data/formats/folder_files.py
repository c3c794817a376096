"""The files below a folder: none is passed over without a word."""

import os
from pathlib import Path

from tacit.errors import SourceError


def files_below(folder: Path) -> list[Path]:
    """All that is below a folder and is no folder, hidden or not, ascending by path.

    Links to folders are followed, each folder once. Raises: SourceError for a folder that cannot be listed.
    """
    found: list[Path] = []
    seen: set[str] = set()
    for place, folders, files in os.walk(folder, followlinks=True, onerror=_unlisted):
        seen.add(os.path.realpath(place))
        folders[:] = sorted(name for name in folders if os.path.realpath(os.path.join(place, name)) not in seen)
        found += [Path(place, name) for name in files]
    return sorted(found)


def is_hidden(file: Path, folder: Path) -> bool:
    """Whether the file, or a folder between, is hidden by its name, as `.name`, or not data, as Spark's `_SUCCESS`."""
    return any(part.startswith((".", "_")) for part in file.relative_to(folder).parts)


def _unlisted(error: OSError) -> None:
    raise SourceError(f"the folder {error.filename} cannot be listed ({error.strerror}); open it, or move it away.")
