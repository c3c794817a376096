"""A server that does what none should: over sockets of this machine, and every wait ends."""

import gzip
import hashlib
import http.server
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.support.certificates import certificate
from tests.support.device.operator import SERVER, Operator, Wire

from tacit.device.transport import file_of
from tacit.errors import InputError, ServerError
from tacit.protocol import requests
from tacit.protocol.address import Address
from tacit.protocol.bounded_http import Connection, Server, connected
from tacit.protocol.fields import MOST_CONTROL
from tacit.protocol.messages import CheckIn, ComeBack
from tacit.protocol.requests import Ask, NamedFile

CHECK_IN = CheckIn(version=2, population="p", versions={"train": 1}, token=None)
IDLE = b'{"answer":"come_back","after_s":1.0,"before_s":2.0}'
MODEL = bytes(range(256)) * 40
SHA256 = hashlib.sha256(MODEL).hexdigest()
PATH = f"/v1/models/{SHA256}"
FILE = NamedFile(what="model", sha256=SHA256, size=len(MODEL))


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers by what the server was given."""

    protocol_version = "HTTP/1.1"  # connections stay open

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.answer(self)  # type: ignore[attr-defined]

    def log_message(self, *_: Any) -> None:
        """Says nothing."""


@contextmanager
def serving(answer: Callable[[Any], None], context: ssl.SSLContext | None = None) -> Iterator[int]:
    """The port of a server that answers so."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.answer = answer  # type: ignore[attr-defined]
    server.daemon_threads = True
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def idle(handler: Any) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(IDLE)))
    handler.end_headers()
    handler.wfile.write(IDLE)


def checked_in(connection: Connection) -> Any:
    return connection.held(requests.check_in(CHECK_IN))


def asked(answer: Callable[[httpx.Request], httpx.Response]) -> Any:
    with connected(Server.from_url(SERVER), through=Wire(answer)) as connection:
        return checked_in(connection)


def fetched(answer: Callable[[httpx.Request], httpx.Response], *, seconds: float = 60.0) -> bytes:
    with connected(Server.from_url(SERVER), through=Wire(answer)) as connection:
        return file_of(Ask(method="GET", path=PATH, seconds=seconds, file=FILE), FILE, connection)


# -- where it may go ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url", ["https://fl.example", "https://10.0.0.1:8443", "http://127.0.0.1:80", "http://[::1]:8"]
)
def test_a_server_is_https_or_this_machine(url: str) -> None:
    assert Server.from_url(url).url == url


@pytest.mark.parametrize(
    "url",
    [
        *("http://fl.example", "http://10.0.0.1", "http://127.0.0.1.example", "http://localhost.example"),
        *("ftp://127.0.0.1", "127.0.0.1:80", "", "https://", "https://a:b@fl.example", "https://fl.example/?q=1"),
        # what urlsplit, httpx and the resolver raised each in their own way, and ends of lines, which urlsplit drops
        *("http://[x", "http://[::1", "https://..", f"https://{'a' * 500}", f"https://{'a' * 64}.example"),
        *(f"https://{'a.' * 200}example", "https://fl.example:99999", "https://fl.example:b", "https://fl example"),
        *("https://fl.example\r\nX: y", "https://fl.example/\n", "\thttps://fl.example", "https://fl.example/\x00"),
    ],
)
def test_no_other_is_asked(url: str) -> None:
    with pytest.raises(InputError, match=r"is no server's address|has no TLS"):
        Server.from_url(url)


@pytest.mark.parametrize(
    "url", ["https://m\u00fcnchen.example", "https://fl.example./v1", f"https://{'a' * 63}.example"]
)
def test_names_of_other_alphabets_and_long_ones_are_servers(url: str) -> None:
    assert Server.from_url(url).url == url
    with connected(Server.from_url(url), through=Wire(lambda request: httpx.Response(200))):
        pass


@pytest.mark.parametrize("host", ["a" * 500, "\u00e9" * 100, "a..b"])
def test_a_host_that_is_no_name_is_not_listened_on(host: str) -> None:
    with pytest.raises(InputError, match="is no name of a machine; give one"):
        Address(host=host, behind_proxy=True)


def test_over_a_socket() -> None:
    with serving(idle) as port, connected(Server.from_url(f"http://127.0.0.1:{port}")) as connection:
        for _ in range(2):
            assert checked_in(connection) == ComeBack(answer="come_back", after_s=1.0, before_s=2.0)


@pytest.fixture(scope="module")
def believed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The server's certificate and its key."""
    return certificate(tmp_path_factory.mktemp("tls"))


