"""Every queried client's outcome, kept line by line in a run folder, and what is released and reported of them.

With real devices nobody has a client's outcome: the run has only what was released, nothing exact.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compute import Hardware
from tacit.compute.cores import Cores
from tacit.data import Cache
from tacit.errors import InputError, RunError
from tacit.evaluation.counts.answers import Answers, policies_of
from tacit.evaluation.counts.collect import CountQuestion
from tacit.evaluation.counts.histograms import HistogramQuery
from tacit.evaluation.counts.release import exactly
from tacit.evaluation.device_part import NetworkWithParameters, StrategiesQuestion
from tacit.evaluation.fairness import shared_vocabulary
from tacit.evaluation.personalize.deltas import Deltas
from tacit.evaluation.personalize.gate import GatePolicy
from tacit.evaluation.personalize.outcome_rows import outcome_of, row_of
from tacit.evaluation.personalize.outcomes import ClientOutcome, SkippedClient
from tacit.evaluation.personalize.population import check_caches_alone, personalize_clients, personalize_reader
from tacit.evaluation.release_cost import ReleaseCost
from tacit.evaluation.settings import PersonalizationSettings
from tacit.federation.collector import Collector
from tacit.files import PathLike, as_path
from tacit.jobs.analytics_run import AnalyticsRun, Ask, carry_out, open_folder
from tacit.jobs.clients_or_devices import Devices, Simulated, check_answered, clients_or_devices
from tacit.jobs.count_steps import Lines, model_record, refused_of_devices, simulated
from tacit.jobs.personalize.record import Found, FoundExactly, exact_record, released_record
from tacit.keyboard.model_folder import TrainedModel, load_model
from tacit.keyboard.phone_model import PhoneModel, load_phone_model
from tacit.networks.metrics import METRICS
from tacit.networks.model_files import is_counted
from tacit.progress import Advanced, Progress, StageBegan, StageEnded, compiling, silent
from tacit.reports.page import ReportFiles
from tacit.reports.personalize import drawn_from
from tacit.runs import Run
from tacit.runs.metadata import PersonalizationMetadata

FEWEST = 2  # clients of a group that have a spread, hence an interval
OUTCOMES = Path("simulation") / "outcomes.jsonl"


@dataclass(frozen=True, kw_only=True)
class Known:
    """What a simulation knows of its clients: their answers group by group, and what follows from them."""

    parts: tuple[Deltas, ...]
    silent: tuple[int, ...]
    found: FoundExactly


@dataclass(frozen=True, kw_only=True)
class Personalization(AnalyticsRun[Known, Answers]):
    """An opened personalization: a model, and the clients or devices."""

    metadata = PersonalizationMetadata
    model: TrainedModel | PhoneModel  # a counted one
    settings: PersonalizationSettings
    release: ReleaseCost | None
    participants: Simulated | Devices

    @property
    def lines(self) -> tuple[Path, ...]:
        """See AnalyticsRun."""
        return (OUTCOMES,)

    @property
    def count(self) -> int:
        """See AnalyticsRun."""
        return self.participants.count

    @property
    def groups(self) -> list[NDArray[np.int64]]:
        """Places of the clients in each step: with a gate, the first half designs it and the other half judges it."""
        places = np.arange(self.participants.count)
        return np.array_split(places, 2) if self.settings.queries.gated else [places]

    def task(self, step: int, policies: tuple[GatePolicy, ...] | None) -> CountQuestion:
        """The question of a step: to design policies (None), or to judge these."""
        model = self.model
        network = NetworkWithParameters(model.network, model.parameters) if isinstance(model, TrainedModel) else None
        computation = StrategiesQuestion(model=network, settings=self.settings, policies=policies)
        return CountQuestion(
            step=step,
            steps=len(self.groups),
            devices=len(self.groups[step]),
            histograms=computation.histograms,
            computation=computation,
            local_epsilon=None if self.release is None else self.release.local_epsilon,
        )

    def settings_record(self, seed: int | None) -> dict[str, Any]:
        """See AnalyticsRun."""
        plain = self.settings.to_plain()
        networks = [self.model] if isinstance(self.model, TrainedModel) else []
        return {
            "model": model_record(self.model),
            **self.participants.to_settings(plain.pop("split_name"), self.model.vocabulary.sha256, networks),
            **plain,
            **({} if self.release is None else {"release": self.release.to_plain()}),
            **({} if seed is None else {"seed": seed}),
        }

    def about_clients(self) -> dict[str, Any]:
        """See AnalyticsRun."""
        return self.participants.recorded

    def every_client(self, run: Run, hardware: Hardware, progress: Progress) -> Known:
        """See AnalyticsRun. Raises: InputError where too few clients of a group could be evaluated."""
        assert isinstance(self.participants, Simulated)  # real devices keep their lines
        _every_client(self, self.participants, run, hardware, progress)
        return _known(self, self.participants, run)

    def simulated(self, run: Run, known: Known) -> Collector:
        """See AnalyticsRun."""
        assert self.release is not None  # or nobody would be asked
        clients, groups = known.found.clients, self.groups
        return simulated(
            run,
            self.release,
            lambda task: _queries(task, known.parts[task.step], known.silent[task.step]),
            lambda task: clients[groups[task.step]],
        )

    def answers(self, ask: Ask) -> Answers:
        """Ask the first group, choose policies by what it answered, ask the second group about them."""
        queries = self.settings.queries
        designed = ask(self.task(0, None))
        if not queries.gated:
            return Answers(queries=queries, steps=(designed,), policies=())
        policies = policies_of(queries, designed, self.settings.harm_weight)
        judged = ask(self.task(1, policies))
        return Answers(queries=queries, steps=(designed, judged), policies=policies)

    def record(self, promise: Mapping[str, Any], known: Known | None, released: Answers | None) -> dict[str, Any]:
        """See AnalyticsRun."""
        settings = self.settings
        return {
            "model": self.participants.named([self.model])[0],
            **self.participants.about(settings.split_name),
            "split": str(settings.split),
            "gate_share": settings.split.gate,
            "asked": self.participants.count,
            "strategies": [asdict(each) for each in settings.strategies],
            "harm_weight": settings.harm_weight,
            "promise": promise,
            "simulation_only": None if known is None else exact_record(known.found, released, settings),
            "released": None if released is None else released_record(released, settings, self.participants.count),
        }

    def drawn(self, known: Known | None, released: Answers | None) -> dict[str, Any]:
        """See AnalyticsRun."""
        exact = None if known is None else known.found.answers
        return {"drawn": drawn_from(self.settings.queries, released=released, exact=exact)}


def personalized(
    model: TrainedModel | PhoneModel | PathLike,
    data: Cache | PathLike | None,
    out: Path,
    settings: PersonalizationSettings,
    cost: ReleaseCost | None,
    *,
    population: PathLike | None,
    seed: int | None,
    collector: Collector | None,
    hardware: Hardware,
    progress: Progress,
) -> tuple[Found, dict[str, Any], ReportFiles]:
    """See `tacit.personalize`: what was found, the record of the report, and where it was written."""
    hardware.apply(processor_only=True)
    personalization = open_personalization(model, data, settings, cost, collector, progress)
    found = carry_out(
        personalization,
        out,
        population=population,
        seed=seed,
        collector=collector,
        hardware=hardware,
        progress=progress,
    )
    exact = None if found.known is None else found.known.found
    return Found(exact=exact, released=found.released), found.record, found.report


def begun(
    model: TrainedModel | PathLike,
    settings: PersonalizationSettings,
    cost: ReleaseCost,
    out: Path,
    collector: Collector,
) -> Run:
    """The open run folder of real devices, new or resumed; nobody is asked yet. Raises: as `tacit.personalize`."""
    personalization = open_personalization(model, None, settings, cost, collector, silent)
    return open_folder(personalization, out, None, None, of_devices=True)


def open_personalization(
    model: TrainedModel | PhoneModel | PathLike,
    data: Cache | PathLike | None,
    settings: PersonalizationSettings,
    cost: ReleaseCost | None,
    collector: Collector | None,
    progress: Progress,
) -> Personalization:
    """Raises: InputError for a model and a cache of different vocabularies, parameters that the network does not have,
    a split without clients, or too few for a gate.
    """
    steps = len(settings.queries.sizes)
    participants = clients_or_devices(
        data, settings.split_name, settings.clients, cost, collector, progress, steps=steps
    )
    loaded = _opened(model)
    if isinstance(loaded, PhoneModel) and collector is not None:
        raise refused_of_devices(loaded)
    shared_vocabulary({str(loaded): loaded.vocabulary.sha256, **participants.vocabulary})
    if isinstance(loaded, PhoneModel):
        check_caches_alone(settings.strategies)
    else:
        for how in settings.strategies:
            how.step(loaded.network)  # refuses here
    least = 2 * FEWEST if settings.queries.gated else FEWEST
    if participants.count < least:
        raise InputError(
            f"{participants.count} {participants} were asked for, and {least} are the fewest that say anything; ask "
            f"more{', or import more clients' if collector is None else ' (clients)'}."
        )
    release = None if cost is None else cost.asking(participants.members)
    personalization = Personalization(model=loaded, settings=settings, release=release, participants=participants)
    if collector is not None:
        for step in range(len(personalization.groups)):
            check_answered(personalization.task(step, None))  # judging asks for fewer
    return personalization


def _opened(model: TrainedModel | PhoneModel | PathLike) -> TrainedModel | PhoneModel:
    if isinstance(model, TrainedModel | PhoneModel):
        return model
    path = as_path("model", model)
    return load_phone_model(path) if is_counted(path) else load_model(path)


def _every_client(
    personalization: Personalization, participants: Simulated, run: Run, hardware: Hardware, progress: Progress
) -> None:
    """Every asked client that has no line in the run folder yet.

    Hold the run's lock. What is written is the same whoever was interrupted when.
    """
    lines = Lines(run.path / OUTCOMES)
    lines.drop_torn_line()
    done = {row["client"] for row in lines.rows()}
    missing = [int(client) for client in participants.clients if int(client) not in done]
    model, settings = personalization.model, personalization.settings
    network = model.network if isinstance(model, TrainedModel) else None
    opening = compiling("personalization", network, settings.strategies) if missing else ""
    progress(StageBegan("clients", participants.count, len(done), opening=opening))

    def keep(each: ClientOutcome | SkippedClient) -> None:
        lines.append([row_of(each)])
        done.add(each.client)
        progress(Advanced("clients", len(done)))

    if missing:
        asked = (participants.cache, missing, settings.strategies, settings.split)
        if isinstance(model, TrainedModel):
            personalize_clients(model.network, model.parameters, *asked, cores=Cores(hardware), progress=keep)
        else:
            personalize_reader(model.reader, *asked, cores=Cores(hardware), progress=keep)
    progress(StageEnded("clients"))


def _known(personalization: Personalization, participants: Simulated, run: Run) -> Known:
    """Of the run's lines. Raises: InputError where too few clients of a group could be evaluated."""
    clients = participants.clients
    rows = {row["client"]: row for row in Lines(run.path / OUTCOMES).rows()}
    reports = [rows[int(client)] for client in clients]
    skipped: dict[str, int] = {}
    for row in reports:
        if "skipped" in row:
            skipped[row["skipped"]] = skipped.get(row["skipped"], 0) + 1
    groups = personalization.groups
    for group in groups:
        if sum("skipped" not in reports[at] for at in group) < FEWEST:
            reasons = "; ".join(f"{count}: {reason}" for reason, count in sorted(skipped.items()))
            raise InputError(
                f"of {len(group)} clients too few could be evaluated to say anything (of all {len(clients)}, "
                f"left out {reasons}); ask more clients, or split otherwise (--split, --gate-share, --undated)."
            )
    parts = [_measured([reports[at] for at in group]) for group in groups]
    silent = [len(group) - len(part) for group, part in zip(groups, parts, strict=True)]
    if unmeasured := sum(part.unmeasured for part in parts):
        skipped["no test word is in the vocabulary"] = unmeasured
    found = FoundExactly(
        clients=clients,
        deltas=_measured(reports),
        fresh=parts[-1],
        skipped=dict(sorted(skipped.items())),
        undated=sum(row["undated"] for row in reports if "skipped" not in row),
        answers=personalization.answers(lambda task: exactly(_queries(task, parts[task.step], silent[task.step]))),
    )
    return Known(parts=tuple(parts), silent=tuple(silent), found=found)


def _queries(task: CountQuestion, part: Deltas, silent: int) -> list[HistogramQuery]:
    """The answers of a group of simulated clients."""
    assert isinstance(task.computation, StrategiesQuestion)  # of every task here
    queries, policies = task.computation.settings.queries, task.computation.policies
    if policies is None:
        return [*queries.about_strategies(part, silent), *queries.about_rules(part, silent)]
    return [*queries.about_strategies(part, silent), *queries.about_policies(policies, part, silent)]


def _measured(reports: list[dict[str, Any]]) -> Deltas:
    """Raises: RunError for clients that were counted by fewer metrics, as earlier versions of tacit had them."""
    outcomes = [outcome_of(row) for row in reports if "skipped" not in row]
    if missing := [name for name in METRICS if any(name not in each.test.baseline.sums for each in outcomes)]:
        raise RunError(f"these clients were counted without {missing[0]}, by an earlier version; ask in a new folder.")
    return Deltas.from_outcomes(outcomes)
