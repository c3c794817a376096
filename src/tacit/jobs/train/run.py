"""A training run's folder, from a recipe to the released model: what is refused first, what is trained, how it ends.

`begin` makes the folder, `carry_on` does the rounds it lacks and everything after the last; both may be killed at any
instant. Resuming is `carry_on` on a folder found on disk, so an interrupted run takes the path of an uninterrupted one.
"""

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from jax import Array

from tacit.compute import Hardware
from tacit.compute.cores import Cores
from tacit.compute.profile import Profile, phase
from tacit.errors import RunError
from tacit.federation.collector import Collector
from tacit.jobs.account.budget import BudgetRequest, Reservation, check_left, recheck, reserved
from tacit.jobs.plan.free_model import free_model_for
from tacit.jobs.rehearsal import VALIDATION, Spared, refused
from tacit.jobs.run_start import cache_used, check_place, checked_cache, of_this_process, same_cache
from tacit.jobs.train.learner import first_model, learner_of
from tacit.jobs.train.noise_forecast import forecast_for_record, tell
from tacit.jobs.train.refusals import (
    begun_at,
    check_client_cost,
    check_decryptors,
    check_not_deployed,
    check_participation,
    check_splits,
    same_clients,
    same_precision,
)
from tacit.jobs.train.rehearsal import Begun, rehearsed
from tacit.jobs.train.release import HeldOutClients, release
from tacit.jobs.train.simulation import TrainedWith, collector_for
from tacit.jobs.train.stopping import Rule, Stopping, is_ending, note_end
from tacit.mechanisms import fresh_key
from tacit.networks.language_model import parameter_count
from tacit.progress import Progress, StageBegan, StageEnded, Warned, compiling, silent
from tacit.recipe import Recipe
from tacit.runs import Run, TrainingMetadata
from tacit.runs.budget_book import Cost
from tacit.runs.draft import SETTINGS
from tacit.runs.metadata import DeploymentUsed, FirstModelUsed, SecureSumUsed
from tacit.statements.accounts import guarantee_record, matrix_of, planned_in_all, trained
from tacit.statements.train_facts import BY_HAND
from tacit.text.vocabulary import Vocabulary
from tacit.training import key_from_seed
from tacit.training.cohort import shard_size
from tacit.training.collect import Learner
from tacit.training.cost import CostSoFar
from tacit.training.divergence import DivergenceWatch
from tacit.training.hooks import Hooks
from tacit.training.loop import PeriodicEvaluation, last_model, record_evaluation, run_rounds
from tacit.training.participation_so_far import log_so_far
from tacit.training.privacy_filter import PrivacyFilter
from tacit.training.rounds import RoundPlan

DESIGN = "designing the mechanism"
NO_HOOKS = Hooks()


