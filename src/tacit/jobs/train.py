"""From a recipe to a finished run folder: the rooms meet here.

`begin` makes the folder, `carry_on` does the rounds it lacks and everything after the last; both may be killed at any
instant. Resuming is `carry_on` on a folder found on disk, so an interrupted run takes the path of an uninterrupted one.
"""

import json
import math
import os
import platform
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

import jax
import numpy as np
from jax import Array
from jax.flatten_util import ravel_pytree

import tacit
from tacit.cli.console import complaints
from tacit.compute.profile import EVALUATING, TRAINING, MeasuredCores, Profile
from tacit.data import Cache
from tacit.errors import InputError, RunError, TrainingError
from tacit.evaluation.accuracy import Evaluation, HeldOut, evaluate
from tacit.keyboard.language_model import LanguageModel, next_word_loss, parameter_count
from tacit.keyboard.model_folder import TrainedModel, load_first_model, write_model
from tacit.keyboard.vocabulary import Vocabulary
from tacit.mechanisms import fresh_key
from tacit.population.devices import Population
from tacit.population.simulated_cohorts import SimulatedCohorts
from tacit.privacy.strategy import Banded, Dense
from tacit.recipe import Recipe
from tacit.runs import Metric, Run
from tacit.statements.accounts import guarantee_record, matrix_of
from tacit.statements.ledger import CLIP_ESTIMATE
from tacit.training import Cores, Hardware, Learner, RoundOutcome, RoundPlan, generator_for, key_from_seed, train
from tacit.training.client import ClientWork, precision_of
from tacit.training.cohort import Workers
from tacit.training.randomness import seed_for
from tacit.training.rounds import check_cohorts
from tacit.training.workers_accelerator import Accelerator


class Watcher(Protocol):
    """Who is told how training goes."""

    def round_done(self, outcome: RoundOutcome) -> None:
        """A round was computed."""

    def measured(self, rounds: int, split: str, metrics: dict[str, float]) -> None:
        """The model after so many rounds was evaluated."""


def use_cores(hardware: Hardware) -> None:
    """Give JAX one CPU device per worker, each computing on one thread. Call before JAX computes anything: a process
    that has computed already keeps the devices it has.
    """
    workers = hardware.workers or os.cpu_count() or 1
    flags = os.environ.get("XLA_FLAGS", "")
    if "xla_cpu_multi_thread_eigen" not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} --xla_cpu_multi_thread_eigen=false".strip()
    with suppress(RuntimeError):
        jax.config.update("jax_num_cpu_devices", workers)  # type: ignore[no-untyped-call]


