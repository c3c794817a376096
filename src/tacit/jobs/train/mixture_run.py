"""By which file the folder of a run of `train_mixture` is known; a front that reads one loads nothing else."""

from pathlib import Path

BEGUN = "begun.json"  # what the run knew when it began


def is_mixture_run(path: Path) -> bool:
    """Whether `path` is such a folder."""
    return (path / BEGUN).is_file()
