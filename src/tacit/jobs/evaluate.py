"""From the settings of `tacit evaluate` to each model's counts of each client, kept group by group in a run folder."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w
from numpy.typing import NDArray

from tacit.compute import Hardware
from tacit.compute.cores import Cores
from tacit.data import Cache
from tacit.errors import InputError
from tacit.evaluation.accuracy import HeldOut, evaluate, first_asked
from tacit.evaluation.fairness import (
    QUANTILES,
    accuracy_query,
    advantage_of,
    change_query,
    queries_about,
    shared_vocabulary,
    spread_of,
)
from tacit.evaluation.histograms import UNCHANGED, Histogram, mean_from, quantile_from, share_from, worst_share_from
from tacit.evaluation.intervals import complement
from tacit.evaluation.release import exactly
from tacit.jobs.begin import begin, key_for, of_this_process
from tacit.jobs.evaluation_promise import Promise, promise_of
from tacit.jobs.histograms import Lines, released_step, weights_digest
from tacit.keyboard.metrics import Counts
from tacit.keyboard.model_folder import TrainedModel, load_model
from tacit.reports import evaluation as report
from tacit.reports.page import write
from tacit.runs import Run
from tacit.runs.metadata import EvaluationMetadata

AT_ONCE = 64  # clients whose sentences are in memory together
COUNTS = Path("simulation") / "counts.jsonl"
EXACT = "SIMULATION ONLY: exact numbers; no server would have them"
Counted = dict[str, list[Counts]]  # by model, then by client in the order of asking


@dataclass(frozen=True, kw_only=True)
class Work:
    """One evaluation to be done: every setting that changes its result."""

    models: tuple[Path, ...]
    data: Path
    split_name: str
    clients: int  # asked at most; 0: all of the split
    sentences: int  # of a client, evenly spread over its text
    words: int  # of a sentence
    promise: Promise
    seed: int | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Of the models, as they were given."""
        return tuple(map(str, self.models))


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What the settings name, opened: models with the words of the cache, and who is asked."""

    models: tuple[TrainedModel, ...]
    cache: Cache
    clients: NDArray[np.int64]
    settings: str  # as the run folder keeps them; a resume compares them


def ask(work: Work) -> Asked:
    """Raises: InputError for models and a cache of different vocabularies, or fewer than two clients."""
    cache = Cache.open(work.data)
    loaded = [load_model(path) for path in work.models]
    digests = {name: model.vocabulary.sha256 for name, model in zip(work.names, loaded, strict=True)}
    shared_vocabulary({**digests, str(work.data): cache.manifest.vocabulary.sha256})
    clients = first_asked(cache.clients(work.split_name), work.clients)
    if len(clients) < 2:
        raise InputError(
            f"{len(clients)} clients of the {work.split_name} split say nothing about many; import more clients."
        )
    settings = {
        "models": [{"path": str(path.resolve()), "sha256": weights_digest(path)} for path in work.models],
        "data": {"path": str(work.data.resolve()), "sha256": cache.manifest.digest, "split": work.split_name},
        "clients": work.clients,
        "sentences": work.sentences,
        "words": work.words,
        "promise": asdict(work.promise),
        **({} if work.seed is None else {"seed": work.seed}),
    }
    return Asked(models=tuple(loaded), cache=cache, clients=clients, settings=tomli_w.dumps(settings))


def open_or_begin(work: Work, asked: Asked, out: Path) -> Run:
    """A new run folder, or the one at `out`; RunError where that was begun with other settings."""
    metadata = EvaluationMetadata(
        **of_this_process(work.seed),
        source=asked.cache.manifest.source,
        asked=len(asked.clients),
        delta=work.promise.delta,
    )
    return begin(out, asked.settings, metadata, key_for(work.seed))


def count_clients(
    work: Work, asked: Asked, hardware: Hardware, told: Callable[[int, int], None], *, kept: Lines | None = None
) -> Counted:
    """Each model's counts of each client; `told(done, of)` after each group.

    kept: where finished groups are added and none is counted that is there already; hold the run's lock.
    """
    cores, found = Cores(hardware), dict[int, list[Counts]]()
    if kept is not None:
        kept.drop_torn_line()
        found = {row["client"]: [Counts.from_row(each) for each in row["counts"]] for row in kept.rows()}
    told(len(found), len(asked.clients))
    for start in range(0, len(asked.clients), AT_ONCE):
        group = [int(client) for client in asked.clients[start : start + AT_ONCE] if int(client) not in found]
        if not group:
            continue
        held_out = HeldOut.read(asked.cache, np.array(group), sentences=work.sentences, words=work.words)
        each = [evaluate(model.network, model.parameters, held_out, cores=cores).clients for model in asked.models]
        new = {client: [of_model[at] for of_model in each] for at, client in enumerate(group)}
        found.update(new)
        if kept is not None:
            kept.append(
                {"client": client, "counts": [one.to_row() for one in counts]} for client, counts in new.items()
            )
        told(len(found), len(asked.clients))
    return {name: [found[int(client)][at] for client in asked.clients] for at, name in enumerate(work.names)}


def found_without_folder(work: Work, asked: Asked, counted: Counted) -> dict[str, Any]:
    """The record of an evaluation that is kept nowhere and releases nothing."""
    return {**_asked(work, asked), "promise": {"kind": "nothing"}, "released": None, "simulation_only": _exact(counted)}


def release_and_report(work: Work, asked: Asked, run: Run, counted: Counted) -> dict[str, Any]:
    """Release as promised what is not released yet, and write RUN/report; the record of both.

    Hold the run's lock. Raises: InputError before anything is released where too few clients can be counted.
    """
    exact, queries = _exact(counted), queries_about(list(counted.values()))
    released: Mapping[str, Histogram] | None = None
    if work.promise.kind != "nothing":
        released = released_step(run, work.promise, queries, step=0, steps=1, clients=asked.clients)
    record = {
        "run": str(run.path),
        **_asked(work, asked),
        "promise": promise_of(run),
        "released": None if released is None else _released(work.names, released),
        "simulation_only": exact,
    }
    page, public = report.pages(record, exactly(queries), released)
    write(run.path / "report", page, beside={} if public is None else {"released": public})
    return record


def _asked(work: Work, asked: Asked) -> dict[str, Any]:
    return {
        "models": list(work.names),
        "data": str(work.data),
        "split_name": work.split_name,
        "sentences": work.sentences,
        "words": work.words,
        "asked": len(asked.clients),
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
            "mean": mean_from(accuracy),
            "worst_decile": worst_share_from(accuracy, 0.1),
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
