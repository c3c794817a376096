"""Servers whose processes are killed with SIGKILL at random, again and again, the database too.

No round is released twice, none below its goal, no sum is bound twice, and what was committed is what was bound. The
benchmark `deployment_kills.py` goes on to a thousand kills.
"""

import json
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import REPOSITORY
from tests.server.killed_processes import QUARTER
from tests.support.server.documents import a_plan
from tests.support.server.killed_servers import Played
from tests.support.server.stores import PostgreSQL, postgresql, postgresql_programs, quick_folder
from tests.swarm.faults import SEALED, Fault, SwarmFaults

from tacit.server.store import round_states
from tacit.server.store.store import Store

ROUNDS, PATIENCE = 20, 900.0  # seconds, after which something hangs
MOST = 60  # kills: on a busy machine nothing might begin again before it is killed


@pytest.fixture(scope="module")
def server() -> Iterator[PostgreSQL]:
    programs = postgresql_programs()
    if programs is None:
        pytest.skip("PostgreSQL is not installed: no pg_ctl and initdb in /usr/lib/postgresql/*/bin or on the path")
    with postgresql(programs) as found:
        yield found


class Processes:
    """Two workers and a coordinator, begun again when they end."""

    def __init__(self, url: str, folder: Path) -> None:
        self._url, self._folder = url, folder
        self.running = {name: self._begun(name) for name in ("worker 1", "worker 2", "coordinator")}
        self.finished = False

    def _begun(self, name: str) -> subprocess.Popen[bytes]:
        role = name.partition(" ")[0]
        more = [str(ROUNDS)] if role == "coordinator" else []
        arguments = ["-m", "tests.server.killed_processes", role, self._url, str(self._folder), *more]
        with open(self._folder / "log", "ab") as log:
            return subprocess.Popen([sys.executable, *arguments], cwd=REPOSITORY, stdout=log, stderr=log)

    def look(self) -> None:
        for name, process in self.running.items():
            if process.poll() is not None:
                if name == "coordinator" and process.returncode == 0:
                    self.finished = True
                else:
                    self.running[name] = self._begun(name)

    def kill(self, name: str) -> None:
        self.running[name].kill()
        self.running[name].wait()

    def end(self) -> None:
        for process in self.running.values():
            process.kill()
            process.wait()


def played(url: str, folder: Path, seed: int, restart: PostgreSQL | None = None) -> int:
    """How often something was killed until all rounds were done."""
    Store.open(url).close()
    draw, processes, kills, began = random.Random(seed), Processes(url, folder), 0, time.monotonic()
    try:
        while not processes.finished:
            assert time.monotonic() - began < PATIENCE, (folder / "log").read_text()[-3000:]
            time.sleep(draw.uniform(0.3, 2.0))
            processes.look()
            if kills == MOST:
                continue
            victim = draw.choice([*processes.running, *(["database"] if restart else [])])
            if victim == "database" and restart is not None:
                restart.stop("immediate")
                restart.start()
            else:
                processes.kill(victim)
            kills += 1
            processes.look()
    finally:
        processes.end()
    return kills


def assert_once_and_whole(url: str, folder: Path) -> None:
    store = Store.open(url)
    found = round_states.attempts(store, a_plan().run)
    store.close()
    committed = [json.loads(line) for line in (folder / "committed").read_text().splitlines()]
    summed = [each for each in found if each.total_digest is not None]
    assert [each.round for each in summed] == [row["round"] for row in committed] == list(range(ROUNDS))
    assert {each.state for each in summed} == {"released"}
    assert {each.state for each in found} <= {"released", "abandoned"}
    assert [each.total_digest for each in summed] == [row["digest"] for row in committed]
    for each, row in zip(summed, committed, strict=True):
        assert each.reports == row["reports"] == each.goal == 6
        assert row["first"] == QUARTER * each.reports  # each report once: quarters are added exactly


@pytest.mark.nightly
def test_killed_on_sqlite() -> None:
    with quick_folder() as folder:
        url = f"sqlite:///{folder / 'store.db'}"
        assert played(url, folder, seed=1) >= 3
        assert_once_and_whole(url, folder)


@pytest.mark.nightly
def test_killed_on_postgresql_with_its_server(server: PostgreSQL) -> None:
    with quick_folder() as folder:
        url = server.new_database()
        assert played(url, folder, seed=2, restart=server) >= 3
        assert_once_and_whole(url, folder)


@pytest.mark.nightly
def test_a_third_die_and_a_tenth_lie_in_the_sealed_rounds_of_a_whole_server() -> None:
    """With three decryptors as processes of their own; what holds is checked at the end: goals, prices, the ledger."""
    faults = SwarmFaults(die=0.3, byzantine=0.1, kinds=(*SEALED, Fault.CUT, Fault.REPLAY), lose=0.01)
    with quick_folder() as folder:
        one = Played(folder, 104, sealed=True, faults=faults)
        one.play(most=5, wait=(2.0, 10.0))


@pytest.mark.parametrize(
    ("seed", "kind"),
    [
        pytest.param(101, "postgresql", marks=pytest.mark.nightly),
        pytest.param(102, "sealed", marks=pytest.mark.nightly),  # on PostgreSQL too
        pytest.param(103, "sqlite", marks=pytest.mark.nightly),
    ],
)
def test_a_hundred_kills_of_a_whole_server(server: PostgreSQL, seed: int, kind: str) -> None:
    """`tacit serve` and its devices; what holds is checked at the end of each run."""
    with quick_folder() as folder:
        one = Played(folder, seed, sealed=kind == "sealed", database=None if kind == "sqlite" else server)
        one.play(most=34, wait=(0.2, 2.0))
        assert one.kills.total() >= 10 and len(one.kills) >= 3, one.kills
