"""Bodies that are poured: the same bytes that ASGI gives in pieces, at their place, from whatever the network makes."""

import asyncio
import gc
import itertools
import ssl
import subprocess
import weakref
from collections.abc import Callable, Coroutine
from typing import Any

import numpy as np
import pytest
import uvicorn
import uvloop
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.requests import Request

from tacit.server.http.body_stream import BodyStream
from tacit.server.http.connections import LARGE, STREAM, ServedConnection
from tacit.server.http.problems import Refused
from tacit.server.http.reports import large_body
from tacit.server.http.services import Limits

Exchange = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, bytes]]
LOOPS = pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])


def length_of(scope: Any) -> int:
    return int(dict(scope["headers"]).get(b"content-length", b"0"))


async def by_pieces(scope: Any, receive: Any, send: Any) -> None:
    """Echoes what ASGI receives: the slow reference."""
    body, more = b"", True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        body, more = body + message["body"], message["more_body"]
    await answered(send, body)


async def by_pour(scope: Any, receive: Any, send: Any) -> None:
    """Echoes what is poured, where it is large enough."""
    body = bytearray(length_of(scope))
    if len(body) < LARGE:
        assert "extensions" not in scope
        return await by_pieces(scope, receive, send)
    pour = scope["extensions"][STREAM](memoryview(body))
    await pour.ended
    if pour.count == len(body):
        await answered(send, bytes(body))


async def answered(send: Any, body: bytes) -> None:
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def talk(app: Any, exchange: Exchange, new_loop: Any = asyncio.new_event_loop, tls: Any = None) -> bytes:
    """What an exchange with a server over a socket gives. tls: (the server's context, the client's)."""

    async def talked() -> bytes:
        config = uvicorn.Config(app, http=ServedConnection, ws="none", lifespan="off", log_config=None)
        config.load()
        state, loop = uvicorn.server.ServerState(), asyncio.get_running_loop()
        made, believed = tls or (None, None)
        server = await loop.create_server(lambda: ServedConnection(config, state, {}), "127.0.0.1", 0, ssl=made)
        port = server.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=believed)
        try:
            return await asyncio.wait_for(exchange(reader, writer), 30)
        finally:
            writer.close()
            server.close()

    with asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(talked())


def asked(body: bytes, more: bytes = b"") -> bytes:
    return b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n%s\r\n" % (len(body), more) + body


async def last(reader: asyncio.StreamReader) -> bytes:
    """The next answer's body."""
    head = await reader.readuntil(b"\r\n\r\n")
    return await reader.readexactly(int(head.partition(b"content-length: ")[2].split()[0]))


def sent_in_pieces(bodies: list[bytes], cuts: list[int]) -> Exchange:
    """All requests behind one another, cut anywhere; the bodies of their answers."""
    whole = b"".join(map(asked, bodies))
    places = [0, *sorted(cut % (len(whole) + 1) for cut in cuts), len(whole)]

    async def exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        async def send() -> None:
            for start, end in itertools.pairwise(places):
                writer.write(whole[start:end])
                await writer.drain()
                await asyncio.sleep(0)

        sending = asyncio.create_task(send())
        answers = [await last(reader) for _ in bodies]
        await sending
        return b"|".join(answers)

    return exchange


SIZES = st.sampled_from([0, 1, 100, 70_000, 300_000])


