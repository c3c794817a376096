"""Every process of ours has one thread for a product of matrices, whatever its environment allows, and no core dump."""

import json
import os
import resource
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import REPOSITORY

import tacit.process_limits as limits
from tacit.compute.processes import Processes

ALLOWED = {"OPENBLAS_NUM_THREADS": "8", "OMP_NUM_THREADS": "8"}
# What a process says of itself: its libraries' threads, those of SciPy, which come later, among them; its children's
# environment; and how large a core dump it may leave.
SAYS = """
def says(*_, **__):
    import json, os, resource
    import numpy, scipy.linalg.cython_blas
    from threadpoolctl import threadpool_info
    threads = [each["num_threads"] for each in threadpool_info()]
    asked = {name: os.environ.get(name) for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")}
    print("says", json.dumps({"threads": threads, "told": asked, "core": resource.getrlimit(resource.RLIMIT_CORE)[0]}))
"""
COMMAND = """
import sys, tacit
{name}
sys.argv = ["tacit", *{arguments!r}]
from tacit.cli import main
main()
"""
PROCESS = """
import sys
from tacit.server import process
{imported}
process.run = says
sys.argv = ["process", {role!r}, "name"]
sys.exit(process.main())
"""
RAY = """
from tacit.compute import Hardware
from tacit.training.ray_worker import RayWorker
RayWorker("CPU", Hardware(workers=1), "")
says()
"""


def said_by(code: str, environment: Mapping[str, str] = ALLOWED) -> dict[str, Any]:
    """What a process that runs this says of itself."""
    how: dict[str, Any] = {"text": True, "env": {**os.environ, **environment}}
    with subprocess.Popen(
        [sys.executable, "-c", SAYS + code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, **how
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write("{}\n")  # its settings; its input ends when it has ended, as a supervisor's would
        process.stdin.flush()
        lines = [line.removeprefix("says ") for line in process.stdout if line.startswith("says ")]
    (line,) = lines
    found: dict[str, Any] = json.loads(line)
    return found


def check(found: Mapping[str, Any]) -> None:
    assert set(found["threads"]) == {1}, found
    assert set(found["told"].values()) == {"1"}, found


def test_a_process_that_is_not_limited_would_have_them() -> None:
    """So that the others say something, where there is more than one core."""
    assert max(said_by("says()")["threads"]) == min(8, os.cpu_count() or 1)


KEY = "00" * 32
DEVICE = ["device", "--server", "http://127.0.0.1:9", "--data", "D", "--state", "S"]
DECRYPTOR = ["decryptor", "--state", "S", "--least-reports", "2"]


@pytest.mark.parametrize(
    ("name", "arguments", "dumps"),
    [
        ("run_device", DEVICE, False),
        ("decryptor", DECRYPTOR, False),
        ("serve", ["serve", "--out", "O"], False),
        ("suggest", ["suggest", "M", "I will"], True),
    ],
    ids=str,
)
def test_a_command(name: str, arguments: list[str], dumps: bool) -> None:
    found = said_by(COMMAND.format(name=f"tacit.{name} = lambda *_, **__: (says(), sys.exit())", arguments=arguments))
    check(found)
    assert dumps or found["core"] == 0


@pytest.mark.parametrize("role", ["worker", "coordinator"])
def test_a_process_of_a_server(role: str) -> None:
    found = said_by(PROCESS.format(role=role, imported=f"import tacit.server.{role}"))
    check(found)
    assert found["core"] == 0


def test_a_worker_of_a_cluster() -> None:
    check(said_by(RAY))


class Threads:
    """Work that says how many threads its process has for a product."""

    def __call__(self, item: int) -> list[int]:
        import numpy  # noqa: F401  its library
        from threadpoolctl import threadpool_info

        return [each["num_threads"] for each in threadpool_info()]


def test_a_process_of_a_simulated_typist(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in ALLOWED.items():
        monkeypatch.setenv(name, value)
    with Processes(1, Threads()) as workers:
        assert {each for found in workers.stream([1, 2]) for each in found} == {1}


INSIDE = """
import numpy as np
from threadpoolctl import threadpool_limits
from tacit.networks.recurrent import reader
from tacit.process_limits import products_by_one_thread
def now():
    from threadpoolctl import threadpool_info
    return [each["num_threads"] for each in threadpool_info()]
before = now()
with products_by_one_thread():
    with products_by_one_thread():
        assert now() == [1]
    assert now() == [1]
assert now() == before
class Cell:
    vocabulary = 3
    def states(self): return {}
    def read(self, *_): return None
    def step(self, *_):
        assert now() == [1]
        return {}, None
    def scores(self, *_): return now()
assert reader.RecurrentReader(Cell(), {}).step({}, 0)[1] == [1] and now() == before
says()
"""


def test_a_step_of_a_network_in_a_callers_process_leaves_its_threads_as_they_are() -> None:
    found = said_by(INSIDE)
    assert max(found["threads"]) == min(8, os.cpu_count() or 1) and found["told"] == ALLOWED


def test_threads_that_are_inside_together_share_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last to leave takes it away, whoever came first."""
    monkeypatch.setattr(limits, "_PRODUCTS", products := limits._Products())
    both, one_left = threading.Barrier(2), threading.Event()
    done: list[str] = []

    class Libraries:
        def limit(self, **_: object) -> "Libraries":
            done.append("limited")
            return self

        def restore_original_limits(self) -> None:
            done.append("restored")

    products._libraries = Libraries()

    def first() -> None:
        with limits.products_by_one_thread():
            both.wait()
        one_left.set()

    thread = threading.Thread(target=first)
    thread.start()
    with limits.products_by_one_thread():
        both.wait()
        one_left.wait()
        assert done == ["limited"]
    thread.join()
    assert done == ["limited", "restored"]


def test_the_unit_file_leaves_no_core_dump() -> None:
    assert "\nLimitCORE=0\n" in (REPOSITORY / "examples" / "deployment" / "tacit.service").read_text(encoding="utf-8")


def test_a_core_dump_is_none_of_what_a_child_leaves() -> None:
    code = "from tacit.process_limits import no_core_dumps; no_core_dumps()\n"
    code += "import subprocess, sys\nprint(subprocess.run(['sh', '-c', 'ulimit -c'], capture_output=True).stdout)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "b'0\\n'\n" and resource.getrlimit(resource.RLIMIT_CORE)


@pytest.mark.parametrize("status", [None, "", "Name:\tpython\nVmPeak:\t 12 kB\n", "\n\n"])
def test_without_proc_memory_is_not_limited_and_nothing_fails(status: str | None, tmp_path: Path) -> None:
    """Not mounted, or a sandbox's, which says less."""
    file = tmp_path / "status"
    if status is not None:
        file.write_text(status, encoding="utf-8")
    before = resource.getrlimit(resource.RLIMIT_DATA)
    assert not limits.limit_memory(1 << 26, file)
    assert resource.getrlimit(resource.RLIMIT_DATA) == before
