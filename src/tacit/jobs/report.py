"""What a run folder says, for people and programs: the report of a run, and two runs side by side.

Only folders are read, so both can be written again anywhere and at any time, while a run trains too.
"""

from pathlib import Path

from tacit.errors import InputError
from tacit.files import PathLike
from tacit.jobs.opening import opened
from tacit.reports import discovery, training
from tacit.reports.comparison import Comparison, comparison
from tacit.reports.drawing import render
from tacit.reports.page import ReportFiles, write_files
from tacit.reports.summary import summarise
from tacit.runs import Run, TrainingMetadata

# By kind, of runs whose report needs more than their folder: where it is, and who writes it again.
ELSEWHERE = {
    "evaluate": "its report is {run}/report/report.md, which the same `tacit evaluate` writes again",
    "personalize": "its report is {run}/report/report.md, which the same `tacit personalize` writes again",
    "tune": "its report is {run}/report/report.md, which the same `tacit tune` writes again",
    "pretrain": "it reads public text, and `tacit resume {run}` shows what it came to",
}


def report(run: Run | PathLike, *, out: PathLike | None = None) -> ReportFiles:
    """Write the report of a run into `out` (left out: RUN/report): HTML, Markdown, JSON, figures and the statement.

    Of a run that trains in whatever state it is, of a finished one that finds words. Raises: InputError for other
    kinds, whose command writes the report; RunError where the folder is damaged; UnknownRelease where its ledger cannot
    be accounted.
    """
    with opened(run) as found:
        folder = None if out is None else Path(out)
        match found.kind:
            case "train":
                return training.write_report(summarise(found), folder)
            case "discover":
                return discovery.write_report(found, folder)
        raise InputError(
            f"'{found.path}' is a run of `tacit {found.kind}`, which trains nothing; "
            f"{ELSEWHERE[found.kind].format(run=found.path)}."
        )


def compare(a: Run | PathLike, b: Run | PathLike, *, out: PathLike | None = None) -> Comparison:
    """Two runs that train: accuracy at equal rounds, the price, the settings that differ, and a figure of both curves.

    The figure is written into `out` (left out: A/report), as compare-B.png. Raises: as `report`.
    """
    with opened(a) as first, opened(b) as second:
        for each in (first, second):
            each.of_kind(TrainingMetadata, "compare models on clients' text with `tacit evaluate A B --data CACHE`")
        found = comparison(summarise(first), summarise(second))
        folder = first.path / "report" if out is None else Path(out)
        name = f"compare-{second.path.resolve().name}.png"
    write_files(folder, {name: render(found.figure, "png")})
    return found.drawn_at(folder / name)
