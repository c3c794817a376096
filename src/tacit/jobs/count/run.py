"""A run of `count` by histograms: who is asked which statistics, and the record of what came back. Sums: `sums.py`."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tacit.compute import Hardware
from tacit.errors import InputError
from tacit.evaluation.counts.collect import CountQuestion
from tacit.evaluation.counts.device_part import StatisticsQuestion
from tacit.evaluation.counts.histograms import Histogram, HistogramQuery, mean_from, quantile_from
from tacit.evaluation.counts.release import exactly
from tacit.evaluation.counts.statistics import TypedText
from tacit.evaluation.release_cost import ReleaseCost
from tacit.evaluation.settings import CountSettings
from tacit.federation.collector import Collector
from tacit.jobs.analytics_run import AnalyticsRun, Ask, Known, Released
from tacit.jobs.clients_or_devices import Devices, Simulated
from tacit.jobs.count_steps import simulated
from tacit.progress import Advanced, Progress, StageBegan, StageEnded
from tacit.runs import Run
from tacit.runs.metadata import CountMetadata

EXACT = "SIMULATION ONLY: exact numbers; no server would have them"
QUANTILES = (0.1, 0.5, 0.9)
AT_ONCE = 64  # clients between two events
Queries = list[HistogramQuery]
Histograms = Mapping[str, Histogram]


@dataclass(frozen=True, kw_only=True)
class CountRun(AnalyticsRun[Known, Released]):
    """What runs of histograms and of sums share. What a client counts is computed anew where a run is resumed."""

    metadata = CountMetadata
    settings: CountSettings
    release: ReleaseCost | None
    participants: Simulated | Devices
    vocabulary: str  # SHA-256 of the words that the text is cut into

    @property
    def lines(self) -> tuple[Path, ...]:
        """See AnalyticsRun: none are kept."""
        return ()

    @property
    def count(self) -> int:
        """See AnalyticsRun."""
        return self.participants.count

    def settings_record(self, seed: int | None) -> dict[str, Any]:
        """See AnalyticsRun."""
        return {
            **self.settings.counted(),
            **self.participants.to_settings(self.settings.split_name, self.vocabulary),
            "clients": self.settings.clients,
            **self.settings.list_file(),
            **({} if self.release is None else {"release": self.release.to_plain()}),
            **({} if seed is None else {"seed": seed}),
        }


class Counting(CountRun[Queries, Histograms]):
    """Histograms by cuts and slices."""

    @property
    def question(self) -> CountQuestion:
        """Of the one step. Needs a price."""
        assert self.release is not None  # the caller's to know
        computation = self.settings.computation
        assert isinstance(computation, StatisticsQuestion)  # or `sums.py` would have the run
        return CountQuestion(
            step=0,
            steps=1,
            devices=self.participants.count,
            histograms=computation.histograms,
            computation=computation,
            local_epsilon=self.release.local_epsilon,
        )

    def about_clients(self) -> dict[str, Any]:
        """See AnalyticsRun."""
        return self.participants.recorded

    def every_client(self, run: Run, hardware: Hardware, progress: Progress) -> Queries:
        """See AnalyticsRun. Raises: InputError naming the client whose text a statistic fails on."""
        assert isinstance(self.participants, Simulated)  # real devices count by themselves
        return _counted(self.settings, self.participants, progress)

    def simulated(self, run: Run, known: Queries) -> Collector:
        """See AnalyticsRun."""
        assert self.release is not None and isinstance(self.participants, Simulated)  # or nobody would be asked
        clients = self.participants.clients
        return simulated(run, self.release, lambda question: known, lambda question: clients)

    def answers(self, ask: Ask) -> Histograms:
        """See AnalyticsRun."""
        return ask(self.question)

    def record(self, promise: Mapping[str, Any], known: Queries | None, released: Histograms | None) -> dict[str, Any]:
        """See AnalyticsRun."""
        return {
            **self.participants.about(self.settings.split_name),
            "asked": self.participants.count,
            "promise": promise,
            "released": None if released is None else {"statistics": _said(released)},
            "simulation_only": None if known is None else {"what": EXACT, "statistics": _said(exactly(known))},
        }


def texts_of(participants: Simulated, progress: Progress) -> Iterator[tuple[int, TypedText]]:
    """The number and the text of each client, in the order of asking; progress hears of them."""
    progress(StageBegan("clients", participants.count, 0))
    for place, client in enumerate(map(int, participants.clients), start=1):
        yield client, TypedText.from_cache(participants.cache, client)
        if place % AT_ONCE == 0:
            progress(Advanced("clients", place))
    progress(StageEnded("clients"))


@contextmanager
def failing_on(statistic: object, client: int, way_out: str) -> Iterator[None]:
    """Whatever a statistic raises on a simulated client's text is an InputError that names both."""
    try:
        yield
    except Exception as error:
        raise InputError(
            f"the statistic {statistic} fails on the text of client {client} ({type(error).__name__}: {error}); "
            f"{way_out} and tells nobody."
        ) from error


def _counted(settings: CountSettings, participants: Simulated, progress: Progress) -> Queries:
    """Each client's cell in each histogram."""
    chosen = np.empty((len(settings.statistics), participants.count), np.int64)
    for place, (client, text) in enumerate(texts_of(participants, progress)):
        for number, each in enumerate(settings.statistics):
            with failing_on(each, client, "return nan there, which is no report. A device makes no report of it"):
                chosen[number, place] = each.cell_of(text)
    return [
        HistogramQuery(name=str(each), cells=each.cells, chosen=cells)
        for each, cells in zip(settings.statistics, chosen, strict=True)
    ]


def _said(histograms: Histograms) -> dict[str, Any]:
    """All that is read from histograms alone: of all clients of one, and of each slice."""
    return {
        name: {
            **_of_one(each),
            "slices": [
                {"slice": label, "clients": part.reporting, **_of_one(part)}
                for at, label in enumerate(each.cells.slices.labels())
                for part in [each.slice(at)]
            ],
            "histogram": each.to_record(),
        }
        for name, each in histograms.items()
    }


def _of_one(histogram: Histogram) -> dict[str, Any]:
    return {
        "mean": mean_from(histogram),
        "quantiles": {q: quantile_from(histogram, q) for q in QUANTILES},
    }
