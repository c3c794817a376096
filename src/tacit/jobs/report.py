"""What a run folder says, for people and programs: the report of a run, and two runs side by side.

Only folders are read, so both can be written again anywhere and at any time, while a run trains too.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

from tacit.reports import training
from tacit.reports.comparison import Comparison, comparison
from tacit.reports.drawing import render
from tacit.reports.page import ReportFiles, write_files
from tacit.reports.summary import summarise
from tacit.runs import Run, TrainingMetadata

PathLike: TypeAlias = str | os.PathLike[str]


def report(run: Run | PathLike, *, out: PathLike | None = None) -> ReportFiles:
    """Write the report of a run into `out` (left out: RUN/report): HTML, Markdown, JSON, figures and the statement.

    Of a run that trains, in whatever state it is. Raises: InputError for another kind of run, which writes its report
    itself; RunError where the folder is damaged; UnknownRelease where its ledger cannot be accounted.
    """
    with _opened(run) as found:
        found.of_kind(TrainingMetadata, "its report is {run}/report/report.md, which the same `{command}` writes again")
        return training.write_report(summarise(found), None if out is None else Path(out))


def compare(a: Run | PathLike, b: Run | PathLike, *, out: PathLike | None = None) -> Comparison:
    """Two runs that train: accuracy at equal rounds, the price, the settings that differ, and a figure of both curves.

    The figure is written into `out` (left out: A/report), as compare-B.png. Raises: as `report`.
    """
    with _opened(a) as first, _opened(b) as second:
        for each in (first, second):
            each.of_kind(TrainingMetadata, "compare models on clients' text with `tacit evaluate A B --data CACHE`")
        found = comparison(summarise(first), summarise(second))
        folder = first.path / "report" if out is None else Path(out)
        name = f"compare-{second.path.resolve().name}.png"
    write_files(folder, {name: render(found.figure, "png")})
    return found.drawn_at(folder / name)


@contextmanager
def _opened(run: Run | PathLike) -> Iterator[Run]:
    """The run; one that was given by its path is closed again."""
    if isinstance(run, Run):
        yield run
        return
    with Run.open(Path(run)) as found:
        yield found
