"""`tacit serve` as a process with all that belongs to it, any of which may be killed at any moment; and what must hold.

`Played` is one run of it from its first round to its last: the server with its workers and its coordinator, decryptors
where reports are sealed, and devices on real sockets in a thread of this process.
"""

import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
from sqlalchemy.engine import make_url
from tests.support.server.loopback import swarming
from tests.support.server.stores import PostgreSQL
from tests.support.training.tiny import tiny_cache, tiny_recipe
from tests.support.waiting import until
from tests.swarm import DrawnReports, SwarmFaults, SwarmLog, SwarmSettings
from tests.swarm.log import overcharged, rounds_apart

import tacit
from tacit.protocol.messages import RoundTask, Signed
from tacit.protocol.one_message_shape import settings_of
from tacit.protocol.operator_key import OperatorKey
from tacit.recipe import Recipe
from tacit.runs import Run
from tacit.runs.reconciliation import reconciled
from tacit.server.store.round_states import RELEASED, Attempt, attempts
from tacit.server.store.store import Store

ROUNDS, GOAL, APART, DEVICES, WORKERS, DECRYPTORS = 20, 8, 2, 200, 2, 3
PATIENCE = 900.0  # seconds for a run, after which something hangs
NAME = "tiny"
FAULTS = SwarmFaults(die=0.1, lose=0.01)


def a_recipe(cache: Path, *, decryptors: list[str] | None = None) -> Recipe:
    """Twenty rounds of eight reports. decryptors: lines of those that open its sums; none: in the clear."""
    phones: dict[str, Any] = {"population": "phones", "devices": DEVICES, "over_selection": 2.0, "pause_minutes": 0.0}
    phones |= {"reporting_minutes": 0.1, "selecting_minutes": 1.0}
    rounds = {"rounds": ROUNDS, "report_goal": GOAL, "min_separation": APART}
    if decryptors is None:
        seeded = tiny_recipe(cache, deployment=phones, rounds=rounds)
    else:
        privacy = {"mechanism": {"name": "blt-b400"}, "noise_multiplier": 6.0}
        seeded = tiny_recipe(
            cache,
            deployment=phones | {"decryptors": decryptors},
            rounds=rounds,
            aggregation={"kind": "secure"},
            privacy=privacy,
        )
    return seeded.model_copy(update={"run": seeded.run.model_copy(update={"seed": None})})


def processes_of(parent: int) -> dict[str, list[int]]:
    """The processes of a server, by role."""
    found: dict[str, list[int]] = {"worker": [], "coordinator": []}
    for each in Path("/proc").glob("[0-9]*"):
        try:
            above = int((each / "stat").read_text().rpartition(")")[2].split()[1])
            words = (each / "cmdline").read_text().split("\0")
        except OSError:
            continue  # it has ended
        if above == parent and "tacit.server.process" in words:
            found[words[words.index("tacit.server.process") + 1]].append(int(each.name))
    return found


def check(store_url: str, out: Path, log: SwarmLog) -> int:
    """No round released twice, none below its goal, the ledger equal to what devices saw, and nobody paid twice for one
    round; how many attempts were abandoned.
    """
    store = Store.open(store_url)
    found = attempts(store, out.name)
    store.close()
    released = [each for each in found if each.state == RELEASED]
    # Of a series of sealed attempts one was opened at most, the last: who was in those before took part in no sum.
    counting = {(each.round, opened_once(each)): each for each in found}.values()
    everyone: Counter[int] = Counter()
    for each in counting:
        everyone[each.round] += each.assigned
    assert [each.round for each in released] == list(range(ROUNDS))
    assert all(each.reports == GOAL for each in released)
    # Devices were told one model for each round: one that was released twice would have begun the next with another.
    assert {len(models) for models in log.models().values()} == {1}
    assert {round for _, round in log.models()} == set(range(ROUNDS))
    assert (rounds_apart(log.parts) or APART) >= APART
    with Run.open(out) as run:
        assert run.steps_done == ROUNDS
        assert reconciled(run).counts().tolist() == [everyone[round] for round in range(ROUNDS)]
    # A device that took part in an attempt is given the next one as well, and gives it back: it took part once.
    tasks = {each.task for each in counting}
    who = {(part.round, part.device) for part in log.parts if part.took_part and part.task in tasks}
    seen = Counter(round for round, _ in who)
    # Whoever took part is counted; who died before, or never read the answer of a killed worker, is counted as well.
    both = {round: (seen[round], everyone[round]) for round in range(ROUNDS)}
    assert all(GOAL <= took <= counted for took, counted in both.values()), both
    assert not overcharged(log.parts)
    assert tacit.verify(out).holds
    return len(found) - len(released)


def opened_once(attempt: Attempt) -> str:
    """What has the same for two attempts where only one of their sums can be opened."""
    sealed = Signed.from_json(attempt.signed_task).read(RoundTask).sealed
    return attempt.task if sealed is None else settings_of(sealed).attempts.name.hex()


@dataclass
class Process:
    """A program that is begun again whenever it ends, as systemd would."""

    words: list[str]
    log: Path
    running: "subprocess.Popen[bytes] | None" = None
    begun: int = 0
    not_before: float = 0.0

    def look(self) -> int | None:
        """Begin it where it does not run; its exit code where it ended by itself just now."""
        if self.running is not None and (code := self.running.poll()) is not None:
            self.running, self.not_before = None, time.monotonic() + 0.3
            return code
        if self.running is None and time.monotonic() >= self.not_before:
            with self.log.open("ab") as file:
                command = [sys.executable, "-m", "tacit", *self.words]
                self.running = subprocess.Popen(command, stdout=file, stderr=file, env={**os.environ, "COLUMNS": "300"})
            self.begun += 1
        return None

    def kill(self) -> bool:
        """With SIGKILL; whether it was running."""
        if self.running is None:
            return False
        self.running.kill()
        self.running.wait()
        self.running = None
        return True

    def end(self) -> None:
        """For good: the processes that it began end with it."""
        if self.running is not None:
            self.running.terminate()
            self.running.wait()


