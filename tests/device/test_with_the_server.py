"""A device against the application that workers serve, in one process: the documents, paths and errors are the same."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from tests.support.device.operator import NOON, a_plan, once
from tests.support.device.worker import Worker
from tests.support.device.zeros import Zeros
from tests.support.server.stores import Clock, sqlite_store

from tacit.data import Cache
from tacit.device.policy import Policy
from tacit.protocol.bodies import ReportBody
from tacit.protocol.log_proofs import plan_entry
from tacit.protocol.messages import Plan, RoundTask
from tacit.protocol.served_bodies import model_body
from tacit.protocol.signing import digest
from tacit.protocol.train import TrainDocument
from tacit.server.http.application import application
from tacit.server.http.services import Services
from tacit.server.http.snapshot import Snapshot
from tacit.server.log.transparency import TransparencyLog
from tacit.server.store import round_states
from tacit.server.store.blobs import BlobStore, model_name
from tacit.server.store.round_states import NewRound
from tacit.server.sums.partial_sums import PartialSums


class Ones(Zeros):
    """A trainer whose update is longest in no direction."""

    def prepare(self, plan: Plan, task: RoundTask, model: Any) -> Callable[[Any], ReportBody]:
        asks = task.question(TrainDocument)
        update = np.full(asks.parameters, asks.clip_norm / asks.parameters**0.5, np.float32)
        return lambda draw: ReportBody(update, True, None, None)


def serving(folder: Path, words: str, *, round: int = 0) -> tuple[Worker, RoundTask]:
    """A worker with an open round of a plan for this vocabulary."""
    folder.mkdir()
    store, blobs = sqlite_store(folder, Clock(NOON)), BlobStore.open(f"file://{folder / 'blobs'}")
    worker, plan = Worker(), a_plan(words)
    task = worker.task(plan, round)
    round_states.enter_run(
        store,
        plan.run,
        population=plan.population,
        kind="train",
        plan=worker.key.plan(plan.to_json()).model_dump_json(),
        plan_digest=digest(plan.to_json()),
    )
    TransparencyLog.beside(store, worker.key, folder / "operator.key").append(plan_entry(digest(plan.to_json())))
    lease = round_states.take_lease(store, plan.run, seconds=30)
    assert lease is not None
    blobs.put(model_name(task.content.sha256), model_body(worker.model))
    new = NewRound(
        task=task.task,
        round=round,
        attempt=0,
        signed_task=worker.key.signed(task).model_dump_json(),
        model_digest=task.content.sha256,
        closes_selecting=task.opens + 600,
        deadline=task.deadline,
        goal=2,
        least=2,
        most=2,
    )
    round_states.open_round(store, lease, new)
    worker.services = Services(
        store=store,
        blobs=blobs,
        key=worker.key,
        worker="ab" * 16,
        snapshot=Snapshot(store),
        sums=PartialSums(store, blobs, "ab" * 16, evicted=lambda: None),
    )
    worker.app = application(worker.services)
    return worker, task


def test_two_devices_make_a_round_and_one_that_refuses_gives_its_place_back(
    words: str, cache: Cache, tmp_path: Path
) -> None:
    worker, task = serving(tmp_path / "server", words)
    whats = []
    for number in range(4):
        strict = Policy(smallest_cohort=50) if number == 1 else Policy()
        turn = once(worker, cache.path, tmp_path / str(number), policy=strict, trainer=Ones())
        whats.append(turn.what)
    assert whats == ["reported", "refused", "reported", "idle"]
    attempt = round_states.attempt_of(worker.services.store, task.task)
    assert (attempt.assigned, attempt.received, worker.services.sums.held) == (2, 2, 2)
