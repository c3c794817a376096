"""A training run's folder, from a recipe to the released model: what is refused first, what is trained, how it ends.

`begin` makes the folder, `carry_on` does the rounds it lacks and everything after the last; both may be killed at any
instant. Resuming is `carry_on` on a folder found on disk, so an interrupted run takes the path of an uninterrupted one.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.flatten_util import ravel_pytree

from tacit.compute import Hardware
from tacit.compute.cores import Cores
from tacit.compute.profile import Profile, phase
from tacit.data import Cache
from tacit.errors import InputError, RunError
from tacit.evaluation.accuracy import Evaluation, HeldOut, evaluate
from tacit.federation.collector import Collector
from tacit.jobs.account.budget import Asked, check_left, confirm, entered, settle
from tacit.jobs.run_start import cache_used, check_place, checked_cache, of_this_process, same_cache
from tacit.jobs.train.baselines import note_baselines, note_suggestions
from tacit.jobs.train.noise_forecast import foreseen, tell
from tacit.jobs.train.refusals import (
    begun_at,
    check_asked,
    check_keepers,
    check_splits,
    same_clients,
    same_precision,
)
from tacit.keyboard.model_folder import TrainedModel, load_first_model, write_model
from tacit.mechanisms import fresh_key
from tacit.networks.language_model import LanguageModel, next_word_loss, parameter_count
from tacit.population.devices import Population
from tacit.population.simulated_cohorts import SimulatedCohorts
from tacit.privacy.encoding import Encoding
from tacit.progress import Progress, StageBegan, StageEnded, Warned, compiling, silent
from tacit.recipe import Recipe
from tacit.recipe.deployment_section import DeploymentSection
from tacit.runs import Run, TrainingMetadata
from tacit.runs.budget_book import Cost
from tacit.runs.draft import SETTINGS
from tacit.runs.metadata import DeploymentUsed, FirstModelUsed, SecureSumUsed
from tacit.statements.accounts import guarantee_record, matrix_of, trained
from tacit.text.vocabulary import Vocabulary
from tacit.training import Learner, RoundPlan, SimulatedCollector, generator_for, key_from_seed
from tacit.training.cohort import Workers, shard_size
from tacit.training.divergence import Drowning
from tacit.training.hooks import Hooks
from tacit.training.loop import PeriodicEvaluation, record_evaluation, run_rounds
from tacit.training.price import PriceSoFar
from tacit.training.randomness import seed_for
from tacit.training.sampling import Cohorts, CohortSampler, DeviceCohorts, UniformCohorts
from tacit.training.secure_updates import SecureUpdates
from tacit.training.workers_accelerator import Accelerator
from tacit.training.workers_cores import CoreWorkers

DESIGN = "designing the mechanism"
NO_HOOKS = Hooks()


def begin(
    recipe: Recipe, out: Path, *, hooks: Hooks = NO_HOOKS, progress: Progress = silent, anyway: bool = False
) -> Run:
    """A new run folder for a recipe, before its first round; or the one at `out` that was begun with the same.

    What the noise will do to the model is told first; a recipe that cannot work is refused, unless `anyway`. Raises:
    RecipeError, CacheError, ParticipationError, RunError, InputError, and AccountingError where no sensitivity of the
    mechanism is known: nothing is left on disk then.
    """
    check_asked(recipe, hooks)
    if (out / "run.db").is_file():
        return begun_at(recipe, out, hooks)
    check_place(out)
    progress(StageBegan(DESIGN))
    asked, recipe, matrix, why = recipe, recipe.designed(), recipe.matrix(), recipe.why_mechanism()
    progress(StageEnded(DESIGN))
    cache = checked_cache(recipe.data.cache, progress=progress)
    vocabulary = Vocabulary.from_json(cache.vocabulary_json)
    seed = recipe.run.seed
    key = fresh_key() if seed is None else key_from_seed(seed)
    clients = recipe.clients(len(cache.clients("train")))
    check_splits(cache, clients)
    delta = recipe.privacy.delta_for(clients)
    recipe = recipe.at(delta)
    plan = recipe.plan(matrix)
    plan.guarantee.checked()
    check_keepers(plan, hooks)
    if hooks.collector is None:  # refuses here what would fail in a later round
        _sampler(recipe, plan, clients, key, hooks).init(clients, report_goal=plan.report_goal)
    network = recipe.model.settings(vocabulary.size)
    encoding = plan.encoding(parameter_count(network))
    first = _first_model(recipe, vocabulary)
    told = foreseen(recipe, plan, network, clients=clients, public=first is not None, hooks=hooks)
    population = recipe.privacy.population
    taken = None if population is None else Asked.of(population, clients, Cost(zcdp=plan.guarantee.zcdp))
    check_left(taken)
    tell(told, progress, anyway=anyway)
    metadata = TrainingMetadata(
        **of_this_process(seed),
        asked=asked.to_toml(),
        recipe=recipe.to_toml(),
        data=cache_used(cache),
        vocabulary={"kind": vocabulary.provenance.kind, "description": vocabulary.provenance.description},
        population=clients,
        report_goal=plan.report_goal,
        participation=asdict(plan.guarantee.participation),
        guarantee=guarantee_record(plan.updates),
        also_released={what: guarantee_record(each) for what, each in plan.beside.items()},
        delta=delta,
        parameters=parameter_count(network),
        first_model=None if first is None else _used(first),
        stands_in_for=recipe.privacy.stands_in_for,
        simulated=None if recipe.population is None else recipe.population.model_dump(),
        deployment=None if recipe.deployment is None else _deployed(recipe, recipe.deployment),
        evaluation=recipe.evaluation.model_dump(),
        hooks=hooks.names,
        why_mechanism=why,
        foreseen=told.sentence,
        secure=None if encoding is None or plan.secure is None else _secured(plan.secure, encoding),
    )
    settings = recipe.to_toml() if why is None else f"# {why}\n{recipe.to_toml()}"
    kept = None if matrix is None else json.dumps(matrix.to_record())
    return entered(taken, out, metadata, lambda known: Run.create(out, settings, known, key, strategy=kept))


def _secured(secure: SecureUpdates, encoding: Encoding) -> SecureSumUsed:
    return SecureSumUsed(
        parameters=encoding.parameters,
        dimension=encoding.dimension,
        clip_norm=encoding.clip_norm,
        scale=encoding.scale,
        report_goal=encoding.report_goal,
        sigmas=encoding.sigmas,
        inflation=encoding.inflation,
        bits=encoding.bits,
        clipping_probability=encoding.clipping_probability,
        threshold=secure.least(encoding.report_goal),
        protocol=None if secure.played is None else secure.played.protocol,
        protocol_clients=0 if secure.played is None else secure.played.devices,
        protocol_dropout=secure.dropout,
        keepers=secure.keepers,
    )


def _deployed(recipe: Recipe, deployment: DeploymentSection) -> DeploymentUsed:
    kept = deployment.separation(recipe.rounds)
    return DeploymentUsed(
        population=deployment.population,
        devices=deployment.devices,
        rounds=kept.rounds,
        timer_seconds=kept.timer_seconds,
        most=kept.most,
        keepers=len(deployment.keepers),
        corrupt_keepers=deployment.corrupt_keepers if deployment.keepers else 0,
    )


def _used(first: TrainedModel) -> FirstModelUsed:
    return FirstModelUsed(path=str(first.path.resolve()), public_text=first.public_text, digest=first.digest)


def carry_on(
    run: Run,
    *,
    hardware: Hardware,
    hooks: Hooks = NO_HOOKS,
    progress: Progress = silent,
    until: int | None = None,
    stop_if_drowned: bool = False,
    cluster: str | None = None,
) -> None:
    """Do the rounds that the run lacks and, after the last, test and release the model.

    until: stop after so many rounds, as if killed there. stop_if_drowned: stop after the evaluation of a model that
    does worse than one that knows nothing; resuming tries on. cluster: the address of the Ray cluster whose workers
    train the clients; None: this machine's. Where the time went is added to the note "profile". Raises: RunError when
    another process trains this run, its recipe was changed since it began, its cache is not the one it began with, its
    hooks are others, or this processor cannot compute in the precision it began in.
    """
    with run.locked(), Profile().counting() as profile:
        recipe = Recipe.from_toml(run.settings, where=str(run.path / SETTINGS))
        if run.finished:
            run.tidy()
            return
        check_asked(recipe, hooks, run=run.path)
        hooks.required(trained(run).hooks, str(run.path))
        with phase("start"):
            cache, cores = same_cache(run, trained(run).data, progress=progress), Cores(hardware)
            if cores.idle and cluster is None and hooks.collector is None:
                progress(Warned("idle-cores", cores.idle))
            learner = _learner(run, recipe, cache, hooks)
            plan = replace(recipe.plan(matrix_of(run)), optimizer=hooks.optimizer)
            if recipe.deployment is None:  # or devices compute as they can
                same_precision(run, learner.work(plan.client), cores.devices[0].platform)
            if hooks.collector is None:
                same_clients(run, learner)
            confirm(run)
        held_out = _HeldOut(recipe, cache, learner, cores)
        program = learner.loss, plan.client, hooks.algorithm, shard_size(plan.report_goal)
        watched = Drowning(run, progress, ends=stop_if_drowned)
        with (
            _collector(run, recipe, learner, plan, hooks, _Asked(hardware, cores, cluster, progress)) as collector,
            PeriodicEvaluation(
                run,
                lambda model: held_out.evaluated("validation", model).metrics(),
                every=recipe.evaluation.every,
                rounds=plan.rounds,
                progress=watched,
            ) as evaluation,
        ):
            model = run_rounds(
                run,
                learner.start,
                plan,
                collector,
                evaluation=evaluation,
                price=None if progress is silent else _price(run, plan),
                until=until,
                stops=lambda: watched.stops,
                opening="" if recipe.deployment else compiling("training", *program),
                progress=watched,
            )
        if run.steps_done == plan.rounds:
            _release(run, held_out, model, progress)
        spent = profile.to_record(0 if cluster or hooks.collector else len(cores.devices))
        run.note("profile", [*run.notes.get("profile", []), spent])


def _price(run: Run, plan: RoundPlan) -> PriceSoFar:
    return PriceSoFar(run, plan.guarantee, trained(run).delta, plan.separation)


def _release(run: Run, held_out: "_HeldOut", model: Array, progress: Progress) -> None:
    """After the last round: test the model, hold it against others, write it; then nothing is left to be done."""
    learner, network = held_out.learner, held_out.network
    with phase("evaluation"):
        tested = held_out.evaluated("test", model)
        record_evaluation(run, run.steps_done, "test", tested.metrics(), progress)
        clients = {split: held_out.read(split) for split in ("validation", "test")}
        start, words = learner.unravel(jnp.asarray(learner.start)), held_out.cache.vocabulary_json
        listed = Vocabulary.from_json(words)
        note_baselines(run, network, start, tested, clients, held_out.cores, words=listed)
    with phase("release"):
        write_model(run.path / "model", network, learner.unravel(model), words.encode())
        run.keep_files("model")
        note_suggestions(run)
    settle(run)
    run.finish()
    run.tidy()


class _HeldOut(NamedTuple):
    """The clients that models are evaluated on: the first of their split, read anew each time."""

    recipe: Recipe
    cache: Cache
    learner: Learner
    cores: Cores

    @property
    def network(self) -> LanguageModel:
        return _network(self.recipe, self.cache)

    def read(self, split: str) -> HeldOut:
        asked = self.recipe.evaluation
        clients = self.cache.clients(split)[: {"validation": asked.clients, "test": asked.test_clients}[split]]
        return HeldOut.read(self.cache, clients, sentences=asked.sentences, words=self.recipe.client.words)

    def evaluated(self, split: str, model: Array) -> Evaluation:
        """How a flat model does on the clients of a split."""
        return evaluate(self.network, self.learner.unravel(model), self.read(split), cores=self.cores)


class _Asked(NamedTuple):
    """With what the clients of a simulation are trained."""

    hardware: Hardware
    cores: Cores
    cluster: str | None
    progress: Progress


@contextmanager
def _collector(
    run: Run, recipe: Recipe, learner: Learner, plan: RoundPlan, hooks: Hooks, asked: _Asked
) -> Iterator[Collector]:
    """Who asks the devices: the program's own, or the simulation of the recipe's population."""
    if hooks.collector is not None:
        yield hooks.collector
        return
    key = run.noise_key
    sampler = _sampler(recipe, plan, len(learner.clients), key, hooks)
    cohorts = Cohorts(learner.clients, sampler, report_goal=plan.report_goal, key=key)
    with _workers(asked) as workers:
        yield SimulatedCollector(learner, cohorts, workers)


@contextmanager
def _workers(asked: _Asked) -> Iterator[Workers]:
    """Whoever trains the clients: a cluster, this machine's accelerator where it has one, or its cores."""
    if asked.cluster is not None:
        from tacit.training.workers_ray import open_cluster  # Ray is an extra; that file says how to install it

        with open_cluster(asked.cluster, progress=asked.progress, hardware=asked.hardware) as nodes:
            yield nodes
    elif asked.cores.devices[0].platform != "cpu":
        yield Accelerator(asked.hardware)
    else:
        yield CoreWorkers(asked.cores)