def begin(
    recipe: Recipe,
    out: Path,
    *,
    hooks: Hooks = NO_HOOKS,
    hardware: Hardware = Hardware(),  # noqa: B008  (frozen)
    progress: Progress = silent,
    anyway: bool = False,
) -> Run:
    """A new run folder for a recipe, before its first round; or the one at `out`, where that has the same recipe.

    What the noise will do to the model is told first; a recipe that is too noisy is refused, unless `anyway`. Then the
    end of the run is rehearsed with the first model, whose evaluation is kept. Raises: RecipeError, CacheError,
    ParticipationError, RunError, InputError, and AccountingError where no sensitivity of the mechanism is known:
    nothing is left on disk then.
    """
    check_not_deployed(recipe, hooks)
    if (out / "run.db").is_file():
        return begun_at(recipe, out, hooks)
    check_place(out)
    hardware.apply()
    progress(StageBegan(DESIGN))
    as_given, recipe, matrix, why = recipe, recipe.designed(), recipe.matrix(), recipe.why_mechanism()
    progress(StageEnded(DESIGN))
    cache = checked_cache(recipe.data.cache, progress=progress)
    vocabulary = Vocabulary.from_json(cache.vocabulary_json)
    seed = recipe.run.seed
    key = fresh_key() if seed is None else key_from_seed(seed)
    clients = recipe.clients(len(cache.clients("train")))
    check_splits(cache, clients)
    delta = recipe.privacy.delta_for(clients)
    recipe = recipe.with_delta(delta)
    plan = recipe.plan(matrix)
    plan.guarantee.checked()
    check_decryptors(plan, hooks)
    check_participation(recipe, plan, clients, key, hooks)
    network = recipe.model.settings(vocabulary.size)
    check_client_cost(recipe, vocabulary.size, parameter_count(network))
    encoding = plan.encoding(parameter_count(network))
    first = first_model(recipe, vocabulary)
    request = _budget_request(recipe, plan, clients)
    check_left(request)
    free = free_model_for(recipe.model.init, progress=progress) if recipe.evaluation.baselines else None
    told = forecast_for_record(recipe, plan, network, clients=clients, public=first is not None, hooks=hooks, free=free)
    tell(told, progress, anyway=anyway)
    metadata = TrainingMetadata(
        **of_this_process(seed),
        asked=as_given.to_toml(),
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
        first_model=None if first is None else FirstModelUsed.from_model(first),
        extrapolate_to=recipe.privacy.extrapolate_to,
        simulated=None if recipe.population is None else recipe.population.model_dump(),
        deployment=_deployed(recipe),
        evaluation=recipe.evaluation.model_dump(),
        hooks=hooks.names,
        why_mechanism=why,
        foreseen=told.says,
        secure=None if encoding is None else SecureSumUsed.from_encoding(encoding, plan.secure),
    )
    settings = recipe.to_toml() if why is None else f"# {why}\n{recipe.to_toml()}"
    kept = None if matrix is None else json.dumps(matrix.to_record())
    planned = Begun(recipe=recipe, plan=plan, cache=cache, key=key, hooks=hooks, cores=Cores(hardware))
    measured = rehearsed(out, settings, metadata, planned, strategy=kept, progress=progress)
    run = reserved(request, out, metadata, lambda known: Run.create(out, settings, known, key, strategy=kept))
    with run.locked():
        record_evaluation(run, 0, "validation", measured, silent)  # told when the rounds begin
    return run


def _budget_request(recipe: Recipe, plan: RoundPlan, clients: int) -> BudgetRequest | None:
    """What the run reserves of its population's budget; None where the recipe names none."""
    population = recipe.privacy.population
    if population is None:
        return None
    return BudgetRequest.from_options(population, clients, Cost(zcdp=plan.guarantee.zcdp))


def _deployed(recipe: Recipe) -> DeploymentUsed | None:
    """Real devices, and what each keeps by itself; None where the recipe has none."""
    if recipe.deployment is None:
        return None
    kept = recipe.deployment.separation(recipe.rounds)
    return DeploymentUsed.from_section(
        recipe.deployment, rounds=kept.rounds, timer_seconds=kept.timer_seconds, most=kept.most
    )


class _Work(NamedTuple):
    """What a run goes on with, as it began, on this machine."""

    recipe: Recipe
    hooks: Hooks
    cores: Cores
    learner: Learner
    plan: RoundPlan
    held_out: HeldOutClients
    reservation: Reservation | None

    @property
    def program(self) -> tuple[Any, ...]:
        """What is compiled for its rounds."""
        plan = self.plan
        return self.learner.loss, plan.client, self.hooks.algorithm, shard_size(plan.report_goal)


def _as_it_began(run: Run, recipe: Recipe, hooks: Hooks, cores: Cores, progress: Progress, *, ends: bool) -> _Work:
    """The text, the model and the plan of a run, once all that may not have changed since it began is checked.

    ends: no device is asked any more. Raises: as `carry_on`.
    """
    if not ends:
        check_not_deployed(recipe, hooks, run=run.path)
        hooks.required(trained(run).hooks, str(run.path))
    cache = same_cache(run, trained(run).data, progress=progress)
    learner = learner_of(run, recipe, cache, hooks)
    plan = replace(recipe.plan(matrix_of(run)), optimizer=hooks.optimizer)
    if recipe.deployment is None:  # or devices compute as they can
        same_precision(run, learner.work(plan.client), cores.devices[0].platform)
    if hooks.collector is None and not ends:
        same_clients(run, learner)
    held_out = HeldOutClients(recipe, cache, learner, cores)
    return _Work(recipe, hooks, cores, learner, plan, held_out, reservation=recheck(run, progress))


def _filtered(run: Run, collector: Collector, plan: RoundPlan, reservation: Reservation) -> PrivacyFilter:
    """The same devices, whose rounds are released as far as the population's budget allows."""
    return PrivacyFilter(
        collector,
        log_so_far(run, plan.separation),
        planned_in_all(run),
        lambda zcdp: reservation.covers(Cost(zcdp=zcdp)),
        run=str(run.path),
    )


