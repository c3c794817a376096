"""Who is asked what by `count`, checked before anything is written: histograms (`run.py`), or sums (`sums.py`)."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from tacit.data import Cache
from tacit.errors import InputError
from tacit.evaluation.counts.device_part import SumsQuestion
from tacit.evaluation.release_cost import ReleaseCost
from tacit.evaluation.settings import CountSettings
from tacit.federation.collector import Collector
from tacit.files import PathLike
from tacit.jobs.analytics_run import AnalyticsRun, open_folder
from tacit.jobs.clients_or_devices import Devices, Simulated, check_answered, clients_or_devices
from tacit.jobs.count.run import Counting
from tacit.jobs.count.sums import Summing
from tacit.progress import Progress, silent
from tacit.runs import Run
from tacit.text.vocabulary import Vocabulary


def open_count(
    data: Cache | PathLike | None,
    settings: CountSettings,
    cost: ReleaseCost | None,
    vocabulary: str | None,
    collector: Collector | None,
    progress: Progress,
    *,
    words: Vocabulary | None = None,
) -> AnalyticsRun[Any, Any]:
    """vocabulary: SHA-256, of real devices' text; that of simulated clients is their cache's. words: those of it, where
    they are at hand. Raises: InputError for fewer than two clients, devices of whom some histogram might have no
    answer, and sums of more words than there are, or that devices would have to randomise.
    """
    participants = clients_or_devices(data, settings.split_name, settings.clients, cost, collector, progress)
    if participants.count < 2:
        raise InputError(f"{participants.count} {participants} say nothing about many; {participants.more}.")
    digest = next(iter(participants.vocabulary.values())) if vocabulary is None else vocabulary
    release = None if cost is None else cost.asking(participants.members)
    if isinstance(settings.computation, SumsQuestion):
        if isinstance(participants, Simulated):
            words = Vocabulary.from_json(participants.cache.vocabulary_json)
        return _summing(settings, settings.computation, participants, release, digest, words)
    counting = Counting(settings=settings, release=release, participants=participants, vocabulary=digest)
    if collector is not None:
        check_answered(counting.question)
    return counting


def _summing(
    settings: CountSettings,
    computation: SumsQuestion,
    participants: Simulated | Devices,
    release: ReleaseCost | None,
    digest: str,
    words: Vocabulary | None,
) -> Summing:
    if release is not None and release.local_epsilon is not None:
        raise InputError(
            f"local_epsilon={release.local_epsilon:g} lets each device answer one histogram, and "
            f"{computation.statistics[0]} is a sum of whole numbers; give epsilon or zcdp, or statistics with cuts."
        )
    computation.sums.check_reports(participants.count)
    if (listed := settings.cells) is not None:
        if listed.path is None:
            raise InputError("the list of cells is in no file, and a resumed run reads it again; `save` it first.")
        settings = replace(settings, cells=replace(listed, path=listed.path.resolve()))
        if words is not None:
            computation = computation.counting(listed, words)
    most = max(settings.sums, key=lambda each: each.words, default=None)
    if words is not None and most is not None and most.words > len(words.words):
        raise InputError(
            f"{most} of {most.words:,} words are more than the {len(words.words):,} of the vocabulary; give that many "
            "at most."
        )
    return Summing(
        settings=settings,
        computation=computation,
        release=release,
        participants=participants,
        vocabulary=digest,
        words=words,
    )


def begun(settings: CountSettings, cost: ReleaseCost, words: Vocabulary, out: Path, collector: Collector) -> Run:
    """The open run folder of real devices, new or gone on with; nobody is asked yet. words: of their text.

    Raises: as `tacit.count`.
    """
    counting = open_count(None, settings, cost, words.sha256, collector, silent, words=words)
    return open_folder(counting, out, None, None, of_devices=True)
