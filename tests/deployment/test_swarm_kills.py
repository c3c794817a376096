"""`tacit serve` with devices on real sockets, its workers and its coordinator killed with SIGKILL again and again."""

import os
import random
import signal
import threading
from collections import Counter
from pathlib import Path

import pytest
from tests.deployment.loopback import swarming
from tests.deployment.stores import quick_folder
from tests.training.tiny import tiny_cache, tiny_recipe

import tacit
from tacit.deployment.address import Address
from tacit.deployment.serve import Serving
from tacit.deployment.states import RELEASED, attempts
from tacit.deployment.store import Store
from tacit.deployment.swarm import Drawn, Faults, Log, SwarmSettings
from tacit.deployment.swarm.log import rounds_apart
from tacit.recipe import Recipe
from tacit.runs import Run
from tacit.runs.reconciliation import reconciled

pytestmark = pytest.mark.long
ROUNDS, GOAL, APART, KILLS, PATIENCE = 20, 8, 2, 6, 500.0


def processes() -> dict[str, list[int]]:
    """The server's processes of this one, by role."""
    found: dict[str, list[int]] = {"worker": [], "coordinator": []}
    for each in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((each / "stat").read_text().rpartition(")")[2].split()[1])
            words = (each / "cmdline").read_text().split("\0")
        except OSError:
            continue  # it has ended
        if parent == os.getpid() and "tacit.deployment.process" in words:
            found[words[words.index("tacit.deployment.process") + 1]].append(int(each.name))
    return found


class Served:
    """A server in threads of this process, and whoever kills its processes."""

    def __init__(self, recipe: Recipe, folder: Path) -> None:
        self.ready, self.over, self.stop = threading.Event(), threading.Event(), threading.Event()
        self.said: Serving | None = None
        self.raised: list[BaseException] = []
        self.killed: list[str] = []
        self._recipe, self._folder = recipe, folder

    def run(self) -> None:
        def serving(said: Serving) -> None:
            self.said = said
            self.ready.set()

        try:
            tacit.serve(
                [self._recipe], self._folder, workers=2, address=Address(port=0), serving=serving, stop=self.stop
            )
        except BaseException as error:
            self.raised.append(error)
        finally:
            self.over.set()
            self.ready.set()

    def kill_some(self, draw: random.Random) -> None:
        for _ in range(KILLS):
            if self.over.wait(draw.uniform(2.0, 8.0)):
                return
            role = draw.choice(["worker", "worker", "coordinator"])
            if there := processes()[role]:
                os.kill(draw.choice(there), signal.SIGKILL)
                self.killed.append(role)


@pytest.mark.parametrize("seed", [0, 1])
def test_training_goes_on_to_the_end_whoever_is_killed(tmp_path: Path, seed: int) -> None:
    cache = tiny_cache(tmp_path / "cache", {"validation": 5, "test": 6})
    phones = {"population": "phones", "devices": 200, "over_selection": 2.0, "pause_minutes": 0.0}
    phones |= {"reporting_minutes": 0.1, "selecting_minutes": 1.0}
    rounds = {"rounds": ROUNDS, "report_goal": GOAL, "min_separation": APART}
    seeded = tiny_recipe(cache.path, deployment=phones, rounds=rounds)
    recipe = seeded.model_copy(update={"run": seeded.run.model_copy(update={"seed": None})})
    with quick_folder() as folder:
        server = Served(recipe, folder)
        threads = [threading.Thread(target=server.run)]
        threads[0].start()
        assert server.ready.wait(120) and server.said is not None, server.raised
        settings = SwarmSettings(
            server=server.said.url,
            operator_key=server.said.operator_key,
            population="phones",
            devices=200,
            seed=seed,
            reports=Drawn(seed),
            faults=Faults(die=0.1, lose=0.01),
            waits=0.1,
        )
        try:
            with swarming(settings) as log:
                threads.append(threading.Thread(target=server.kill_some, args=(random.Random(seed),)))
                threads[1].start()
                done = server.over.wait(PATIENCE)
        finally:
            server.stop.set()
            for thread in threads:
                thread.join()
        assert done and not server.raised, (server.raised, server.killed)
        assert server.killed
        check(folder, server.said.runs[0], log)


def check(folder: Path, out: Path, log: Log) -> None:
    """No round released twice, none below its goal, the ledger equal to what devices saw."""
    store = Store.open(f"sqlite:///{folder / 'store.db'}")
    released = [each for each in attempts(store, out.name) if each.state == RELEASED]
    everyone: dict[int, int] = {}
    for each in attempts(store, out.name):
        everyone[each.round] = everyone.get(each.round, 0) + each.assigned
    store.close()
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
    who = {(part.round, part.device) for part in log.parts if part.took_part}
    seen = Counter(round for round, _ in who)
    # Whoever took part is counted; who died before, or never read the answer of a killed worker, is counted as well.
    both = {round: (seen[round], everyone[round]) for round in range(ROUNDS)}
    assert all(GOAL <= took <= counted for took, counted in both.values()), both
    assert tacit.verify(out).holds
