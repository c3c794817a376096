"""Each model's counts of each client, kept group by group in a run folder, and what is released of them.

With real devices nobody has a client's counts: the run has only what was released, nothing exact.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tacit.compute import Hardware
from tacit.compute.cores import Cores
from tacit.data import Cache
from tacit.errors import InputError
from tacit.evaluation.accuracy import evaluate
from tacit.evaluation.counts.collect import CountQuestion
from tacit.evaluation.counts.histograms import (
    UNCHANGED,
    Histogram,
    HistogramQuery,
    mean_from,
    quantile_from,
    share_from,
    worst_share_from,
)
from tacit.evaluation.counts.model_queries import accuracy_query, change_query, queries_about
from tacit.evaluation.counts.release import exactly
from tacit.evaluation.device_part import ModelsQuestion, NetworkWithParameters
from tacit.evaluation.fairness import QUANTILES, advantage_of, shared_vocabulary, spread_of
from tacit.evaluation.held_out import HeldOut
from tacit.evaluation.intervals import as_share, complement
from tacit.evaluation.reader_accuracy import evaluate_reader
from tacit.evaluation.release_cost import ReleaseCost
from tacit.evaluation.settings import EvaluationSettings
from tacit.federation.collector import Collector
from tacit.files import PathLike, as_path
from tacit.jobs.analytics_run import AnalyticsRun, Ask, carry_out, open_folder
from tacit.jobs.clients_or_devices import Devices, Simulated, check_answered, clients_or_devices
from tacit.jobs.count_steps import Lines, model_record, refused_of_devices, simulated
from tacit.jobs.opened_cache import open_cache
from tacit.jobs.phone_models import counted_cache, trigram_model
from tacit.keyboard.model_folder import TrainedModel, load_model
from tacit.keyboard.phone_model import PhoneModel, load_phone_model
from tacit.networks.metrics import Counts
from tacit.networks.model_files import is_counted
from tacit.progress import Advanced, Progress, StageBegan, StageEnded, compiling, silent
from tacit.reports.page import ReportFiles
from tacit.runs import Run
from tacit.runs.metadata import EvaluationMetadata

AT_ONCE = 64  # clients whose sentences are in memory together
COUNTS = Path("simulation") / "counts.jsonl"
EXACT = "SIMULATION ONLY: exact numbers; no server would have them"
Counted = dict[str, list[Counts]]  # by model, then by client in the order of asking


@dataclass(frozen=True, kw_only=True)
class Known:
    """What a simulation knows: what its clients' counts say, and their answers."""

    exact: dict[str, Any]
    queries: list[HistogramQuery]

    @classmethod
    def from_counts(cls, counted: Counted) -> "Known":
        """Raises: InputError where too few clients have a known word."""
        return cls(exact=_exact(counted), queries=queries_about(list(counted.values())))


