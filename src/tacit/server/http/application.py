"""The application that a worker serves: the protocol's paths, each a few lines over what does the work.

Nothing is kept here but what the store, the blobs and the worker's own sums have. docs/protocol.md says what each path
takes and gives, docs/openapi.json the same for programs.
"""

import asyncio
import json
import logging
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from functools import cache, lru_cache
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from tacit.errors import InputError
from tacit.protocol.messages import VERSION, CheckIn
from tacit.server.http.admin import Admin, check_admin
from tacit.server.http.check_in_rates import CheckInRates
from tacit.server.http.log_served import LogServed
from tacit.server.http.models_served import Models
from tacit.server.http.openapi import document
from tacit.server.http.origins import PREFLIGHT
from tacit.server.http.problems import MEDIA_TYPE, Refused
from tacit.server.http.reports import HEX_32, HEX_64, LENGTH, Receiving, read_body
from tacit.server.http.services import Services
from tacit.server.http.tokens_served import TokensServed
from tacit.server.metrics import MEDIA_TYPE as METRICS_TYPE
from tacit.server.store import assignments
from tacit.server.store.assignments import Assigned, NoPlace, ShownToken, assign_all
from tacit.server.store.batching import Batching
from tacit.server.store.heartbeat import Heartbeat

JSON = "application/json"
CHECK_IN = "/v1/check-in"
IMMUTABLE = {"Cache-Control": "public, max-age=31536000, immutable"}
PLANS_KEPT = 100
COMMON = 400  # bytes of a check-in without a token: devices of one program send the same
OTHER_TOKEN = "this token is none of this epoch, or it was redeemed; show another."
BEAT_S = 2.0  # between two signs of life

log = logging.getLogger("tacit.server")


