"""A round against its NumPy twin, the form of the server step, the scale of the noise, and who is dropped."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import kstest
from tests.support.networks import numpy_model
from tests.support.training.tiny import (
    MECHANISMS,
    POISON,
    collector_of,
    cores,
    first_state,
    poisoned_loss,
    tiny_cache,
    tiny_learner,
    tiny_recipe,
)
from tests.training import numpy_round
from tests.training.played_rounds import KEY, flat_loss, last_key, rounds_of

from tacit.data import Cache
from tacit.errors import ParticipationError, TrainingError
from tacit.mechanisms import standard_normal_seeds, stream_for
from tacit.mechanisms.grid import grid_for
from tacit.population.cohorts import draw_cohort, start_clock
from tacit.training import ClientTraining, RoundPlan, generator_for
from tacit.training.client import NOBODY, ClientData, gather
from tacit.training.cohort import shards_of, train_cohort
from tacit.training.randomness import seed_for
from tacit.training.rounds import run_round
from tacit.training.shards import shard_sum
from tacit.training.workers_cores import CoreWorkers

every_mechanism = pytest.mark.parametrize("mechanism", MECHANISMS)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    return tiny_cache(tmp_path_factory.mktemp("tiny") / "cache")


@pytest.fixture(scope="module")
def one() -> CoreWorkers:
    return cores(1)


def plan_of(cache: Cache, mechanism: str, **sections: Any) -> RoundPlan:
    recipe = tiny_recipe(cache.path, privacy=MECHANISMS[mechanism], **sections)
    return recipe.plan(recipe.matrix())


def noise_of(plan: RoundPlan, keys: list[bytes], dimension: int) -> Any:
    """seed_stddev * dense(n) @ Z in float64, (rounds, dimension), Z drawn from a key for each round."""
    strategy = plan.guarantee.strategy
    if strategy is None:
        return np.zeros((len(keys), dimension))
    stream = stream_for(strategy)
    seeds = [standard_normal_seeds(key, stream.seeds_in(round), dimension) for round, key in enumerate(keys)]
    return plan.guarantee.seed_stddev * stream.dense(len(keys)) @ np.concatenate(seeds)


def grid_slack(plan: RoundPlan, rounds: int) -> float:
    """How far a model may be from one without a grid: half a step a round in the velocity, which momentum adds up."""
    if plan.guarantee.strategy is None:
        return 0.0
    stream = stream_for(plan.guarantee.strategy)
    steps = [(stream.step(round), stream.seeds_in(round)) for round in range(rounds)]
    weight = max(abs(step.seeds[step.fresh(own)]) for step, own in steps)
    half = grid_for(plan.guarantee.seed_stddev * weight) / 2 / plan.report_goal
    return half * sum((1 - 0.9**k) / 0.1 for k in range(1, rounds + 1))


# -- the whole round -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", ["none", "tree-variance-reduced"])
def test_rounds_equal_their_numpy_twin(cache: Cache, one: CoreWorkers, mechanism: str) -> None:
    """Cohort, local SGD, clipping, sum, noise, division by the report goal, momentum: three rounds of it."""
    plan, learner = plan_of(cache, mechanism), tiny_learner(cache)
    states, outcomes = rounds_of(learner, plan, one, 3)
    like = numpy_model.of(learner.unravel(jnp.asarray(learner.start)))
    theta, velocity, clock = numpy_round.flatten(like), 0.0, start_clock(len(learner.clients))
    noise = noise_of(plan, [last_key(state.noise) for state in states[1:]], len(theta))
    shares = []
    for round in range(3):
        cohort, clock = draw_cohort(
            clock,
            plan.guarantee.participation,
            round=round,
            report_goal=plan.report_goal,
            generator=generator_for(KEY, "cohort", round),
        )
        clients = learner.clients[cohort]
        total, norms = numpy_round.cohort_sum(
            numpy_round.unflatten(theta, like), cache, clients, plan, seed_for(KEY, "client", round)
        )
        velocity = plan.server.momentum * velocity + (total + noise[round]) / plan.report_goal
        theta = theta + plan.server.learning_rate * velocity
        np.testing.assert_allclose(states[round + 1].model, theta, atol=2e-5 + grid_slack(plan, 3))
        np.testing.assert_array_equal(outcomes[round].clients, clients)
        shares.append(np.mean(np.array(norms) > plan.guarantee.clip_norm))
    assert [outcome.clipped for outcome in outcomes] == shares
    assert 0 < np.mean(shares) < 1, "both sides of the clip norm must occur, or this test tests less"


def test_a_client_trains_on_a_cut_random_subset(cache: Cache) -> None:
    settings = ClientTraining(batch_size=4, sentences=6, words=3)
    clients = cache.clients("train")
    data = gather(cache, clients, settings, seed_for(KEY, "client"))
    assert data.sentences.shape == (len(clients), 8, 4)
    for client, rows, batches in zip(clients, data.sentences, data.batches, strict=True):
        text = numpy_round.sentences_of(cache, int(client), settings, seed_for(KEY, "client"))
        assert [[id for id in row if id] for row in rows.tolist() if any(row)] == text
        assert batches == -(-len(text) // 4)
    assert max(data.batches) == 2 and min(data.batches) == 1


@pytest.mark.parametrize("epochs", [1, 3])
def test_epochs_pass_over_the_same_batches(cache: Cache, one: CoreWorkers, epochs: int) -> None:
    settings = ClientTraining(epochs=epochs, batch_size=4, sentences=8, words=6)
    learner, clients = tiny_learner(cache), cache.clients("train")[:3]
    seed = seed_for(KEY, "client")
    got = train_cohort(
        learner.work(settings), jnp.asarray(learner.start), clients, seed=seed, clip_norm=1e9, workers=one
    )
    like = numpy_model.of(learner.unravel(jnp.asarray(learner.start)))
    slow = sum(
        numpy_round.local_update(like, numpy_round.sentences_of(cache, int(c), settings, seed), settings)
        for c in clients
    )
    np.testing.assert_allclose(got.total, slow, atol=2e-5)


# -- the server step -----------------------------------------------------------------------------------------------


def cumulative(theta: Any, sums: Any, *, momentum: float, learning_rate: float) -> list[Any]:
    """Paper 1, Algorithm 1: M_t = beta M_{t-1} + S_t, theta_{t+1} = theta_0 + eta M_t."""
    moment, models = np.zeros_like(theta), []
    for prefix in np.cumsum(sums, axis=0):
        moment = momentum * moment + prefix
        models.append(theta + learning_rate * moment)
    return models


def residual(theta: Any, sums: Any, *, momentum: float, learning_rate: float) -> list[Any]:
    """What we run: SGD with momentum on S_t - S_{t-1}."""
    velocity, models = np.zeros_like(theta), []
    for fresh in sums:
        velocity = momentum * velocity + fresh
        theta = theta + learning_rate * velocity
        models.append(theta)
    return models


@every_mechanism
def test_residual_and_cumulative_form_agree_in_float64(cache: Cache, mechanism: str) -> None:
    plan, draw = plan_of(cache, mechanism), np.random.default_rng(1)
    sums = (
        draw.normal(size=(9, 20)) + noise_of(plan, [bytes([round] * 16) for round in range(9)], 20) / plan.report_goal
    )
    theta = draw.normal(size=20)
    for momentum in (0.0, 0.9):
        slow = cumulative(theta, sums, momentum=momentum, learning_rate=0.7)
        np.testing.assert_allclose(residual(theta, sums, momentum=momentum, learning_rate=0.7), slow, rtol=1e-12)


@every_mechanism
def test_our_server_step_is_the_cumulative_form_of_paper_1(cache: Cache, one: CoreWorkers, mechanism: str) -> None:
    """The clients' sums are read off a run, noise is added to their prefix sums, and Algorithm 1 is run on these."""
    plan, learner = plan_of(cache, mechanism), tiny_learner(cache)
    states, outcomes = rounds_of(learner, plan, one, 9)
    sums = []
    for round, (state, outcome) in enumerate(zip(states, outcomes, strict=False)):
        received = train_cohort(
            learner.work(plan.client),
            jnp.asarray(state.model),
            outcome.clients,
            seed=seed_for(KEY, "client", round),
            clip_norm=plan.guarantee.clip_norm,
            workers=one,
        )
        sums.append(np.asarray(received.total, np.float64))
    noise = noise_of(plan, [last_key(state.noise) for state in states[1:]], len(learner.start))
    privatised = (np.array(sums) + noise) / plan.report_goal
    models = cumulative(learner.start.astype(np.float64), privatised, momentum=0.9, learning_rate=1.0)
    for state, model in zip(states[1:], models, strict=True):
        np.testing.assert_allclose(state.model, model, atol=1e-5 + grid_slack(plan, 9))


