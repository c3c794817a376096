"""HTTP connections that end when nothing comes: what uvicorn's own leave open for as long as a stranger likes."""

import re
import resource
from asyncio import TimerHandle
from functools import partial
from typing import Any

import httptools
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from tacit.server.http.body_stream import BodyStream
from tacit.server.http.problems import MEDIA_TYPE, Refused

HEAD_S = 15.0  # from a connection, or a request's first byte, to the end of its headers
GOODBYE_S = 0.5  # that the other side of a connection has to close it, when the process ends
MOST_HEAD = 1 << 14  # bytes of a request before its body
MOST = 20_000  # connections of a process at a time
MOST_STRANGERS = 256  # screened connections of a process at a time that showed no credential
LARGE = 1 << 16  # bytes of a body that can be poured
# ASGI extension of such a request: has the body poured, once, into a memoryview of just its length
STREAM = "tacit.pour"
HOST = re.compile(rb"([A-Za-z0-9._~!$&'()*+,;=%-]*|\[[0-9A-Fa-f:.v]+\])(:[0-9]*)?")  # RFC 3986, section 3.2.2
TRUST = "tacit.trust"  # ASGI extension of a screened connection's request: its credential was shown


async def _no_host(scope: Scope, receive: Receive, send: Send) -> None:
    """ASGI: the answer to a request of which nobody knows for whom it is."""
    body = Refused("malformed", "a request of HTTP/1.1 has one header Host, with a host and perhaps a port.").body()
    headers = {"content-type": MEDIA_TYPE, "content-length": str(len(body)), "connection": "close"}
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": 400, "headers": raw})
    await send({"type": "http.response.body", "body": body})


class ServedConnection(HttpToolsProtocol):
    """One connection: its headers are bounded in time and in bytes, and what is no HTTP is a Problem too."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._head_timer: TimerHandle | None = None
        self._head_bytes = 0

    def connection_made(self, transport: Any) -> None:
        """asyncio: it is there."""
        super().connection_made(transport)
        self._await_head()
        if len(self.connections) > MOST:
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """asyncio: it is gone."""
        self._have_head()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """asyncio: bytes came."""
        self._head_bytes += len(data)
        super().data_received(data)
        if self._head_timer is not None and self._head_bytes > MOST_HEAD and not self.transport.is_closing():
            self.send_400_response(f"the request has more than {MOST_HEAD} bytes before its body.")

    def on_message_begin(self) -> None:
        """httptools: a request begins."""
        super().on_message_begin()
        if self._head_timer is None:
            self._await_head()

    def on_headers_complete(self) -> None:
        """httptools: its headers are there."""
        self._have_head()
        served = self.app
        if self.parser.get_http_version() == "1.1" and not self._names_host():
            self.app = _no_host
        try:
            super().on_headers_complete()
        finally:
            self.app = served
        length = next((value for name, value in self.headers if name == b"content-length"), b"0")
        if int(length) >= LARGE:  # httptools takes digits alone
            self.scope["extensions"] = {STREAM: partial(self._body_stream, self.cycle)}  # type: ignore[dict-item]

    def _names_host(self) -> bool:
        """Whether the request has one header Host, with a host or with nothing: RFC 9112, section 3.2."""
        hosts = [value for name, value in self.headers if name == b"host"]
        return len(hosts) == 1 and HOST.fullmatch(hosts[0]) is not None

    def shutdown(self) -> None:
        """uvicorn: the process ends."""
        super().shutdown()
        self.loop.call_later(GOODBYE_S, self._leave)

    def _leave(self) -> None:
        """Where all is sent, whoever does not say goodbye is not waited for: under TLS an idle device says it when it
        looks at its connection again, and asyncio would wait 30 seconds for that.
        """
        if self not in self.connections:
            return
        if self.transport.is_closing() and not self.transport.get_write_buffer_size():
            self.transport.abort()
        else:
            self.loop.call_later(GOODBYE_S, self._leave)

    def send_400_response(self, msg: str) -> None:
        """In the one shape of errors, and nothing more is read."""
        self._have_head()
        body = Refused("malformed", msg).body()
        head = f"HTTP/1.1 400 Bad Request\r\ncontent-type: {MEDIA_TYPE}\r\ncontent-length: {len(body)}\r\n"
        self.transport.write(head.encode() + b"connection: close\r\n\r\n" + body)
        self.transport.close()

    def _body_stream(self, cycle: RequestResponseCycle, into: memoryview) -> BodyStream:
        """Of a body of which nothing was received through ASGI. What has come is at its place at once."""
        del cycle.scope["extensions"]  # which know the cycle: without a ring its memory goes at once
        stream = BodyStream(self.transport, self, into, len(cycle.body))
        into[: stream.count], cycle.body = cycle.body, bytearray()
        if not cycle.more_body or cycle.disconnected:
            stream.stop()
            return stream
        if cycle.waiting_for_100_continue:
            cycle.waiting_for_100_continue = False
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        stream.begin(self._streamed)
        self.flow.resume_reading()
        return stream

    def _streamed(self) -> None:
        """The body of the request that was parsed last is whole: what comes is another's, and waits for the answer."""
        self.cycle.more_body = False
        self.flow.pause_reading()
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn does

    def _await_head(self) -> None:
        self._head_bytes = 0
        self._head_timer = self.loop.call_later(HEAD_S, self._too_late)

    def _have_head(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _too_late(self) -> None:
        self._head_timer = None
        if not self.transport.is_closing():
            self.transport.abort()


class ScreenedConnection(ServedConnection):
    """A connection to who answers few: beyond MOST_STRANGERS that have shown no credential, the oldest is cut off.

    So whoever has one gets in, however many sockets others hold open.
    """

    def connection_made(self, transport: Any) -> None:
        """asyncio: it is there."""
        self._since, self._trusted = self.loop.time(), False
        super().connection_made(transport)
        strangers = [each for each in self.connections if isinstance(each, ScreenedConnection) and not each._trusted]
        if len(strangers) > MOST_STRANGERS:
            min(strangers, key=lambda each: each._since).transport.abort()

    def on_headers_complete(self) -> None:
        """httptools: its headers are there. Whoever answers the request may trust the connection."""
        super().on_headers_complete()
        self.scope["extensions"] = {**(self.scope.get("extensions") or {}), TRUST: self._trust}  # type: ignore[dict-item]

    def _trust(self) -> None:
        self._trusted = True


def allow_connections() -> None:
    """As many as the system lets this process have: a connection is a file."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


# What every listener of ours tells uvicorn: such connections, nothing of strangers in a log, nothing of itself said.
LISTENER: dict[str, Any] = {
    "http": ServedConnection,
    "ws": "none",
    "access_log": False,
    "log_config": None,
    "server_header": False,
    "date_header": False,
    "proxy_headers": False,
}
