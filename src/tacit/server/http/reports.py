"""A report's way from the network into a sum: bounded in size, memory and time, checked, added, receipted."""

import asyncio
import re
import zlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import numpy as np
from starlette.requests import Request
from starlette.types import Receive

from tacit.errors import InputError, ProtocolError
from tacit.protocol.bodies import sha256
from tacit.protocol.served_bodies import read_report
from tacit.server.http.connections import STREAM
from tacit.server.http.problems import Refused
from tacit.server.http.services import Limits, Services
from tacit.server.http.snapshot import Current
from tacit.server.store.assignments import ReportAnswer, StoredAssignment, find_all, give_back
from tacit.server.store.batching import Batching
from tacit.server.store.round_states import TAKING

HEX_64 = re.compile(r"[0-9a-f]{64}")
HEX_32 = re.compile(r"[0-9a-f]{32}")
BEARER = re.compile(r"[Bb]earer +([0-9a-f]{64})")
LENGTH = re.compile(r"[0-9]{1,12}")
GZIP = 16 + zlib.MAX_WBITS


class Memory:
    """Bytes that the bodies being read may have together; who finds no room waits for its turn."""

    def __init__(self, limits: Limits) -> None:
        self._limits, self._free, self._waiting = limits, limits.body_memory, 0
        self._changed = asyncio.Condition()

    @asynccontextmanager
    async def holding(self, size: int) -> AsyncIterator[None]:
        """Raises: Refused where there is no room for too long, or too many wait."""
        size = min(size, self._limits.body_memory)  # one that is larger than all of it comes alone
        if self._waiting >= self._limits.waiting:
            raise Refused("busy", "too many reports come at once; send it again.", Retry_After="10")
        self._waiting += 1
        try:
            async with asyncio.timeout(self._limits.wait_s), self._changed:
                await self._changed.wait_for(lambda: self._free >= size)
                self._free -= size
        except TimeoutError:
            raise Refused("busy", "too many reports come at once; send it again.", Retry_After="10") from None
        finally:
            self._waiting -= 1
        try:
            yield
        finally:
            self._free += size
            async with self._changed:
                self._changed.notify_all()


class Receiving:
    """Of one worker."""

    def __init__(self, services: Services) -> None:
        self._services, self._memory = services, Memory(services.limits)
        self._found = Batching[str, StoredAssignment | None](
            lambda names: services.threaded(find_all, services.store, names)
        )

    async def receive(self, request: Request, assignment: str) -> bytes:
        """The signed receipt of a report, as it is sent. Raises: Refused."""
        claimed, encoding, length = _said(request.headers)
        found, current = await self._assigned(request, assignment)
        if found.body_digest is not None and found.body_digest != claimed:
            raise Refused("other-report", "another report was received for this assignment; it stands.")
        if found.body_digest is not None:  # it came, and the receipt did not arrive; there is nothing to read again
            return self._receipt(assignment, claimed, ReportAnswer.AGAIN)
        if current is None or current.is_full:
            raise _late(current)
        most = current.most_bytes
        if length > most:
            raise Refused("too-large", f"a report of this round has at most {most:,} bytes.", Connection="close")
        async with self._memory.holding(length + (most if encoding == "gzip" else 0)):
            body = await large_body(request, length, self._services.limits)
            self._services.metrics.report_bytes.inc(length)
            answer = await self._services.threaded(self._added, body, encoding, claimed, current, assignment)
        if answer is ReportAnswer.LATE:
            self._services.metrics.reports.labels(answer.value).inc()
            raise _late(self._services.snapshot.rounds.get(found.task))
        if answer is ReportAnswer.ELSEWHERE:
            self._services.metrics.reports.labels(answer.value).inc()
            raise Refused("busy", "another worker has this round's reports; send it again.", **_ELSEWHERE)
        return self._receipt(assignment, claimed, answer)

    async def give_back(self, request: Request, assignment: str) -> None:
        """A device will not report. Raises: Refused."""
        found, current = await self._assigned(request, assignment)
        if current is None:
            return  # there is no place any more
        gave = await self._services.threaded(give_back, self._services.store, assignment, task=found.task)
        self._services.metrics.reports.labels("given back" if gave else "kept").inc()

    async def _assigned(self, request: Request, assignment: str) -> tuple[StoredAssignment, Current | None]:
        """The assignment whose secret the request has, and its round; None where that is over. Raises: Refused."""
        secret = BEARER.fullmatch(request.headers.get("authorization", ""))
        if secret is None:
            raise Refused("credential", "send `Authorization: Bearer` and the assignment's secret.", **_CHALLENGE)
        found = await self._found.answer(assignment)
        nobody = StoredAssignment("", "0" * 64, "", None)  # compared as well, so that time does not tell which is wrong
        if not (found or nobody).opened_by(secret[1]) or found is None:
            raise Refused(
                "credential", "there is no such assignment with this secret; its round may be over.", **_CHALLENGE
            )
        snapshot = self._services.snapshot
        if found.task not in snapshot.rounds:  # opened since the last look, or over
            await self._services.threaded(snapshot.refresh)
        return found, snapshot.rounds.get(found.task)

    def _added(self, body: memoryview, encoding: str, claimed: str, current: Current, assignment: str) -> ReportAnswer:
        """In a thread. Raises: Refused; StoreError."""
        plain = body if encoding == "identity" else _inflated(body, current.most_bytes)
        if sha256(plain) != claimed:
            raise Refused("malformed", "the body's SHA-256 is not what X-Content-SHA256 says; send it again.")
        if current.task.sealed is not None:
            return self._stored(memoryview(plain), claimed, current.task.sealed, current.task.task, assignment)
        try:
            report = read_report(plain, current.shape, assignment)
        except InputError as error:
            raise Refused("refused", str(error)) from None
        return self._services.sums.take(report, current.task, assignment, claimed)

    def _stored(self, body: memoryview, claimed: str, sealed: str, task: str, assignment: str) -> ReportAnswer:
        """Of a sealed report. Raises: Refused; StoreError."""
        from tacit.server.sums import one_message_reports

        services = self._services
        try:
            one_message_reports.check(body, sealed, services.key.round_key(task))
        except ProtocolError as error:
            raise Refused("refused", str(error)) from None
        where = {"task": task, "assignment": assignment, "worker": services.worker}
        return one_message_reports.report_store(services.store, services.blobs, body, **where, digest=claimed)

    def _receipt(self, assignment: str, body_digest: str, answer: ReportAnswer) -> bytes:
        """Raises: Refused where there is none."""
        self._services.metrics.reports.labels(answer.value).inc()
        if answer is ReportAnswer.OTHER:
            raise Refused("other-report", "another report was received for this assignment; it stands.")
        return self._services.key.receipt(assignment, body_digest).to_json().encode()