# -- the noise -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", [name for name in MECHANISMS if name != "none"])
def test_noise_of_the_right_scale_is_accepted_and_others_rejected(
    cache: Cache, one: CoreWorkers, mechanism: str
) -> None:
    """Round 0 adds one seed of standard deviation z * clip norm to the sum, whatever the mechanism; later rounds a row
    of C^{-1} of them.
    """
    plan = plan_of(cache, mechanism, server={"momentum": 0.0})
    states, _ = rounds_of(tiny_learner(cache, flat_loss), plan, one, 6)
    wanted = 0.3 * 0.2 / 6  # z * clip norm / report goal, from the recipe
    rows = stream_for(plan.guarantee.strategy).dense(6)  # type: ignore[arg-type]
    for round in (0, 5):
        steps = states[round + 1].model.astype(np.float64) - states[round].model
        scale = wanted * np.linalg.norm(rows[round])
        assert kstest(steps / scale, "norm").pvalue > 0.01
        assert kstest(steps / (1.5 * scale), "norm").pvalue < 1e-6
        assert kstest(steps / (scale / 1.5), "norm").pvalue < 1e-6


def test_without_a_mechanism_nothing_is_added(cache: Cache, one: CoreWorkers) -> None:
    states, outcomes = rounds_of(tiny_learner(cache, flat_loss), plan_of(cache, "none"), one, 1)
    np.testing.assert_array_equal(states[1].model, states[0].model)
    assert outcomes[0].release.strategy_record is None
    assert outcomes[0].release.noise_multiplier == 0.0