def _sampler(recipe: Recipe, plan: RoundPlan, clients: int, key: bytes, hooks: Hooks) -> CohortSampler:
    """Who takes part; where the recipe simulates who comes, the population that follows from the run's key."""
    if recipe.population is None:
        return hooks.sampler or UniformCohorts(plan.guarantee.participation)
    if hooks.sampler is not None:
        raise InputError("sampler= and the recipe's [population] both say who takes part; drop one of them.")
    seed = int.from_bytes(seed_for(key, "population")[:7], "little")  # from it follow neither key nor noise
    rules = recipe.population.rules(plan.report_goal)
    return DeviceCohorts(SimulatedCohorts(Population(devices=clients), rules, seed=seed), plan.rounds)


def _first_model(recipe: Recipe, vocabulary: Vocabulary) -> TrainedModel | None:
    """The model of public text that the recipe begins from, if it names one."""
    if recipe.model.init is None:
        return None
    return load_first_model(recipe.model.init, recipe.model.settings(vocabulary.size), vocabulary)


def _network(recipe: Recipe, cache: Cache) -> LanguageModel:
    """The recipe's network with the words of the cache."""
    return recipe.model.settings(cache.manifest.vocabulary.size)


def _learner(run: Run, recipe: Recipe, cache: Cache, hooks: Hooks) -> Learner:
    network, begun = _network(recipe, cache), trained(run).first_model
    if begun is None:
        seed = int(generator_for(run.noise_key, "initial model").integers(2**31))
        first = network.init(jax.random.key(seed))
    else:
        found = load_first_model(Path(begun.path), network, Vocabulary.from_json(cache.vocabulary_json))
        if found.digest != begun.digest:
            raise RunError(
                f"the model in '{begun.path}' is not the one that '{run.path}' began from (its files differ); "
                "put the old one back, or start a new run."
            )
        first = found.parameters
    start, unravel = ravel_pytree(first)
    return Learner(
        start=np.asarray(start),
        unravel=unravel,
        loss=next_word_loss(network),
        cache=cache,
        clients=cache.clients("train"),
        algorithm=hooks.algorithm,
    )