@LOOPS
@settings(deadline=None, max_examples=15)
@given(sizes=st.lists(SIZES, min_size=1, max_size=4), cuts=st.lists(st.integers(0, 2**20), max_size=6))
def test_a_poured_body_is_the_one_that_asgi_has(new_loop: Any, sizes: list[int], cuts: list[int]) -> None:
    bodies = [bytes([65 + number]) * size for number, size in enumerate(sizes)]
    exchange = sent_in_pieces(bodies, cuts)
    assert talk(by_pour, exchange, new_loop) == talk(by_pieces, exchange, new_loop) == b"|".join(bodies)


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """(the server's context, the client's)."""
    folder = tmp_path_factory.mktemp("tls")
    certificate, key = folder / "certificate", folder / "key"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=127.0.0.1"
    made_by = [*command.split(), "-addext", "subjectAltName=IP:127.0.0.1", "-out", certificate, "-keyout", key]
    try:
        subprocess.run(made_by, check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("openssl is not installed")
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(certificate, key)
    return made, ssl.create_default_context(cafile=certificate)


@LOOPS
def test_a_body_is_poured_through_tls(new_loop: Any, tls: Any) -> None:
    bodies = [b"a" * 300_000, b"b", b"c" * 100_000]
    found = talk(by_pour, sent_in_pieces(bodies, [10, 70, 40_000, 250_000]), new_loop, tls)
    assert found == b"|".join(bodies)


@LOOPS
@pytest.mark.parametrize("through_tls", [False, True])
def test_a_buffer_goes_with_its_request_while_the_connection_stays(new_loop: Any, through_tls: bool, tls: Any) -> None:
    """A worker of a few connections would else hold as many bodies as it has connections, and count none of them."""
    buffers: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        body = np.empty(length_of(scope), np.uint8)
        buffers.append(weakref.ref(body))
        await scope["extensions"][STREAM](body.data).ended
        await answered(send, b"")

    async def exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        for _ in range(3):
            writer.write(asked(bytes(10 * LARGE)))
            await last(reader)
            while buffers[-1]() is not None:
                await asyncio.sleep(0.001)
        return b"gone"

    gc.disable()  # who waits for the collector waits too long
    try:
        assert talk(app, exchange, new_loop, tls if through_tls else None) == b"gone"
    finally:
        gc.enable()


@LOOPS
def test_who_waits_to_be_asked_for_the_body_is_asked(new_loop: Any) -> None:
    head, body = asked(b"", b"Expect: 100-continue\r\n").replace(b"Length: 0", b"Length: %d" % LARGE), b"a" * LARGE

    async def exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write(head)
        assert b"100 Continue" in await reader.readuntil(b"\r\n\r\n")
        writer.write(body)
        return await last(reader)

    assert talk(by_pour, exchange, new_loop) == body


@LOOPS
def test_a_pour_ends_with_its_connection_or_when_it_is_stopped(new_loop: Any) -> None:
    ended: list[BodyStream] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        pour = scope["extensions"][STREAM](memoryview(bytearray(length_of(scope))))
        ended.append(pour)
        if len(ended) == 1:
            while pour.count < 3:
                await asyncio.sleep(0.001)
            pour.stop()  # as where it comes too slowly
            await answered(send, b"stopped")
        await pour.ended

    async def exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write(asked(b"abc" + bytes(LARGE))[:-LARGE])
        said = await last(reader)
        writer.write(bytes(LARGE) + asked(b"def" + bytes(LARGE))[:-LARGE])
        # what was left of the body is nobody's, and the next comes half
        while len(ended) < 2 or ended[1].count < 3:
            await asyncio.sleep(0.001)
        writer.close()
        await asyncio.wait_for(asyncio.shield(ended[1].ended), 10)
        return said

    assert talk(app, exchange, new_loop) == b"stopped"
    assert [pour.count for pour in ended] == [3, 3]


@LOOPS
@pytest.mark.parametrize(
    ("limits", "pieces", "answer"),
    [
        (Limits(idle_s=0.03), 1, b"too-slow"),
        (Limits(grace_s=0.03, slowest=1e9), 10**6, b"too-slow"),
        (Limits(), 2, b"malformed"),
    ],
    ids=["pauses", "trickles", "ends"],
)
def test_a_body_that_does_not_come_is_given_up(new_loop: Any, limits: Limits, pieces: int, answer: bytes) -> None:
    said: list[Refused] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        try:
            await large_body(Request(scope, receive), length_of(scope), limits)
        except Refused as refused:
            said.append(refused)
            await answered(send, refused.kind.encode())

    async def exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write(asked(bytes(10**7))[: -(10**7)])
        for _ in range(pieces):
            if said:
                break
            writer.write(b"a")
            await asyncio.sleep(0.005)
        if answer == b"malformed":
            writer.close()
            while not said:
                await asyncio.sleep(0.001)
            return said[0].kind.encode()
        return await last(reader)

    assert talk(app, exchange, new_loop) == answer
    assert said[0].headers == {"Connection": "close"}
