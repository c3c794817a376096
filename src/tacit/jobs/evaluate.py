"""From the settings of `tacit evaluate` to each model's counts of each client, kept group by group in a run folder."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import tomli_w
from numpy.typing import NDArray

from tacit.compute import Hardware
from tacit.compute.cores import Cores
from tacit.data import Cache
from tacit.errors import InputError
from tacit.evaluation.accuracy import HeldOut, evaluate
from tacit.evaluation.asking import first_asked
from tacit.evaluation.fairness import shared_vocabulary
from tacit.jobs import histograms as evaluation_folder
from tacit.jobs.evaluation_promise import Promise
from tacit.jobs.histograms import Lines, weights_digest
from tacit.keyboard.metrics import Counts
from tacit.keyboard.model_folder import TrainedModel, load_model
from tacit.runs import Run

AT_ONCE = 64  # clients whose sentences are in memory together
COUNTS = Path("simulation") / "counts.jsonl"
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
    facts = {"kind": "evaluation", "source": asked.cache.manifest.source, "asked": len(asked.clients)}
    return evaluation_folder.open_or_begin(out, asked.settings, facts, promise=work.promise, seed=work.seed)


def count_clients(
    work: Work, asked: Asked, hardware: Hardware, told: Callable[[int, int], None], *, kept: Lines | None = None
) -> Counted:
    """Each model's counts of each client; `told(done, of)` after each group.

    kept: where finished groups are added and none is counted that is there already; hold the run's lock.
    """
    cores, found = Cores(hardware), dict[int, list[Counts]]()
    if kept is not None:
        kept.drop_torn_line()
        found = {row["client"]: [Counts(*each) for each in row["counts"]] for row in kept.rows()}
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
            kept.append({"client": client, "counts": [list(one) for one in counts]} for client, counts in new.items())
        told(len(found), len(asked.clients))
    return {name: [found[int(client)][at] for client in asked.clients] for at, name in enumerate(work.names)}
