"""Training on the population simulator: it picks who comes, a run resumes to the same bits, what happened is stated."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.training.tiny import cohorts_of, tiny_cache, tiny_learner, tiny_recipe, what_happened

from tacit.compute import Hardware
from tacit.data import Cache
from tacit.errors import InputError, ParticipationError
from tacit.jobs.train.run import begin, carry_on
from tacit.population.devices import Population
from tacit.population.settings import SimulationSettings
from tacit.population.simulated_cohorts import SimulatedCohorts
from tacit.population.simulation import simulate
from tacit.recipe import Recipe
from tacit.runs import Run
from tacit.statements.accounts import accounts_of
from tacit.statements.run_facts import statement_of
from tacit.statements.verify import verify
from tacit.training import key_from_seed
from tacit.training.randomness import seed_for
from tacit.training.sampling import DeviceCohorts

TREE = {"mechanism": {"name": "tree"}, "noise_multiplier": 3.0}
SEED = int.from_bytes(seed_for(key_from_seed(3), "population")[:7], "little")  # of the tiny recipe's key


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    return tiny_cache(tmp_path_factory.mktemp("tiny") / "cache")


def recipe_of(cache: Cache, *, separation: int = 2, **population: Any) -> Recipe:
    rounds = {"rounds": 9, "report_goal": 6, "min_separation": separation}
    asked = {"timer_hours": 5.0, "most_days": 60.0, **population}
    return tiny_recipe(cache.path, privacy=TREE, rounds=rounds, population=asked)


def trained(recipe: Recipe, path: Path, stops: list[int | None]) -> Path:
    begin(recipe, path).close()
    for stop in stops:
        with Run.open(path) as run:
            carry_on(run, hardware=Hardware(workers=1), until=stop)
    return path


def test_those_train_whom_the_simulator_sends_and_a_resumed_run_sees_the_same(cache: Cache, tmp_path: Path) -> None:
    recipe = recipe_of(cache)
    whole = trained(recipe, tmp_path / "whole", [None])
    assert what_happened(trained(recipe, tmp_path / "parts", [1, 4, 8, None])) == what_happened(whole)
    assert recipe.population is not None
    simulated = simulate(
        SimulationSettings(population=Population(devices=40), rules=recipe.population.rules(6), rounds=9, seed=SEED)
    )
    clients = cache.clients("train")
    with Run.open(whole) as run:
        rounds, came = run.participations()
        realised = accounts_of(run).realised
    for round, happened in enumerate(simulated.happened):
        np.testing.assert_array_equal(came[rounds == round], np.sort(clients[happened.clients]))
    assert realised is not None and realised.sequences[0].guarantee.participation == simulated.realised


def test_what_happened_is_stated_and_a_promise_that_was_not_kept_is_said_first(cache: Cache, tmp_path: Path) -> None:
    labels = {}
    for separation in (1, 6):
        with Run.open(trained(recipe_of(cache, separation=separation), tmp_path / str(separation), [None])) as run:
            made = statement_of(run)
        labels[separation] = [label.name for label in made.labels]
        assert all(line.holds for line in verify(made.to_record()))
        assert "every device keeps a timer of 5 hours" in made.markdown()
        realised = made.facts.realised.participation
        assert (
            f"the run, 54 participations: 9 rounds, each client in at most {realised.max_participations}"
            in made.markdown()
        )
    assert "WEAKER THAN PLANNED" not in labels[1] and "WEAKER THAN PLANNED" in labels[6]


def test_a_population_that_cannot_give_the_rounds_is_refused_before_anything_is_written(
    cache: Cache, tmp_path: Path
) -> None:
    with pytest.raises(ParticipationError, match=r"the rounds from 6 on starve; use .*timer_hours <="):
        begin(recipe_of(cache, timer_hours=1000.0, most_days=30.0), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_another_population_than_the_learners_is_refused(cache: Cache) -> None:
    recipe, learner = recipe_of(cache), tiny_learner(cache)
    assert recipe.population is not None
    plan = recipe.plan()
    for devices, goal in ((41, 6), (40, 5)):
        other = SimulatedCohorts(Population(devices=devices), recipe.population.rules(goal), seed=1)
        with pytest.raises(InputError, match="are not the 40 clients with report_goal=6"):
            cohorts_of(learner, plan, bytes(16), DeviceCohorts(other, plan.rounds)).init()
