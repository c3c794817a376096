"""Resuming a run of any kind."""

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from tacit.compute import Hardware
from tacit.errors import InputError
from tacit.federation.kinds import KINDS, loaded
from tacit.files import as_path
from tacit.jobs.train.mixture import resume_mixture
from tacit.jobs.train.mixture_run import is_mixture_run
from tacit.progress import Progress, silent
from tacit.runs import Run
from tacit.runs.reconciliation import reconciled

if TYPE_CHECKING:
    from tacit.reports.blocks import Block


class Result(Protocol):
    """What every kind of run gives."""

    def to_record(self) -> Mapping[str, Any]:
        """What `--json` prints."""
        ...

    def blocks(self) -> "Sequence[Block]":
        """What people read of it."""
        ...


def resume(
    run: Run | str | os.PathLike[str],
    *,
    hardware: Hardware = Hardware(),  # noqa: B008  (frozen)
    cluster: str | None = None,
    until: int | None = None,
    progress: Progress = silent,
    **own: Any,
) -> Result:
    """Resume an interrupted run to its end; the result is that of an uninterrupted run. A finished run is read.

    run: its folder, or what `open_run` gave. hardware, cluster: change the speed, never the result. until: stop after
    so many rounds. own: the program's own parts with which a training began (docs/extending.md), given again. Raises:
    RunError where it is no run folder or another process works on it; InputError for an argument that this kind of run
    has no use for.
    """
    path = None if isinstance(run, Run) else as_path("run", run)
    target: Run | Path
    if path is not None and is_mixture_run(path):
        kind, target = "train, of a mixture", path
        resumed: Callable[..., Result] = resume_mixture
    else:
        target = reconciled(run if isinstance(run, Run) else Run.open(as_path("run", run)))
        kind, resumed = target.kind, loaded(KINDS[target.kind].resume)
    understood = inspect.signature(resumed).parameters
    given = {"cluster": cluster, "until": until, **own}
    given = {name: value for name, value in given.items() if value is not None}
    if useless := sorted(given.keys() - understood.keys()):
        raise InputError(f"a run of `tacit {kind}` has no use for {', '.join(useless)}; leave it out.")
    if "hardware" in understood:
        given["hardware"] = hardware
    result: Result = resumed(target, progress=progress, **given)
    return result
