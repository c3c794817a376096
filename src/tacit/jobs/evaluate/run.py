"""Each model's counts of each client, kept group by group in a run folder, and what is released of them.

Where real devices are asked, nobody has a client's counts: the run has what was released, and nothing exact.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w

from tacit.compute import Hardware
from tacit.compute.cores import Cores
from tacit.data import Cache
from tacit.errors import InputError
from tacit.evaluation.accuracy import HeldOut, evaluate
from tacit.evaluation.counts.collect import Collector, HistogramTask
from tacit.evaluation.counts.histograms import (
    UNCHANGED,
    Histogram,
    HistogramQuery,
    mean_from,
    quantile_from,
    share_from,
    worst_share_from,
)
from tacit.evaluation.counts.release import exactly
from tacit.evaluation.device_part import ModelsAsked, Network
from tacit.evaluation.fairness import (
    QUANTILES,
    accuracy_query,
    advantage_of,
    change_query,
    queries_about,
    shared_vocabulary,
    spread_of,
)
from tacit.evaluation.intervals import as_share, complement
from tacit.evaluation.settings import EvaluationSettings, ReleasePrice
from tacit.files import PathLike, as_path
from tacit.jobs.account import budget
from tacit.jobs.clients_or_devices import Devices, Simulated, asked_whom, check_answered
from tacit.jobs.count_steps import Lines, delta_of, model_asked, planned_cost, released_step, simulated, statement_file
from tacit.jobs.run_start import begin, key_for, of_this_process
from tacit.keyboard.model_folder import TrainedModel, load_model
from tacit.networks.metrics import Counts
from tacit.progress import Advanced, Progress, StageBegan, StageEnded, compiling, silent
from tacit.reports import evaluate as report
from tacit.reports.page import FOR_READERS, ReportFiles, write_both
from tacit.runs import Run
from tacit.runs.metadata import EvaluationMetadata
from tacit.statements.run_facts import promise_of

AT_ONCE = 64  # clients whose sentences are in memory together
COUNTS = Path("simulation") / "counts.jsonl"
EXACT = "SIMULATION ONLY: exact numbers; no server would have them"
Counted = dict[str, list[Counts]]  # by model, then by client in the order of asking


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What is asked, opened: models of one vocabulary, and who is asked."""

    models: tuple[TrainedModel, ...]
    settings: EvaluationSettings
    release: ReleasePrice | None
    whom: Simulated | Devices

    @property
    def names(self) -> tuple[str, ...]:
        """Of the models."""
        return self.whom.named(self.models)

    @property
    def task(self) -> HistogramTask:
        """What is asked in the one step. Needs a price."""
        assert self.release is not None  # the caller's to know
        asks = ModelsAsked(
            models=tuple(Network(each.network, each.parameters) for each in self.models),
            sentences=self.settings.sentences,
            words=self.settings.words,
        )
        return HistogramTask(
            step=0,
            steps=1,
            devices=self.whom.count,
            histograms=asks.histograms,
            asks=asks,
            local_epsilon=self.release.local_epsilon,
        )


def evaluated(
    models: Sequence[TrainedModel | PathLike],
    data: Cache | PathLike | None,
    settings: EvaluationSettings,
    price: ReleasePrice | None,
    *,
    out: Path | None,
    population: PathLike | None,
    seed: int | None,
    collector: Collector | None,
    hardware: Hardware,
    progress: Progress,
) -> tuple[dict[str, Any], ReportFiles | None]:
    """See `tacit.evaluate`: the record of the report, and where it was written."""
    if out is None and (price is not None or population is not None or collector is not None):
        raise InputError("a release is kept in a run folder with its ledger row, or not made; name one with --out.")
    hardware.apply(processor_only=True)
    asked = _open(models, data, settings, price, collector, progress)
    if out is None:
        counted = _count_clients(asked, hardware, progress)
        nothing = {"promise": {"kind": "nothing"}, "released": None, "simulation_only": _exact(counted)}
        return {**_about(asked), **nothing}, None
    with _begin(asked, out, population, seed) as run, run.locked():
        if collector is not None:
            found = _release_and_report(asked, run, None, collector)
        else:
            if run.finished:
                run.kept(str(COUNTS))
            counted = _count_clients(asked, hardware, progress, kept=Lines(run.path / COUNTS))
            found = _release_and_report(asked, run, counted, None)
        run.keep_files(*FOR_READERS)
        run.finish()
        run.tidy()
    return found


def begun(
    models: Sequence[TrainedModel | PathLike],
    settings: EvaluationSettings,
    price: ReleasePrice,
    out: Path,
    collector: Collector,
) -> Run:
    """The open run folder of real devices, new or gone on with; nobody is asked yet. Raises: as `tacit.evaluate`."""
    return _begin(_open(models, None, settings, price, collector, silent), out, None, None)


