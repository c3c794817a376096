"""By which file the folder of a run of `train_mixture` is known; a front that reads one loads nothing else."""

import os
from pathlib import Path

from tacit.files import as_path

BEGUN = "begun.json"  # what the run knew when it began


def is_mixture_run(path: Path) -> bool:
    """Whether `path` is such a folder."""
    return (path / BEGUN).is_file()


def mixture_run_at(run: object) -> Path | None:
    """The folder, where `run` is the path of such a one; None for an open run, and for the path of anything else.

    Raises: InputError for what is neither.
    """
    if not isinstance(run, str | os.PathLike):
        from tacit.runs import Run  # NumPy comes with it

        if isinstance(run, Run):
            return None
    path = as_path("run", run)
    return path if is_mixture_run(path) else None