class Worker:
    """What a worker answers, and what it does meanwhile."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._receiving, self._models = Receiving(services), Models(services)
        self._check_in_rates = CheckInRates(services.store, services.worker)
        self._idle = 0  # check-ins answered since they were counted last
        self._places: dict[str, Batching[ShownToken | None, Assigned | NoPlace]] = {}  # by task
        self._plan = lru_cache(PLANS_KEPT)(self._read_plan)

    # -- devices -------------------------------------------------------------------------------------------------------

    async def check_in(self, body: bytes) -> bytes:
        """The answer to a device: an assignment, or when to come back. Raises: Refused."""
        try:
            given = _read_again(body) if len(body) <= COMMON else CheckIn.from_json(body)
        except InputError as error:
            raise Refused("malformed", str(error)) from None
        if given.version != VERSION:
            raise Refused("version", f"version {given.version} is not spoken here; {VERSION} is.")
        services, current = self._services, self._services.snapshot.work(given)
        if current is not None:
            shown = await self._shown(given.token)
            current.left -= 1
            assigned = await self._place(current.row.task, shown)
            if isinstance(assigned, Assigned):
                services.metrics.check_ins.labels("assignment").inc()
                return _assignment(assigned, current.row.signed_task)
            if assigned is NoPlace.REDEEMED:
                raise Refused("token", OTHER_TOKEN)
        self._idle += 1
        return self._check_in_rates.answer(given.population)

    async def _shown(self, token: str | None) -> ShownToken | None:
        """What is redeemed for a place: nothing where devices need no tokens. Raises: Refused."""
        issuer = self._services.issuer
        if issuer is None:
            return None
        if token is None:
            raise Refused("token", "there is a task; show a token for it.")
        found = await self._services.threaded(issuer.redeemable, token)
        if found is None:
            raise Refused("token", OTHER_TOKEN)
        return ShownToken(*found)

    async def _place(self, task: str, shown: ShownToken | None) -> Assigned | NoPlace:
        """In the round of this task, in one transaction with all who wait for one. Raises: Refused."""
        services = self._services
        if task not in self._places:
            self._places[task] = Batching(lambda shown: services.threaded(assign_all, services.store, task, shown))
        return await self._places[task].answer(shown)

    async def report(self, request: Request) -> Response:
        """A device's report; the answer is its receipt."""
        assignment = _hex(request.path_params["assignment"], HEX_32)
        return Response(await self._receiving.receive(request, assignment), media_type=JSON)

    async def give_back(self, request: Request) -> Response:
        """A device will not report, for a reason of its own; another gets its place."""
        await self._receiving.give_back(request, _hex(request.path_params["assignment"], HEX_32))
        return Response(status_code=204)

    async def model(self, request: Request) -> Response:
        """The model that a round begins with, by its SHA-256; it never changes."""
        return await self._models.response(_hex(request.path_params["sha256"], HEX_64), request.headers)

    async def plan(self, request: Request) -> Response:
        """A run's signed plan, by its digest; it never changes."""
        found = await self._services.threaded(self._plan, _hex(request.path_params["sha256"], HEX_64))
        return Response(found, media_type=JSON, headers=IMMUTABLE)

    def _read_plan(self, digest: str) -> str:
        found = assignments.signed_plan(self._services.store, digest)
        if found is None:
            raise Refused("not-found", "no run has this plan.")
        return found

    async def key(self, _: Request) -> Response:
        """The operator's public key. A device pins the one that it was given otherwise; this is for people."""
        return Response(f'{{"operator_key":"{self._services.key.public}"}}', media_type=JSON)

    async def key_rotation(self, _: Request) -> Response:
        """To which key the operator changed, for devices that pinned the one before."""
        if self._services.key_rotation is None:
            raise Refused("not-found", "the operator has the key that it always had.")
        return Response(self._services.key_rotation, media_type=JSON)

    # -- operators -----------------------------------------------------------------------------------------------------

    @property
    def is_well(self) -> bool:
        """Whether it looked into the store lately."""
        return self._services.store.now() - self._services.snapshot.taken < self._services.limits.stale_s

    async def health(self, _: Request) -> Response:
        """Whether this worker can work."""
        if not self.is_well:
            raise Refused("busy", "this worker has not reached its store lately.")
        return Response('{"ok":true}', media_type=JSON)

    async def metrics(self, request: Request) -> Response:
        """Counts for Prometheus; where administrators have a token, for those who have it."""
        if self._services.admin_token is not None:
            check_admin(self._services, request)
        self._count()
        return Response(self._services.metrics.text(), media_type=METRICS_TYPE)

    def _count(self) -> None:
        metrics, idle = self._services.metrics, self._idle
        self._idle -= idle
        metrics.check_ins.labels("come_back").inc(idle)
        metrics.held.set(self._services.sums.held)
        for population, pace in self._check_in_rates.known.items():
            metrics.devices.labels(population).set(pace.devices)
        for each in self._services.snapshot.rounds.values():
            for where in ("assigned", "received", "counted"):
                metrics.rounds.labels(each.row.run, where).set(getattr(each.row, where))

    # -- meanwhile -----------------------------------------------------------------------------------------------------

    async def begin(self) -> None:
        """Look into the store for the first time. Raises: Refused where it does not answer."""
        await self._services.threaded(self._services.snapshot.refresh)
        await self._services.threaded(self._check_in_rates.look, self._services.snapshot.sizes)

    async def work(self) -> None:
        """Look into the store and write sums, again and again, until it is cancelled."""
        services = self._services
        while True:
            try:
                await services.meanwhile(services.snapshot.refresh)
                rows = [each.row for each in services.snapshot.rounds.values()]
                self._places = {task: each for task, each in self._places.items() if task in services.snapshot.rounds}
                await services.meanwhile(services.sums.write_what_is_due, rows, services.store.now())
                await services.meanwhile(self._check_in_rates.look, services.snapshot.sizes)
            except Refused:
                log.warning("the store does not answer; trying again")
            self._count()
            await asyncio.sleep(services.limits.refresh_s)

    async def end(self) -> None:
        """Write what can be written: nobody may be answered any more."""
        services = self._services
        try:
            await services.meanwhile(services.sums.write_all, services.store.now())
        except Refused:
            log.warning("the store does not answer; %d reports are lost", services.sums.held)

    async def leave(self) -> None:
        """When it has shown its last sign of life."""
        with suppress(Refused):  # a name more in the store, of nobody who holds anything
            await self._services.meanwhile(assignments.bury, self._services.store, self._services.worker)
        self._services.shut_down()

    def lives(self) -> None:
        """Show a sign of life; in a thread. Raises: StoreError."""
        assignments.seen(self._services.store, self._services.worker)


@lru_cache(maxsize=256)
def _read_again(body: bytes) -> CheckIn:
    """A check-in that many devices send, read once. Raises: InputError, for which nothing is kept."""
    return CheckIn.from_json(body)


