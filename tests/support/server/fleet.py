"""Devices and workers of a test, without a network: they act while a collector waits, and time passes then only."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray
from tests.support.server.documents import PARAMETERS, a_plan
from tests.support.server.stores import KEY, Clock, sqlite_store

from tacit.privacy.separation import DeviceSeparation
from tacit.protocol.bodies import ReportBody
from tacit.protocol.messages import RoundTask, Signed
from tacit.protocol.signing import digest
from tacit.server.rounds.rounds import RoundTimes, ServedRounds
from tacit.server.store import assignments, round_states
from tacit.server.store.assignments import OpenRound, ReportAnswer, open_rounds
from tacit.server.store.blobs import BlobStore
from tacit.server.store.store import Store
from tacit.server.sums.partial_sums import PartialSums
from tacit.server.train import document
from tacit.training import ClientTraining, TrainQuestion

TIMES = RoundTimes(selecting=60.0, reporting=30.0, closing=5.0, pause=10.0, silence=15.0, poll=1.0, attempts=5)
WORKERS = ("a" * 32, "b" * 32)


def a_training_task(round: int = 0, *, goal: int = 4, **changed: object) -> TrainQuestion:
    fields: dict[str, object] = {
        "round": round,
        "model": jnp.full(PARAMETERS, 0.125 * round, jnp.float32),
        "client": ClientTraining(),
        "clip_norm": 1.0,
        "clip_estimate": 0.5,
        "report_goal": goal,
        "loss_bound": 8.0,
        "separation": DeviceSeparation(rounds=5),
    }
    return TrainQuestion(**fields | changed)  # type: ignore[arg-type]


def update_of(device: int) -> NDArray[np.float32]:
    """What the device numbered so reports: of norm 1/2."""
    drawn = np.random.default_rng(device).standard_normal(PARAMETERS)
    return (0.5 * drawn / np.linalg.norm(drawn)).astype(np.float32)


def report(device: int, _task: RoundTask) -> ReportBody:
    return ReportBody(update_of(device), True, device % 2 == 0, device / 8 - 2)


@dataclass
class Fleet:
    """A store, its workers, and devices that come one after another, so many at each wait of the collector."""

    folder: Path
    clock: Clock = field(default_factory=Clock)
    at_once: int = 3
    left: int = 10_000  # devices that may still come
    reports: Callable[[int, RoundTask], ReportBody | None] = report  # None: the device vanishes
    store: Store = field(init=False)
    blobs: BlobStore = field(init=False)
    workers: dict[str, PartialSums] = field(init=False)
    came: dict[str, list[int]] = field(default_factory=dict)  # by task: devices whose report was taken
    later: list[tuple[int, RoundTask, ReportBody, str]] = field(default_factory=list)  # that will send again
    number: int = 0

    def __post_init__(self) -> None:
        self.store, self.blobs = (
            sqlite_store(self.folder, self.clock),
            BlobStore.open(f"file://{self.folder / 'blobs'}"),
        )
        self.workers = {name: PartialSums(self.store, self.blobs, name, evicted=lambda: None) for name in WORKERS}
        plan = a_plan()
        signed = KEY.plan(plan.to_json()).model_dump_json()
        round_states.enter_run(
            self.store,
            plan.run,
            population=plan.population,
            kind="train",
            plan=signed,
            plan_digest=digest(plan.to_json()),
        )

    def collector(self, times: RoundTimes = TIMES, store: Store | None = None) -> ServedRounds:
        """Of a new coordinator, which has the lease."""
        self.clock.now += 100.0
        lease = round_states.take_lease(self.store, a_plan().run, seconds=60)
        assert lease is not None
        made = ServedRounds(store or self.store, self.blobs, KEY, document=document, times=times, wait=self.wait)
        made.serve(KEY.plan(a_plan().to_json()), lease)
        return made

    def wait(self, seconds: float) -> None:
        """Time passes, devices come, workers do what they do."""
        self.clock.now += seconds
        for worker in self.workers:
            assignments.seen(self.store, worker)
        again, self.later = self.later, []
        for sent in again:
            self.sends(*sent)
        for each in open_rounds(self.store):
            for _ in range(self.at_once):
                self.device_comes(each)
        for sums in self.workers.values():
            sums.write_what_is_due(open_rounds(self.store), self.clock.now)

    def device_comes(self, each: OpenRound) -> None:
        given = assignments.assign(self.store, each.task) if self.left else None
        if given is None:
            return
        self.left, self.number = self.left - 1, self.number + 1
        device, task = self.number, Signed.from_json(each.signed_task).read(RoundTask)
        made = self.reports(device, task)
        if made is None:
            return
        self.sends(device, task, made, given.id)

    def sends(self, device: int, task: RoundTask, made: ReportBody, assignment: str) -> None:
        """To one worker after another, and again later, as long as it is told that another is to have it."""
        workers = list(self.workers.values())
        for tried in range(len(workers)):
            answer = workers[(device + tried) % len(workers)].take(made, task, assignment, f"{device:064x}")
            if answer is not ReportAnswer.ELSEWHERE:
                if answer is ReportAnswer.RECEIVED and made.usable:
                    self.came.setdefault(task.task, []).append(device)
                return
        self.later.append((device, task, made, assignment))

    def attempts(self) -> list[round_states.Attempt]:
        return round_states.attempts(self.store, a_plan().run)