# -- workers and dropped clients -----------------------------------------------------------------------------------


def test_the_number_of_workers_changes_no_bit(cache: Cache, one: CoreWorkers) -> None:
    plan, learner = plan_of(cache, "blt"), tiny_learner(cache)
    few, _ = rounds_of(learner, plan, one, 3)
    many, _ = rounds_of(learner, plan, cores(2), 3)
    for a, b in zip(jax.tree.leaves(few), jax.tree.leaves(many), strict=True):
        np.testing.assert_array_equal(a, b)


def test_shards_are_of_one_size_and_lose_nobody(cache: Cache, one: CoreWorkers) -> None:
    """Hence one compiled program; the places of nobody leave no trace."""
    clients = np.resize(cache.clients("train"), 100)
    shards = shards_of(clients)
    assert {len(shard) for shard in shards} == {3} and len(shards) == 34
    np.testing.assert_array_equal(np.concatenate(shards), [*clients, NOBODY, NOBODY])
    learner, settings = tiny_learner(cache), ClientTraining(batch_size=4, sentences=8, words=6)
    work, model, seed = learner.work(settings), jnp.asarray(learner.start), seed_for(KEY, "client")
    whole = train_cohort(work, model, clients, seed=seed, clip_norm=0.2, workers=one)
    assert len(whole.norms) == len(whole.counted) == len(whole.losses) == 100 and whole.counted.all()
    slow = sum(
        shard_sum(
            work, model, gather(cache, clients[[i]], settings, seed), clip_norm=0.2, device=one.cores.devices[0]
        ).total
        for i in range(100)
    )
    np.testing.assert_allclose(whole.total, slow, atol=1e-5)