def application(services: Services) -> ASGIApp:
    """The ASGI application of one worker. Its work in the background runs for as long as its lifespan."""
    worker, admin = Worker(services), Admin(services)
    routes = [
        Route("/v1/reports/{assignment}", worker.report, methods=["POST"]),
        Route("/v1/reports/{assignment}", worker.give_back, methods=["DELETE"]),
        Route("/v1/models/{sha256}", worker.model, methods=["GET"]),
        Route("/v1/plans/{sha256}", worker.plan, methods=["GET"]),
        Route("/v1/key", worker.key, methods=["GET"]),
        Route("/v1/key/hand-over", worker.key_rotation, methods=["GET"]),
        Route("/v1/openapi.json", _openapi, methods=["GET"]),
        Route("/healthz", worker.health, methods=["GET"]),
        Route("/metrics", worker.metrics, methods=["GET"]),
        *LogServed(services).routes(),
        *TokensServed(services).routes(),
        *admin.routes(),
        *(services.web_page.routes() if services.web_page is not None else []),
    ]

    async def refused(_: Request, error: Exception) -> Response:
        assert isinstance(error, Refused)
        services.metrics.problems.labels(error.kind).inc()
        return Response(error.body(), error.status, {"Cache-Control": "no-store", **error.headers}, MEDIA_TYPE)

    async def of_starlette(request: Request, error: Exception) -> Response:
        """No such path, or not with this method."""
        assert isinstance(error, HTTPException)
        kind = "method" if error.status_code == 405 else "not-found"
        said = Refused(kind, f"{request.method} of this path is nothing that the protocol has.")
        said.headers |= error.headers or {}
        return await refused(request, said)

    async def failed(request: Request, error: Exception) -> Response:
        return await refused(request, Refused("failed", "the server failed; its log says more."))

    handlers: dict[Any, Any] = {Refused: refused, HTTPException: of_starlette, Exception: failed}
    app = Starlette(routes=routes, exception_handlers=handlers, lifespan=_lifespan(worker))
    app.router.redirect_slashes = False
    app.state.worker = worker
    return Front(app, worker, services)


class Front:
    """Stands before all: who may not ask goes no further, and check-ins, most of all requests, are answered here."""

    def __init__(self, rest: Starlette, worker: Worker, services: Services) -> None:
        self.rest, self._worker, self._services = rest, worker, services

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        if scope["type"] != "http":
            await self.rest(scope, receive, send)
            return
        pages = self._services.pages
        try:
            listed = pages.admitted(scope)
        except Refused as error:
            await self._refuse(send, error)
            return
        send = pages.sharing(scope, send, listed)
        if listed is not None and scope["method"] == "OPTIONS":
            await _answer(send, 204, PREFLIGHT, b"")
        elif scope["path"] == CHECK_IN:
            await self._check_in(scope, receive, send)
        else:
            await self.rest(scope, receive, send)

    async def _check_in(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            content = await self._worker.check_in(await self._body(scope, receive))
        except Refused as error:
            await self._refuse(send, error)
            return
        length = str(len(content))
        await _answer(send, 200, {"content-type": JSON, "content-length": length, "cache-control": "no-store"}, content)

    async def _refuse(self, send: Send, error: Refused) -> None:
        self._services.metrics.problems.labels(error.kind).inc()
        content = error.body()
        headers = {"content-type": MEDIA_TYPE, "content-length": str(len(content)), "cache-control": "no-store"}
        await _answer(send, error.status, {**headers, **error.headers}, content)

    async def _body(self, scope: Scope, receive: Receive) -> bytes:
        """Raises: Refused."""
        if scope["method"] != "POST":
            raise Refused("method", "a device checks in by POST.", Allow="POST")
        most = self._services.limits.check_in
        length = next((value for name, value in scope["headers"] if name == b"content-length"), b"").decode("latin-1")
        if not LENGTH.fullmatch(length):
            raise Refused("length", "send Content-Length.", Connection="close")
        if int(length) > most:
            raise Refused("too-large", f"a check-in has at most {most:,} bytes.", Connection="close")
        return bytes(await read_body(receive, int(length), self._services.limits))


async def _answer(send: Send, status: int, headers: Mapping[str, str], content: bytes) -> None:
    raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": content})


def _assignment(given: Assigned, task: str) -> bytes:
    """An Assignment as it is sent, around a task that is JSON already."""
    return (
        f'{{"answer":"assignment","assignment":"{given.id}","secret":"{given.secret}","signed_task":{task}}}'.encode()
    )


def _hex(text: str, pattern: re.Pattern[str]) -> str:
    """Raises: Refused."""
    if not pattern.fullmatch(text):
        raise Refused("not-found", "the path's last part is not lower-case hexadecimal digits of the right number.")
    return text


async def _openapi(_: Request) -> Response:
    return Response(_openapi_text(), media_type=JSON)


@cache
def _openapi_text() -> str:
    return json.dumps(document())


def _lifespan(worker: Worker) -> Any:
    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        await worker.begin()
        with Heartbeat(worker.lives, every=BEAT_S):
            task = asyncio.create_task(worker.work())
            try:
                yield
            finally:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
                await worker.end()
        await worker.leave()

    return lifespan
