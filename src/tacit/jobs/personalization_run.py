"""Every asked client's outcome, kept line by line in a run folder, and what is released and reported of them."""

from collections.abc import Callable, Mapping
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
from tacit.evaluation.accuracy import first_asked
from tacit.evaluation.deltas import Deltas
from tacit.evaluation.fairness import shared_vocabulary
from tacit.evaluation.histograms import Histogram
from tacit.evaluation.personalization import ClientOutcome, SkippedClient, personalize_clients
from tacit.evaluation.queries import Answers
from tacit.evaluation.release import HistogramQuery, exactly
from tacit.evaluation.settings import PersonalizationSettings, ReleasePrice
from tacit.files import PathLike, as_path
from tacit.jobs import budget
from tacit.jobs.begin import begin, checked_cache, key_for, of_this_process
from tacit.jobs.histograms import Lines, data_asked, delta_of, model_asked, planned_cost, released_step, statement_file
from tacit.jobs.personalization_record import Found, exact_record, released_record
from tacit.keyboard.model_folder import TrainedModel, load_model
from tacit.progress import Advanced, Progress, StageBegan, StageEnded, compiling
from tacit.reports import personalization as report
from tacit.reports.page import FOR_READERS, ReportFiles, write_both
from tacit.runs import Run
from tacit.runs.metadata import PersonalizationMetadata
from tacit.statements.run_facts import promise_of