def _open(
    models: Sequence[TrainedModel | PathLike],
    data: Cache | PathLike | None,
    settings: EvaluationSettings,
    price: ReleasePrice | None,
    collector: Collector | None,
    progress: Progress,
) -> Asked:
    """Raises: InputError for models and a cache of different vocabularies, or fewer than two clients."""
    whom = asked_whom(data, settings.split_name, settings.clients, price, collector, progress)
    loaded = [each if isinstance(each, TrainedModel) else load_model(as_path("models", each)) for each in models]
    digests = {str(model): model.vocabulary.sha256 for model in loaded}
    if len(digests) < len(loaded) or not loaded:
        raise InputError("a model was named twice, and comparing it with itself says nothing; name each once.")
    shared_vocabulary({**digests, **whom.vocabulary})
    if whom.count < 2:
        raise InputError(f"{whom.count} {whom} say nothing about many; {whom.more}.")
    release = None if price is None else price.asking(whom.members)
    asked = Asked(models=tuple(loaded), settings=settings, release=release, whom=whom)
    if collector is not None:
        check_answered(asked.task)
    return asked


def _begin(asked: Asked, out: Path, population: PathLike | None, seed: int | None) -> Run:
    """A new run folder, or the one at `out`; RunError where that was begun with other settings."""
    settings = {
        "models": [model_asked(model) for model in asked.models],
        **asked.whom.asked(asked.settings.split_name, asked.models),
        "clients": asked.settings.clients,
        "sentences": asked.settings.sentences,
        "words": asked.settings.words,
        **({} if asked.release is None else {"release": asked.release.to_plain()}),
        **({} if seed is None else {"seed": seed}),
    }
    key = key_for(seed)
    metadata = EvaluationMetadata(
        **of_this_process(seed),
        source=asked.whom.source,
        asked=asked.whom.count,
        delta=delta_of(asked.release),
        deployment=asked.whom.deployment,
        asked_by=asked.whom.asked_by,
    )
    taken = budget.Asked.of(population, asked.whom.count, planned_cost(asked.release))
    return begin(out, tomli_w.dumps(settings), metadata, key, asked=taken)


def _count_clients(asked: Asked, hardware: Hardware, progress: Progress, *, kept: Lines | None = None) -> Counted:
    """Each model's counts of each client, a group at a time.

    kept: where finished groups are added and none is counted that is there already; hold the run's lock.
    """
    assert isinstance(asked.whom, Simulated)  # real devices count by themselves
    cache, clients = asked.whom.cache, asked.whom.clients
    cores, found = Cores(hardware), dict[int, list[Counts]]()
    if kept is not None:
        kept.drop_torn_line()
        found = {row["client"]: [Counts.from_row(each) for each in row["counts"]] for row in kept.rows()}
    networks = dict.fromkeys(model.network for model in asked.models)
    missing = len(found) < len(clients)
    opening = compiling("evaluation", asked.settings.sentences, asked.settings.words, *networks) if missing else ""
    progress(StageBegan("clients", len(clients), len(found), opening=opening))
    for start in range(0, len(clients), AT_ONCE):
        group = [int(client) for client in clients[start : start + AT_ONCE] if int(client) not in found]
        if not group:
            continue
        held_out = HeldOut.read(cache, np.array(group), sentences=asked.settings.sentences, words=asked.settings.words)
        each = [evaluate(model.network, model.parameters, held_out, cores=cores).clients for model in asked.models]
        new = {client: [of_model[at] for of_model in each] for at, client in enumerate(group)}
        found.update(new)
        if kept is not None:
            kept.append(
                {"client": client, "counts": [one.to_row() for one in counts]} for client, counts in new.items()
            )
        progress(Advanced("clients", len(found)))
    progress(StageEnded("clients"))
    return {name: [found[int(client)][at] for client in clients] for at, name in enumerate(asked.names)}


def _release_and_report(
    asked: Asked, run: Run, counted: Counted | None, collector: Collector | None
) -> tuple[dict[str, Any], ReportFiles]:
    """Release at the price what is not released yet, and write the pages; the record of them.

    counted: of simulated clients; None: the collector asks real devices. Hold the run's lock. Raises: InputError before
    anything is released where too few clients can be counted.
    """
    exact, queries = None, list[HistogramQuery]()
    if counted is not None:
        exact, queries = _exact(counted), queries_about(list(counted.values()))
    released: Mapping[str, Histogram] | None = None
    if asked.release is not None:
        budget.confirm(run)
        whom, price = asked.whom, asked.release
        if collector is None:
            assert isinstance(whom, Simulated)  # real devices have a collector
            clients = whom.clients
            collector = simulated(run, price, lambda task: queries, lambda task: clients)
        released = released_step(run, price, asked.task, collector)
        budget.settle(run)
    record = {
        "run": str(run.path),
        **_about(asked),
        "promise": promise_of(run),
        "released": None if released is None else _released(asked.names, released),
        "simulation_only": exact,
    }
    published, whole = report.pages(record, exactly(queries) if exact else None, released)
    return record, write_both(run.path, published=published, whole=whole, files=statement_file(run))


def _about(asked: Asked) -> dict[str, Any]:
    return {
        "models": list(asked.names),
        **asked.whom.about(asked.settings.split_name),
        "sentences": asked.settings.sentences,
        "words": asked.settings.words,
        "asked": asked.whom.count,
    }


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
