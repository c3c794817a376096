"""What a run folder says of itself at a glance: a lister's view of hundreds, and of who works on one.

A glance reads the first entry of the journal, its notes and how many steps there are; it checks no seal and opens no
other file. Whoever shows what it says names it as unchecked, or opens the run. Nothing is written, made or removed.
"""

import hashlib
import os
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from tacit.errors import RunError
from tacit.parsing import parsed_json
from tacit.runs.copied_database import copied_database
from tacit.runs.entries import is_below
from tacit.runs.journal import DAMAGED, DATABASE, FORMAT, HEAD, RESTORE

LOCK = "lock"
# Of all notes that alone is read: others have thousands of numbers.
FINISHED = (
    "SELECT content FROM journal WHERE kind = 'note' AND json_extract(content, '$.name') = 'finished' "
    "ORDER BY entry DESC LIMIT 1"
)
PARTS = (DATABASE, f"{DATABASE}-wal", HEAD, "report", "simulation", LOCK)  # where it shows that something was written


@dataclass(frozen=True, kw_only=True)
class Glance:
    """Of one run, unchecked."""

    kind: str
    created: float  # Unix seconds
    planned: int | None  # rounds; None of a kind that has none
    done: int  # steps
    finished: bool
    files: Mapping[str, str]  # SHA-256 of what was kept, by path from the folder
    last: float | None  # Unix seconds when the last step was done

    def holds(self, name: str, content: bytes) -> bool:
        """Whether the run kept this as the file `name`."""
        return self.files.get(name) == hashlib.sha256(content).hexdigest()


def glance(folder: Path) -> Glance:
    """Raises: RunError where there is no run, or what is there cannot be read."""
    path = folder / DATABASE
    try:
        with closing(copied_database(path)) as database:
            found = database.execute("SELECT value FROM metadata WHERE name = 'format'").fetchone()
            if found is None or found[0] != f'"{FORMAT}"':
                raise RunError(f"'{folder}' has another format than this version reads; use the version that wrote it.")
            first = database.execute("SELECT content FROM journal WHERE entry = 0").fetchone()
            rows = database.execute("SELECT content FROM journal WHERE kind = 'files' ORDER BY entry").fetchall()
            ended = database.execute(FINISHED).fetchone()
            done = database.execute("SELECT COUNT(*) FROM journal WHERE kind = 'step'").fetchone()[0]
            last = database.execute(
                "SELECT content FROM journal WHERE kind = 'step' ORDER BY entry DESC LIMIT 1"
            ).fetchone()
        metadata = parsed_json(first[0])["metadata"]
        rounds = metadata.get("participation")
        return Glance(
            kind=str(metadata["kind"]),
            created=float(metadata["created"]),
            planned=int(rounds["rounds"]) if isinstance(rounds, Mapping) and "rounds" in rounds else None,
            done=done,
            finished=ended is not None and bool(parsed_json(ended[0])["value"]),
            files=_files([content for (content,) in rows]),
            last=None if last is None else float(parsed_json(last[0])["finished"]),
        )
    except (*DAMAGED, OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        if not path.exists():
            raise RunError(f"'{folder}' is no run folder any more: it was moved or deleted.") from None
        raise RunError(f"'{path}' cannot be read ({error}); {RESTORE}.") from error


def _files(contents: list[str]) -> dict[str, str]:
    """The digests of files, after each of these entries."""
    files: dict[str, str] = {}
    for content in contents:
        entry = parsed_json(content)
        places = tuple(entry["of"])
        files = {name: sha for name, sha in files.items() if not is_below(name, places)} | entry["files"]
    return files


def mark_of(folder: Path) -> tuple[tuple[int, int, int], ...]:
    """What changes whenever something of the run was written: a few times of files, as cheap as can be."""
    return tuple(map(_times, (folder / part for part in PARTS)))


def _times(path: Path) -> tuple[int, int, int]:
    try:
        found = path.stat()
    except OSError:
        return (0, 0, 0)
    return (found.st_ino, found.st_mtime_ns, found.st_size)


def worked_on_by(folder: Path) -> int | None:
    """The process that holds the lock of a run; None where nobody does, or it cannot be seen from here.

    The lock itself is left alone, since whoever tries it may keep a process from beginning: the process whose number
    stands in it either has that very file open, or has ended.
    """
    path = folder / LOCK
    try:
        number = int(path.read_text(encoding="ascii"))
        lock = path.stat()
        opened = [*Path(f"/proc/{number}/fd").iterdir()]
    except (OSError, ValueError):
        return None
    for each in opened:
        with suppress(OSError):  # closed meanwhile
            if os.path.samestat(each.stat(), lock):
                return number
    return None
