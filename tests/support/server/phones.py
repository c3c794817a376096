"""Devices, workers and a coordinator of a served query in one process: what crosses between them is HTTP, no socket."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx
from tests.support.device.operator import Clock, Wire
from tests.support.device.zeros import Zeros
from tests.support.server.sealing import Here
from tests.support.server.stores import sqlite_store

from tacit.device.device import Device
from tacit.device.own_handlers import task_handlers
from tacit.device.own_text import OwnText
from tacit.device.policy import Policy
from tacit.device.record import opened
from tacit.device.session import Machine, Session
from tacit.device.turn import SessionOutcome
from tacit.progress import silent
from tacit.protocol.bounded_http import Server, connected
from tacit.protocol.log_proofs import plan_entry
from tacit.protocol.messages import Plan
from tacit.protocol.operator_key import OperatorKey
from tacit.protocol.signing import digest
from tacit.server.http.application import application
from tacit.server.http.services import Services
from tacit.server.http.snapshot import Snapshot
from tacit.server.log.logged_run import keep_logged
from tacit.server.log.transparency import TransparencyLog
from tacit.server.plans import plan_of
from tacit.server.rounds.rounds import RoundTimes
from tacit.server.served import ServedJob
from tacit.server.store import assignments, round_states
from tacit.server.store.blobs import BlobStore
from tacit.server.sums.partial_sums import PartialSums

SERVER = "http://127.0.0.1:8000"
TIMES = RoundTimes(over_selection=1.0, selecting=60.0, reporting=60.0, pause=1.0, attempts=2)
EVERYTHING = ("train", "discover", "evaluate", "personalize", "count")
WILLING = Policy(
    kinds=EVERYTHING, largest_zcdp=1e4, largest_epsilon=1e5, budget_zcdp=1e4, smallest_noise_multiplier=0.001
)


@dataclass
class Phones:
    """Workers over one store, and devices of a cache's clients that come, in order, while a coordinator waits."""

    folder: Path
    cache: Path
    coming: list[int]
    decryptors: Sequence[Here] = ()
    policy: Policy = WILLING
    count: int = 2
    clock: Clock = field(default_factory=Clock)
    times: RoundTimes = TIMES
    turns: list[SessionOutcome] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    plan: Plan | None = None

    def __post_init__(self) -> None:
        self.key = OperatorKey(bytes(32))
        self.store = sqlite_store(self.folder, self.clock)  # type: ignore[arg-type]
        self.blobs = BlobStore.open(f"file://{self.folder / 'blobs'}")
        self.workers = [self._worker(f"{number:032x}") for number in range(self.count)]
        self._apps = [application(each) for each in self.workers]
        self._asked = 0

    def serve(self, job: ServedJob, out: Path) -> None:
        """As a coordinator does the job, from the beginning or on."""
        collector = job.collector(
            self.store, self.blobs, self.key, times=self.times, decryptors=self.decryptors, wait=self.wait
        )
        with job.begun(out, collector, silent) as run:
            self.plan = plan = plan_of(run)
            signed = self.key.plan(plan.to_json())
            said = {"population": plan.population, "kind": plan.kind, "plan": signed.model_dump_json()}
            round_states.enter_run(self.store, plan.run, **said, plan_digest=digest(plan.to_json()))
            log = TransparencyLog.beside(self.store, self.key, self.folder / "operator.key")
            keep_logged(run, signed, log.append(plan_entry(digest(plan.to_json()))), self.key)
        self.clock.now += 1000.0
        lease = round_states.take_lease(self.store, plan.run, seconds=300)
        assert lease is not None
        collector.serve(signed, lease)
        job.run(out, collector, silent)
        round_states.finish_run(self.store, lease)

    def wait(self, seconds: float) -> None:
        """Time passes; devices come as long as there is a place; workers do what they do."""
        self.clock.now += seconds
        for each in self.workers:
            assignments.seen(self.store, each.worker)
        while self.coming:
            turn = self.turn(self.coming[0])
            if turn.what == "idle":  # it comes again
                break
            self.turns.append(turn)
            del self.coming[0]
        for each in self.workers:
            each.snapshot.refresh()
            each.sums.write_what_is_due([found.row for found in each.snapshot.rounds.values()], self.clock.now)

    def turn(self, client: int, policy: Policy | None = None) -> SessionOutcome:
        """One of a client's device, with the record that it has."""
        # one clock is everybody's here: nobody waits with a report
        rules = replace(self.policy if policy is None else policy, send_after_s=0.0)
        text = OwnText(self.cache, client, rules.temporal_split)
        with (
            connected(Server.from_url(SERVER), through=Wire(self._answer)) as connection,
            opened(self.folder / f"device-{client}", now=self.clock(), first_time=True) as record,
        ):
            record.pin(self.key.public)
            session = Session(
                record=record,
                policy=rules,
                handlers=task_handlers(text, Zeros()),
                population="phones",
                machine=Machine(clock=self.clock, steady=self.clock, sleep=self.clock.sleep),
            )
            return Device(session, connection).session()

    def _worker(self, name: str) -> Services:
        sums = PartialSums(self.store, self.blobs, name, evicted=lambda: None)
        return Services(
            store=self.store, blobs=self.blobs, key=self.key, worker=name, snapshot=Snapshot(self.store), sums=sums
        )

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self._asked += 1
        at = self._asked % len(self.workers)
        self.workers[at].snapshot.refresh()
        if request.method == "POST" and "/reports/" in request.url.path:
            self.bodies.append(request.read())

        async def answered() -> httpx.Response:
            transport: Any = httpx.ASGITransport(self._apps[at])
            async with httpx.AsyncClient(transport=transport, base_url=SERVER) as client:
                asked = client.build_request(
                    request.method, request.url.path, content=request.read(), headers=dict(request.headers)
                )
                return await client.send(asked)

        found = asyncio.run(answered())
        return httpx.Response(found.status_code, headers=found.headers, content=found.content)
