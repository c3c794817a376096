"""What a run folder says, for people and programs: the report of a run, and runs side by side.

Only folders are read, so both can be written again anywhere and at any time, while a run trains too.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from tacit.errors import InputError
from tacit.federation.kinds import KINDS, loaded
from tacit.files import PathLike, as_path, check_folder
from tacit.jobs.open_run import opened
from tacit.jobs.train.mixture_run import mixture_run_at
from tacit.reports.comparison import MOST, RunComparison, comparison
from tacit.reports.drawing import render
from tacit.reports.mixture import MixtureSummary
from tacit.reports.page import SIMULATION, ReportFiles, to_html, write_files
from tacit.reports.record_files import Records, read_records, understood, write_run
from tacit.reports.summary import RunSummary, summarise
from tacit.runs import Run, TrainingMetadata


def report(run: Run | PathLike, *, out: PathLike | None = None) -> ReportFiles:
    """Write the report of a run into its folder (or into `out`): HTML, Markdown, JSON, figures and the statement.

    run: its folder, or what `open_run` gave. out: the folder to write, in place of the run's own.

    `report` of that folder may be published; `simulation` has what is exact, and with it the page to look at.
    Of a run of any kind, from its folder alone: of training and pre-training in whatever state it is, of the others
    when they are finished. Raises: InputError where there is no report to write; RunError where the folder is damaged,
    a record of it was changed, or is of another format; UnknownRelease where its ledger cannot be accounted.
    """
    if (mixture := mixture_run_at(run)) is not None:
        from tacit.jobs.train.mixture_summary import report_of_mixture  # JAX comes with it

        return report_of_mixture(mixture, to=None if out is None else as_path("out", out))
    with opened(run) as found:
        folder = None if out is None else as_path("out", out)
        if folder is None and not found.writable:
            raise InputError(f"'{found.path}' cannot be written; say where else its report goes (--out FOLDER).")
        if folder is not None:
            check_folder("out", folder)
        made_by = KINDS[found.kind].records
        records: Records = read_records(found) if made_by is None else loaded(made_by)(found)
        with understood(found):
            files = write_run(found.path if folder is None else folder, found.kind, records)
        if folder is None:
            found.keep_files(*(path.relative_to(found.path).as_posix() for path in files.paths))
        return files


def compare(*runs: Run | PathLike | Sequence[Run | PathLike], out: PathLike | None = None) -> RunComparison:
    """Runs that train or make a mixture, side by side: accuracy, the price, what differs, and a figure of all curves.

    The first is compared with. Of a mixture the parts stand below it. The page and the figure are written into `out`
    (left out: the first one's `simulation`, for accuracies are exact), as compare-NAME.html and .png of the second;
    mixtures alone have no figure.

    runs: folders of training runs and of mixtures, or what `open_run` gave; each by itself, or all in one list.
    out: the folder of page and figure.

    Raises: as `report`; InputError for fewer than two runs.
    """
    named = _each(runs)
    if not 2 <= len(named) <= MOST:
        raise InputError(f"{len(named)} runs were named, and 2 to {MOST} can be laid side by side; name so many.")
    with ExitStack() as stack:
        found = [mixture_run_at(each) or stack.enter_context(opened(each)) for each in named]
        places = [each.path if isinstance(each, Run) else each for each in found]
        if len({each.resolve() for each in places}) < len(found):
            raise InputError("a run was named twice, and comparing it with itself says nothing; name each once.")
        folder = places[0] / SIMULATION if out is None else as_path("out", out)
        check_folder("out", folder)
        made = compared(found)
        more = f"-and-{len(found) - 2}-more" if len(found) > 2 else ""
        name = f"compare-{places[1].resolve().name}{more}"
        files = {f"{name}.html": to_html(made.page()).encode()}
        if made.drawing:
            files[f"{name}.png"] = render(made.figure, "png")
        write_files(folder, files)
        if out is None and isinstance(found[0], Run):
            found[0].keep_files(*(f"{SIMULATION}/{each}" for each in files))
    return made.written_at(folder / f"{name}.html", folder / f"{name}.png" if made.drawing else None)


def compared(runs: Sequence[Run | PathLike]) -> RunComparison:
    """The runs side by side, and no file written."""
    with ExitStack() as stack:
        return comparison([_summary(mixture_run_at(each) or stack.enter_context(opened(each))) for each in runs])


def _summary(run: Run | Path) -> RunSummary | MixtureSummary:
    if isinstance(run, Run):
        run.of_kind(TrainingMetadata, "compare models on clients' text with `tacit evaluate A B --data CACHE`")
        return summarise(run)
    from tacit.jobs.train.mixture_summary import mixture_summary  # JAX comes with it

    return mixture_summary(run)


def _each(runs: Sequence[Run | PathLike | Sequence[Run | PathLike]]) -> list[Run | PathLike]:
    """Of one list of all, or of each by itself. Raises: InputError for several lists."""
    listed = runs[0] if len(runs) == 1 and isinstance(runs[0], list | tuple) else runs
    if any(isinstance(each, list | tuple) for each in listed):
        raise InputError("runs are named one by one, or in one list; give one list of all.")
    return [each if isinstance(each, Run) else as_path("run", each) for each in listed]
