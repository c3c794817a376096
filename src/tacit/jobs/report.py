"""What a run folder says, for people and programs: the report of a run, and two runs side by side.

Only folders are read, so both can be written again anywhere and at any time, while a run trains too.
"""

from pathlib import Path
from typing import Protocol, runtime_checkable

from tacit.errors import InputError
from tacit.files import PathLike, as_path
from tacit.jobs.opening import opened
from tacit.jobs.resume import resume
from tacit.reports import discovery, pretraining, training
from tacit.reports.comparison import Comparison, comparison
from tacit.reports.drawing import render
from tacit.reports.page import ReportFiles, write_files
from tacit.reports.summary import summarise
from tacit.runs import Run, TrainingMetadata


def report(run: Run | PathLike, *, out: PathLike | None = None) -> ReportFiles:
    """Write the report of a run into `out` (left out: RUN/report): HTML, Markdown, JSON, figures and the statement.

    Of a run of any kind: of training and pre-training in whatever state it is, of the others when they are finished.
    Evaluations, personalizations and tunings need what they were made from, and have their report in the folder only.
    Raises: InputError where there is no report to write; RunError where the folder is damaged; UnknownRelease where its
    ledger cannot be accounted.
    """
    with opened(run) as found:
        folder = None if out is None else as_path("out", out)
        match found.kind:
            case "train":
                return training.write_report(summarise(found), folder)
            case "pretrain":
                return pretraining.write_report(found, folder)
            case "discover":
                return discovery.write_report(found, folder)
        return _written_again(found, folder)


def _written_again(run: Run, out: Path | None) -> ReportFiles:
    """The report that the job of a finished run writes into the run's folder."""
    if not run.finished:
        raise InputError(
            f"'{run.path}' is not finished, and `tacit {run.kind}` writes its report at the end; go on with `tacit "
            f"resume {run.path}`."
        )
    if out is not None:
        raise InputError(
            f"`tacit {run.kind}` keeps its report in '{run.path}/report'; leave out where else to write it."
        )
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

    The figure is written into `out` (left out: A/report), as compare-B.png. Raises: as `report`.
    """
    with opened(a) as first, opened(b) as second:
        for each in (first, second):
            each.of_kind(TrainingMetadata, "compare models on clients' text with `tacit evaluate A B --data CACHE`")
        found = comparison(summarise(first), summarise(second))
        folder = first.path / "report" if out is None else as_path("out", out)
        name = f"compare-{second.path.resolve().name}.png"
    write_files(folder, {name: render(found.figure, "png")})
    return found.drawn_at(folder / name)