def test_certificates_are_checked(believed: tuple[Path, Path]) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*believed)
    with serving(idle, context) as port:
        server = Server.from_url(f"https://127.0.0.1:{port}")
        with connected(server) as connection, pytest.raises(ServerError, match="CERTIFICATE_VERIFY_FAILED"):
            checked_in(connection)
        with connected(server, certificates=believed[0]) as connection:
            assert checked_in(connection) == ComeBack(answer="come_back", after_s=1.0, before_s=2.0)
        with (
            connected(Server.from_url(f"https://localhost:{port}"), certificates=believed[0]) as connection,
            pytest.raises(ServerError, match="CERTIFICATE_VERIFY_FAILED"),
        ):
            checked_in(connection)


def test_one_side_speaks_tls_and_the_other_does_not(believed: tuple[Path, Path]) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*believed)

    def said(url: str) -> str:
        with connected(Server.from_url(url)) as connection, pytest.raises(ServerError) as error:
            checked_in(connection)
        assert not error.value.final
        return str(error.value)

    with serving(idle, context) as port:
        assert "if it does, give https://" in said(f"http://127.0.0.1:{port}")
    with serving(idle) as port:
        assert "speaks no TLS; on this machine give http://" in said(f"https://127.0.0.1:{port}")


def test_who_hung_up_comes_on_a_connection_of_its_own() -> None:
    """One that stays open would tell the server that the same device checks in again."""
    places = []

    def answer(handler: Any) -> None:
        places.append(handler.client_address)
        idle(handler)

    with serving(answer) as port, connected(Server.from_url(f"http://127.0.0.1:{port}")) as connection:
        for _ in range(2):
            checked_in(connection)
            checked_in(connection)
            connection.hang_up()
    first, again, second, once_more = places
    assert first == again != second == once_more


def test_what_is_no_certificate_is_said(tmp_path: Path) -> None:
    (tmp_path / "pem").write_text("none")
    with (
        pytest.raises(InputError, match="has no certificates"),
        connected(Server.from_url("https://a.example"), certificates=tmp_path / "pem"),
    ):
        pass


def test_nobody_answers() -> None:
    with serving(idle) as port:
        pass
    with (
        connected(Server.from_url(f"http://127.0.0.1:{port}")) as connection,
        pytest.raises(ServerError, match="cannot be spoken to") as error,
    ):
        checked_in(connection)
    assert not error.value.final


# -- slowly, for ever --------------------------------------------------------------------------------------------------


def drip(handler: Any, content: bytes) -> None:
    """A byte now and then, so that no single read is late."""
    try:
        for byte in content * 1000:
            handler.wfile.write(bytes([byte]))
            handler.wfile.flush()
            time.sleep(0.02)
    except OSError:
        pass


def slow_head(handler: Any) -> None:
    drip(handler, b"HTTP/1.1 200 OK\r\nX-Slow: " + b"y" * 100)


def slow_body(handler: Any) -> None:
    handler.send_response(200)
    handler.end_headers()
    drip(handler, b" " * 1000)


def silent(handler: Any) -> None:
    threading.Event().wait(3)


@pytest.mark.parametrize("answer", [slow_head, slow_body, silent])
def test_a_server_that_answers_for_ever_is_left(answer: Callable[[Any], None]) -> None:
    ask = next(requests.check_in(CHECK_IN))
    with (
        serving(answer) as port,
        connected(Server.from_url(f"http://127.0.0.1:{port}")) as connection,
        pytest.raises(ServerError, match=r"did not answer in time|took longer"),
    ):
        connection.answered(replace(ask, seconds=0.4))


# -- too much, or another thing ----------------------------------------------------------------------------------------


def test_an_endless_answer_is_not_read() -> None:
    read = []

    class Endless(httpx.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            while True:
                read.append(1)
                yield b" " * 65536

    with pytest.raises(ServerError, match="an answer of more than"):
        asked(lambda _: httpx.Response(200, stream=Endless()))
    assert len(read) * 65536 <= MOST_CONTROL + 2 * 65536


def test_nothing_is_unpacked() -> None:
    """A megabyte of a bomb would be a gigabyte of blanks."""
    bomb = gzip.compress(b" " * 10_000_000)

    def answer(request: httpx.Request) -> httpx.Response:
        assert request.headers["Accept-Encoding"] == "identity"
        return httpx.Response(200, headers={"Content-Encoding": "gzip"}, stream=httpx.ByteStream(bomb))

    with pytest.raises(ServerError, match="is compressed, which was not asked for"):
        asked(answer)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirect_is_followed(status: int) -> None:
    seen = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request.url.host)
        return httpx.Response(status, headers={"Location": "https://elsewhere.example/v1/check-in"})

    with pytest.raises(ServerError, match="where no device follows"):
        asked(answer)
    assert seen == ["127.0.0.1"]


