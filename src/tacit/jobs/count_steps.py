"""What `count`, `evaluate` and `personalize` share: exact reports line by line, and sums of them, released in steps.

    RUN/settings.toml                   what was asked
    RUN/simulation/*.jsonl              each device's report, EXACT: only a simulation has it, without any promise
    RUN/steps/release-000000.json       a step as it was released (sums: .npz); run.db has its row of the ledger
    RUN/report/                         for people; what of it may be published is in files called released

A killed process leaves whole lines, and at most one torn one that is computed again. The noise of a step follows from
the run's key, so a step that is done again before its row is committed gives the same release.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError, RunError
from tacit.evaluation.counts.collect import CountQuestion, SimulatedCollector
from tacit.evaluation.counts.histograms import HistogramQuery
from tacit.evaluation.counts.release import AddNoise, NoiseBy
from tacit.evaluation.release_cost import ReleaseCost
from tacit.federation.collector import Answered, Collector, released
from tacit.files import write_whole
from tacit.jobs.account.budget import Reservation
from tacit.jobs.phone_models import TRIGRAM, counted_cache
from tacit.keyboard.model_folder import TrainedModel
from tacit.keyboard.phone_model import PhoneModel
from tacit.mechanisms import add_independent_noise, round_key
from tacit.parsing import parsed_json
from tacit.privacy import Participation
from tacit.privacy.local_guarantee import LocalGuarantee
from tacit.privacy.measured_participation import realised_participation
from tacit.records import from_plain, to_plain
from tacit.runs import Run, StepEntry
from tacit.runs.budget_book import Cost
from tacit.runs.metadata import AskingMetadata
from tacit.statements.accounts import ledger_of
from tacit.statements.ledger import Ledger, Release, release_from

R = TypeVar("R")
CENTRAL, LOCAL = "evaluation histogram", "local reports"  # what randomness of the noise key is drawn for


# -- settings ----------------------------------------------------------------------------------------------------------


def model_record(model: TrainedModel | PhoneModel) -> dict[str, str]:
    """A model that was read from files as the settings of a run name it."""
    cache = counted_cache(Path(str(model)))
    path = str(Path(str(model)).resolve()) if cache is None else f"{TRIGRAM}{cache.resolve()}"
    return {"path": path, "sha256": model.digest}


def refused_of_devices(model: PhoneModel) -> InputError:
    """That real devices judge no counted model."""
    return InputError(
        f"'{model}' is counted, and real devices judge networks alone: what a round brings them are parameters of "
        "networks, and no tables. Name a network, or ask clients of a cache about this one (`tacit evaluate` or "
        "`tacit personalize` with --data)."
    )


def cost_of_release(settings: Mapping[str, Any]) -> ReleaseCost | None:
    """The price of a release that the settings of a run name."""
    return from_plain(ReleaseCost, settings["release"]) if "release" in settings else None


def delta_of(cost: ReleaseCost | None) -> float:
    """Where the epsilon of a release is given; 0 where there is none, or it needs none."""
    return 0.0 if cost is None or cost.local_epsilon is not None else cost.delta or 0.0


def planned_cost(release: ReleaseCost | None) -> Cost | None:
    """What a release takes from each client; None where nothing is released."""
    if release is None:
        return None
    return Cost(zcdp=release.rho) if release.local_epsilon is None else Cost(local_epsilon=release.local_epsilon)


# -- lines -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Lines:
    """A file of JSON lines that only grows; each line is whole or computed again."""

    path: Path

    def rows(self) -> Iterator[dict[str, Any]]:
        """Each line, none of a file that is not there. Raises: RunError for a damaged one."""
        if self.path.exists():
            for number, line in enumerate(self.path.read_bytes().splitlines(), start=1):
                try:
                    yield parsed_json(line)
                except ValueError as error:
                    raise RunError(
                        f"line {number} of '{self.path}' is damaged ({error}); remove it to compute it again."
                    ) from error

    def drop_torn_line(self) -> None:
        """Remove what a killed process wrote after its last whole line."""
        if self.path.exists():
            content = self.path.read_bytes()
            whole = content[: content.rfind(b"\n") + 1]
            if whole != content:
                write_whole(self.path, whole)

    def append(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Write rows; they are on disk when this returns."""
        self.path.parent.mkdir(exist_ok=True)
        with self.path.open("ab") as file:
            file.write(b"".join((json.dumps(row) + "\n").encode() for row in rows))
            file.flush()
            os.fsync(file.fileno())


# -- releases ----------------------------------------------------------------------------------------------------------