@pytest.mark.parametrize("diverged", [[2], [0, 5], [4, 5]])
def test_a_diverged_client_is_flagged_and_never_summed(cache: Cache, one: CoreWorkers, diverged: list[int]) -> None:
    """Bit for bit the sum in which the diverged clients had no text at all; the others keep their places."""
    settings = ClientTraining(batch_size=4, sentences=8, words=6)
    learner = tiny_learner(cache, poisoned_loss)
    data = gather(cache, cache.clients("train")[:6], settings, seed_for(KEY, "client"))
    clean = np.where(data.sentences == POISON, 4, data.sentences)
    poisoned, silent = clean.copy(), data.batches.copy()
    poisoned[diverged, 0, 1] = POISON
    silent[diverged] = 0

    def received(sentences: Any, batches: Any) -> Any:
        return shard_sum(
            learner.work(settings),
            jnp.asarray(learner.start),
            ClientData(sentences, batches),
            clip_norm=0.2,
            device=one.cores.devices[0],
        )

    with_them, without = received(poisoned, data.batches), received(clean, silent)
    np.testing.assert_array_equal(with_them.total, without.total)
    assert np.isfinite(with_them.total).all()
    assert np.flatnonzero(~with_them.finite).tolist() == diverged
    assert without.finite.all()


def test_dropped_clients_are_counted_and_the_mean_still_divides_by_the_report_goal(
    cache: Cache, one: CoreWorkers
) -> None:
    plan = plan_of(cache, "none", server={"momentum": 0.0})

    learner = tiny_learner(cache, poisoned_loss)
    states, (outcome,) = rounds_of(learner, plan, one, 1)
    seed = seed_for(KEY, "client", 0)
    data = gather(cache, outcome.clients, plan.client, seed)
    received = train_cohort(
        learner.work(plan.client), jnp.asarray(learner.start), outcome.clients, seed=seed, clip_norm=0.2, workers=one
    )
    typed = [bool((sentences == POISON).any()) for sentences in data.sentences]
    assert 0 < outcome.release.dropped == sum(typed) < 6
    np.testing.assert_array_equal(received.counted, ~np.array(typed))
    assert outcome.release.reports + outcome.release.dropped == plan.report_goal == 6
    assert np.isfinite(outcome.loss)
    np.testing.assert_allclose(states[1].model - states[0].model, np.asarray(received.total) / 6, atol=1e-6)


def test_when_everybody_diverges_the_round_is_refused(cache: Cache, one: CoreWorkers) -> None:
    learner, plan = tiny_learner(cache), plan_of(cache, "blt")
    learner = replace(learner, start=np.full_like(learner.start, np.nan))
    with pytest.raises(TrainingError, match=r"round 0: none of 6 clients' updates was finite.*lower server\.learning"):
        run_round(first_state(learner, plan), 0, plan=plan, key=KEY, collector=collector_of(learner, plan, one, KEY))


def test_a_round_without_enough_free_clients_is_refused(cache: Cache, one: CoreWorkers) -> None:
    learner, plan = tiny_learner(cache), plan_of(cache, "none")
    state = first_state(learner, plan)
    busy = state._replace(clock=state.clock._replace(free_at=state.clock.free_at + 1))
    with pytest.raises(ParticipationError, match="0 of 40 are free"):
        run_round(busy, 0, plan=plan, key=KEY, collector=collector_of(learner, plan, one, KEY))
