"""A decryptor over HTTP: it answers its operator's server, and reads nothing of anybody else."""

import asyncio
import hashlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.server.sealed_fleet import SEED, SealedFleet, a_task, assert_one_set_is_signed, assert_sum_of
from tests.support.server.over_http import over_http
from tests.support.server.sealing import decryptors_in
from tests.support.server.stores import quick_folder
from typer.testing import CliRunner

import tacit
from tacit.cli.commands import app
from tacit.errors import InputError
from tacit.jobs.decryptor import DecryptorDesk
from tacit.protocol.messages import Problem
from tacit.protocol.operator_key import OperatorKey
from tacit.server.http.connections import HEAD_S, MOST_HEAD, MOST_STRANGERS
from tacit.server.http.decryptor_server import DecryptorAddress, DecryptorFront, operator_of
from tacit.server.rounds.decryptors import PATH, HttpDecryptor, framed, signed_for_decryptor, unframed
from tacit.server.rounds.one_message_rounds import DecryptorAway

KEY, STRANGER = OperatorKey(bytes(32)), OperatorKey(bytes(31) + b"\x01")


@dataclass
class Small:
    desk: DecryptorDesk
    decryptor: HttpDecryptor

    def posted(self, body: bytes, **headers: str) -> httpx.Response:
        digest = hashlib.sha256(body)
        signed = KEY.sign(signed_for_decryptor(bytes.fromhex(self.desk.identity), digest.digest()))
        said = {"X-Content-SHA256": digest.hexdigest(), "X-Tacit-Signature": signed} | {
            name.replace("_", "-"): value for name, value in headers.items()
        }
        with httpx.Client(transport=self.decryptor.through, base_url="http://decryptor") as client:
            return client.post(PATH, content=body, headers=said)


@pytest.fixture
def small(tmp_path: Path) -> Small:
    desk = tacit.decryptor(tmp_path / "decryptor", least_reports=2)
    return Small(desk, over_http(desk))


@given(st.lists(st.binary(max_size=50)))
def test_messages_come_out_as_they_went_in(messages: list[bytes]) -> None:
    assert list(unframed(BytesIO(b"".join(map(framed, messages))))) == messages


@pytest.mark.parametrize("body", [b"\x01", b"\x05\0\0\0abcd", b"\xff\xff\xff\xff" + bytes(10)])
def test_a_body_that_ends_within_a_message_is_malformed(small: Small, body: bytes) -> None:
    answer = small.posted(body)
    assert (answer.status_code, Problem.model_validate_json(answer.content).type) == (400, "tacit:malformed")


def test_a_round_by_decryptors_over_http(tmp_path: Path) -> None:
    """Those that listen give the sum of those that are here."""
    with quick_folder() as folder:
        here = decryptors_in(tmp_path, count=2, least=4)
        fleet = SealedFleet(folder, decryptors=here)
        fleet.transports = [over_http(each.desk) for each in here]
        collector = fleet.collector()
        got, _ = collector.collect((), a_task(), seed=SEED)
        assert_sum_of(got, fleet.came[fleet.attempts()[0].task])
        assert_one_set_is_signed(fleet)


def test_nobody_but_its_operator_drives_it(small: Small, tmp_path: Path) -> None:
    body = framed(b"what is no message")
    signed = STRANGER.sign(signed_for_decryptor(bytes.fromhex(small.desk.identity), hashlib.sha256(body).digest()))
    for_another = KEY.sign(signed_for_decryptor(bytes(32), hashlib.sha256(body).digest()))
    for headers in (
        {"X_Tacit_Signature": signed},
        {"X_Tacit_Signature": for_another},
        {"X_Tacit_Signature": "Z" * 128},
    ):
        assert small.posted(body, **headers).status_code == 401
    other = small.posted(body, X_Content_SHA256=hashlib.sha256(b"").hexdigest())
    assert other.status_code == 401, "the signature is of the body's digest"
    right = small.posted(body)
    assert right.status_code == 200 and b"no message of secure aggregation" in right.content


def test_what_a_stranger_sends_is_not_read(small: Small) -> None:
    read: list[bytes] = []

    app = DecryptorFront(small.desk, operator_of(KEY.public)).application()
    sent: list[dict[str, object]] = []

    async def receive() -> dict[str, object]:
        read.append(b"")
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, object]) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": PATH,
        "headers": [(b"content-length", b"9")],
        "query_string": b"",
    }
    asyncio.run(app(scope, receive, send))  # type: ignore[arg-type]
    assert not read and sent[0]["status"] == 401


