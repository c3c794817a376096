"""What every collector owes a round: the simulated one, devices asked one by one, and whatever a transport brings.

`COLLECTORS` are held against `DevicesOneByOne`, the slow reference that asks each device by itself. Who took part, how
many reports came, and how many said "short" must be equal; sums agree within rounding, because a compiler orders the
additions of one client otherwise than those of many.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.contracts.training_tasks import KEY, SEED, encoded, task_of
from tests.support.training.tiny import cohorts_of, cores, poisoned_loss, tiny_cache, tiny_learner, tiny_recipe

from tacit.compute import Hardware
from tacit.data import Cache
from tacit.errors import TrainingError
from tacit.federation.collector import Answered, Collector
from tacit.federation.report_shape import LOSS, SHORT
from tacit.training import Learner, RoundPlan, SimulatedCollector, TrainQuestion
from tacit.training.client import Loss, Model, Step
from tacit.training.cohort import Workers
from tacit.training.one_by_one import DevicesOneByOne
from tacit.training.rounds import initial_state, run_round
from tacit.training.workers_accelerator import Accelerator

Made = Callable[[Learner, RoundPlan], Collector]


def simulated(workers: Callable[[], Workers]) -> Made:
    return lambda learner, plan: SimulatedCollector(learner, cohorts_of(learner, plan, KEY), workers())


COLLECTORS: dict[str, Made] = {
    "simulated on a core": simulated(cores),
    "simulated on two cores": simulated(lambda: cores(2)),
    "simulated on an accelerator": simulated(lambda: Accelerator(Hardware(chunk=4))),
    "one by one": lambda learner, plan: DevicesOneByOne(learner, cohorts_of(learner, plan, KEY)),
}
every_collector = pytest.mark.parametrize("made", COLLECTORS.values(), ids=COLLECTORS)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    return tiny_cache(tmp_path_factory.mktemp("tiny") / "cache")


@pytest.fixture(scope="module")
def plan(cache: Cache) -> RoundPlan:
    return tiny_recipe(
        cache.path,
        privacy={"mechanism": {"name": "tree", "restarts": [2]}, "noise_multiplier": 0.3},
        clipping={"initial": 0.2},
        training_loss={"bound": 4.0},
    ).plan()


@pytest.fixture(scope="module")
def learner(cache: Cache) -> Learner:
    return tiny_learner(cache)  # one, since compiled code is kept by it


def assert_alike(got: Answered, slow: Answered) -> None:
    np.testing.assert_array_equal(got.clients, slow.clients)
    assert (got.reports, got.dropped, got.beside.get(SHORT)) == (slow.reports, slow.dropped, slow.beside.get(SHORT))
    losses = got.beside.get(LOSS)
    assert losses == pytest.approx(slow.beside.get(LOSS), rel=1e-4, abs=1e-4) and losses != 0
    assert np.linalg.norm(got.values - slow.values) <= 1e-5 * np.linalg.norm(slow.values)


@every_collector
def test_it_brings_what_devices_asked_one_by_one_bring(learner: Learner, plan: RoundPlan, made: Made) -> None:
    """Three rounds on: who comes depends on who came."""
    collector, slow = made(learner, plan), COLLECTORS["one by one"](learner, plan)
    state, slow_state = collector.init(), slow.init()
    for round in range(3):
        task = task_of(learner, plan, round)
        got, state = collector.collect(state, task, seed=SEED)
        twin, slow_state = slow.collect(slow_state, task, seed=SEED)
        assert_alike(got, twin)
        assert got.reports == plan.report_goal and 0 < (got.beside.get(SHORT) or 0) < got.reports
        for a, b in zip(jax.tree.leaves(state), jax.tree.leaves(slow_state), strict=True):
            np.testing.assert_array_equal(a, b)


@every_collector
def test_the_same_question_has_the_same_answer_and_the_state_stays(
    learner: Learner, plan: RoundPlan, made: Made
) -> None:
    collector = made(learner, plan)
    state = collector.init()
    before = jax.tree.map(np.array, state)
    one, two = (collector.collect(state, task_of(learner, plan), seed=SEED)[0] for _ in range(2))
    np.testing.assert_array_equal(one.values, two.values)
    for a, b in zip(jax.tree.leaves(before), jax.tree.leaves(state), strict=True):
        np.testing.assert_array_equal(a, b)
    other, _ = collector.collect(state, task_of(learner, plan), seed=bytes(31) + b"x")
    assert not np.array_equal(one.values, other.values), "devices draw their own sentences by the seed"


@every_collector
def test_no_device_adds_more_than_the_clip_norm(learner: Learner, plan: RoundPlan, made: Made) -> None:
    task = task_of(learner, plan, clip_norm=1e-3)
    got, _ = made(learner, plan).collect(made(learner, plan).init(), task, seed=SEED)
    assert np.linalg.norm(got.values) <= 1e-3 * got.reports * (1 + 1e-5)


@every_collector
def test_encoded_updates_sum_up_to_the_plain_sum_within_their_rounding(
    learner: Learner, plan: RoundPlan, made: Made
) -> None:
    task = encoded(task_of(learner, plan, loss_bound=10.0), learner)
    assert task.secure is not None
    got, _ = made(learner, plan).collect(made(learner, plan).init(), task, seed=SEED)
    twin, _ = COLLECTORS["one by one"](learner, plan).collect(made(learner, plan).init(), task, seed=SEED)
    assert_alike(got, twin)
    plain, _ = made(learner, plan).collect(made(learner, plan).init(), replace(task, secure=None), seed=SEED)
    assert (got.reports, got.beside.get(SHORT)) == (plain.reports, plain.beside.get(SHORT))
    assert got.beside.get(LOSS) == pytest.approx(
        plain.beside.get(LOSS), abs=got.reports * 10.0 / 2**16
    ) and got.beside.get(LOSS) != plain.beside.get(LOSS)
    # The rounding of a coordinate has a variance of 1/6 on average, and there are many.
    rounding = math.sqrt(got.reports * len(learner.start) / 6) / task.secure.encoding.scale
    error = float(np.linalg.norm(got.values - plain.values))
    assert 0.9 * rounding < error < 1.1 * rounding


@every_collector
def test_nobody_is_asked_for_a_bit_that_nobody_wants(learner: Learner, plan: RoundPlan, made: Made) -> None:
    got, _ = made(learner, plan).collect(
        made(learner, plan).init(), task_of(learner, plan, clip_estimate=None, loss_bound=None), seed=SEED
    )
    assert got.beside.get(SHORT) is None and got.beside.get(LOSS) is None


@pytest.mark.parametrize("secure", [False, True], ids=["in the clear", "encoded"])
@every_collector
def test_a_device_whose_update_is_not_finite_is_counted_and_adds_nothing(
    cache: Cache, plan: RoundPlan, made: Made, secure: bool
) -> None:
    poisoned = tiny_learner(cache, poisoned_loss)
    collector, slow = made(poisoned, plan), COLLECTORS["one by one"](poisoned, plan)
    task = encoded(task_of(poisoned, plan), poisoned) if secure else task_of(poisoned, plan)
    got, twin = (each.collect(each.init(), task, seed=SEED)[0] for each in (collector, slow))
    assert 0 < got.dropped < len(got.clients) == got.reports + got.dropped
    assert_alike(got, twin)


@every_collector
def test_whole_rounds_are_the_same_to_rounding(learner: Learner, plan: RoundPlan, made: Made) -> None:
    """With adaptive clipping: the same log, the same counts, models apart by rounding alone.

    Without noise, which is bound to the sum it is added to: a sum that is rounded otherwise has another.
    """
    plan, found = replace(plan, guarantee=replace(plan.guarantee, strategy=None, noise_multiplier=0.0)), []
    for each in (made, COLLECTORS["one by one"]):
        collector = each(learner, plan)
        state, outcomes = initial_state(learner.start, plan, collector), []
        for round in range(4):
            state, outcome = run_round(state, round, plan=plan, key=KEY, collector=collector)
            outcomes.append(outcome)
        found.append((np.asarray(state.model), outcomes))
    np.testing.assert_allclose(found[0][0], found[1][0], atol=1e-5)
    for a, b in zip(found[0][1], found[1][1], strict=True):
        np.testing.assert_array_equal(a.clients, b.clients)
        assert a.release == replace(b.release, clip_norm=a.release.clip_norm)
        assert a.release.clip_norm == pytest.approx(b.release.clip_norm)


def heavy_ball(
    loss: Loss, model: Model, sentences: Any, batches: Any, settings: Any, *, step: Step
) -> tuple[Model, Any]:
    """An algorithm that nobody ships: one step on the first batch, ten times as far."""
    theta, value = step(model, sentences[: settings.batch_size])
    return jax.tree.map(lambda new, old: 10.0 * (new - old), theta, model), value


@every_collector
def test_devices_compute_what_they_are_given_to_compute(learner: Learner, plan: RoundPlan, made: Made) -> None:
    own = replace(learner, algorithm=heavy_ball)
    task = task_of(own, plan, clip_norm=1e9)
    collector, slow = made(own, plan), COLLECTORS["one by one"](own, plan)
    got, twin = (each.collect(each.init(), task, seed=SEED)[0] for each in (collector, slow))
    assert_alike(got, twin)
    usual, _ = made(learner, plan).collect(made(learner, plan).init(), task, seed=SEED)
    assert np.linalg.norm(got.values) > 3 * np.linalg.norm(usual.values)


# -- what a round refuses ----------------------------------------------------------------------------------------------


class Wrong:
    """A collector that brings something else than it owes."""

    def __init__(self, learner: Learner, plan: RoundPlan, **changes: Any) -> None:
        self._right, self._beside = COLLECTORS["simulated on a core"](learner, plan), changes.pop("beside", {})
        self._changes = changes

    def init(self) -> Any:
        return self._right.init()

    def collect(self, state: Any, task: TrainQuestion, *, seed: bytes) -> tuple[Answered, Any]:
        answered, after = self._right.collect(state, task, seed=seed)
        beside = {name: value for name, value in {**answered.beside, **self._beside}.items() if value is not None}
        return answered._replace(**self._changes, beside=beside), after


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"values": jnp.zeros(3)}, r"a sum of shape \(3,\)"),
        ({"values": None}, "a sum that is not finite"),
        ({"clients": np.array([4, 4])}, "a client twice"),
        ({"clients": np.array([], np.int64)}, "reports of 0 clients"),
        ({"beside": {"short": None}}, "no count of short updates"),
        ({"beside": {"short": 7}}, "7 short updates of 6"),
        ({"beside": {"bounded_loss": None}}, "no sum of losses"),
        ({"beside": {"bounded_loss": 12.1}}, "losses that sum up to 12.1, beyond 6 times half their bound"),
        ({"beside": {"bounded_loss": math.nan}}, "losses that sum up to nan"),
        ({"reports": 0}, "none of 6 clients' updates was finite"),
    ],
)
def test_what_no_guarantee_covers_is_refused(
    learner: Learner, plan: RoundPlan, changes: dict[str, Any], complaint: str
) -> None:
    if "values" in changes and changes["values"] is None:
        changes = {"values": jnp.full(len(learner.start), np.nan, np.float32)}
    collector = Wrong(learner, plan, **changes)
    state = initial_state(learner.start, plan, collector)
    with pytest.raises(TrainingError, match=f"round 0: .*{complaint}"):
        run_round(state, 0, plan=plan, key=KEY, collector=collector)
