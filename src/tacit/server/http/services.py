"""What the parts of a worker share: the store, the blobs, the operator's key, its limits, threads for what waits."""

import asyncio
import hmac
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from typing import ParamSpec, TypeVar

from tacit.errors import StoreError
from tacit.protocol.operator_key import OperatorKey
from tacit.server.http.origins import AskingPages
from tacit.server.http.problems import Refused
from tacit.server.http.snapshot import Snapshot
from tacit.server.http.web_page import WebPage
from tacit.server.metrics import Metrics
from tacit.server.store.blobs import BlobStore
from tacit.server.store.store import Store
from tacit.server.store.tokens import Issuer
from tacit.server.sums.partial_sums import PartialSums

P = ParamSpec("P")
T = TypeVar("T")
THREADS = 8


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What one worker allows, in bytes and seconds."""

    check_in: int = 1 << 15  # bytes of a check-in
    body_memory: int = 1 << 28  # of all reports that are being read at a time
    waiting: int = 200  # reports that wait for a place in that memory
    waiting_tokens: int = 50  # requests for tokens that wait, a fifth of a second for each
    wait_s: float = 20.0  # at most so long
    idle_s: float = 15.0  # between two pieces of a body
    slowest: float = 20_000.0  # bytes a second that a body or a model comes or goes with, at least
    grace_s: float = 30.0  # besides
    refresh_s: float = 0.2  # between two looks into the store
    stale_s: float = 10.0  # without one the worker is not healthy


@dataclass(frozen=True, kw_only=True)
class Services:
    """One worker's."""

    store: Store
    blobs: BlobStore
    key: OperatorKey
    worker: str
    snapshot: Snapshot
    sums: PartialSums
    admin_token: str | None = None  # None: nobody administers by HTTP
    key_rotation: str | None = None  # a SignedKeyRotation, JSON; None: the operator has the key that it always had
    issuer: Issuer | None = None  # None: devices need no tokens
    pages: AskingPages = field(default_factory=AskingPages)
    web_page: WebPage | None = None  # that it serves itself
    limits: Limits = field(default_factory=Limits)
    metrics: Metrics = field(default_factory=Metrics)
    threads: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(THREADS))
    own_thread: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1))  # of what is done meanwhile
    signing_thread: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1))

    async def threaded(self, function: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
        """The function's value, from a thread. Raises: Refused where the store cannot be used now."""
        return await self._value(self.threads, function, *given, **named)

    async def meanwhile(self, function: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
        """The same, in a thread that no device's request occupies."""
        return await self._value(self.own_thread, function, *given, **named)

    async def signing(self, function: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
        """The same, one after another: signatures are long, and leave the other threads to reports."""
        return await self._value(self.signing_thread, function, *given, **named)

    def shut_down(self) -> None:
        """End its threads with what they are at."""
        for each in (self.threads, self.own_thread, self.signing_thread):
            each.shutdown()

    async def _value(
        self, threads: ThreadPoolExecutor, function: Callable[P, T], *given: P.args, **named: P.kwargs
    ) -> T:
        loop = asyncio.get_running_loop()
        try:
            with self.metrics.seconds.labels(function.__name__).time():
                return await loop.run_in_executor(threads, partial(function, *given, **named))
        except StoreError:
            raise Refused("busy", "the server's store does not answer; try again later.", Retry_After="30") from None

    def is_admin(self, token: str) -> bool:
        """Whether this is the administrator's token, compared in constant time, whatever its length."""
        if self.admin_token is None:
            return False
        given, right = (sha256(each.encode(errors="replace")).digest() for each in (token, self.admin_token))
        return hmac.compare_digest(given, right)
