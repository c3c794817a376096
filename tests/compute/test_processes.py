"""Work in processes: in order, by whoever is free, and none of them left over."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import pytest

from tacit.compute.processes import Processes
from tacit.errors import InputError, RunError

PATIENCE = 60.0  # seconds for what takes one, on a machine however busy


class Work:
    """Squares numbers, and says by which process; refuses 13, and dies of 14."""

    def __call__(self, item: int) -> tuple[int, int]:
        if item == 13:
            raise InputError("13 is refused; give another number.")
        if item == 14:
            os.kill(os.getpid(), signal.SIGKILL)
        return item * item, os.getpid()


def gone(processes: Iterable[int]) -> bool:
    """Whether all of them end in time."""
    end, left = time.monotonic() + PATIENCE, set(processes)
    while left and time.monotonic() < end:
        left = {process for process in left if alive(process)}
        time.sleep(0.01)
    return not left


def alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{process}/stat")  # ended and counted by nobody yet: Z, behind its name
    return not (status.exists() and status.read_text().rpartition(")")[2].split()[0] == "Z")


def test_results_come_in_order_from_other_processes_which_end_with_the_block() -> None:
    with Processes(2, Work()) as workers:
        found = list(workers.stream(range(9)))
        again = list(workers.stream([5]))
    assert [square for square, _ in found] == [n * n for n in range(9)] and again[0][0] == 25
    by = {process for _, process in (*found, *again)}
    assert os.getpid() not in by and 1 <= len(by) <= 2 and gone(by)


def test_what_is_refused_is_raised_here_and_what_dies_is_named() -> None:
    with Processes(1, Work()) as workers, pytest.raises(InputError, match="13 is refused"):
        list(workers.stream([1, 13, 2]))
    with Processes(1, Work()) as workers, pytest.raises(RunError, match=r"ended with the code -9.*fewer workers"):
        list(workers.stream([14]))


def test_a_stream_that_is_left_half_way_ends_its_processes() -> None:
    with Processes(2, Work()) as workers:
        _, first = next(workers.stream(range(100)))
    assert gone([first])


LEFT_ALONE = """
import os, signal, sys
from tests.compute.test_processes import Work
from tacit.compute.processes import Processes
with Processes(1, Work()) as workers:
    print(next(workers.stream(range(100)))[1], flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_they_end_when_whoever_asks_them_is_killed() -> None:
    done = subprocess.run([sys.executable, "-c", LEFT_ALONE], capture_output=True, text=True)
    assert done.returncode == -9 and gone([int(done.stdout)]), done.stderr


SCRIPT = """
from tacit.compute.processes import Processes
print("once")
with Processes(1, len) as workers:
    print(list(workers.stream(["abc", "de"])))
"""


def test_a_script_need_not_guard_itself(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert done.stdout == "once\n[3, 2]\n", done.stderr