def begin(recipe: Recipe, out: Path) -> Run:
    """A new run folder for a recipe, before its first round.

    Raises: RecipeError, CacheError, ParticipationError, RunError: nothing is left on disk then.
    """
    _refuse_an_existing_run(recipe, out)
    with complaints.status("designing the mechanism"):
        asked, recipe, matrix = recipe, recipe.designed(), recipe.matrix()
    cache = Cache.open(recipe.data.cache)
    vocabulary = Vocabulary.load(cache.vocabulary_path)
    seed = recipe.run.seed
    key = fresh_key() if seed is None else key_from_seed(seed)
    clients = cache.clients("train")
    plan = _plan(recipe, matrix, len(clients), key)
    _check_held_out(cache)
    check_cohorts(plan, len(clients))
    settings = recipe.model.settings(vocabulary.size)
    first = _first_model(recipe, vocabulary)
    facts = {
        "versions": {
            "tacit": tacit.__version__,
            "jax": jax.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
        "created": time.time(),
        "asked": asked.to_toml(),
        "recipe": recipe.to_toml(),
        "data": {
            "cache": str(recipe.data.cache.resolve()),
            "source": cache.manifest.source,
            "vocabulary_sha256": vocabulary.sha256,
            "vocabulary_size": vocabulary.size,
            "cache_digest": cache.manifest.digest,
        },
        "vocabulary": asdict(vocabulary.provenance),
        "population": len(clients),
        "report_goal": plan.report_goal,
        "participation": asdict(plan.guarantee.participation),
        "guarantee": guarantee_record(plan.updates),
        "also_released": {} if plan.counts is None else {CLIP_ESTIMATE: guarantee_record(plan.counts)},
        "delta": recipe.privacy.delta,
        "key_source": "operating system" if seed is None else f"fixed seed {seed}",
        "parameters": parameter_count(settings),
        "first_model": first
        and {"path": str(first.path.resolve()), "public_text": first.public_text, "digest": first.digest},
        "stands_in_for": recipe.privacy.stands_in_for,
        "simulated": None if recipe.population is None else recipe.population.model_dump(),
        "evaluation": recipe.evaluation.model_dump(),
        "finished": False,
    }
    kept = None if matrix is None else json.dumps(matrix.to_record())
    return Run.create(out, recipe.to_toml(), facts, key, strategy=kept)


def carry_on(
    run: Run,
    *,
    hardware: Hardware,
    watcher: Watcher,
    until: int | None = None,
    cluster: str | None = None,
    profile: Profile | None = None,
) -> None:
    """Do the rounds that the run lacks and, after the last, test and release the model.

    until: stop after so many rounds, as if killed there. cluster: the address of the Ray cluster whose workers train
    the clients; None: this machine's. profile: counts where the time goes, and what it counted is added to the fact
    "profile". Raises: RunError when another process trains this run, its recipe was changed since it began, its cache
    is not the one it began with, or this processor cannot compute in the precision it began in.
    """
    with run.locked():
        recipe = _same_recipe(run)
        if run.fact("finished"):
            _tidy(run)
            return
        during = (profile or Profile()).phase
        with during("start"):
            cache, cores = _same_cache(run), Cores(hardware)
            learner = _learner(run, recipe, cache)
            plan = _plan(recipe, matrix_of(run), len(learner.clients), run.noise_key)
            _same_precision(run, learner.work(plan.client), cores.devices[0].platform)
        looking = MeasuredCores(cores, profile, EVALUATING) if profile else cores
        with (
            _workers(hardware, cores, cluster, profile) as workers,
            _Looks(run, recipe, cache, learner, looking, watcher) as looks,
        ):
            model = train(
                run,
                learner,
                plan,
                workers=workers,
                watch=watcher.round_done,
                measure=looks,
                until=until,
                profile=profile,
            )
        if run.rounds_done == recipe.rounds.rounds:
            with during("evaluation"):
                chosen = cache.clients("test")[: recipe.evaluation.test_clients]
                tested = _evaluate(recipe, cache, chosen, learner, model, looking)
            _record(run, watcher, run.rounds_done, "test", tested)
            with during("release"):
                words = cache.vocabulary_path.read_bytes()
                write_model(run.path / "model", _network(recipe, cache), learner.unravel(model), words)
            run.set_fact("finished", True)
            _tidy(run)
        if profile:
            earlier = run.facts().get("profile", [])
            run.set_fact("profile", [*earlier, profile.to_record(0 if cluster else len(cores.devices))])


@contextmanager
def _workers(hardware: Hardware, cores: Cores, cluster: str | None, profile: Profile | None) -> Iterator[Workers]:
    """Whoever trains the clients: a cluster, this machine's accelerator where it has one, or its cores."""
    if cluster is not None:
        from tacit.training.workers_ray import open_cluster  # Ray is an extra; that file says how to install it

        def told(line: str) -> None:
            complaints.print(line, markup=False, soft_wrap=True)

        with open_cluster(cluster, told=told, hardware=hardware) as machines:
            yield machines
    elif cores.devices[0].platform != "cpu":
        yield Accelerator(hardware, profile=profile)
    else:
        yield MeasuredCores(cores, profile, TRAINING) if profile else cores


def _plan(recipe: Recipe, matrix: Banded | Dense | None, clients: int, key: bytes) -> RoundPlan:
    """What is trained; where the recipe simulates who comes, with the population that follows from the run's key."""
    plan = recipe.plan(matrix)
    if recipe.population is None:
        return plan
    seed = int.from_bytes(seed_for(key, "population")[:7], "little")  # from it follow neither key nor noise
    rules = recipe.population.rules(plan.report_goal)
    return replace(plan, cohorts=SimulatedCohorts(Population(devices=clients), rules, seed=seed))


def _check_held_out(cache: Cache) -> None:
    """Refuse now what would fail at the first evaluation, or after the last round."""
    for split in ("validation", "test"):
        if not len(cache.clients(split)):
            raise InputError(
                f"the cache '{cache.path}' has {cache.manifest.clients} clients and none of them is in the {split} "
                "split, which is a tenth of many; import more clients."
            )


def _refuse_an_existing_run(recipe: Recipe, out: Path) -> None:
    """RunError that says in what the run at `out` differs; `Run.create` refuses any other folder that is not empty."""
    if not (out / "run.db").is_file():
        return
    with Run.open(out) as run:
        begun = Recipe.from_toml(run.facts().get("asked", run.recipe), where=str(out / "recipe.toml"))
    if changed := begun.differences(recipe):
        raise RunError(
            f"'{out}' exists already and was begun with another recipe ({'; '.join(changed)}); choose another --out, "
            f"or continue what was begun with `tacit resume {out}`."
        )


def _same_recipe(run: Run) -> Recipe:
    where = run.path / "recipe.toml"
    recipe = Recipe.from_toml(run.recipe, where=str(where))
    begun = Recipe.from_toml(run.facts().get("recipe", run.recipe))  # a run of an earlier version has no such fact
    if changed := begun.differences(recipe):
        raise RunError(
            f"'{where}' was changed since the run began ({'; '.join(changed)}), and a run has one recipe from its "
            f"first round to its last; undo that, or start another run with `tacit train {where} --out ANOTHER`."
        )
    return recipe


def _same_cache(run: Run) -> Cache:
    data = run.fact("data")
    cache = Cache.open(Path(data["cache"]))
    if cache.manifest.digest != data["cache_digest"]:
        raise RunError(
            f"the cache '{cache.path}' is not the one that '{run.path}' began with (its text differs); "
            "put the old cache back, or start a new run."
        )
    return cache


def _same_precision(run: Run, work: ClientWork, platform: str) -> None:
    """What the recipe asks for is used where there are units for it; a run is in one precision to its end."""
    computes = precision_of(work, platform)
    began = run.facts().get("precision")
    if began is None:
        run.set_fact("precision", computes)
    elif began != computes:
        raise RunError(
            f"'{run.path}' began in {began} and this processor computes it in {computes}, which is another result; "
            "resume it on a machine like the one it began on, or start a new run."
        )


def _first_model(recipe: Recipe, vocabulary: Vocabulary) -> TrainedModel | None:
    """The model of public text that the recipe begins from, if it names one."""
    if recipe.model.init is None:
        return None
    return load_first_model(recipe.model.init, recipe.model.settings(vocabulary.size), vocabulary)


def _network(recipe: Recipe, cache: Cache) -> LanguageModel:
    """The recipe's network with the words of the cache."""
    return recipe.model.settings(cache.manifest.vocabulary.size)


def _learner(run: Run, recipe: Recipe, cache: Cache) -> Learner:
    network, begun = _network(recipe, cache), run.facts().get("first_model")
    if begun is None:
        seed = int(generator_for(run.noise_key, "initial model").integers(2**31))
        first = network.init(jax.random.key(seed))
    else:
        found = load_first_model(Path(begun["path"]), network, Vocabulary.load(cache.vocabulary_path))
        if found.digest != begun["digest"]:
            raise RunError(
                f"the model in '{begun['path']}' is not the one that '{run.path}' began from (its weights differ); "
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
    )


class _Looks:
    """Evaluates on validation clients every so many rounds and after the last, each model once, beside the rounds.

    See `tacit.training.rounds.Measure`. Only the numbers depend on it, no bit of the model.
    """

    def __init__(
        self, run: Run, recipe: Recipe, cache: Cache, learner: Learner, cores: Cores, watcher: Watcher
    ) -> None:
        self._run, self._recipe, self._watcher = run, recipe, watcher
        self._measured = {metric.round for metric in run.metrics() if metric.split == "validation"}
        chosen = cache.clients("validation")[: recipe.evaluation.clients]
        self._evaluate = partial(_evaluate, recipe, cache, chosen, learner, cores=cores)
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="evaluation")
        self._begun: tuple[int, Future[Evaluation]] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown()

    def due(self, rounds: int) -> bool:
        """See Measure."""
        wanted = rounds % self._recipe.evaluation.every == 0 or rounds == self._recipe.rounds.rounds
        return wanted and rounds not in self._measured

    def __call__(self, rounds: int, model: Array) -> None:
        """See Measure."""
        self.settle()
        if self.due(rounds):
            self._begun = rounds, self._pool.submit(self._evaluate, model)

    def settle(self) -> None:
        """See Measure. Written by the thread that plays the rounds: a database has one writer."""
        if self._begun is not None:
            rounds, evaluation = self._begun
            _record(self._run, self._watcher, rounds, "validation", evaluation.result())
            self._measured.add(rounds)
            self._begun = None


def _evaluate(recipe: Recipe, cache: Cache, clients: Any, learner: Learner, model: Array, cores: Cores) -> Evaluation:
    held_out = HeldOut.read(cache, clients, sentences=recipe.evaluation.sentences, words=recipe.client.words)
    return evaluate(_network(recipe, cache), learner.unravel(model), held_out, cores=cores)


def _record(run: Run, watcher: Watcher, rounds: int, split: str, evaluation: Evaluation) -> None:
    metrics = evaluation.metrics()
    if any(math.isnan(value) for value in metrics.values()):
        raise TrainingError(
            f"after {rounds} rounds the model's {split} metrics are no numbers: it has diverged; start another run "
            "with a lower server.learning_rate or client.learning_rate."
        )
    run.record_metrics([Metric(round=rounds, split=split, name=n, value=v) for n, v in metrics.items()])
    watcher.measured(rounds, split, metrics)


def _tidy(run: Run) -> None:
    """Destroy what could take the noise away again: the key, and the noise buffers in the checkpoints."""
    run.destroy_noise_key()
    for checkpoint in (run.path / "checkpoints").iterdir():
        checkpoint.unlink()
