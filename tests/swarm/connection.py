"""HTTP/1.1 as a simulated device speaks it: one request after another over one connection, in few microseconds.

httptools parses; a general client costs some ten times as much a request, which a process that plays thousands of
devices would spend beside the server that it is to try.
"""

import asyncio
import hashlib
import ssl
from collections.abc import Mapping
from typing import Any, NamedTuple, cast
from urllib.parse import urlsplit

from tacit.errors import ServerError
from tacit.extras import of_extra
from tacit.protocol.requests import Answer
from tacit.server.http.body_stream import BodyStream

PIECE = 1 << 20  # bytes that are written before it is waited for them to leave
LARGE = 1 << 16  # bytes of a body that are poured
MOST = 1 << 30  # bytes of an answer
DIGEST = "X-Content-SHA256"


class Place(NamedTuple):
    """Where a server listens."""

    host: str
    port: int
    tls: ssl.SSLContext | None

    @classmethod
    def from_url(cls, url: str) -> "Place":
        """Of http://HOST:PORT or https://HOST:PORT, as `bounded_http.Server` checked it."""
        parts = urlsplit(url)
        secure = parts.scheme == "https"
        port = parts.port or (443 if secure else 80)
        return cls(parts.hostname or "", port, ssl.create_default_context() if secure else None)


class SwarmConnection(asyncio.Protocol):
    """One connection. Raises: ServerError where it ends before an answer is whole."""

    def __init__(self) -> None:
        self._httptools = of_extra("deployment", "httptools")
        self._answer: asyncio.Future[Answer] | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self._host = ""
        self._large: bytearray | None = None  # where a large body goes

    @classmethod
    async def to(cls, place: Place) -> "SwarmConnection":
        """A new one. Raises: ServerError where there is none to be had."""
        try:
            made = await asyncio.get_running_loop().create_connection(cls, place.host, place.port, ssl=place.tls)
        except OSError as error:
            raise ServerError(f"the server cannot be reached ({error}).") from error
        made[1]._host = f"{place.host}:{place.port}"
        return made[1]

    async def ask(
        self, method: str, path: str, *, body: bytes = b"", seconds: float, more: Mapping[str, str] | None = None
    ) -> Answer:
        """The answer to a request, which comes within so many seconds. Raises: ServerError."""
        self._begin()
        answer = cast("asyncio.Future[Answer]", self._answer)
        try:
            async with asyncio.timeout(seconds):
                await self.send(self.head(method, path, len(body), more) + (body if len(body) < PIECE else b""))
                if len(body) >= PIECE:
                    await self.send(body)
                return await answer
        except TimeoutError:
            self.close()
            raise ServerError(f"no answer in {seconds:g} s.") from None
        finally:
            if answer.done() and not answer.cancelled():
                answer.exception()  # seen, whether or not anybody still waited for it

    def head(self, method: str, path: str, length: int, more: Mapping[str, str] | None = None) -> bytes:
        """A request's first lines, as they are sent."""
        lines = [f"{method} {path} HTTP/1.1", f"Host: {self._host}"]
        headers = {"Content-Type": "application/json", "Content-Length": str(length)} if method == "POST" else {}
        lines += [f"{name}: {value}" for name, value in {**headers, **(more or {})}.items()]
        return "\r\n".join([*lines, "\r\n"]).encode()

    async def send(self, content: bytes) -> None:
        """Bytes, whatever they mean; back when the system has nearly all of them. Raises: ServerError."""
        view = memoryview(content)
        for at in range(0, len(view), PIECE):
            await self._writable.wait()
            if self.closed or (self._answer is not None and self._answer.done()):
                return  # the answer came first: what is left would not be read
            self._transport.write(view[at : at + PIECE])
        await self._writable.wait()

    def close(self) -> None:
        """At once."""
        self._transport.abort()

    @property
    def closed(self) -> bool:
        """Whether it has ended, from either side."""
        return self._transport.is_closing()

    def _begin(self) -> None:
        if self.closed:
            raise ServerError("the server ended the connection.")
        self._answer = asyncio.get_running_loop().create_future()
        self._parser = self._httptools.HttpResponseParser(self)
        self._body, self._headers, self._large = bytearray(), dict[str, str](), None

    # -- asyncio and httptools call these ------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._writable.set()
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(ServerError("the server ended the connection."))

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def data_received(self, data: bytes) -> None:
        if self._answer is None or self._answer.done():
            self.close()  # nobody asked
            return
        try:
            self._parser.feed_data(data)
        except self._httptools.HttpParserError as error:
            self._answer.set_exception(ServerError(f"the answer is no HTTP ({error})."))
            self.close()
            return
        if self._large is not None and not self._answer.done() and not self.closed:
            self._large[: len(self._body)] = self._body
            BodyStream(self._transport, self, memoryview(self._large), len(self._body)).begin(self._streamed)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        length = self._headers.get("content-length", "")
        if length.isdecimal() and LARGE <= int(length) <= MOST:
            self._large = bytearray(int(length))

    def on_body(self, body: bytes) -> None:
        if len(self._body) + len(body) > MOST:
            self.close()
        self._body += body

    def on_message_complete(self) -> None:
        answer: Any = self._answer
        status = self._parser.get_status_code()
        if not answer.done():
            answer.set_result(Answer(status, self._headers, self._body))  # a bytearray is bytes to who reads it
        if not self._parser.should_keep_alive():
            self.close()

    def _streamed(self) -> None:
        assert self._large is not None  # what was poured into
        self._body = self._large
        self.on_message_complete()


def headers_of(secret: str, body: bytes) -> dict[str, str]:
    """Of a report: its credential, and what its bytes are."""
    said = {"Authorization": f"Bearer {secret}", "Content-Type": "application/octet-stream"}
    return said | {DIGEST: hashlib.sha256(body).hexdigest()}
