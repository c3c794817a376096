"""A round of devices over HTTP gives the bits of the same devices asked one by one.

No socket is opened: each device asks the workers' application in this process. In the clear additions have an order, so
that one worker adds in the order of the cohort; sums of integers have none, and two workers add in any.
"""

import asyncio
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import jax.numpy as jnp
import numpy as np
import pytest
from tests.contracts.training_tasks import KEY, SEED, encoded, task_of
from tests.support.server.documents import a_plan
from tests.support.server.sealing import Here, decryptors_in, sealed_plan
from tests.support.server.served import check_in
from tests.support.server.stores import Clock, quick_folder, sqlite_store
from tests.support.training.tiny import cohorts_of, tiny_cache, tiny_learner, tiny_recipe

from tacit.device.report_body import body_of
from tacit.federation.collector import Answered
from tacit.privacy.separation import DeviceSeparation
from tacit.protocol.bodies import ReportBody, read_model, sha256
from tacit.protocol.messages import Assignment, RoundTask
from tacit.protocol.operator_key import OperatorKey
from tacit.protocol.signing import digest
from tacit.protocol.train import TrainDocument
from tacit.server.http.application import application
from tacit.server.http.services import Services
from tacit.server.http.snapshot import Snapshot
from tacit.server.rounds.rounds import RoundTimes, ServedRounds
from tacit.server.store import assignments, round_states
from tacit.server.store.blobs import BlobStore
from tacit.server.sums.partial_sums import PartialSums
from tacit.server.train import document
from tacit.training import Learner, RoundPlan, TrainQuestion
from tacit.training.device_part import report_of
from tacit.training.one_by_one import DevicesOneByOne

OPERATOR = OperatorKey(bytes(32))


@pytest.fixture(scope="module")
def learner(tmp_path_factory: pytest.TempPathFactory) -> Learner:
    return tiny_learner(tiny_cache(tmp_path_factory.mktemp("tiny") / "cache"))


@pytest.fixture(scope="module")
def plan(learner: Learner) -> RoundPlan:
    return tiny_recipe(learner.cache.path).plan()


@pytest.fixture
def folder() -> Iterator[Path]:
    with quick_folder() as found:
        yield found


class Network:
    """Workers of one store, and the devices of a cohort that come while the collector waits."""

    def __init__(
        self,
        folder: Path,
        learner: Learner,
        task: TrainQuestion,
        cohort: Sequence[int],
        workers: int,
        decryptors: Sequence[Here] = (),
    ) -> None:
        """decryptors: reports are sealed where there are any."""
        self._decryptors = list(decryptors)
        self._learner, self._task, self._cohort = learner, task, list(cohort)
        self.clock = Clock()
        self.store, self.blobs = sqlite_store(folder, self.clock), BlobStore.open(f"file://{folder / 'blobs'}")
        self.workers = [self._worker(f"{number:032x}") for number in range(workers)]
        self.applications = [application(each) for each in self.workers]
        self.bodies: list[bytes] = []
        self.updates: list[bytes] = []

    def _worker(self, name: str) -> Services:
        sums = PartialSums(self.store, self.blobs, name, evicted=lambda: None)
        snapshot = Snapshot(self.store)
        return Services(store=self.store, blobs=self.blobs, key=OPERATOR, worker=name, snapshot=snapshot, sums=sums)

    def collected(self) -> Answered:
        """The round, as a coordinator collects it."""
        made = a_plan(run="tiny")
        if self._decryptors:
            made = sealed_plan(self._decryptors, threshold=self._task.report_goal, run="tiny")
        self._plan = made
        signed = OPERATOR.plan(made.to_json()).model_dump_json()
        round_states.enter_run(
            self.store,
            made.run,
            population=made.population,
            kind="train",
            plan=signed,
            plan_digest=digest(made.to_json()),
        )
        lease = round_states.take_lease(self.store, made.run, seconds=60)
        assert lease is not None
        times = RoundTimes(over_selection=1.0, attempts=1)
        collector = ServedRounds(
            self.store,
            self.blobs,
            OPERATOR,
            document=document,
            times=times,
            decryptors=self._decryptors,
            wait=self.wait,
        )
        collector.serve(OPERATOR.plan(made.to_json()), lease)
        return collector.collect((), self._task, seed=bytes(32))[0]

    def wait(self, seconds: float) -> None:
        """Devices that have not come yet come, one after another; then the workers do what they do."""
        self.clock.now += seconds
        for each in self.workers:
            each.snapshot.refresh()
            assignments.seen(self.store, each.worker)
        asyncio.run(self._come())
        for each in self.workers:
            each.snapshot.refresh()
            each.sums.write_what_is_due([found.row for found in each.snapshot.rounds.values()], self.clock.now)

    async def _come(self) -> None:
        for number, client in enumerate(self._cohort):
            transport = httpx.ASGITransport(self.applications[number % len(self.applications)])
            async with httpx.AsyncClient(transport=transport, base_url="http://test") as http:
                await self._device(http, client)
        self._cohort = []

    async def _device(self, http: httpx.AsyncClient, client: int) -> None:
        answer = await http.post("/v1/check-in", json=check_in())
        given = Assignment.model_validate_json(answer.content)
        asked = given.signed_task.read(RoundTask)
        model = read_model((await http.get(asked.content.path)).content, asked.question(TrainDocument).parameters)
        task = replace(
            self._task,
            model=jnp.asarray(model),
            clip_norm=asked.question(TrainDocument).clip_norm,
            clip_estimate=asked.question(TrainDocument).clip_estimate,
            loss_bound=asked.question(TrainDocument).loss_bound,
        )
        made = report_of(self._learner.work(task.client), task, client, seed=SEED)
        report = ReportBody(made.update, made.usable, made.short, made.bounded_loss)
        body = body_of(self._plan, asked, report, given.assignment, draw=os.urandom)
        self.bodies.append(body)
        self.updates.append(made.update.tobytes())
        headers = {"Authorization": f"Bearer {given.secret}", "X-Content-SHA256": sha256(body)}
        headers["Content-Type"] = "application/octet-stream"
        sent = await http.post(f"/v1/reports/{given.assignment}", content=body, headers=headers)
        assert sent.status_code == 200, sent.text


