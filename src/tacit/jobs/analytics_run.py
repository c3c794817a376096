"""A run of federated analytics, from its folder to its pages; for simulated clients and real devices alike.

    open or begin the folder -> every client's line -> rehearse all that follows -> confirm the budget -> release step
    by step -> records -> pages

Each kind (`evaluate`, `personalize`, `type_ab`, `count`) adds its own parts as an `AnalyticsRun`. Work done before a
process was killed is on disk and is not repeated. With real devices there are no clients' lines: the run has only what
was released, nothing exact.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

import tomli_w

from tacit.compute import Hardware
from tacit.evaluation.counts.collect import CountQuestion
from tacit.evaluation.counts.histograms import Histogram
from tacit.evaluation.release_cost import ReleaseCost
from tacit.federation.collector import Collector
from tacit.files import PathLike, as_path
from tacit.jobs.account import budget
from tacit.jobs.clients_or_devices import clients_or_devices_of
from tacit.jobs.count_steps import cost_of_release, delta_of, planned_cost, released_step
from tacit.jobs.made_up_answers import MadeUpAnswers
from tacit.jobs.rehearsal import REHEARSING, RELEASE, REPORT, STATEMENT, kept_open, refused, scratch_run
from tacit.jobs.run_start import begin, key_for, of_this_process
from tacit.progress import Progress, StageBegan, StageEnded, silent
from tacit.records import Record
from tacit.reports.page import FOR_READERS, PUBLISHED, ReportFiles, to_json, write_files
from tacit.reports.record_files import Records, write_run
from tacit.runs import Metadata, Run
from tacit.runs.metadata import AskingMetadata
from tacit.statements.count import promise_of
from tacit.statements.run_facts import statement_of

Known = TypeVar("Known")  # what a simulation knows of its clients
Released = TypeVar("Released")  # what follows from released sums
Ask: TypeAlias = Callable[[CountQuestion], Mapping[str, Histogram]]  # of histograms: what a step releases


class AnalyticsRun(ABC, Generic[Known, Released]):
    """What one kind of run has of its own: opened and checked, before anything is written."""

    metadata: ClassVar[type[AskingMetadata]]
    release: ReleaseCost | None  # None: nothing is released

    @property
    @abstractmethod
    def lines(self) -> tuple[Path, ...]:
        """The files of simulated clients' lines, in the folder."""

    @property
    @abstractmethod
    def count(self) -> int:
        """The number of clients or devices."""

    @abstractmethod
    def settings_record(self, seed: int | None) -> dict[str, Any]:
        """What the folder's settings.toml says. seed: of the noise."""

    @abstractmethod
    def about_clients(self) -> dict[str, Any]:
        """Of whose text it is, for the metadata: `source`, and whatever else this kind records."""

    @abstractmethod
    def every_client(self, run: Run, hardware: Hardware, progress: Progress) -> Known:
        """Every simulated client's line that the folder lacks, then what all of them say. Hold the run's lock."""

    @abstractmethod
    def simulated(self, run: Run, known: Known) -> Collector:
        """The same clients as devices that answer."""

    @abstractmethod
    def answers(self, ask: Callable[[Any], Any]) -> Released:
        """Ask step by step; what the releases say together."""

    @abstractmethod
    def record(self, promise: Mapping[str, Any], known: Known | None, released: Released | None) -> dict[str, Any]:
        """The record of the report: `released` beside `simulation_only`, never mixed."""

    def files(self, released: Released) -> dict[str, bytes]:
        """What is published beside the page, by the names of files in `report`: what is too large for a record."""
        return {}

    def drawn(self, known: Known | None, released: Released | None) -> dict[str, Any]:
        """What figures are drawn from, beside the record; nothing where that has it."""
        return {}


@dataclass(frozen=True, kw_only=True)
class Outcome(Generic[Known, Released]):
    """What came of a run: what is known exactly, what was released, the report's record, and where it was written."""

    known: Known | None
    released: Released | None
    record: dict[str, Any]
    report: ReportFiles


def open_folder(
    analytics: AnalyticsRun[Any, Any],
    out: Path,
    population: PathLike | None,
    seed: int | None,
    *,
    of_devices: bool,
    progress: Progress = silent,
) -> Run:
    """A new run folder, or the existing one at `out`; RunError where that has other settings.

    of_devices: of real ones nothing more is known later, so that a new run is rehearsed here, before there is a folder.
    """
    key = key_for(seed)
    metadata = analytics.metadata(
        **of_this_process(seed), **analytics.about_clients(), asked=analytics.count, delta=delta_of(analytics.release)
    )
    settings = tomli_w.dumps(analytics.settings_record(seed))
    if of_devices and not (out / "run.db").is_file():
        _rehearse(analytics, out, settings, metadata, None, progress)
    request = budget.BudgetRequest.from_options(population, analytics.count, planned_cost(analytics.release))
    return begin(out, settings, metadata, key, request=request)