def test_cookies_are_not_kept() -> None:
    seen = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers.get("cookie"))
        return httpx.Response(200, content=IDLE, headers={"Set-Cookie": "device=7"})

    with connected(Server.from_url(SERVER), through=Wire(answer)) as connection:
        checked_in(connection)
        checked_in(connection)
    assert seen == [None, None]


def test_a_problem_is_told_in_its_own_words() -> None:
    said = {"type": "tacit:busy", "title": "Busy.", "status": 503, "detail": "come later."}
    with pytest.raises(ServerError, match="the server answers 503: come later") as error:
        asked(lambda _: httpx.Response(503, json=said))
    assert not error.value.final
    with pytest.raises(ServerError, match="no reason in the protocol's form") as error:
        asked(lambda _: httpx.Response(404, content=b"<html>"))
    assert not error.value.final and error.value.kind is None
    with pytest.raises(ServerError, match="the server answers 404: none") as error:
        asked(lambda _: Operator.none("none."))
    assert error.value.final and error.value.kind == "tacit:not-found"


# -- a model -----------------------------------------------------------------------------------------------------------


class Cut(httpx.SyncByteStream):
    """Some bytes of the model, and then the network is gone."""

    def __init__(self, first: int, end: int) -> None:
        self._first, self._end = first, end

    def __iter__(self) -> Iterator[bytes]:
        yield MODEL[self._first : self._end]
        raise httpx.ReadError("cut off")


def test_a_download_goes_on_where_it_was() -> None:
    asked_for = []

    def answer(request: httpx.Request) -> httpx.Response:
        said = request.headers.get("Range")
        asked_for.append(said)
        if said is None:
            return httpx.Response(200, stream=Cut(0, 4000))
        first = int(said.removeprefix("bytes=").removesuffix("-"))
        rest = {"Content-Range": f"bytes {first}-{len(MODEL) - 1}/{len(MODEL)}"}
        return httpx.Response(206, stream=Cut(first, first + 3000), headers=rest)

    assert fetched(answer) == MODEL
    assert asked_for == [None, "bytes=4000-", "bytes=7000-", "bytes=10000-"]
    assert fetched(answer) == MODEL and asked_for[4:] == asked_for[:4], "nothing stays for another time"


def test_a_server_that_sends_all_of_it_again() -> None:
    answers = iter([httpx.Response(200, stream=Cut(0, 4000)), httpx.Response(200, content=MODEL)])
    assert fetched(lambda _: next(answers)) == MODEL


def test_a_download_that_gains_nothing_or_takes_too_long_is_left() -> None:
    asked_for = []

    def nothing(request: httpx.Request) -> httpx.Response:
        asked_for.append(request.headers.get("Range"))
        return httpx.Response(200, stream=Cut(0, 4000 if len(asked_for) == 1 else 0))

    with pytest.raises(ServerError, match="cut off"):
        fetched(nothing)
    assert asked_for == [None, "bytes=4000-"]

    def a_byte(request: httpx.Request) -> httpx.Response:
        time.sleep(0.01)
        first = int((request.headers.get("Range") or "bytes=0-").removeprefix("bytes=").removesuffix("-"))
        rest = {"Content-Range": f"bytes {first}-{len(MODEL) - 1}/{len(MODEL)}"}
        return httpx.Response(206 if first else 200, stream=Cut(first, first + 1), headers=rest if first else {})

    with pytest.raises(ServerError, match=r"cut off|took longer"):
        fetched(a_byte, seconds=0.3)


WRONG_MODELS: dict[str, tuple[str, Callable[[httpx.Request], httpx.Response]]] = {
    "another": ("its SHA-256 differs", lambda _: httpx.Response(200, content=MODEL[::-1])),
    "shorter": ("of the model's", lambda _: httpx.Response(200, content=MODEL[:-1])),
    "longer": ("what is too much is not read", lambda _: httpx.Response(200, content=MODEL + b"x")),
    "gone": ("the server answers 404", lambda _: httpx.Response(404)),
}


@pytest.mark.parametrize("name", WRONG_MODELS)
def test_a_model_that_is_not_the_one_is_not_taken(name: str) -> None:
    why, answer = WRONG_MODELS[name]
    with pytest.raises(ServerError, match=why):
        fetched(answer)


def test_another_part_than_was_asked_for() -> None:
    rest = {"Content-Range": f"bytes 0-{len(MODEL) - 1}/{len(MODEL)}"}
    answers = iter([httpx.Response(200, stream=Cut(0, 4000)), httpx.Response(206, content=MODEL, headers=rest)])
    with pytest.raises(ServerError, match="another part of the model"):
        fetched(lambda _: next(answers))
