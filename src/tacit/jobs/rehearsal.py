"""The rehearsal of a run: what it will ask of its data, its machine and its numbers after it has released something.

All of that is played before the first release, in a run folder beside the one that is to be (`scratch_run`), with the
model before the first round or with answers that are made up. The lists OF_... below say it. What fails there is
refused (`refused`), and nothing was released. What fails all the same later costs no release and no model: of a
training it is left out of the report, which names it (`Spared`); of other kinds the run stays open until it can be
done (`kept_open`).
"""

import math
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import NamedTuple, TypeAlias

from tacit.errors import AccountingError, InputError, RunError, TacitError, TrainingError
from tacit.folders import folder_beside
from tacit.progress import Progress, Warned
from tacit.runs import Metadata, Run
from tacit.runs.draft import write_draft
from tacit.runs.folder import MISSING

REHEARSING = "rehearsing the end of the run"  # the stage
NOT_DONE = "not-done"  # the code of warnings


class Piece(NamedTuple):
    """A piece of work that comes after releases."""

    name: str  # in a sentence, behind "the"
    again: str = ""  # how it is made later, in words of the run's path; empty: the run does not end without it


NUMBERS = Piece("accounting of the plan")
DISK = Piece("disk and memory for the run's states")
VALIDATION = Piece("evaluation on validation clients", "`tacit evaluate {run} --split validation` measures the model")
TEST = Piece("evaluation on test clients", "`tacit evaluate {run}` measures the model")
COMPARISON = Piece("comparison with simpler models", "`tacit evaluate {run} OTHER` compares models")
MODEL = Piece("model's files")
SUGGESTIONS = Piece("suggestions", '`tacit suggest {run} "..."` shows them')
REPORT = Piece("report", "`tacit report {run}` writes it")
STATEMENT = Piece("privacy statement", "`tacit report {run}` writes it")
EXPORT = Piece("export for keyboards", "`tacit export {run}` writes it")
RELEASE = Piece("release of the answers")  # noise, file, row of the ledger

# What is played, in this order. A tuning's trials are trainings, and each is rehearsed.
OF_TRAINING = (NUMBERS, DISK, VALIDATION, TEST, COMPARISON, MODEL, SUGGESTIONS, STATEMENT, REPORT, EXPORT)
OF_ASKING = (RELEASE, STATEMENT, REPORT)  # of whatever asks clients or devices: count, discover, evaluate, ...
OF_PRETRAINING = (VALIDATION, MODEL, REPORT)

# Gives, for a piece, the context in which it is done: one that refuses, or one that spares.
Trying: TypeAlias = Callable[[Piece], AbstractContextManager[None]]


def as_it_is(piece: Piece) -> AbstractContextManager[None]:
    """Nothing becomes of what goes wrong: it is raised."""
    return nullcontext()


@contextmanager
def refused(piece: Piece) -> Iterator[None]:
    """Before the first release: whatever goes wrong in the piece is an InputError that names it."""
    try:
        yield
    except Exception as error:
        raise InputError(
            f"the {piece.name}, which the run needs once it has released something, fails in the rehearsal: "
            f"{_why(error)}. Nothing was released and no privacy is spent; put that right, and begin again."
        ) from error


def _why(error: Exception) -> str:
    return (str(error) if isinstance(error, TacitError) else f"{type(error).__name__}: {error}").rstrip(".")


class Spared:
    """After releases: what goes wrong in a piece is told as a warning and in the report, and the run goes on."""

    def __init__(self, run: Run, progress: Progress, *, ends: bool = False) -> None:
        """ends: no round follows, so that even a model which diverged is released."""
        self._run, self._progress, self._ends = run, progress, ends

    @contextmanager
    def __call__(self, piece: Piece) -> Iterator[None]:
        """Raises: TrainingError where a model diverged and rounds could follow, which would spend privacy on it."""
        try:
            yield
        except Exception as error:
            if not piece.again or (isinstance(error, TrainingError) and not self._ends):
                raise
            said = f"the {piece.name} failed ({_why(error)}); {piece.again.format(run=self._run.path)}"
            if piece not in (REPORT, STATEMENT):  # of which a report that is there cannot say that it is missing
                self._run.note(MISSING, {**self._run.notes.get(MISSING, {}), piece.name: said})
            self._progress(Warned(NOT_DONE, f"{said}. The releases and the model are as they would be."))
            return
        if piece.name in (missing := self._run.notes.get(MISSING, {})):
            self._run.note(MISSING, {name: said for name, said in missing.items() if name != piece.name})


@contextmanager
def kept_open(run: Run, piece: Piece, leaving: Callable[[], None] = lambda: None) -> Iterator[None]:
    """After the releases of a run that asks for answers: what goes wrong in the piece is a RunError, and the run stays
    open; going on with it asks nobody again. leaving: what is done all the same.
    """
    try:
        yield
    except Exception as error:
        leaving()
        raise RunError(
            f"the {piece.name} of '{run.path}' failed ({_why(error)}). What was released is in the folder with its "
            f"rows of the ledger, and `tacit resume {run.path}` does the rest: nobody is asked again."
        ) from error


@contextmanager
def scratch_run(
    out: Path, settings: str, metadata: Metadata, key: bytes, *, strategy: str | None = None
) -> Iterator[Run]:
    """A run folder begun as the one that is to be at `out`, locked, on the same disk, for a rehearsal; it is gone
    afterwards. The arguments are those of `Run.create`.

    key: another than the run's, so that no noise is drawn twice. Raises: InputError where it cannot be written.
    """
    out = out if out.name else out.resolve()
    with _writable(out), folder_beside(out) as beside:
        place = beside / out.name
        place.mkdir()
        write_draft(place, f'kind = "{metadata.kind}"\n{settings}', metadata, key, strategy)
        with Run.open(place) as run, run.locked():
            yield run


@contextmanager
def _writable(out: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(
            f"the folder of '{out}' cannot be written ({error}); give the right to write, free space, or give another "
            "--out. Nothing was released."
        ) from error


def check_finite(figures: Mapping[str, float]) -> None:
    """That what will be stated of a plan with noise is numbers. Raises: AccountingError naming one that is none."""
    for name, value in figures.items():
        if not math.isfinite(value):
            raise AccountingError(
                f"the {name} of the plan is {value}, and a statement says numbers; give more noise, or a larger delta"
            )


def check_room(folder: Path, *, disk: int, memory: int) -> None:
    """That a run's states fit. disk: bytes of all that lie in the folder at one time. memory: bytes of one state.

    Raises: InputError naming what is there and what is needed.
    """
    free = shutil.disk_usage(folder).free
    if disk > free:
        raise InputError(
            f"the states of the run take {_gigabytes(disk)} and the disk of '{folder.parent}' has {_gigabytes(free)} "
            "free; free space, or give an --out elsewhere"
        )
    there = _memory_in_all()
    if there is not None and memory > there:
        raise InputError(
            f"one state of the run takes {_gigabytes(memory)} and this machine has {_gigabytes(there)} of memory; take "
            "a mechanism that carries fewer vectors, or a smaller network"
        )


def _memory_in_all() -> int | None:
    """Bytes of this machine; None where the system does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return None


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:,.2f} GB"
