"""Rounds that adapt their clip norm: against their NumPy twin, at the declared noise, and resumed to the same bits."""

import math
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import kstest
from tests.support.networks import numpy_model
from tests.support.training.tiny import cores, tiny_cache, tiny_learner, tiny_recipe, what_happened
from tests.training import numpy_round
from tests.training.played_rounds import KEY, flat_loss, last_key, rounds_of

from tacit.compute import Hardware
from tacit.data import Cache
from tacit.jobs.train.run import begin, carry_on
from tacit.mechanisms import NoiseState, standard_normal_seeds, stream_for
from tacit.mechanisms.grid import grid_for
from tacit.population.cohorts import draw_cohort, start_clock
from tacit.recipe import Recipe
from tacit.runs import Run
from tacit.runs.diagnostics import clipping_failure
from tacit.statements import Ledger
from tacit.training import RoundPlan, generator_for
from tacit.training.randomness import seed_for
from tacit.training.workers_cores import CoreWorkers

ROUNDS = 9
ADAPTING: dict[str, dict[str, Any]] = {
    "none": {"mechanism": {"name": "none"}},
    "independent": {"mechanism": {"name": "independent"}, "noise_multiplier": 0.3},
    "tree": {"mechanism": {"name": "tree", "restarts": [2, 6]}, "noise_multiplier": 0.3},
    "tree-variance-reduced": {
        "mechanism": {"name": "tree-variance-reduced", "restarts": [2, 6]},
        "noise_multiplier": 0.3,
    },
}
every_adapting = pytest.mark.parametrize("mechanism", ADAPTING)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    return tiny_cache(tmp_path_factory.mktemp("tiny") / "cache")


@pytest.fixture(scope="module")
def one() -> CoreWorkers:
    return cores(1)


def recipe_of(cache: Cache, mechanism: str, *, initial: float = 0.1, **sections: Any) -> Recipe:
    privacy = {**ADAPTING[mechanism], "clip_norm": initial, **sections.pop("privacy", {})}
    clipping = {"initial": initial, "quantile": 0.4, "learning_rate": 0.7}
    return tiny_recipe(cache.path, privacy=privacy, clipping=clipping, **sections)


def noise_rows(plan: RoundPlan, after: list[NoiseState | None], dimension: int) -> Any:
    """The rows of C^{-1} Z, for unit seeds of the keys that the states after each round hold: (rounds, dimension)."""
    strategy = plan.guarantee.strategy
    if strategy is None:
        return np.zeros((ROUNDS, dimension))
    stream = stream_for(strategy)
    seeds = [
        standard_normal_seeds(last_key(noise), stream.seeds_in(round), dimension) for round, noise in enumerate(after)
    ]
    return stream.dense(ROUNDS) @ np.concatenate(seeds)


def released_count(plan: RoundPlan, round: int, count: float, noise: float) -> float:
    """A count of bits less one half with its noise, on its grid."""
    if plan.counts is None or plan.counts.strategy is None:
        return count
    step, own = stream_for(plan.counts.strategy).step(round), stream_for(plan.counts.strategy).seeds_in(round)
    grid = grid_for(plan.counts.seed_stddev * step.seeds[step.fresh(own)])
    return grid * float(np.rint((count + plan.counts.seed_stddev * noise) / grid))


@every_adapting
def test_rounds_equal_their_numpy_twin(cache: Cache, one: CoreWorkers, mechanism: str) -> None:
    """Paper 1, Algorithm 1, in float64: the estimate of all counts so far, in force only where noise is fresh."""
    plan, learner, goal = recipe_of(cache, mechanism).plan(), tiny_learner(cache), 6
    states, outcomes = rounds_of(learner, plan, one, ROUNDS)
    like = numpy_model.of(learner.unravel(jnp.asarray(learner.start)))
    theta, velocity, clock = numpy_round.flatten(like), 0.0, start_clock(len(learner.clients))
    z, bits_stddev = 0.3 if plan.guarantee.private else 0.0, goal / 20
    z_delta = (z**-2 - (2 * bits_stddev) ** -2) ** -0.5 if z else 0.0
    model_noise = noise_rows(plan, [state.noise for state in states[1:]], len(theta))
    count_noise = noise_rows(plan, [state.clip and state.clip.noise for state in states[1:]], 1)
    active = estimate = 0.1
    counted, moved = 0.0, []
    for round in range(ROUNDS):
        if plan.guarantee.starts_afresh(round):
            active = estimate
        participation, draw = plan.guarantee.participation, generator_for(KEY, "cohort", round)
        cohort, clock = draw_cohort(clock, participation, round=round, report_goal=goal, generator=draw)
        seed, total, norms = seed_for(KEY, "client", round), np.zeros(len(theta)), []
        for client in learner.clients[cohort]:
            text = numpy_round.sentences_of(cache, int(client), plan.client, seed)
            update = numpy_round.local_update(numpy_round.unflatten(theta, like), text, plan.client)
            norms.append(float(np.linalg.norm(update)))
            total += numpy_round.clipped(update, active)
        velocity = 0.9 * velocity + (total + z_delta * active * model_noise[round]) / goal
        theta = theta + velocity
        short = sum(norm <= estimate for norm in norms)
        counted += released_count(plan, round, short - len(norms) / 2, count_noise[round, 0]) + len(norms) / 2
        estimate = 0.1 * math.exp(-0.7 * (counted / goal - (round + 1) * 0.4))
        np.testing.assert_allclose(states[round + 1].model, theta, atol=8e-4)  # the grid's steps are 1e-4
        assert outcomes[round].measures["clip_norm"] == pytest.approx(active, rel=1e-5)
        assert outcomes[round].measures["clip_estimate"] == pytest.approx(estimate, rel=1e-5)
        moved.append(active)
    assert len(set(moved)) == (3 if mechanism.startswith("tree") else ROUNDS), "the clip norm must have changed"


