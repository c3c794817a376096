"""Whether a run folder holds what the run wrote: its settings, its model, its report, by the digests in its journal."""

import hashlib
from collections.abc import Callable, Iterator, Mapping

from tacit.errors import RunError
from tacit.runs import Run
from tacit.runs.draft import NOISE_KEY, SETTINGS, STRATEGY
from tacit.runs.reconciliation import reconciled
from tacit.statements.verify import CheckedLine

PUBLISHED = ("model", "report")  # folders in which nothing else belongs
TRIALS = "trials"  # the note of a tuning: the seals of the runs that it chose by


def folder_lines(run: Run) -> tuple[CheckedLine, ...]:
    """Each file of an open run that its journal knows, and each that lies in `model/` or `report/` and it does not; of
    a tuning also each of its trials.
    """
    trials = run.notes.get(TRIALS)
    named = trials.items() if isinstance(trials, Mapping) else ()
    return (*_lines(run), *(line for name, seal in named for line in _trial(run, name, seal)))


def _lines(run: Run) -> Iterator[CheckedLine]:
    yield CheckedLine(name=f"file {SETTINGS}", complaint=_refused(lambda: run.settings))
    if (run.path / STRATEGY).exists() or run.strategy_digest is not None:
        yield CheckedLine(name=f"file {STRATEGY}", complaint=_refused(lambda: run.strategy))
    if complaint := _of_key(run):
        yield CheckedLine(name=f"file {NOISE_KEY}", complaint=complaint)
    files = run.files
    for name, digest in files.items():
        path, complaint = run.path / name, None
        if not path.is_file():
            complaint = "missing"
        elif hashlib.sha256(path.read_bytes()).hexdigest() != digest:
            complaint = f"not what was written (SHA-256 {digest[:16]}...)"
        yield CheckedLine(name=f"file {name}", complaint=complaint)
    for name in run.files_at(*PUBLISHED):
        if name not in files:
            advice = "not recorded by the run: another wrote it, or a kill came between; `tacit report` writes its own"
            yield CheckedLine(name=f"file {name}", complaint=advice)


def _trial(run: Run, name: str, seal: str) -> Iterator[CheckedLine]:
    """A trial of a tuning is a run of its own."""
    try:
        with Run.open(run.path / "runs" / name, read_only=not run.writable) as trial:
            differs = None if reconciled(trial).seal == seal else "not the run that was tuned by: its seal is another"
            yield CheckedLine(name=f"trial {name}", complaint=differs)
            for line in folder_lines(trial):
                yield CheckedLine(name=f"trial {name} {line.name}", complaint=line.complaint)
    except RunError as error:
        yield CheckedLine(name=f"trial {name}", complaint=str(error))


def _refused(read: Callable[[], object]) -> str | None:
    """Why something cannot be read; None where it can."""
    try:
        read()
    except RunError as error:
        return str(error)
    return None


def _of_key(run: Run) -> str | None:
    """What is wrong with the noise key, or that it is still there."""
    if run.key_lost:
        return "gone, and the run is not finished: it was removed, or the end of the journal was"
    if not (run.path / NOISE_KEY).exists():
        return None
    if run.finished:
        return "still there, though the run is finished: open the run where it can be written, and it is destroyed"
    return _refused(lambda: run.noise_key)
