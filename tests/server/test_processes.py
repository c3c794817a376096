"""Workers as processes: they share a socket, survive each other, write their sums when they end, and end on time."""

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from tests.support.server.served import TOKEN, Served, a_body, check_in, headers, served
from tests.support.waiting import PATIENCE, until

from tacit.errors import InputError, LeaseLost, StoreError, TrainingError
from tacit.protocol.address import Address
from tacit.protocol.messages import Assignment, Problem
from tacit.protocol.operator_key import OperatorKey
from tacit.server.process import may_pass
from tacit.server.supervisor import Role, Supervisor


@contextmanager
def workers(worker: Served, folder: Path, count: int) -> Iterator[tuple[str, Supervisor]]:
    """So many worker processes over the store of a test; their address."""
    OperatorKey.in_file(folder / "operator.key")
    with Address(port=0).listening() as listener:
        told = {
            "store": f"sqlite:///{folder / 'store.db'}",
            "blobs": worker.blobs.url,
            "key": str(folder / "operator.key"),
            "socket": listener.fileno(),
            "admin_token": TOKEN,
        }
        roles = [Role("worker", f"worker {each}", told, (listener.fileno(),)) for each in range(count)]
        supervisor, stop, ready = Supervisor(roles), threading.Event(), threading.Event()
        thread = threading.Thread(target=supervisor.run, args=(stop,), kwargs={"ready": ready.set})
        thread.start()
        try:
            assert ready.wait(PATIENCE)
            yield Address(port=0).url(listener), supervisor
        finally:
            stop.set()
            thread.join()


def processes(supervisor: Supervisor) -> list[int]:
    return [each.process.pid for each in supervisor._children if each.process is not None]


def exchange(url: str, sent: bytes) -> bytes:
    """What comes back for these bytes until the other side closes."""
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as connection:
        connection.sendall(sent)
        parts = []
        while part := connection.recv(65536):
            parts.append(part)
        return b"".join(parts)


def test_workers_share_a_round_and_write_what_they_hold_when_they_end(tmp_path: Path) -> None:
    worker = served(tmp_path, goal=30, most=30)
    with workers(worker, tmp_path, 2) as (url, _), httpx.Client(base_url=url) as client:
        for each in range(4):
            given = Assignment.model_validate_json(client.post("/v1/check-in", json=check_in()).content)
            body = a_body(given.assignment, 0.01 * each)
            path, said = f"/v1/reports/{given.assignment}", headers(given.secret, body)
            assert client.post(path, content=body, headers=said).status_code == 200
        right = {"Authorization": f"Bearer {TOKEN}"}
        assert "tacit_check_ins_total" in client.get("/metrics", headers=right).text
        assert worker.attempt().received == 4
        bad = exchange(url, b"no http\r\n\r\n")
        assert b"application/problem+json" in bad
        Problem.model_validate_json(bad.partition(b"\r\n\r\n")[2])
        long = exchange(url, b"GET /healthz HTTP/1.1\r\nHost: a\r\nX: " + b"a" * 20_000)
        assert b"400 Bad Request" in long and b"bytes before its body" in long
    attempt = worker.attempt()
    assert (attempt.counted, attempt.received) == (4, 0)


@pytest.mark.long
def test_a_worker_that_is_killed_is_started_again(tmp_path: Path) -> None:
    worker = served(tmp_path)
    with workers(worker, tmp_path, 1) as (url, supervisor):
        (first,) = processes(supervisor)
        os.kill(first, signal.SIGKILL)
        until(lambda: processes(supervisor) not in ([], [first]))
        assert httpx.get(f"{url}/healthz", timeout=PATIENCE).status_code == 200  # it waited in the shared socket


def test_an_address_that_others_reach_needs_tls() -> None:
    for host in ("0.0.0.0", "192.0.2.7", "::", "example.org"):
        with pytest.raises(InputError, match="--tls-cert and --tls-key, or --behind-proxy"):
            Address(host=host)
        assert Address(host=host, behind_proxy=True).host == host
    for host in ("127.0.0.1", "127.9.9.9", "::1", "localhost"):
        assert Address(host=host).is_loopback


def test_what_a_process_refuses_the_supervisor_says(tmp_path: Path) -> None:
    told = {
        "store": "sqlite:////nowhere/at/all.db",
        "blobs": f"file://{tmp_path}",
        "key": str(tmp_path / "k"),
        "socket": 0,
    }
    with pytest.raises(StoreError, match=r"worker 1 cannot go on: .*there is no folder"):
        Supervisor([Role("worker", "worker 1", told)]).run(threading.Event())


def test_a_worker_loads_no_accelerator_and_no_compiler() -> None:
    """It starts in a second, and a machine holds many."""
    heavy = "{'jax', 'numba', 'scipy', 'pyarrow'}"
    code = f"import sys, tacit.server.worker; print({heavy} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_a_complaint_that_may_pass_is_no_refusal() -> None:
    passing = StoreError("the database does not answer")
    passing.__cause__ = OSError("no connection")
    assert may_pass(passing) and may_pass(LeaseLost("another took over"))
    assert not may_pass(StoreError("another plan")) and not may_pass(TrainingError("diverged"))


def test_what_a_process_tells_is_utf8_whatever_the_locale() -> None:
    """The supervisor reads it so."""
    code = "import sys\nfrom tacit.errors import StoreError\nfrom tacit.server import process\n"
    code += "def run(*_): raise StoreError('no store at ni\\xf1o \\u2615')\nprocess.run = run\n"
    code += "sys.argv = ['process', 'worker', 'a']\n"
    code += "sys.exit(process.main())"
    ascii_alone = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    env = {name: value for name, value in os.environ.items() if name != "PYTHONIOENCODING"} | ascii_alone
    with subprocess.Popen(
        [sys.executable, "-c", code], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(b"{}\n")
        process.stdin.flush()
        assert process.stdout.read().decode() == "refused no store at niño ☕\n"