def _late(current: Current | None) -> Refused:
    """A round that is over takes no report; one that is full may take it yet, in the place of one that was lost."""
    if current is None or current.row.state not in TAKING:
        return Refused("late", "the round takes no more reports; check in again.")
    return Refused("busy", "the round has all its reports for now; send it again.", Retry_After="5")


_ELSEWHERE: Mapping[str, str] = {"Retry_After": "1", "Connection": "close"}  # a new connection may reach that one
_CHALLENGE: Mapping[str, str] = {"WWW_Authenticate": "Bearer"}


def _said(headers: Mapping[str, str]) -> tuple[str, str, int]:
    """(SHA-256 of the body, its encoding, its length as it comes). Raises: Refused."""
    claimed = headers.get("x-content-sha256", "")
    if not HEX_64.fullmatch(claimed):
        raise Refused("malformed", "X-Content-SHA256 is not 64 lower-case hexadecimal digits.")
    encoding = headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("identity", "gzip"):
        raise Refused("encoding", "Content-Encoding may be gzip or identity.", Accept_Encoding="gzip, identity")
    length = headers.get("content-length", "")
    if not LENGTH.fullmatch(length):
        raise Refused("length", "send Content-Length.", Connection="close")
    return claimed, encoding, int(length)


async def large_body(request: Request, length: int, limits: Limits) -> memoryview:
    """The body, of so many bytes. Raises: Refused, as `read_body`.

    Where the server can pour it, it comes into its place without a turn of this coroutine for each piece.
    """
    receive_into = (request.scope.get("extensions") or {}).get(STREAM)
    if receive_into is None:
        return memoryview(await read_body(request.receive, length, limits))
    body = np.empty(length, np.uint8).data  # huge pages, where the system has them
    loop = asyncio.get_running_loop()
    last, coming = loop.time() + limits.grace_s + length / limits.slowest, receive_into(body)
    try:
        while not coming.ended.done():
            until = min(last, coming.latest + limits.idle_s)
            if until <= loop.time():
                raise _too_slow()
            await asyncio.wait([coming.ended], timeout=until - loop.time())
    finally:
        coming.stop()
    if coming.count != length:
        raise Refused("malformed", "the body ended too early.", Connection="close")
    return body


async def read_body(receive: Receive, length: int, limits: Limits) -> bytearray:
    """The body, of so many bytes. Raises: Refused where it is another length, or comes too slowly."""
    body, at, more = bytearray(length), 0, True
    loop = asyncio.get_running_loop()
    last = loop.time() + limits.grace_s + length / limits.slowest
    try:
        async with asyncio.timeout(limits.idle_s) as waiting:
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise Refused("malformed", "the body ended too early.", Connection="close")
                piece, more = message.get("body", b""), message.get("more_body", False)
                if at + len(piece) > length:
                    raise Refused("too-large", "the body is longer than Content-Length says.", Connection="close")
                body[at : at + len(piece)] = piece
                at += len(piece)
                waiting.reschedule(min(last, loop.time() + limits.idle_s))
    except TimeoutError:
        raise _too_slow() from None
    if at != length:
        raise Refused("malformed", "the body is shorter than Content-Length says.", Connection="close")
    return body


def _too_slow() -> Refused:
    return Refused("too-slow", "the body came too slowly; send it again.", Connection="close")


def _inflated(body: memoryview, most: int) -> bytes:
    """Of gzip, at most so many bytes; no more of them are ever made. Raises: Refused."""
    opened = zlib.decompressobj(GZIP)
    try:
        plain = opened.decompress(body, most + 1)
    except zlib.error:
        raise Refused("malformed", "the body is no gzip.") from None
    if len(plain) > most:
        raise Refused("too-large", f"a report of this round has at most {most:,} bytes.")
    if not opened.eof or opened.unused_data:
        raise Refused("malformed", "the body is not one whole gzip stream.")
    return plain