def test_a_body_beyond_the_limit_is_refused_before_it_is_read(small: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tacit.server.http.decryptor_server.MOST_BODY", 3)
    assert small.posted(b"1234").status_code == 413


def test_other_paths_and_methods_are_problems(small: Small) -> None:
    with httpx.Client(transport=small.decryptor.through, base_url="http://decryptor") as client:
        found = client.get("/healthz"), client.get(PATH), client.get("/elsewhere")
    assert [each.status_code for each in found] == [200, 405, 404]
    assert all(Problem.model_validate_json(each.content) for each in found[1:])


def test_a_decryptor_that_does_not_answer_is_away(small: Small) -> None:
    wrong = HttpDecryptor("http://decryptor", bytes(32), KEY, small.decryptor.through)
    with pytest.raises(DecryptorAway, match="it answers 401"):
        wrong.ask([b"x"])
    with pytest.raises(DecryptorAway, match="does not answer"):
        HttpDecryptor("http://127.0.0.1:1", bytes(32), KEY).ask([b"x"])


def test_a_place_to_listen_that_is_none_is_refused_before_there_is_a_decryptor(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="64 hexadecimal digits"):
        DecryptorAddress.from_folder("12", port=0)
    words = ["decryptor", "--state", str(tmp_path / "new"), "--least-reports", "2", "--tls-cert", "no.pem"]
    asked = CliRunner().invoke(app, words)
    assert asked.exit_code == 2 and "give both --port and --operator-key" in " ".join(asked.stderr.split())
    assert not asked.stdout and not (tmp_path / "new").exists()


def test_one_folder_is_one_process_s(small: Small) -> None:
    with small.desk.alone(), pytest.raises(InputError, match="another process runs the decryptor"):
        DecryptorAddress.from_folder(KEY.public, port=0).listen(small.desk)


@contextmanager
def listening(state: Path) -> Iterator[tuple[HttpDecryptor, int]]:
    """(how to ask it, its process) of a `tacit decryptor --port`, which shows its keys and its address, and ends when
    it is told to.
    """
    words = [sys.executable, "-m", "tacit", "decryptor", "--state", str(state), "--least-reports", "2"]
    words += ["--port", "0", "--operator-key", KEY.public]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env={**os.environ, "COLUMNS": "200"}) as process:
        assert process.stderr is not None
        try:
            identity = bytes.fromhex(process.stderr.readline().split()[1])
            process.stderr.readline()
            url = process.stderr.readline().split()[-1]
            yield HttpDecryptor(url, identity, KEY), process.pid
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(60) == -signal.SIGTERM


@pytest.fixture(scope="module")
def listened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[HttpDecryptor, int]]:
    with listening(tmp_path_factory.mktemp("listening") / "new") as found:
        yield found


def test_as_a_process(listened: tuple[HttpDecryptor, int]) -> None:
    (answer,) = listened[0].ask([b"what is no message"])
    assert b"no message of secure aggregation" in answer


def resident(process: int) -> int:
    """Bytes of its memory."""
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


UNSIGNED = b"POST " + PATH.encode() + b" HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000000\r\n"
SLOW = {
    "nothing": b"",
    "half of a head": UNSIGNED,
    "a body that nobody signed": UNSIGNED + b"\r\nabc",
    "a long head": UNSIGNED + b"X: " + b"a" * (MOST_HEAD - 200),
}


@pytest.mark.parametrize("sent", SLOW)
def test_strangers_who_hold_sockets_open_shut_nobody_out(listened: tuple[HttpDecryptor, int], sent: str) -> None:
    """32 of them shut a decryptor once. Now the oldest make way, and what all of them take is bounded."""
    decryptor, process = listened
    with ExitStack() as open_ones:
        decryptor.ask([b"what is no message"])
        place, before = urlsplit(decryptor.url), resident(process)
        strangers = []
        for _ in range(2 * MOST_STRANGERS):
            each = open_ones.enter_context(socket.create_connection((place.hostname, place.port)))
            with suppress(OSError):  # it may be cut off by now
                each.sendall(SLOW[sent])
            strangers.append(each)
        began = time.monotonic()
        for _ in range(3):
            (answer,) = decryptor.ask([b"what is no message"])
        assert b"no message of secure aggregation" in answer
        assert time.monotonic() - began < HEAD_S, "before any of them is cut off for its slowness"
        assert sum(map(is_open, strangers)) <= MOST_STRANGERS
        assert resident(process) - before < 32e6


def is_open(each: socket.socket) -> bool:
    """Whether the other side has not closed it; an answer that came before is read."""
    each.setblocking(False)
    try:
        while each.recv(1 << 16):
            pass
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def test_the_operators_own_requests_are_so_many_at_a_time(small: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tacit.server.http.decryptor_server.AT_WORK", 0)
    busy = small.posted(framed(b"what is no message"))
    assert (busy.status_code, busy.headers["Retry-After"]) == (503, "5")
    assert small.posted(b"", X_Tacit_Signature="0" * 128).status_code == 401, "strangers are none of them"