class StepQuestion(Protocol[R]):
    """A `federation.collector.Question` of one step of a run, which knows how its answer leaves the aggregator."""

    @property
    def step(self) -> int:
        """Of the run, from 0."""
        ...

    @property
    def suffix(self) -> str:
        """Of the file with what is released."""
        ...

    def released(
        self, answered: Answered, cost: ReleaseCost, *, add_noise: AddNoise, first_user: int, noise: NoiseBy
    ) -> tuple[R, tuple[Release, ...]]:
        """What leaves of the answer, and its rows of the ledger.

        first_user: how many were asked before; noise: who adds it to a sum of counts.
        """
        ...

    def to_file(self, released: R) -> bytes:
        """What was released, as the run folder has it."""
        ...

    def from_file(self, content: bytes) -> R:
        """What `to_file` wrote. Raises: ValueError, KeyError."""
        ...


def simulated(
    run: Run,
    cost: ReleaseCost,
    answers: Callable[[CountQuestion], Sequence[HistogramQuery]],
    clients: Callable[[CountQuestion], NDArray[np.int64]],
) -> SimulatedCollector:
    """The clients of a cache, whose answers are at hand; devices that randomise draw by the run's key."""
    return SimulatedCollector(
        answers=answers,
        clients=clients,
        randomness=lambda epsilon, step, queries: _devices(run, queries, epsilon, step),
        secure=cost.secure_sum,
    )


def released_step(
    run: Run,
    cost: ReleaseCost,
    task: StepQuestion[R],
    collector: Collector,
    *,
    reservation: Reservation | None = None,
) -> R:
    """The step's release: the one on disk, or a new one, on disk before its ledger row is.

    Hold the run's lock while the run is not finished. reservation: in the budget of its population, if it has one.
    Raises: RunError where what is on disk is not what was released; BudgetError, AccountingError before a release that
    would cost more than is reserved or free, or that no theorem covers, because a client was asked again; what the
    collector does.
    """
    step = task.step
    path = run.path / "steps" / f"release-{step:06d}{task.suffix}"
    done = run.steps()
    if step < len(done):
        released(collector, step)
        return _read_release(path, task, done[step].digest)
    answered, _ = collector.collect(collector.init(), task, seed=b"")
    found, releases = _release(run, cost, task, answered)
    if reservation is not None:
        reservation.covers(_cost_with(run, step, releases, answered.clients))
    content = task.to_file(found)
    write_whole(path, content)
    digest = hashlib.sha256(content).hexdigest()
    run.commit(
        StepEntry(step=step, file=path.name, digest=digest, releases=to_plain(releases)), clients=answered.clients
    )
    released(collector, step)
    return found


def _cost_with(run: Run, step: int, releases: tuple[Release, ...], clients: NDArray[np.int64] | int) -> Cost:
    """What the run has cost each client once the step is released. Raises: AccountingError where no theorem says."""
    if isinstance(clients, int):  # devices that answer a run once
        participation = Participation(rounds=step + 1, min_separation=step + 1, max_participations=1)
    else:
        round_of, client_of = run.participations()
        now = np.full(len(clients), step, np.int64)
        participation = realised_participation(
            step + 1, np.concatenate([round_of, now]), np.concatenate([client_of, clients])
        )
    promised = Ledger((*ledger_of(run).releases, *releases)).account(participation)
    if isinstance(promised, LocalGuarantee):
        return Cost(local_epsilon=promised.user_epsilon)
    return Cost(zcdp=promised.zcdp)


def _release(run: Run, cost: ReleaseCost, task: StepQuestion[R], answered: Answered) -> tuple[R, tuple[Release, ...]]:
    """What leaves of a step, and its rows of the ledger: functions of the run's key, the step and the counts."""

    def noised(counts: NDArray[np.int64], stddev: float) -> NDArray[np.float64]:
        return add_independent_noise(counts, stddev=stddev, key=run.noise_key, purpose=CENTRAL, round=task.step)

    before = sum(release_from(each).reports for row in run.steps() for each in row.releases)
    used = run.of_kind(AskingMetadata, "give one that asks for counts").deployment
    by = NoiseBy() if used is None else NoiseBy(decryptors=used.contributors, honest=used.honest_decryptors)
    return task.released(answered, cost, add_noise=noised, first_user=before, noise=by)


def _devices(run: Run, queries: Sequence[HistogramQuery], epsilon: float, step: int) -> np.random.Generator:
    """The simulated devices' randomness: bound to every answer that is randomised, so that no other shares it."""
    bound_to = repr((epsilon, [(each.name, each.cells.size, each.chosen.size) for each in queries]))
    answers = np.concatenate([each.chosen for each in queries])
    key = round_key(run.noise_key, LOCAL, step, bound_to=bound_to.encode(), summed=answers)
    return np.random.Generator(np.random.Philox(key=np.frombuffer(key.seeds, "<u8")))


def _read_release(path: Path, task: StepQuestion[R], digest: str) -> R:
    try:
        content = path.read_bytes()
        if hashlib.sha256(content).hexdigest() != digest:
            raise RunError(
                f"'{path}' is not what was released (its SHA-256 is not {digest[:16]}..., which the run recorded); "
                "restore it."
            )
        return task.from_file(content)
    except (OSError, ValueError, KeyError) as error:
        raise RunError(f"'{path}' does not hold what the ledger says was released ({error}); restore it.") from error
