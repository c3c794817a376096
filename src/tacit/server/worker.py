"""A worker's process: it is told what to serve, and serves it until it is told to end or its supervisor dies."""

import os
import secrets
import signal
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from tacit.protocol.key_rotation import kept
from tacit.protocol.operator_key import OperatorKey
from tacit.server.http.application import application
from tacit.server.http.connections import LISTENER, allow_connections
from tacit.server.http.origins import AskingPages
from tacit.server.http.services import Services
from tacit.server.http.snapshot import Snapshot
from tacit.server.http.web_page import WebPage
from tacit.server.store.blobs import BlobStore
from tacit.server.store.store import Store
from tacit.server.store.tokens import Issuer
from tacit.server.sums.partial_sums import PartialSums

KEEP_ALIVE_S = 10  # of a connection without a request
ENDING_S = 20  # that requests in progress have when the worker ends


@dataclass(frozen=True, kw_only=True)
class WorkerSettings:
    """What a worker is told."""

    store: str
    blobs: str
    key: Path  # of the operator
    socket: int  # the listening socket's descriptor, which all workers share
    admin_token: str | None = None
    enrolment: bool = False  # whether devices show tokens
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    web: Path | None = None  # the folder of a page that it serves
    web_origins: tuple[str, ...] = ()  # whose pages may be devices
    local: bool = False  # whether this machine alone reaches it, without TLS


class WorkerServer(uvicorn.Server):
    """uvicorn's, that says when it serves."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """uvicorn: begin."""
        await super().startup(sockets)
        if not self.should_exit:
            self._ready()


def serve(settings: WorkerSettings, *, ready: Callable[[], None]) -> None:
    """Until SIGTERM. ready: called when it serves. Raises: InputError or StoreError where it cannot begin."""
    allow_connections()
    store, blobs = Store.open(settings.store), BlobStore.open(settings.blobs)
    name, key = secrets.token_hex(16), OperatorKey.in_file(settings.key)
    services = Services(
        store=store,
        blobs=blobs,
        key=key,
        worker=name,
        snapshot=Snapshot(store),
        sums=PartialSums(store, blobs, name, evicted=end_this_process),
        admin_token=settings.admin_token,
        key_rotation=kept(settings.key),
        issuer=Issuer(store, key, settings.key) if settings.enrolment else None,
        pages=AskingPages(listed=frozenset(settings.web_origins), local=settings.local),
        web_page=None if settings.web is None else WebPage.from_folder(settings.web),
    )
    config = uvicorn.Config(
        application(services),
        loop="uvloop",
        lifespan="on",
        backlog=2048,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=ENDING_S,
        ssl_certfile=settings.tls_certificate,
        ssl_keyfile=settings.tls_key,
        **LISTENER,
    )
    WorkerServer(config, ready).run(sockets=[socket.socket(fileno=settings.socket)])
    store.close()


def end_this_process() -> None:
    """As if its supervisor had said so: what it can still write is written."""
    os.kill(os.getpid(), signal.SIGTERM)
