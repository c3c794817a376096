"""Named statistics of clients' text, as histograms or sums over clients; exact, and released at a price."""

from dataclasses import dataclass
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING

from tacit.errors import InputError, of_type
from tacit.files import PathLike, as_path
from tacit.jobs.exact_and_released import ExactAndReleased
from tacit.progress import Progress, silent
from tacit.records import Record, json_ready
from tacit.runs import Run
from tacit.runs.metadata import CountMetadata

if TYPE_CHECKING:  # JAX comes with them
    from tacit.data import Cache
    from tacit.evaluation.release_cost import ReleaseCost
    from tacit.evaluation.settings import CountSettings
    from tacit.federation.collector import Collector
    from tacit.reports.blocks import Block
    from tacit.text.vocabulary import Vocabulary


@dataclass(frozen=True, kw_only=True)
class CountResult(ExactAndReleased):
    """What was counted: exactly, which only a simulation can, and as it was released; never mixed."""

    def to_record(self) -> Record:
        """Plain values for JSON: what `tacit count --json` prints."""
        return {"schema": "tacit.count", "version": 1, **self.plain()}

    def blocks(self) -> "list[Block]":
        """What people read of it in a few lines."""
        from tacit.reports import count, summary_lines

        record = json_ready(self.record)
        return [*summary_lines.of_promise(record["promise"]), *count.tables(record), *self.report.where()]

    def _repr_html_(self) -> str:
        """What a notebook shows: the promise, then the tables."""
        from tacit.reports import count
        from tacit.reports.page import to_html_fragment
        from tacit.reports.release import promise_blocks

        record = json_ready(self.record)
        return to_html_fragment([*promise_blocks(record["promise"], about_models=False), *count.tables(record)])


def count(
    data: "Cache | PathLike | None",
    out: PathLike,
    *,
    settings: "CountSettings",
    release: "ReleaseCost | None" = None,
    population: PathLike | None = None,
    seed: int | None = None,
    vocabulary: PathLike | None = None,
    collector: "Collector | None" = None,
    progress: Progress = silent,
) -> CountResult:
    """Count named statistics of each client's text, in histograms by the settings' cuts and slices or in sums cell by
    cell, and release those at a price.

    data: the cache of the clients. A run that is at `out` already and was begun with the same is gone on with.
    out: the run folder to make.
    settings: what is counted, and by which cuts and slices.
    release: the privacy cost at which it leaves the simulation; left out, the counts are exact and none may be
    published.
    population: in whose budget the release is entered first.
    seed: fixes the noise, which then is not private.
    vocabulary: the file of the words that those devices' text is cut into.
    collector: asks real devices in place of the clients of `data`, which is None then; nothing is known of them but
    what is released.
    progress: gets events in this thread.

    Raises: InputError before anything is written; RunError where `out` is another run or was changed; what the
    collector does.
    """
    from tacit.evaluation.release_cost import ReleaseCost
    from tacit.evaluation.settings import CountSettings
    from tacit.text.vocabulary import Vocabulary

    of_type("settings", settings, CountSettings)
    of_type("release", release, ReleaseCost, NoneType)
    if (vocabulary is None) != (collector is None):
        raise InputError("vocabulary is of real devices, which have no cache that says it; give it with a collector.")
    words = None if vocabulary is None else Vocabulary.load(as_path("vocabulary", vocabulary))
    return _counted(
        data,
        as_path("out", out),
        settings,
        release,
        population=population,
        seed=seed,
        vocabulary=None if words is None else words.sha256,
        words=words,
        collector=collector,
        progress=progress,
    )


def resume_count(run: Run | PathLike, *, progress: Progress = silent) -> CountResult:
    """Go on with a run of `count`, or write the report of a finished one again. Raises: as `count`."""
    from tacit.evaluation.settings import CountSettings
    from tacit.jobs.analytics_run import begun_with

    begun = begun_with(run, CountMetadata)
    (data, split, collector), settings = begun.clients_or_devices(), begun.settings
    own = {name: settings[name] for name in ("statistics", "sums", "cells", "clients") if name in settings} | split
    given = begun.given
    return _counted(
        data,
        given["out"],
        CountSettings.from_table(own, where="the settings of the run"),
        given["release"],
        population=given["population"],
        seed=settings.get("seed"),
        vocabulary=settings.get("vocabulary"),
        collector=collector,
        progress=progress,
    )


def _counted(
    data: "Cache | PathLike | None",
    out: Path,
    settings: "CountSettings",
    release: "ReleaseCost | None",
    *,
    population: PathLike | None,
    seed: int | None,
    vocabulary: str | None,
    collector: "Collector | None",
    progress: Progress,
    words: "Vocabulary | None" = None,
) -> CountResult:
    from tacit.compute import Hardware
    from tacit.jobs.analytics_run import carry_out
    from tacit.jobs.count.opened import open_count

    counting = open_count(data, settings, release, vocabulary, collector, progress, words=words)
    found = carry_out(
        counting, out, population=population, seed=seed, collector=collector, hardware=Hardware(), progress=progress
    )
    return CountResult(run=Run.open(out), report=found.report, record=found.record)
