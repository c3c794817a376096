"""How a run is read for its pages: opened without writing, shown as its report shows it, and read again when it grew.

What a page says is what `tacit report` would write at that moment, by the same functions: that of `report/`, or, where
exact numbers may be shown, that of `simulation/`.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter, sleep
from typing import TYPE_CHECKING, Any, TypeVar

from tacit.errors import RunError, TacitError
from tacit.federation.kinds import KINDS, loaded
from tacit.files import read_bounded
from tacit.parsing import parsed_json
from tacit.reports.blocks import Block
from tacit.reports.page import PUBLISHED, Page
from tacit.runs.glance import Glance, glance, mark_of, worked_on_by
from tacit.runs.journal import DATABASE
from tacit.view.state import State, state_of, while_running

if TYPE_CHECKING:  # imported where a run is read: a list of finished ones needs none of it
    from tacit.reports.record_files import Records
    from tacit.runs import Run

T = TypeVar("T")
TURNS, PAUSE = 6, 0.05  # of reading what is just being written; seconds between two
KEPT = 6  # pages of runs in memory: one of 10,000 rounds takes a few MB
WITHHELD = (
    "Nothing of this run may be published: all that it found is exact. `tacit view --simulation` shows it to you alone."
)


@dataclass(frozen=True, kw_only=True)
class Look:
    """A run as it is now."""

    path: Path
    glance: Glance
    state: State
    page: Page | None  # None where there is none yet
    why: str = ""  # there is none
    more: tuple[Block, ...] = ()  # of this kind, beside what its report has
    record: dict[str, Any] = field(default_factory=dict)  # what the page is made from
    mark: tuple[Any, ...] = ()
    seconds: float = 0.0  # that it took to read


class Looks:
    """The runs that were looked at last."""

    def __init__(self, *, simulation: bool) -> None:
        self.simulation = simulation
        self._kept: OrderedDict[Path, Look] = OrderedDict()
        self._lock = threading.Lock()
        self._reading: dict[Path, threading.Lock] = {}

    def look(self, path: Path) -> Look:
        """Raises: RunError, UnknownRelease, where there is no run, or it is damaged."""
        with self._lock:
            reading = self._reading.setdefault(path, threading.Lock())
        with reading:  # ten browsers read it once
            mark = (mark_of(path), worked_on_by(path))
            with self._lock:
                found = self._kept.get(path)
                if found is not None and found.mark == mark:
                    self._kept.move_to_end(path)
                    return found
            found = steadily(path, lambda: self._read(path, mark))
            with self._lock:
                self._kept[path] = found
                self._kept.move_to_end(path)
                while len(self._kept) > KEPT:
                    self._reading.pop(self._kept.popitem(last=False)[0], None)
            return found

    def _read(self, path: Path, mark: tuple[Any, ...]) -> Look:
        begun = perf_counter()
        seen = glance(path)
        state = state_of(seen, worked_on_by(path))
        known: dict[str, Any] = {"path": path, "glance": seen, "state": state, "mark": mark}
        record = None if self.simulation else kept_record(path, seen)
        if record is not None:
            page = loaded(KINDS[seen.kind].page).released_page(record)
            more = more_of(None, seen.kind, record, simulation=False)
            return Look(**known, page=page, more=more, record=dict(record), seconds=perf_counter() - begun)
        from tacit.reports.record_files import read_records, understood
        from tacit.runs import Run

        with Run.open(path, read_only=True) as run, understood(run):
            kind = KINDS[run.kind]
            try:
                records = read_records(run) if kind.records is None else loaded(kind.records)(run)
            except TacitError as error:
                if run.finished:
                    raise
                return Look(**known, page=None, why=str(error), seconds=perf_counter() - begun)
            page, made_from = shown(run.kind, records, simulation=self.simulation)
            more = more_of(run, run.kind, made_from, simulation=self.simulation)
        if page is not None and state.word == "running":
            page = while_running(page)
        why = "" if page else WITHHELD
        return Look(**known, page=page, why=why, more=more, record=made_from, seconds=perf_counter() - begun)


def kept_json(path: Path, seen: Glance, name: str, *, most: int | None = None) -> Any:
    """A file of JSON that a finished run keeps, by its path in the run; None where it has none, behind a link, or of
    more than `most` bytes. Raises: RunError where it was changed, or cannot be read.
    """
    file = path / name
    if not seen.finished or name not in seen.files or file.is_symlink() or file.parent.is_symlink():
        return None
    try:
        if most is not None and file.stat().st_size > most:
            return None
        content = read_bounded(file)
    except (OSError, ValueError) as error:
        raise RunError(f"'{file}' cannot be read ({error}); restore it from a copy.") from error
    if not seen.holds(name, content):
        raise RunError(f"'{file}' is not what the run wrote (its SHA-256 differs); restore it from a copy.")
    try:
        return parsed_json(content)
    except ValueError as error:
        raise RunError(f"'{file}' is no JSON ({error}); restore it from a copy.") from error


def kept_record(path: Path, seen: Glance) -> Mapping[str, Any] | None:
    """What a finished run's published page is made from, as the run kept it: the journal of many rounds is not read
    again, which is left to who verifies it. None of a run that goes on, or kept none. Raises: RunError where it was
    changed.
    """
    from tacit.reports.record_files import RECORD, VERSION, schema_of

    name = f"{PUBLISHED}/{RECORD}"
    found = None if KINDS[seen.kind].records is None else kept_json(path, seen, name)
    written = (found.get("schema"), found.get("version")) if isinstance(found, dict) else None
    return found if written == (schema_of(seen.kind), VERSION) else None


def more_of(run: "Run | None", kind: str, record: Mapping[str, Any], *, simulation: bool) -> tuple[Block, ...]:
    """What the live page of a kind shows beside its report. run: None where its journal was not read."""
    live = KINDS[kind].live
    return () if live is None else tuple(loaded(live)(run, record, simulation=simulation))


def steadily(path: Path, read: Callable[[], T]) -> T:
    """What is read of a run, again where it was written meanwhile: whoever reads without a lock may see a file between
    two of its states. Raises: what reading raises of a run that nobody touches.
    """
    for turn in range(TURNS):
        mark = mark_of(path)
        try:
            return read()
        except (RunError, OSError):
            beside = (path / f"{DATABASE}-wal").exists()
            if turn == TURNS - 1 or (turn and mark_of(path) == mark and not beside):
                raise
            sleep(PAUSE)
    raise AssertionError("a turn returns or raises")


def shown(kind: str, records: "Records", *, simulation: bool) -> tuple[Page | None, dict[str, Any]]:
    """(the page, the record that it is made from): of what was released, or with `simulation` of everything.

    A run of which nothing may be published has no page without it; one of which nothing is exact has one page.
    """
    maker = loaded(KINDS[kind].page)
    if simulation and records.exact is not None:
        return maker.page(records.exact), dict(records.exact)
    if records.released is not None:
        return maker.released_page(records.released), dict(records.released)
    return None, {}


def opened_to_read(path: Path) -> "Run":
    """A run that nothing is written into. Raises: RunError."""
    from tacit.runs import Run

    check_there(path)
    return Run.open(path, read_only=True)


def check_there(path: Path) -> None:
    """Raises: RunError where a run is no more."""
    if not (path / DATABASE).exists():
        raise RunError(f"'{path}' is no run folder, or no more: it was moved or deleted.")