@every_adapting
def test_everything_released_costs_what_the_recipe_says(cache: Cache, one: CoreWorkers, mechanism: str) -> None:
    recipe = recipe_of(cache, mechanism)
    _, outcomes = rounds_of(tiny_learner(cache), recipe.plan(), one, ROUNDS)
    ledger = Ledger(tuple(row for outcome in outcomes for row in (outcome.release, *outcome.also)))
    made = ledger.composition(recipe.rounds.participation())
    assert [each.what for each in made.sequences] == ["model update", "clip estimate"]
    assert made.zcdp == pytest.approx(recipe.guarantee().zcdp, rel=1e-12)
    if mechanism != "none":
        assert made.sequences[0].guarantee.zcdp < 0.99 * made.zcdp, "the updates alone would understate it"


def test_the_noise_follows_the_clip_norm_in_force(cache: Cache, one: CoreWorkers) -> None:
    """A loss without slope: all updates are zero, the model moves by noise alone, and all bits are 1."""
    recipe = recipe_of(cache, "tree", server={"momentum": 0.0}, initial=0.2)
    states, outcomes = rounds_of(tiny_learner(cache, flat_loss), recipe.plan(), one, ROUNDS)
    rows = stream_for(recipe.guarantee().strategy).dense(ROUNDS)  # type: ignore[arg-type]
    z_delta = (0.3**-2 - (2 * 0.3) ** -2) ** -0.5
    for round in (0, 2, 5, 7):
        steps = states[round + 1].model.astype(np.float64) - states[round].model
        scale = z_delta * outcomes[round].measures["clip_norm"] * np.linalg.norm(rows[round]) / 6
        assert kstest(steps / scale, "norm").pvalue > 0.01
        assert kstest(steps / (1.5 * scale), "norm").pvalue < 1e-6
        assert kstest(steps / (scale / 1.5), "norm").pvalue < 1e-6
    assert outcomes[7].measures["clip_norm"] < 0.6 * 0.2, "the clip norm of the last tree must be another"


@pytest.mark.parametrize("mechanism", [pytest.param("independent", marks=pytest.mark.nightly), "tree"])
def test_an_interrupted_run_ends_as_an_uninterrupted_one(cache: Cache, tmp_path: Path, mechanism: str) -> None:
    for name, stops in (("whole", [None]), ("parts", [1, 2, 5, 7, None])):
        begin(recipe_of(cache, mechanism), tmp_path / name).close()
        for stop in stops:
            with Run.open(tmp_path / name) as run:
                carry_on(run, hardware=Hardware(workers=1), until=stop)
    whole, parts = what_happened(tmp_path / "whole"), what_happened(tmp_path / "parts")
    assert whole == parts
    assert len({json_measures for *_, json_measures in whole["rounds"]}) == ROUNDS


def test_a_catastrophic_run_is_detected_and_a_working_one_is_not(cache: Cache, one: CoreWorkers) -> None:
    """Noise in proportion to a clip norm far too large destroys the model in the first rounds, and its broken updates
    drive the clip norm up further (paper 1, section 2.1). From a small one the same run learns.
    """
    judgements = []
    for initial in (5.0, 0.05):
        recipe = tiny_recipe(
            cache.path,
            rounds={"rounds": 60, "report_goal": 12, "min_separation": 3},
            privacy={
                "mechanism": {"name": "tree", "restarts": [20, 50]},
                "noise_multiplier": 1.0,
                "clip_norm": initial,
            },
            clipping={"initial": initial},
        )
        _, outcomes = rounds_of(tiny_learner(cache), recipe.plan(), one, 60)
        measures = [outcome.measures for outcome in outcomes]
        judgements.append([clipping_failure(measures[:rounds]) for rounds in range(61)])
        assert (measures[-1]["loss"] < measures[0]["loss"] - 0.2) == (initial == 0.05)
    catastrophe, healthy = judgements
    assert catastrophe[19] is None and catastrophe[20] is not None and catastrophe[60] is not None
    assert catastrophe[60].name == "clip norm exploding" and "smaller clipping.initial" in catastrophe[60].advice
    assert healthy == [None] * 61
