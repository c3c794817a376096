"""What a run folder says, for people and programs: the report of a run, and two runs side by side.

Only folders are read, so both can be written again anywhere and at any time, while a run trains too.
"""

from pathlib import Path
from typing import Protocol, runtime_checkable

from tacit.errors import InputError
from tacit.files import PathLike, as_path, check_folder
from tacit.jobs.opening import opened
from tacit.jobs.resume import resume
from tacit.reports import discovery, pretraining, training
from tacit.reports.comparison import Comparison, comparison
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
        match found.kind:
            case "train":
                files = training.write_report(summarise(found), folder)
            case "pretrain":
                files = pretraining.write_report(found, folder)
            case "discover":
                files = discovery.write_report(found, folder)
            case _:
                return _written_again(found, folder)
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


def compare(a: Run | PathLike, b: Run | PathLike, *, out: PathLike | None = None) -> Comparison:
    """Two runs that train: accuracy at equal rounds, the price, the settings that differ, and a figure of both curves.

    The figure is written into `out` (left out: A/simulation, for accuracies are exact), as compare-B.png. Raises: as
    `report`.
    """
    with opened(a) as first, opened(b) as second:
        for each in (first, second):
            each.of_kind(TrainingMetadata, "compare models on clients' text with `tacit evaluate A B --data CACHE`")
        folder = first.path / SIMULATION if out is None else as_path("out", out)
        check_folder("out", folder)
        found = comparison(summarise(first), summarise(second))
        name = f"compare-{second.path.resolve().name}.png"
        write_files(folder, {name: render(found.figure, "png")})
        if out is None:
            first.keep_files(f"{SIMULATION}/{name}")
    return found.drawn_at(folder / name)
