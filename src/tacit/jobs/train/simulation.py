"""Who takes part in a simulated training, and on what their clients are trained."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from tacit.compute import Hardware
from tacit.compute.cores import Cores
from tacit.errors import InputError
from tacit.federation.collector import Collector
from tacit.population.devices import Population
from tacit.population.simulated_cohorts import SimulatedCohorts
from tacit.progress import Progress
from tacit.recipe import Recipe
from tacit.runs import Run
from tacit.training import Learner, RoundPlan, SimulatedCollector
from tacit.training.cohort import Workers
from tacit.training.hooks import Hooks
from tacit.training.randomness import seed_for
from tacit.training.sampling import Cohorts, CohortSampler, DeviceCohorts, UniformCohorts
from tacit.training.workers_accelerator import Accelerator
from tacit.training.workers_cores import CoreWorkers


class TrainedWith(NamedTuple):
    """With what the clients of a simulation are trained."""

    hardware: Hardware
    cores: Cores
    cluster: str | None
    progress: Progress


@contextmanager
def collector_for(
    run: Run, recipe: Recipe, learner: Learner, plan: RoundPlan, hooks: Hooks, given: TrainedWith
) -> Iterator[Collector]:
    """Who asks the devices: the program's own, or the simulation of the recipe's population."""
    if hooks.collector is not None:
        yield hooks.collector
        return
    key = run.noise_key
    sampler = sampler_for(recipe, plan, len(learner.clients), key, hooks)
    cohorts = Cohorts(learner.clients, sampler, report_goal=plan.report_goal, key=key)
    with _workers(given) as workers:
        yield SimulatedCollector(learner, cohorts, workers)


@contextmanager
def _workers(given: TrainedWith) -> Iterator[Workers]:
    """Whoever trains the clients: a cluster, this machine's accelerator where it has one, or its cores."""
    if given.cluster is not None:
        from tacit.training.workers_ray import open_cluster  # Ray is an extra; that file says how to install it

        with open_cluster(given.cluster, progress=given.progress, hardware=given.hardware) as nodes:
            yield nodes
    elif given.cores.devices[0].platform != "cpu":
        yield Accelerator(given.hardware)
    else:
        yield CoreWorkers(given.cores)


def sampler_for(recipe: Recipe, plan: RoundPlan, clients: int, key: bytes, hooks: Hooks) -> CohortSampler:
    """Who takes part; where the recipe simulates who comes, the population that follows from the run's key."""
    if recipe.population is None:
        return hooks.sampler or UniformCohorts(plan.guarantee.participation)
    if hooks.sampler is not None:
        raise InputError("sampler= and the recipe's [population] both say who takes part; drop one of them.")
    seed = int.from_bytes(seed_for(key, "population")[:7], "little")  # from it follow neither key nor noise
    rules = recipe.population.rules(plan.report_goal)
    return DeviceCohorts(SimulatedCohorts(Population(devices=clients), rules, seed=seed), plan.rounds)
