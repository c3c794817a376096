"""A run whose noise is of a matrix designed for its separation by round index, from the recipe to the statement.

A coordinator's own steps and real devices, in one process: each fetches the matrix by its digest and prices it itself.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.support.device.operator import once
from tests.support.device.worker import Worker
from tests.support.device.zeros import Zeros
from tests.support.server.fleet import TIMES
from tests.support.server.stores import KEY, Clock, quick_folder, sqlite_store
from tests.support.training.tiny import tiny_cache, tiny_recipe

import tacit
from tacit.compute import Hardware
from tacit.data import Cache
from tacit.device.turn import SessionOutcome
from tacit.errors import InputError
from tacit.jobs.train.run import begin
from tacit.privacy.strategy import Banded
from tacit.protocol.messages import TrainingPrivacy
from tacit.recipe import Recipe
from tacit.server.coordinator import announce
from tacit.server.http.application import application
from tacit.server.http.services import Services
from tacit.server.http.snapshot import Snapshot
from tacit.server.log.logged_run import verify_log
from tacit.server.log.transparency import TransparencyLog
from tacit.server.plans import plan_of
from tacit.server.rounds.rounds import ServedRounds
from tacit.server.store import assignments, round_states
from tacit.server.store.blobs import BlobStore
from tacit.server.sums.partial_sums import PartialSums
from tacit.server.train import check_servable, document
from tacit.statements.accounts import matrix_of
from tacit.training.hooks import Hooks

ROUNDS, PLAYED, APART, GOAL, DEVICES, NOISE = 5, 4, 2, 2, 4, 4.0  # a run that ended would have a report drawn
PHONES = {"population": "phones", "devices": DEVICES, "over_selection": 1.0}
ALONE = replace(TIMES, over_selection=1.0)  # nobody is asked in vain
BANDED = {"mechanism": {"name": "banded"}, "noise_multiplier": NOISE}


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Recipe:
    cache: Cache = tiny_cache(tmp_path_factory.mktemp("ours") / "cache", {"validation": 5, "test": 6})
    rounds = {"rounds": ROUNDS, "report_goal": GOAL, "min_separation": APART}
    made = tiny_recipe(cache.path, deployment=PHONES, rounds=rounds, privacy=BANDED)
    return made.model_copy(update={"run": made.run.model_copy(update={"seed": None})})


class Phones:
    """Devices that come one after another, each with a record of its own, and the worker that answers them."""

    def __init__(self, folder: Path, data: Path) -> None:
        self.folder, self.data, self.clock, self.turns = folder, data, Clock(), list[tuple[int, SessionOutcome]]()
        self.store, self.blobs = sqlite_store(folder, self.clock), BlobStore.open(f"file://{folder / 'blobs'}")
        sums = PartialSums(self.store, self.blobs, "ab" * 16, evicted=lambda: None)
        services = Services(
            store=self.store, blobs=self.blobs, key=KEY, worker="ab" * 16, snapshot=Snapshot(self.store), sums=sums
        )
        self.worker = Worker(key=KEY, app=application(services), services=services)

    def come(self, seconds: float) -> None:
        """Time passes, each device comes once, and the worker does what it does."""
        self.clock.now += seconds
        services = self.worker.services
        assignments.seen(self.store, services.worker)
        for number in range(DEVICES if any(each.gives for each in assignments.open_rounds(self.store)) else 0):
            state = self.folder / f"phone-{number}"
            found = once(self.worker, self.data, state, now=self.clock.now, population="phones", trainer=Zeros())
            assert found.what != "unanswered", found.says
            self.turns.append((number, found))
        services.snapshot.refresh()
        services.sums.write_what_is_due([each.row for each in services.snapshot.rounds.values()], self.clock.now)


def test_a_matrix_is_designed_served_cost_by_devices_and_stands_in_the_statement(asked: Recipe, tmp_path: Path) -> None:
    device = tiny_cache(tmp_path / "phone", {"train": 1})
    with quick_folder() as folder:
        phones = Phones(folder, device.path)
        collector = ServedRounds(phones.store, phones.blobs, KEY, document=document, times=ALONE, wait=phones.come)
        with begin(asked, tmp_path / "run", hooks=Hooks(collector=collector)) as run:
            plan, matrix = plan_of(run), matrix_of(run)
            log = TransparencyLog.beside(phones.store, KEY, folder / "operator.key")
            signed = announce(run, plan, phones.store, phones.blobs, KEY, log)
        lease = round_states.take_lease(phones.store, plan.run, seconds=60)
        assert lease is not None and isinstance(matrix, Banded) and matrix.bands == APART
        collector.serve(signed, lease)
        tacit.train(asked, tmp_path / "run", collector=collector, hardware=Hardware(workers=1), until=PLAYED)
        assert all(line.holds for line in verify_log(tmp_path / "run", str(folder / "operator.log")))
    assert isinstance(plan.privacy, TrainingPrivacy) and plan.privacy.matrix is not None
    came = {
        number: [each for of, each in phones.turns if of == number and each.what == "reported"]
        for number in range(DEVICES)
    }
    assert sum(map(len, came.values())) == PLAYED * GOAL and max(map(len, came.values())) == 2
    dense = matrix.dense(ROUNDS)
    for turns in came.values():  # each device's own rounds, and no more
        columns = dense[:, [each.round for each in turns if each.round is not None]]
        assert turns[-1].zcdp == pytest.approx(np.square(columns).sum() / (2 * NOISE**2))
        assert all(each.spent <= plan.privacy.zcdp for each in turns)  # type: ignore[operator]
    refusals = {
        turn.says.partition(": ")[2].partition(" took part")[0] for _, turn in phones.turns if turn.what == "refused"
    }
    assert refusals == {"this device"}
    fetched = [each for each in phones.worker.asked if each.url.path == plan.privacy.matrix.path]
    assert len(fetched) == sum(map(len, came.values())), "where it takes part, and not to be refused"
    assert tacit.verify(tmp_path / "run").holds
    said = tacit.statement(tmp_path / "run").markdown()
    assert f"a banded strategy matrix of {ROUNDS} rounds and {APART} bands" in said


def test_a_matrix_that_no_device_would_reckon_with_is_refused_before_it_is_designed(asked: Recipe) -> None:
    many = asked.model_copy(
        update={"rounds": asked.rounds.model_copy(update={"rounds": 30_000, "min_separation": 2_000})}
    )
    with pytest.raises(InputError, match="has 60,000,000 numbers, and devices take 4,194,304"):
        check_servable(many)


def test_what_no_device_would_train_on_is_not_served(asked: Recipe) -> None:
    long = asked.model_copy(update={"client": asked.client.model_copy(update={"epochs": 10_000, "sentences": 1_000})})
    with pytest.raises(InputError, match="and devices take 10,000,000; lower client"):
        check_servable(long)