def asked_one_by_one(learner: Learner, plan: RoundPlan, task: TrainQuestion) -> Answered:
    made = DevicesOneByOne(learner, cohorts_of(learner, plan, KEY))
    return made.collect(made.init(), task, seed=SEED)[0]


def assert_same_bits(got: Answered, slow: Answered) -> None:
    assert np.asarray(got.values).tobytes() == np.asarray(slow.values).tobytes()
    assert (got.reports, got.dropped, got.beside.get("short"), got.beside.get("bounded_loss")) == (
        slow.reports,
        slow.dropped,
        slow.beside.get("short"),
        slow.beside.get("bounded_loss"),
    )
    assert got.participants == slow.participants and got.reports > 0


def for_devices(task: TrainQuestion, **changes: Any) -> TrainQuestion:
    return replace(task, separation=DeviceSeparation(rounds=2), **changes)


def test_in_the_clear_one_worker_adds_as_devices_asked_one_by_one(
    learner: Learner, plan: RoundPlan, folder: Path
) -> None:
    task = task_of(learner, plan)
    slow = asked_one_by_one(learner, plan, task)
    assert not isinstance(slow.clients, int)
    network = Network(folder, learner, for_devices(task), slow.clients.tolist(), workers=1)
    assert_same_bits(network.collected(), slow)
    assert_no_upload_is_stored(folder, network)


def test_encoded_any_workers_add_in_any_order(
    learner: Learner, plan: RoundPlan, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assignments, "NEARLY_FULL", 0)  # so small a cohort would be steered to one worker
    task = encoded(task_of(learner, plan), learner)
    slow = asked_one_by_one(learner, plan, task)
    assert not isinstance(slow.clients, int)
    order = np.random.default_rng(3).permutation(slow.clients).tolist()
    network = Network(folder, learner, for_devices(task), order, workers=2)
    assert_same_bits(network.collected(), slow)
    assert_no_upload_is_stored(folder, network)


def test_sealed_the_sum_is_that_of_encoded_reports(
    learner: Learner, plan: RoundPlan, folder: Path, tmp_path: Path
) -> None:
    """To the bit; and who reads store and blobs while the round goes on finds ciphertexts alone."""
    task = encoded(task_of(learner, plan), learner)
    slow = asked_one_by_one(learner, plan, task)
    assert not isinstance(slow.clients, int)
    decryptors = decryptors_in(tmp_path, count=4)
    decryptors[1].away = True
    network = Network(folder, learner, for_devices(task), slow.clients.tolist(), workers=2, decryptors=decryptors)
    assert_same_bits(network.collected(), slow)
    stored = {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}
    spooled = [content for file, content in stored.items() if "sealed" in file.parts]
    assert sorted(spooled) == sorted(network.bodies), "the search finds what is there"
    for content in stored.values():
        assert not any(update in content or update[: len(update) // 4] in content for update in network.updates)


def assert_no_upload_is_stored(folder: Path, network: Network) -> None:
    """Neither store nor blobs hold what a device sent, nor do two sums differ by it; the search finds what is there."""
    stored = {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}
    partials = [content for file, content in stored.items() if "partials" in file.parts]
    assert partials and any(name.name == "store.db" for name in stored)
    for update, body in zip(network.updates, network.bodies, strict=True):
        for content in stored.values():
            assert update not in content and update[: len(update) // 4] not in content and body not in content
    (attempt,) = round_states.attempts(network.store, "tiny")
    parts = round_states.partial_sums(network.store, attempt.task)
    assert sum(part.reports for part in parts) == attempt.reports and min(part.reports for part in parts) >= 2
    total = (folder / "blobs" / "totals" / attempt.task / str(attempt.total_digest)).read_bytes()
    assert any(total in content for content in stored.values())
