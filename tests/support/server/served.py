"""A worker in a test: its application without a socket, over a store and blobs of its own, with one open round."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import httpx
import numpy as np
from numpy.typing import NDArray
from tests.support.server.documents import PARAMETERS, a_plan, a_task
from tests.support.server.stores import Clock, sqlite_store

from tacit.protocol.attestation import NOTHING, Attestation
from tacit.protocol.bodies import ReportBody, report_body, sha256
from tacit.protocol.messages import Content, RoundTask
from tacit.protocol.operator_key import OperatorKey
from tacit.protocol.served_bodies import model_body
from tacit.protocol.signing import digest
from tacit.server.http.application import application
from tacit.server.http.origins import JSON, OCTETS, AskingPages
from tacit.server.http.services import Limits, Services
from tacit.server.http.snapshot import Snapshot
from tacit.server.http.web_page import WebPage
from tacit.server.store import round_states
from tacit.server.store.blobs import BlobStore, model_name
from tacit.server.store.round_states import Lease, NewRound
from tacit.server.store.store import Store
from tacit.server.store.tokens import Epochs, Issuer
from tacit.server.sums.partial_sums import PartialSums

KEY = OperatorKey(bytes(32))
TOKEN = "the administrator's"
IN_JSON = {"Content-Type": JSON}
T = TypeVar("T")


@dataclass
class Served:
    """A worker, and its hands behind the scene."""

    store: Store
    blobs: BlobStore
    services: Services
    lease: Lease
    task: RoundTask
    app: Any
    buried: list[bool]

    def asks(self, coroutine: Callable[[httpx.AsyncClient], Coroutine[Any, Any, T]]) -> T:
        """Have a client ask it, in an event loop of its own; the worker has looked into the store before."""

        async def asked() -> T:
            await self.app.rest.state.worker.begin()
            transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
                return await coroutine(client)

        return asyncio.run(asked())

    def attempt(self) -> round_states.Attempt:
        return round_states.attempt_of(self.store, self.task.task)

    def write(self) -> None:
        """What a worker does between requests."""
        self.services.snapshot.refresh()
        rows = [each.row for each in self.services.snapshot.rounds.values()]
        self.services.sums.write_what_is_due(rows, self.store.now())


def served(
    folder: Path,
    *,
    encoded: bool = False,
    asked: bool = False,
    limits: Limits | None = None,
    enrols: bool = False,
    devices: Attestation = NOTHING,
    pages: AskingPages = AskingPages(),  # noqa: B008  (frozen)
    web_page: WebPage | None = None,
    **sizes: int,
) -> Served:
    """One with a round of the made-up run, whose devices are `most`, 6 say."""
    store, blobs = sqlite_store(folder, Clock(1000.0)), BlobStore.open(f"file://{folder / 'blobs'}")
    plan = a_plan()
    round_states.enter_run(
        store,
        plan.run,
        population=plan.population,
        kind="train",
        plan=KEY.plan(plan.to_json()).model_dump_json(),
        plan_digest=digest(plan.to_json()),
    )
    lease = round_states.take_lease(store, plan.run, seconds=30)
    assert lease is not None
    body = model_body(a_model())
    model = Content(sha256=sha256(body), bytes=len(body), path=f"/v1/models/{sha256(body)}")
    blobs.put(model_name(model.sha256), body)
    task = a_task(encoded=encoded, asked=asked, plan=digest(plan.to_json()), content=model)
    signed = KEY.signed(task).model_dump_json()
    numbers = {"goal": 4, "least": 2, "most": 6} | sizes
    new = NewRound(
        task=task.task,
        round=task.round,
        attempt=0,
        signed_task=signed,
        model_digest=model.sha256,
        closes_selecting=1500.0,
        deadline=2000.0,
        **numbers,
    )
    round_states.open_round(store, lease, new)
    buried: list[bool] = []
    services = Services(
        store=store,
        blobs=blobs,
        key=KEY,
        worker="ab" * 16,
        snapshot=Snapshot(store),
        sums=PartialSums(store, blobs, "ab" * 16, evicted=lambda: buried.append(True)),
        admin_token=TOKEN,
        pages=pages,
        web_page=web_page,
        limits=limits or Limits(),
        issuer=Issuer(store, KEY, folder / "operator.key", Epochs(1e4, 3), devices) if enrols else None,
    )
    return Served(store, blobs, services, lease, task, application(services), buried)


def a_model() -> NDArray[np.float32]:
    return np.linspace(-1, 1, PARAMETERS, dtype=np.float32)


def check_in(**changed: Any) -> dict[str, Any]:
    said = {
        "version": 2,
        "population": "keyboards-es",
        "versions": {"train": 1},
        "token": None,
    }
    return said | changed


def a_body(assignment: str, value: float = 0.1, **said: Any) -> bytes:
    """A report in clear; every coordinate is `value`."""
    values = np.full(PARAMETERS, value, np.float32)
    given = {"usable": True, "short": None, "bounded_loss": None} | said
    return report_body(ReportBody(values, **given), assignment)


def headers(secret: str, body: bytes, **more: str) -> dict[str, str]:
    said = {"Authorization": f"Bearer {secret}", "Content-Type": OCTETS, "X-Content-SHA256": sha256(body)}
    return said | more