def carry_out(
    analytics: AnalyticsRun[Known, Released],
    out: Path,
    *,
    population: PathLike | None,
    seed: int | None,
    collector: Collector | None,
    hardware: Hardware,
    progress: Progress,
) -> Outcome[Known, Released]:
    """From the folder to its pages. collector: of real devices; None: clients are simulated.

    Raises: RunError where `out` is another run or was changed, or its report fails; InputError where too few clients
    can be measured or the rehearsal fails, before anything is released; BudgetError; what the collector does.
    """
    of_devices = collector is not None
    with (
        open_folder(analytics, out, population, seed, of_devices=of_devices, progress=progress) as run,
        run.locked(),
    ):
        known: Known | None = None
        released: Released | None = None
        if collector is None:
            if run.finished:
                for place in analytics.lines:
                    run.kept(str(place))
            known = analytics.every_client(run, hardware, progress)
        if analytics.release is not None and not of_devices and not run.steps_done:
            _rehearse(analytics, run.path, run.settings, run.metadata, known, progress)
        reservation = budget.recheck(run, progress)
        if (cost := analytics.release) is not None:
            asking = collector
            if asking is None:
                assert known is not None  # of simulated clients everything is
                asking = analytics.simulated(run, known)
            released = analytics.answers(lambda task: released_step(run, cost, task, asking, reservation=reservation))
        budget.commit(run)
        with kept_open(run, STATEMENT):
            promise, stated = promise_of(run), statement_of(run).to_record() if run.steps_done else None
        with kept_open(run, REPORT, lambda: _leave_statement(run, stated)):
            record, report = _written(analytics, run, promise, stated, known, released)
        run.keep_files(*FOR_READERS)
        run.finish()
        run.tidy()
    return Outcome(known=known, released=released, record=record, report=report)


def _written(
    analytics: AnalyticsRun[Known, Released],
    run: Run,
    promise: Mapping[str, Any],
    stated: Record | None,
    known: Known | None,
    released: Released | None,
) -> tuple[dict[str, Any], ReportFiles]:
    """Write the report; its record, and where it is."""
    record = {"run": str(run.path), **analytics.record(promise, known, released)}
    everything = {**record, **analytics.drawn(known, released), "statement": stated}
    records = Records.from_everything(run.kind, everything, simulated=known is not None)
    report = write_run(run.path, run.kind, records)
    write_files(run.path / PUBLISHED, {} if released is None else analytics.files(released))
    return record, report


def _leave_statement(run: Run, stated: Record | None) -> None:
    """What was released has its statement, whatever becomes of the pages."""
    if stated is not None:
        write_files(run.path / PUBLISHED, {"statement.json": to_json(stated)})
        run.keep_files(f"{PUBLISHED}/statement.json")


def _rehearse(
    analytics: AnalyticsRun[Known, Released],
    out: Path,
    settings: str,
    metadata: Metadata,
    known: Known | None,
    progress: Progress,
) -> None:
    """Play what comes after the first release with answers that are made up; see `jobs/rehearsal.py`.

    known: of simulated clients. Raises: InputError naming what fails.
    """
    progress(StageBegan(REHEARSING))
    cost = analytics.release
    assert cost is not None  # or nothing is released
    with scratch_run(out, settings, metadata, key_for(None)) as run:
        with refused(RELEASE):
            nobody = MadeUpAnswers(of_devices=known is None)
            released = analytics.answers(lambda task: released_step(run, cost, task, nobody))
        with refused(STATEMENT):
            promise, stated = promise_of(run), statement_of(run).to_record()
        with refused(REPORT):
            _written(analytics, run, promise, stated, known, released)
    progress(StageEnded(REHEARSING))


# -- going on ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class BegunWith:
    """The settings with which a run began, read from its folder."""

    path: Path
    metadata: AskingMetadata
    settings: Mapping[str, Any]

    @property
    def given(self) -> dict[str, Any]:
        """The arguments that every such job has, from the folder: its path, its cost, its population."""
        used = self.metadata.budget
        return {
            "out": self.path,
            "release": cost_of_release(self.settings),
            "population": None if used is None else used.path,
        }

    def clients_or_devices(self) -> tuple[str | None, dict[str, Any], Collector | None]:
        """See `clients_or_devices.clients_or_devices_of`."""
        return clients_or_devices_of(self.path, self.settings)


def begun_with(run: Run | PathLike, kind: type[AskingMetadata]) -> BegunWith:
    """What a run of one kind was begun with. Raises: InputError where it is of another; RunError (damaged)."""
    if not isinstance(run, Run):
        with Run.open(as_path("run", run)) as opened:
            return begun_with(opened, kind)
    metadata = run.of_kind(kind, "go on with it by `{command}`")
    return BegunWith(path=run.path, metadata=metadata, settings=run.settings_table)