@dataclass(frozen=True, kw_only=True)
class Evaluation(AnalyticsRun[Known, Mapping[str, Histogram]]):
    """An opened evaluation: models of one vocabulary, and the clients or devices."""

    metadata = EvaluationMetadata
    models: tuple[TrainedModel | PhoneModel, ...]
    settings: EvaluationSettings
    release: ReleaseCost | None
    participants: Simulated | Devices

    @property
    def lines(self) -> tuple[Path, ...]:
        """See AnalyticsRun."""
        return (COUNTS,)

    @property
    def count(self) -> int:
        """See AnalyticsRun."""
        return self.participants.count

    @property
    def names(self) -> tuple[str, ...]:
        """Of the models."""
        return self.participants.named(self.models)

    @property
    def networks(self) -> tuple[TrainedModel, ...]:
        """The models that are networks."""
        return tuple(each for each in self.models if isinstance(each, TrainedModel))

    @property
    def task(self) -> CountQuestion:
        """The question of the one step. Needs a release."""
        assert self.release is not None  # the caller's to know
        computation = ModelsQuestion(
            models=tuple(
                NetworkWithParameters(each.network, each.parameters) if isinstance(each, TrainedModel) else None
                for each in self.models
            ),
            sentences=self.settings.sentences,
            words=self.settings.words,
        )
        return CountQuestion(
            step=0,
            steps=1,
            devices=self.participants.count,
            histograms=computation.histograms,
            computation=computation,
            local_epsilon=self.release.local_epsilon,
        )

    def settings_record(self, seed: int | None) -> dict[str, Any]:
        """See AnalyticsRun."""
        return {
            "models": [model_record(model) for model in self.models],
            **self.participants.to_settings(self.settings.split_name, self.models[0].vocabulary.sha256, self.networks),
            "clients": self.settings.clients,
            "sentences": self.settings.sentences,
            "words": self.settings.words,
            **({} if self.release is None else {"release": self.release.to_plain()}),
            **({} if seed is None else {"seed": seed}),
        }

    def about_clients(self) -> dict[str, Any]:
        """See AnalyticsRun."""
        return self.participants.recorded

    def every_client(self, run: Run, hardware: Hardware, progress: Progress) -> Known:
        """See AnalyticsRun."""
        return Known.from_counts(_count_clients(self, hardware, progress, kept=Lines(run.path / COUNTS)))

    def simulated(self, run: Run, known: Known) -> Collector:
        """See AnalyticsRun."""
        assert self.release is not None and isinstance(self.participants, Simulated)  # or nobody would be asked
        queries, clients = known.queries, self.participants.clients
        return simulated(run, self.release, lambda task: queries, lambda task: clients)

    def answers(self, ask: Ask) -> Mapping[str, Histogram]:
        """See AnalyticsRun."""
        return ask(self.task)

    def record(
        self, promise: Mapping[str, Any], known: Known | None, released: Mapping[str, Histogram] | None
    ) -> dict[str, Any]:
        """See AnalyticsRun."""
        return {
            "models": list(self.names),
            **self.participants.about(self.settings.split_name),
            "sentences": self.settings.sentences,
            "words": self.settings.words,
            "asked": self.participants.count,
            "promise": promise,
            "released": None if released is None else _released(self.names, released),
            "simulation_only": None if known is None else known.exact,
        }

    def drawn(self, known: Known | None, released: Mapping[str, Histogram] | None) -> dict[str, Any]:
        """See AnalyticsRun."""
        exact = None if known is None else exactly(known.queries)
        found = {"released": released, "exact": exact}
        return {
            "histograms": {
                which: None if each is None else {name: histogram.to_record() for name, histogram in each.items()}
                for which, each in found.items()
            }
        }


def evaluated(
    models: Sequence[TrainedModel | PathLike],
    data: Cache | PathLike | None,
    settings: EvaluationSettings,
    cost: ReleaseCost | None,
    *,
    out: Path | None,
    population: PathLike | None,
    seed: int | None,
    collector: Collector | None,
    hardware: Hardware,
    progress: Progress,
) -> tuple[dict[str, Any], ReportFiles | None]:
    """See `tacit.evaluate`: the record of the report, and where it was written."""
    if out is None and (cost is not None or population is not None or collector is not None):
        raise InputError("a release is kept in a run folder with its ledger row, or not made; name one with --out.")
    hardware.apply(processor_only=True)
    evaluation = open_evaluation(models, data, settings, cost, collector, progress)
    if out is None:
        known = Known.from_counts(_count_clients(evaluation, hardware, progress))
        return evaluation.record({"kind": "nothing"}, known, None), None
    found = carry_out(
        evaluation, out, population=population, seed=seed, collector=collector, hardware=hardware, progress=progress
    )
    return found.record, found.report


def begun(
    models: Sequence[TrainedModel | PathLike],
    settings: EvaluationSettings,
    cost: ReleaseCost,
    out: Path,
    collector: Collector,
) -> Run:
    """The open run folder of real devices, new or resumed, before any device is asked. Raises: as `tacit.evaluate`."""
    evaluation = open_evaluation(models, None, settings, cost, collector, silent)
    return open_folder(evaluation, out, None, None, of_devices=True)