@dataclass
class Played:
    """One run under kills."""

    folder: Path
    seed: int
    sealed: bool = False
    database: PostgreSQL | None = None  # None: SQLite
    faults: SwarmFaults = FAULTS  # of its devices
    kills: Counter[str] = field(default_factory=Counter)  # by what was killed
    abandoned: int = 0
    seconds: float = 0.0

    def __post_init__(self) -> None:
        self.draw, self.port = random.Random(self.seed), free_port()
        self.store = f"sqlite:///{self.folder / 'store.db'}" if self.database is None else self.database.new_database()
        self.decryptors: list[Process] = []

    def play(self, *, most: int, wait: tuple[float, float], told: Callable[[str], None] = lambda line: None) -> None:
        """To its end, with at most so many kills, between two of which it waits so many seconds. Raises: AssertionError
        where something did not hold.
        """
        began = time.monotonic()
        cache = tiny_cache(self.folder / "cache", {"validation": 5, "test": 6})
        key = OperatorKey.in_file(self.folder / "operator.key")
        with ExitStack() as stack:
            lines = self._with_decryptors(stack, key.public) if self.sealed else None
            (self.folder / "recipe.toml").write_text(a_recipe(cache.path, decryptors=lines).to_toml())
            server = self._server(stack)
            settings = SwarmSettings(
                server=f"http://127.0.0.1:{self.port}",
                operator_key=key.public,
                population="phones",
                devices=DEVICES,
                seed=self.seed,
                reports=DrawnReports(self.seed),
                faults=self.faults,
                waits=0.1,
            )
            log = stack.enter_context(swarming(settings))
            next_kill = time.monotonic() + self.draw.uniform(*wait)
            while (code := server.look()) != 0:
                for each in self.decryptors:
                    each.look()
                assert time.monotonic() - began < PATIENCE, f"it hangs: {self._said()}"
                assert code is None or server.begun < 100 + 2 * most, f"the server does not stay: {self._said()}"
                if self.kills.total() < most and time.monotonic() >= next_kill:
                    if what := self._killed(server):
                        self.kills[what] += 1
                        told(what)
                    next_kill = time.monotonic() + self.draw.uniform(*wait)
                time.sleep(0.05)
        self.abandoned = check(self.store, self.folder / "served" / "runs" / NAME, log)
        self.seconds = time.monotonic() - began

    def _server(self, stack: ExitStack) -> Process:
        words = ["serve", str(self.folder / "recipe.toml"), "--out", str(self.folder / "served"), "--store", self.store]
        words += ["--operator-key", str(self.folder / "operator.key"), "--port", str(self.port)]
        words += ["--without-enrolment"]
        server = Process([*words, "--workers", str(WORKERS)], self.folder / "log")
        stack.callback(server.end)
        return server

    def _with_decryptors(self, stack: ExitStack, operator: str) -> list[str]:
        """Their lines in a recipe: each keeps its address when it is begun again."""
        lines = []
        for number in range(DECRYPTORS):
            port, log = free_port(), self.folder / f"decryptor-{number}.log"
            words = ["decryptor", "--state", str(self.folder / f"decryptor-{number}"), "--least-reports", str(GOAL)]
            decryptor = Process([*words, "--port", str(port), "--operator-key", operator], log)
            stack.callback(decryptor.end)
            self.decryptors.append(decryptor)
            decryptor.look()
            until(lambda log=log: log.read_text().count("\n") >= 3)  # type: ignore[misc]
            identity, box, url = (line.split()[-1] for line in log.read_text().splitlines()[:3])
            lines.append(f"{url} {identity} {box}")
        return lines

    def _killed(self, server: Process) -> str | None:
        """What was killed; None where it was not there just then."""
        if server.running is None:
            return None
        children = processes_of(server.running.pid)
        kinds = ["server", "worker", "worker", "coordinator", "coordinator"] + ["decryptor"] * bool(self.decryptors)
        kinds += ["connection", "connection", "database"] if self.database is not None else []
        what = self.draw.choice(kinds)
        if what == "server":
            return what if server.kill() else None
        if what == "decryptor":
            return what if self.draw.choice(self.decryptors).kill() else None
        if what == "connection":
            return what if terminated(self.store, self.draw) else None
        if what == "database":
            assert self.database is not None
            self.database.stop("immediate")
            time.sleep(self.draw.uniform(0.0, 0.5))
            self.database.start()
            return what
        if not children[what]:
            return None
        with suppress(ProcessLookupError):
            os.kill(self.draw.choice(sorted(children[what])), signal.SIGKILL)
            return what
        return None

    def _said(self) -> str:
        """The last that the processes said."""
        return (self.folder / "log").read_text(errors="replace")[-4000:]


def terminated(url: str, draw: random.Random) -> bool:
    """End one of the database's connections, as `pg_terminate_backend` does; whether there was one."""
    place: Mapping[str, Any] = make_url(url).query
    named = f"host={place['host']} user=tacit dbname={make_url(url).database}"
    others = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    with psycopg.connect(named, autocommit=True) as connection:
        there = sorted(pid for (pid,) in connection.execute(others).fetchall())
        if not there:
            return False
        (done,) = connection.execute("SELECT pg_terminate_backend(%s)", (draw.choice(there),)).fetchone() or (False,)
        return bool(done)


def free_port() -> int:
    """One that nobody listens on now."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])
