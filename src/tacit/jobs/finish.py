"""`tacit.finish`: an unfinished run of rounds becomes a released model with its statement, after the rounds it has."""

from typing import TYPE_CHECKING

from tacit.compute import Hardware
from tacit.errors import InputError
from tacit.files import PathLike, as_path
from tacit.jobs.train.job import TrainingResult, resume_training
from tacit.jobs.train.mixture import MixtureResult, finish_mixture
from tacit.jobs.train.mixture_run import is_mixture_run
from tacit.progress import Progress, silent
from tacit.runs import Run, TrainingMetadata
from tacit.runs.reconciliation import reconciled

if TYPE_CHECKING:
    from pathlib import Path


def finish(
    run: Run | PathLike,
    *,
    hardware: Hardware = Hardware(),  # noqa: B008  (frozen)
    progress: Progress = silent,
) -> TrainingResult | MixtureResult:
    """End a training with the rounds that are done: its last model is tested and released, accounted as it happened.

    No further device is asked. Of a run that makes a mixture its rounds end, and the rest is made. Killed on the way it
    is either as before or ending, and then `finish` and `resume` both bring it to its end.

    run: a run folder with rounds left to do, or what `open_run` gave.
    hardware: changes the speed, never the result.
    progress: gets events in this thread.

    Raises: InputError for a
    finished run, and for one without rounds; RunError before the first round, and where it is damaged.
    """
    path: Path | None = None if isinstance(run, Run) else as_path("run", run)
    if path is not None and is_mixture_run(path):
        return finish_mixture(path, hardware=hardware, progress=progress)
    found = run if isinstance(run, Run) else Run.open(as_path("run", run))
    reconciled(found)
    found.of_kind(TrainingMetadata, f"it has no rounds to leave out: `tacit resume {found.path}` goes on with it")
    if found.finished and (found.path / "report" / "statement.json").is_file():
        raise InputError(
            f"'{found.path}' is finished already, after {found.steps_done:,} rounds; `tacit report {found.path}` shows "
            "it."
        )
    return resume_training(found, hardware=hardware, end=True, progress=progress)
