"""What a run folder says, for people and programs: the report of a run, and runs side by side.

Only folders are read, so both can be written again anywhere and at any time, while a run trains too.
"""

from contextlib import ExitStack
from pathlib import Path
from typing import Protocol, runtime_checkable

from tacit.errors import InputError
from tacit.federation.kinds import KINDS, loaded
from tacit.files import PathLike, as_path, check_folder
from tacit.jobs.opening import opened
from tacit.jobs.resume import resume
from tacit.reports.comparison import MOST, Comparison, comparison
from tacit.reports.drawing import render
from tacit.reports.page import FOR_READERS, SIMULATION, ReportFiles, write_files
from tacit.reports.summary import summarise
from tacit.runs import Run, TrainingMetadata


def report(run: Run | PathLike, *, out: PathLike | None = None) -> ReportFiles:
    """Write the report of a run into its folder (or into `out`): HTML, Markdown, JSON, figures and the statement.

    `report` of that folder may be published; `simulation` has what is exact, and with it the page to look at.
    Of a run of any kind: of training and pre-training in whatever state it is, of the others when they are finished.
    Evaluations, personalizations and tunings need what they were made from, and have their report in the folder only.
    Raises: InputError where there is no report to write; RunError where the folder is damaged; UnknownRelease where its
    ledger cannot be accounted.
    """
    with opened(run) as found:
        folder = None if out is None else as_path("out", out)
        if folder is None and not found.writable:
            raise InputError(f"'{found.path}' cannot be written; say where else its report goes (--out FOLDER).")
        if folder is not None:
            check_folder("out", folder)
        written_by = KINDS[found.kind].report
        if written_by is None:
            return _written_again(found, folder)
        files: ReportFiles = loaded(written_by)(found, folder)
        if folder is None:
            found.keep_files(*FOR_READERS)
        return files


def _written_again(run: Run, out: Path | None) -> ReportFiles:
    """The report that the job of a finished run writes into the run's folder."""
    if not run.finished:
        raise InputError(
            f"'{run.path}' is not finished, and `tacit {run.kind}` writes its report at the end; go on with `tacit "
            f"resume {run.path}`."
        )
    if out is not None:
        raise InputError(f"`tacit {run.kind}` keeps its report in '{run.path}'; leave out where else to write it.")
    result = resume(run)
    assert isinstance(result, HasReport)  # of these kinds every result has one
    return result.report


@runtime_checkable
class HasReport(Protocol):
    """A result that wrote a report."""

    @property
    def report(self) -> ReportFiles:
        """Where it is."""
        ...


def compare(*runs: Run | PathLike, out: PathLike | None = None) -> Comparison:
    """Runs that train, side by side: accuracy at equal rounds, the price, what differs, and a figure of all curves.

    The first is compared with. The figure is written into `out` (left out: the first one's `simulation`, for accuracies
    are exact), as compare-NAME.png of the second. Raises: as `report`; InputError for fewer than two runs.
    """
    if not 2 <= len(runs) <= MOST:
        raise InputError(f"{len(runs)} runs were named, and 2 to {MOST} can be laid side by side; name so many.")
    with ExitStack() as stack:
        found = [stack.enter_context(opened(each)) for each in runs]
        for each in found:
            each.of_kind(TrainingMetadata, "compare models on clients' text with `tacit evaluate A B --data CACHE`")
        if len({each.path.resolve() for each in found}) < len(found):
            raise InputError("a run was named twice, and comparing it with itself says nothing; name each once.")
        folder = found[0].path / SIMULATION if out is None else as_path("out", out)
        check_folder("out", folder)
        made = comparison([summarise(each) for each in found])
        more = f"-and-{len(found) - 2}-more" if len(found) > 2 else ""
        name = f"compare-{found[1].path.resolve().name}{more}.png"
        write_files(folder, {name: render(made.figure, "png")})
        if out is None:
            found[0].keep_files(f"{SIMULATION}/{name}")
    return made.drawn_at(folder / name)
