"""Connections of strangers: what sends nothing, too much or no HTTP is closed, and learns why where it can."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
import uvicorn

from tacit.protocol.messages import Problem
from tacit.server.http import connections
from tacit.server.http.connections import MOST_HEAD, ScreenedConnection, ServedConnection

Exchange = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, bytes]]


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Says hello, once the body is there."""
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"5")]})
    await send({"type": "http.response.body", "body": b"hello"})


def talk(exchange: Exchange, listener: type[ServedConnection] = ServedConnection) -> bytes:
    """What an exchange with a server over a socket gives."""

    async def talked() -> bytes:
        config = uvicorn.Config(app, http=listener, ws="none", lifespan="off", log_config=None)
        config.load()
        state = uvicorn.server.ServerState()
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: listener(config, state, {}), "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        try:
            return await asyncio.wait_for(exchange(reader, writer), 30)
        finally:
            writer.close()
            server.close()

    return asyncio.run(talked())


async def whole(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> bytes:
    try:
        return await reader.read()
    except ConnectionResetError:
        return b""


REQUEST = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc"


def test_requests_follow_each_other_on_a_connection() -> None:
    async def exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        for _ in range(3):
            writer.write(REQUEST)
            answer = await reader.readuntil(b"hello")
        return answer

    assert b"200 OK" in talk(exchange)


@pytest.mark.parametrize(
    "sent", [b"", b"POST / HTTP/1.1\r\nHost:", REQUEST + b"GET / HT"], ids=["nothing", "half", "next"]
)
def test_who_does_not_end_a_request_s_head_is_cut_off(monkeypatch: pytest.MonkeyPatch, sent: bytes) -> None:
    monkeypatch.setattr(connections, "HEAD_S", 0.05)

    async def exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write(sent)
        return await whole(reader, writer)

    assert talk(exchange).count(b"hello") == (sent.startswith(REQUEST))


@pytest.mark.parametrize(
    "sent",
    [
        b"no http\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"a" * (MOST_HEAD + 1),
        b"GET /" + b"a" * (MOST_HEAD + 1),
        b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"GET \xff\xfe HTTP/1.1\r\nHost: a\r\n\r\n",
    ],
    ids=range(6),
)
def test_what_is_no_http_is_a_problem_and_the_end(sent: bytes) -> None:
    async def exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write(sent)
        return await whole(reader, writer)

    head, _, body = talk(exchange).partition(b"\r\n\r\n")
    assert b"400 Bad Request" in head and b"connection: close" in head
    assert Problem.model_validate_json(body).type == "tacit:malformed"


@pytest.mark.parametrize("listener", [ServedConnection, ScreenedConnection])
@pytest.mark.parametrize(
    "hosts",
    [
        b"",
        b"Host: a\r\nHost: a\r\n",
        b"host: a\r\nHOST: b\r\n",
        b"Host: a b\r\n",
        b"Host: a/b\r\n",
        b"Host: a:b\r\n",
        b"Host: u@a\r\n",
        b"Host: \xff\r\n",
        b"Host: a,b:1:2\r\n",
    ],
)
@pytest.mark.parametrize("before", [b"", REQUEST])
def test_a_request_that_names_no_host_or_several_is_refused(
    hosts: bytes, before: bytes, listener: type[ServedConnection]
) -> None:
    """RFC 9112, section 3.2; one that was sent behind another, too, whose answer comes whole before."""

    async def exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write(before + b"POST / HTTP/1.1\r\n" + hosts + b"Content-Length: 3\r\n\r\nabc")
        return await whole(reader, writer)

    first, refused, second = talk(exchange, listener).partition(b"HTTP/1.1 400 ")
    assert first.endswith(b"hello") == bool(before) and refused
    head, _, body = second.partition(b"\r\n\r\n")
    assert b"connection: close" in head
    problem = Problem.model_validate_json(body)
    assert problem.type == "tacit:malformed" and "Host" in problem.detail


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.0\r\n",
        b"HTTP/1.1\r\nHost:\r\n",
        b"HTTP/1.1\r\nHost: [::1]:80\r\n",
        b"HTTP/1.1\r\nHOST: 10.0.0.1:8080\r\n",
        b"HTTP/1.1\r\nHost: xn--caf-dma.example.\r\n",
    ],
)
def test_other_requests_are_answered(head: bytes) -> None:
    async def exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write(b"GET / " + head + b"Connection: close\r\n\r\n")
        return await whole(reader, writer)

    assert talk(exchange).endswith(b"hello")


def test_there_are_only_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MOST", 0)

    async def exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        return await whole(reader, writer)

    assert talk(exchange) == b""


def test_who_says_no_goodbye_is_not_waited_for_once_all_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """A transport as one of TLS is: closed when the other side says so, which an idle device does not."""
    monkeypatch.setattr(connections, "GOODBYE_S", 0.001)
    looked: list[int] = []

    class Unanswered(asyncio.Transport):
        left, closing, gone = 100, False, False

        def close(self) -> None:
            self.closing = True

        def is_closing(self) -> bool:
            return self.closing

        def get_write_buffer_size(self) -> int:
            looked.append(self.left)
            assert not self.gone
            self.left = max(0, self.left - 40)  # what the other side reads meanwhile
            return looked[-1]

        def abort(self) -> None:
            self.gone = True
            connection.connection_lost(None)

    async def ends() -> None:
        nonlocal connection
        config = uvicorn.Config(app, http=ServedConnection, ws="none", lifespan="off", log_config=None)
        config.load()
        connection = ServedConnection(config, uvicorn.server.ServerState(), {})
        transport = Unanswered()
        connection.connection_made(transport)
        connection.shutdown()
        while not transport.gone:
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.01)

    connection: ServedConnection = None  # type: ignore[assignment]
    asyncio.run(asyncio.wait_for(ends(), 30))
    assert looked == [100, 60, 20, 0]