def carry_on(
    run: Run,
    *,
    hardware: Hardware,
    hooks: Hooks = NO_HOOKS,
    progress: Progress = silent,
    until: int | None = None,
    end: bool = False,
    rule: Rule | None = None,
    stop_if_diverged: bool = False,
    cluster: str | None = None,
) -> None:
    """Do the rounds that the run lacks and, after the last, test and release the model.

    until: stop after so many rounds, as if killed there. end: the last round that is done is the run's last. rule: is
    asked after each round whether it is; that is on disk before anything follows from it.
    stop_if_diverged: stop after the evaluation of a model that does worse than one that knows nothing; resuming
    tries on. cluster: the address of the Ray cluster whose workers train the clients; None: this machine's. Where
    the time went is added to the note "profile". Raises: RunError when another process trains this run, its recipe
    was changed since it began, its cache is not the one it began with, its hooks are others, or this processor
    cannot compute in the precision it began in; BudgetError before a round is released that costs more than the
    population's budget has left, because clients came more often than planned.
    """
    with run.locked(), Profile().counting() as profile:
        recipe = Recipe.from_toml(run.settings, where=str(run.path / SETTINGS))
        if run.finished:
            run.tidy()
            return
        end = end or is_ending(run)
        if end and not run.steps_done:
            raise RunError(
                f"'{run.path}' has no round that is done, so there is no model to release; `tacit resume {run.path}`."
            )
        with phase("start"):
            cores = Cores(hardware)
            work = _as_it_began(run, recipe, hooks, cores, progress, ends=end)
        stopping = None if rule is None else Stopping(rule, run, work.learner, recipe)
        if cores.idle and cluster is None and hooks.collector is None:
            progress(Warned("idle-cores", cores.idle))
        watched = DivergenceWatch(run, progress, ends=stop_if_diverged)
        evaluating = partial(_evaluating, run, work, Spared(run, progress, ends=end), watched)
        if not end:
            trained_with = TrainedWith(hardware, cores, cluster, progress)
            model = _trained(run, work, trained_with, evaluating, until=until, stopping=stopping, watched=watched)
            end = stopping is not None and stopping.kept()
        if end:
            with evaluating(run.steps_done) as evaluation:
                model = last_model(run, evaluation)
            if run.steps_done < work.plan.rounds:
                note_end(run, BY_HAND)  # unless a rule decided; the model of the last round is whole
        if end or run.steps_done == work.plan.rounds:
            release(run, work.held_out, model, Spared(run, progress, ends=True), progress)
        spent = profile.to_record(0 if cluster or hooks.collector else len(cores.devices))
        run.note("profile", [*run.notes.get("profile", []), spent])


def _evaluating(run: Run, work: _Work, spared: Spared, watched: DivergenceWatch, rounds: int) -> PeriodicEvaluation:
    """Of the models of a run of so many rounds, on validation clients."""

    def trying(after: int) -> AbstractContextManager[None]:
        piece = VALIDATION._replace(name=f"{VALIDATION.name} after {after} rounds")
        return spared(piece) if run.steps_done else refused(piece)

    return PeriodicEvaluation(
        run,
        lambda model: work.held_out.evaluated("validation", model).metrics(),
        every=work.recipe.evaluation.every,
        rounds=rounds,
        trying=trying,
        progress=watched,
    )


def _trained(
    run: Run,
    work: _Work,
    trained_with: TrainedWith,
    evaluating: Callable[[int], PeriodicEvaluation],
    *,
    until: int | None,
    stopping: Stopping | None,
    watched: DivergenceWatch,
) -> Array:
    """The flat model after the rounds that the run lacks, or those before one of the three ends them."""
    plan, shown = work.plan, trained_with.progress is not silent
    with (
        collector_for(run, work.recipe, work.learner, plan, work.hooks, trained_with) as collector,
        evaluating(plan.rounds) as evaluation,
    ):
        return run_rounds(
            run,
            work.learner.start,
            plan,
            collector if work.reservation is None else _filtered(run, collector, plan, work.reservation),
            evaluation=evaluation,
            cost=CostSoFar(run, plan.guarantee, trained(run).delta, plan.separation) if shown else None,
            until=until,
            stops=lambda: watched.stops,
            ends=stopping,
            opening="" if work.recipe.deployment else compiling("training", *work.program),
            progress=watched,
        )