def open_evaluation(
    models: Sequence[TrainedModel | PathLike],
    data: Cache | PathLike | None,
    settings: EvaluationSettings,
    cost: ReleaseCost | None,
    collector: Collector | None,
    progress: Progress,
) -> Evaluation:
    """Raises: InputError for models and a cache of different vocabularies, or fewer than two clients."""
    participants = clients_or_devices(data, settings.split_name, settings.clients, cost, collector, progress)
    loaded = [_opened(each, cost, progress) for each in models]
    counted = next((each for each in loaded if isinstance(each, PhoneModel)), None)
    if counted is not None and collector is not None:
        raise refused_of_devices(counted)
    digests = {str(model): model.vocabulary.sha256 for model in loaded}
    if len(digests) < len(loaded) or not loaded:
        raise InputError("a model was named twice, and comparing it with itself says nothing; name each once.")
    shared_vocabulary({**digests, **participants.vocabulary})
    if participants.count < 2:
        raise InputError(f"{participants.count} {participants} say nothing about many; {participants.more}.")
    release = None if cost is None else cost.asking(participants.members)
    evaluation = Evaluation(models=tuple(loaded), settings=settings, release=release, participants=participants)
    if collector is not None:
        check_answered(evaluation.task)
    return evaluation


def _opened(model: TrainedModel | PathLike, cost: ReleaseCost | None, progress: Progress) -> TrainedModel | PhoneModel:
    if isinstance(model, TrainedModel):
        return model
    path = as_path("models", model)
    if (cache := counted_cache(path)) is not None:
        if cost is not None and not open_cache(cache).manifest.public:
            raise InputError(
                f"'{path}' counts clients' text, to whom it promises nothing, and what is released of it would tell of "
                "them; leave the price out, or count public text."
            )
        return trigram_model(cache, progress=progress)
    return load_phone_model(path) if is_counted(path) else load_model(path)


def _count_clients(
    evaluation: Evaluation, hardware: Hardware, progress: Progress, *, kept: Lines | None = None
) -> Counted:
    """Each model's counts of each client, a group at a time.

    kept: where finished groups are added and none is counted that is there already; hold the run's lock.
    """
    assert isinstance(evaluation.participants, Simulated)  # real devices count by themselves
    cache, clients = evaluation.participants.cache, evaluation.participants.clients
    cores, found = Cores(hardware), dict[int, list[Counts]]()
    if kept is not None:
        kept.drop_torn_line()
        found = {row["client"]: [Counts.from_row(each) for each in row["counts"]] for row in kept.rows()}
    networks = dict.fromkeys(model.network for model in evaluation.networks)
    missing = networks and len(found) < len(clients)
    opening = (
        compiling("evaluation", evaluation.settings.sentences, evaluation.settings.words, *networks) if missing else ""
    )
    progress(StageBegan("clients", len(clients), len(found), opening=opening))
    for start in range(0, len(clients), AT_ONCE):
        group = [int(client) for client in clients[start : start + AT_ONCE] if int(client) not in found]
        if not group:
            continue
        held_out = HeldOut.read(
            cache, np.array(group), sentences=evaluation.settings.sentences, words=evaluation.settings.words
        )
        each = [
            evaluate(model.network, model.parameters, held_out, cores=cores).clients
            if isinstance(model, TrainedModel)
            else evaluate_reader(model.reader, held_out).clients
            for model in evaluation.models
        ]
        new = {client: [of_model[at] for of_model in each] for at, client in enumerate(group)}
        found.update(new)
        if kept is not None:
            kept.append(
                {"client": client, "counts": [one.to_row() for one in counts]} for client, counts in new.items()
            )
        progress(Advanced("clients", len(found)))
    progress(StageEnded("clients"))
    return {name: [found[int(client)][at] for client in clients] for at, name in enumerate(evaluation.names)}


def _exact(counted: Counted) -> dict[str, Any]:
    first, *others = counted
    return {
        "what": EXACT,
        "models": {name: asdict(spread_of(each)) for name, each in counted.items()},
        "against_the_first": {name: asdict(advantage_of(counted[name], counted[first])) for name in others},
    }


def _released(names: Sequence[str], histograms: Mapping[str, Histogram]) -> dict[str, Any]:
    """All of it computed from the noised counts alone."""
    models, against = {}, {}
    for at, name in enumerate(names):
        accuracy = histograms[accuracy_query(at)]
        models[name] = {
            "mean": as_share(mean_from(accuracy)),
            "worst_decile": as_share(worst_share_from(accuracy, 0.1)),
            "quantiles": {q: quantile_from(accuracy, q) for q in QUANTILES},
            "histogram": accuracy.as_row(),
        }
        if at:
            change = histograms[change_query(at)]
            against[name] = {
                "mean": mean_from(change),
                "better": share_from(change, UNCHANGED),
                "worse": complement(share_from(change, 0.0)),
                "histogram": change.as_row(),
            }
    return {"models": models, "against_the_first": against}