FEWEST = 2  # clients of a group that have a spread, hence an interval
OUTCOMES = Path("simulation") / "outcomes.jsonl"


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What is asked, opened: a model with the words of the cache, and which clients."""

    model: TrainedModel
    cache: Cache
    settings: PersonalizationSettings
    release: ReleasePrice | None
    clients: NDArray[np.int64]

    @property
    def groups(self) -> list[NDArray[np.int64]]:
        """Places of the clients that are asked together: with a gate the first half designs it, the other judges it."""
        places = np.arange(len(self.clients))
        return np.array_split(places, 2) if self.settings.queries.gated else [places]


def personalized(
    model: TrainedModel | PathLike,
    data: Cache | PathLike,
    out: Path,
    settings: PersonalizationSettings,
    price: ReleasePrice | None,
    *,
    population: PathLike | None,
    seed: int | None,
    hardware: Hardware,
    progress: Progress,
) -> tuple[Found, dict[str, Any], ReportFiles]:
    """See `tacit.personalize`: what was found, the record of the report, and where it was written."""
    hardware.apply(processor_only=True)
    asked = _open(model, data, settings, price, progress)
    with _begin(asked, out, population, seed) as run, run.locked():
        if run.finished:
            run.kept(str(OUTCOMES))
        _every_client(asked, run, hardware, progress)
        budget.confirm(run)
        found = _findings(asked, run)
        budget.settle(run)
        record, files = _report(asked, run, found)
        run.keep_files(*FOR_READERS)
        run.finish()
        run.tidy()
    return found, record, files


def _open(
    model: TrainedModel | PathLike,
    data: Cache | PathLike,
    settings: PersonalizationSettings,
    price: ReleasePrice | None,
    progress: Progress,
) -> Asked:
    """Raises: InputError for a model and a cache of different vocabularies, parameters that the network does not have,
    a split without clients, or too few for a gate.
    """
    cache = checked_cache(data, progress=progress)
    loaded = model if isinstance(model, TrainedModel) else load_model(as_path("model", model))
    shared_vocabulary({str(loaded): loaded.vocabulary.sha256, str(cache.path): cache.manifest.vocabulary.sha256})
    for how in settings.strategies:
        how.step(loaded.network)  # refuses here
    clients = first_asked(cache.clients(settings.split_name), settings.clients)
    least = 2 * FEWEST if settings.queries.gated else FEWEST
    if len(clients) < least:
        raise InputError(
            f"{len(clients)} clients of the {settings.split_name} split were asked for, and {least} are the fewest "
            "that say anything; ask more, or import more clients."
        )
    release = None if price is None else price.asking(len(clients))
    return Asked(model=loaded, cache=cache, settings=settings, release=release, clients=clients)


def _begin(asked: Asked, out: Path, population: PathLike | None, seed: int | None) -> Run:
    """A new run folder, or the one at `out`; RunError where that was begun with other settings."""
    plain = asked.settings.to_plain()
    settings = {
        "model": model_asked(asked.model),
        "data": data_asked(asked.cache, plain.pop("split_name")),
        **plain,
        **({} if asked.release is None else {"release": asked.release.to_plain()}),
        **({} if seed is None else {"seed": seed}),
    }
    key = key_for(seed)
    metadata = PersonalizationMetadata(
        **of_this_process(seed),
        source=asked.cache.manifest.source,
        asked=len(asked.clients),
        delta=delta_of(asked.release),
    )
    taken = budget.Asked.of(population, len(asked.clients), planned_cost(asked.release))
    return begin(out, tomli_w.dumps(settings), metadata, key, asked=taken)


def _every_client(asked: Asked, run: Run, hardware: Hardware, progress: Progress) -> None:
    """Every asked client that has no line in the run folder yet.

    Hold the run's lock. What is written is the same whoever was interrupted when.
    """
    lines = Lines(run.path / OUTCOMES)
    lines.drop_torn_line()
    done = {row["client"] for row in lines.rows()}
    missing = [int(client) for client in asked.clients if int(client) not in done]
    opening = compiling("personalization", asked.model.network, asked.settings.strategies) if missing else ""
    progress(StageBegan("clients", len(asked.clients), len(done), opening=opening))

    def keep(each: ClientOutcome | SkippedClient) -> None:
        lines.append([each.as_row()])
        done.add(each.client)
        progress(Advanced("clients", len(done)))

    if missing:
        personalize_clients(
            asked.model.network,
            asked.model.parameters,
            asked.cache,
            missing,
            asked.settings.strategies,
            asked.settings.split,
            cores=Cores(hardware),
            progress=keep,
        )
    progress(StageEnded("clients"))


def _findings(asked: Asked, run: Run) -> Found:
    """What the devices' reports say, exactly, and released as promised; releases what is not released yet.

    Hold the run's lock while the run is not finished.
    """
    rows = {row["client"]: row for row in Lines(run.path / OUTCOMES).rows()}
    reports = [rows[int(client)] for client in asked.clients]
    skipped: dict[str, int] = {}
    for row in reports:
        if "skipped" in row:
            skipped[row["skipped"]] = skipped.get(row["skipped"], 0) + 1
    groups = asked.groups
    for group in groups:
        if sum("skipped" not in reports[at] for at in group) < FEWEST:
            reasons = "; ".join(f"{count}: {reason}" for reason, count in sorted(skipped.items()))
            raise InputError(
                f"of {len(group)} clients too few could be evaluated to say anything (of all {len(asked.clients)}, "
                f"left out {reasons}); ask more clients, or split otherwise (--split, --gate-share, --undated)."
            )
    parts = [_measured([reports[at] for at in group]) for group in groups]
    silent = [len(group) - len(part) for group, part in zip(groups, parts, strict=True)]
    if unmeasured := sum(part.unmeasured for part in parts):
        skipped["no test word is in the vocabulary"] = unmeasured

    def answered(answer: Callable[[int, list[HistogramQuery]], Mapping[str, Histogram]]) -> Answers:
        return _answers(asked.settings, parts, silent, answer)

    exact = answered(lambda step, queries: exactly(queries))
    released, price = None, asked.release
    if price is not None:
        released = answered(
            lambda step, queries: released_step(
                run, price, queries, step=step, steps=len(groups), clients=asked.clients[groups[step]]
            )
        )
    everybody = _measured(reports)
    return Found(
        asked=asked.clients,
        deltas=everybody,
        fresh=parts[-1],
        skipped=dict(sorted(skipped.items())),
        undated=sum(row["undated"] for row in reports if "skipped" not in row),
        exact=exact,
        released=released,
    )


def _answers(
    settings: PersonalizationSettings,
    parts: list[Deltas],
    silent: list[int],
    answer: Callable[[int, list[HistogramQuery]], Mapping[str, Histogram]],
) -> Answers:
    """Ask the first group, choose policies by what it answered, ask the second group about them."""
    asked = settings.queries
    first = asked.about_strategies(parts[0], silent[0])
    if not asked.gated:
        return Answers(queries=asked, steps=(answer(0, first),), policies=())
    designed = answer(0, [*first, *asked.about_rules(parts[0], silent[0])])
    policies = asked.policies(designed, settings.harm_weight)
    second = asked.about_strategies(parts[1], silent[1])
    judged = answer(1, [*second, *asked.about_policies(policies, parts[1], silent[1])])
    return Answers(queries=asked, steps=(designed, judged), policies=policies)


def _measured(reports: list[dict[str, Any]]) -> Deltas:
    return Deltas.of([ClientOutcome.from_row(row) for row in reports if "skipped" not in row])


def _report(asked: Asked, run: Run, found: Found) -> tuple[dict[str, Any], ReportFiles]:
    """Write the page that may be published with the statement, and the one with everything; the record, and where."""
    settings = asked.settings
    record = {
        "run": str(run.path),
        "model": str(asked.model),
        "data": str(asked.cache.path),
        "split_name": settings.split_name,
        "split": str(settings.split),
        "gate_share": settings.split.gate,
        "asked": len(asked.clients),
        "strategies": [asdict(each) for each in settings.strategies],
        "harm_weight": settings.harm_weight,
        "promise": promise_of(run),
        "simulation_only": exact_record(found, settings),
        "released": None if found.released is None else released_record(found.released, settings, len(asked.clients)),
    }
    published, whole = report.pages(record, settings.strategies, found.exact, found.outcomes, found.released)
    return record, write_both(run.path, published=published, whole=whole, files=statement_file(run))
