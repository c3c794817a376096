"""A server of a test on real sockets: workers in threads over one store, and the made-up run that they serve."""

import asyncio
import secrets
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import uvicorn
from sqlalchemy import select
from tests.support.server.documents import a_plan
from tests.support.server.fleet import KEY
from tests.support.server.sealing import Here, sealed_plan
from tests.support.waiting import PATIENCE, until
from tests.swarm import Swarm, SwarmSettings, TaskOutcome
from tests.swarm import SwarmLog as SwarmLog

from tacit.protocol.address import Address
from tacit.protocol.bodies import ReportBody
from tacit.protocol.log_proofs import plan_entry
from tacit.protocol.messages import Plan, RoundTask, Signed
from tacit.protocol.signing import digest
from tacit.server.http.application import application
from tacit.server.http.connections import ServedConnection
from tacit.server.http.services import Services
from tacit.server.http.snapshot import Snapshot
from tacit.server.log.transparency import TransparencyLog
from tacit.server.rounds.rounds import RoundTimes, ServedRounds
from tacit.server.store import round_states
from tacit.server.store.blobs import BlobStore
from tacit.server.store.schema import assignments
from tacit.server.store.store import Store
from tacit.server.store.tokens import Epochs, Issuer, enrol
from tacit.server.sums.partial_sums import PartialSums
from tacit.server.train import document

# So many are asked that a round hardly ever lasts to its end, which is there for a machine however busy.
TIMES = RoundTimes(
    over_selection=2.5, selecting=60.0, reporting=60.0, closing=60.0, pause=0.0, silence=60.0, poll=0.02, attempts=5
)


@dataclass
class Loopback:
    """Where it listens, and what is behind it."""

    url: str
    plan: Plan
    store: Store
    collector: ServedRounds

    def attempt(self, round: int) -> round_states.Attempt:
        """The last one at the round."""
        return [each for each in round_states.attempts(self.store, self.plan.run) if each.round == round][-1]

    def task(self, round: int) -> RoundTask:
        return Signed.from_json(self.attempt(round).signed_task).read(RoundTask)

    def those(self, state: str, round: int) -> set[str]:
        """Assignments in this state before the round is released: of those that counted, reports are in its sum."""
        mine = select(assignments.c.id).where(assignments.c.task == self.attempt(round).task)
        with self.store.reading() as connection:
            return set(connection.execute(mine.where(assignments.c.state == state)).scalars())


@contextmanager
def loopback(
    folder: Path,
    *,
    workers: int = 2,
    times: RoundTimes = TIMES,
    decryptors: Sequence[Here] = (),
    codes: Sequence[str] = (),
    **changed: Any,
) -> Iterator[Loopback]:
    """So many workers, each with an event loop, and a collector of the made-up run that has the lease."""
    store, blobs = Store.open(f"sqlite:///{folder / 'store.db'}"), BlobStore.open(f"file://{folder / 'blobs'}")
    plan = sealed_plan(decryptors, threshold=2, **changed) if decryptors else a_plan(**changed)
    said = {"population": plan.population, "kind": plan.kind, "plan": KEY.plan(plan.to_json()).model_dump_json()}
    round_states.enter_run(store, plan.run, **said, plan_digest=digest(plan.to_json()))
    TransparencyLog.beside(store, KEY, folder / "operator.key").append(plan_entry(digest(plan.to_json())))
    lease = round_states.take_lease(store, plan.run, seconds=PATIENCE * 2)
    assert lease is not None
    collector = ServedRounds(store, blobs, KEY, document=document, times=times, decryptors=decryptors)
    collector.serve(KEY.plan(plan.to_json()), lease)
    if codes:
        enrol(store, codes)
    with Address(port=0).listening() as listener, ExitStack() as stack:
        for _ in range(workers):
            issuer = Issuer(store, KEY, folder / "operator.key", Epochs(batch=2)) if codes else None
            stack.enter_context(_worker(store, blobs, listener, issuer))
        yield Loopback(Address(port=0).url(listener), plan, store, collector)
    store.close()


@contextmanager
def _worker(store: Store, blobs: BlobStore, listener: Any, issuer: Issuer | None) -> Iterator[None]:
    name = secrets.token_hex(16)
    sums = PartialSums(store, blobs, name, evicted=lambda: None)
    services = Services(
        store=store, blobs=blobs, key=KEY, worker=name, snapshot=Snapshot(store), sums=sums, issuer=issuer
    )
    config = uvicorn.Config(
        application(services),
        http=ServedConnection,
        ws="none",
        lifespan="on",
        log_config=None,
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listener.dup()])))
    thread.start()
    try:
        until(lambda: server.started or not thread.is_alive())
        yield
    finally:
        server.should_exit = True
        thread.join()


@contextmanager
def swarming(settings: SwarmSettings) -> Iterator[SwarmLog]:
    """Devices in a thread, for as long as the block lasts; what one of them raises the block's end raises."""
    swarm, stop, raised = Swarm(settings), threading.Event(), list[BaseException]()

    def run() -> None:
        try:
            swarm.run(PATIENCE * 2, until=stop.is_set)
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield swarm.log
    finally:
        stop.set()
        thread.join()
    for error in raised:
        raise error


def reports_of(settings: SwarmSettings, server: Loopback, round: int, parts: list[TaskOutcome]) -> list[ReportBody]:
    """What these devices sent, made again."""
    task, model = server.task(round), np.zeros(0, np.float32)
    return [settings.reports.report(each.device, server.plan, task, model) for each in parts]
