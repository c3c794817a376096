"""The named folders, and what is found in them: runs, servers and devices. Nothing else is ever read.

A run has a place, "NUMBER/path": the number of the named folder that it is in, and its path from there. Links are not
followed, and a place that leads out of its folder is refused.
"""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from tacit.errors import InputError
from tacit.files import PathLike, as_path
from tacit.jobs.train.mixture_run import BEGUN
from tacit.runs.journal import DATABASE

DEEPEST = 6  # folders below a named one, in which runs are looked for
MOST = 5_000  # runs that are listed
STORE, DEVICE = "store.db", "device.db"  # of a server, of a device
# Of a run or a server: nothing in them is a run, but what `tune` and mixtures keep inside their own folder.
NOT_WITHIN = {"steps", "model", "report", "simulation", "blobs", "keys", ".git"}


class NotThere(InputError):
    """What was asked for is not in the named folders."""


class Folders:
    """What may be read."""

    def __init__(self, roots: Sequence[PathLike]) -> None:
        """Raises: InputError where one is no folder."""
        self.left_out = 0  # of what was found last: folders whose names are no text, which no address can say
        self.roots = tuple(as_path("folder", each).resolve() for each in roots)
        for root in self.roots:
            if not root.is_dir():
                raise InputError(f"'{root}' is no folder; name one with runs in it, or the folder of a run.")

    def runs(self) -> list[str]:
        """The places of all runs, at most MOST."""
        return self._with(DATABASE)

    def mixtures(self) -> list[str]:
        """The places of runs that made a mixture: folders around the runs that they are made of."""
        return self._with(BEGUN)

    def servers(self) -> list[str]:
        """The places of all folders with a server's store."""
        return self._with(STORE)

    def devices(self) -> list[str]:
        """The places of all folders with a device's record."""
        return self._with(DEVICE)

    def _with(self, name: str) -> list[str]:
        found: list[str] = []
        self.left_out = 0
        for number, root in enumerate(self.roots):
            for folder in _having(name, root, DEEPEST):
                place = self._place(number, folder)
                if not _is_text(place):
                    self.left_out += 1
                    continue
                found.append(place)
                if len(found) >= MOST:
                    return found
        return found

    def _place(self, number: int, folder: Path) -> str:
        inside = folder.relative_to(self.roots[number]).as_posix()
        return str(number) if inside == "." else f"{number}/{inside}"

    def folder(self, place: str) -> Path:
        """The folder at a place. Raises: NotThere."""
        number, _, inside = place.partition("/")
        if not (number.isascii() and number.isdigit() and len(number) < 6 and int(number) < len(self.roots)):
            raise NotThere(f"'{place[:200]}' is in none of the named folders; the list of runs has what is.")
        return self._within(self.roots[int(number)], inside, place)

    def file(self, place: str, name: str) -> Path:
        """A file of the folder at a place. Raises: NotThere."""
        path = self._within(self.folder(place), name, f"{place}/{name}")
        if not path.is_file():
            raise NotThere(f"'{name[:200]}' is no file of '{place[:200]}'; the page of the run links to those it has.")
        return path

    def holds(self, path: Path) -> bool:
        """Whether a path lies in a named folder, when all links on the way are followed."""
        return any(path.resolve().is_relative_to(root) for root in self.roots)

    def _within(self, folder: Path, inside: str, asked: str) -> Path:
        """Raises: NotThere for a way out, and for a link."""
        parts = PurePosixPath(inside).parts
        if "\0" in inside or inside.startswith("/") or any(part in ("..", "/") for part in parts):
            raise NotThere(f"'{asked[:200]}' leads out of the named folders, and nothing else is read.")
        path = folder
        for part in parts:
            path = path / part
            if path.is_symlink():
                raise NotThere(f"'{asked[:200]}' is behind a link, and links are not followed; name its folder too.")
        return path


def _is_text(place: str) -> bool:
    """Whether the names on the way are UTF-8."""
    try:
        place.encode()
    except UnicodeEncodeError:
        return False
    return True


def _having(name: str, folder: Path, depth: int) -> Iterator[Path]:
    """Folders with a file of this name, here and below, in the order of their names."""
    try:
        entries = sorted(os.scandir(folder), key=lambda each: each.name)
    except OSError:  # gone meanwhile, or another's
        return
    if any(each.name == name and each.is_file(follow_symlinks=False) for each in entries):
        yield folder
    for each in entries if depth else ():
        if each.name not in NOT_WITHIN and not each.name.startswith(".") and each.is_dir(follow_symlinks=False):
            yield from _having(name, Path(each.path), depth - 1)
