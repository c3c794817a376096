"""What a training run refuses: before anything is written, and when it is resumed."""

from pathlib import Path

import numpy as np

from tacit.data import Cache
from tacit.errors import InputError, RunError
from tacit.jobs.train.simulation import sampler_for
from tacit.recipe import Recipe
from tacit.runs import Run, TrainingMetadata
from tacit.runs.draft import SETTINGS
from tacit.runs.journal import RESTORE
from tacit.runs.reconciliation import reconciled
from tacit.training import Learner, RoundPlan
from tacit.training.client import ClientWork, precision_of
from tacit.training.hooks import Hooks


def check_not_deployed(recipe: Recipe, hooks: Hooks, *, run: Path | None = None) -> None:
    """Refuse to simulate a recipe for real devices. run: the run to be resumed, if there is one."""
    if recipe.deployment is None or hooks.collector is not None:
        return
    what = f"the recipe {recipe.name!r}" if run is None else f"the run '{run}'"
    simulated = "to simulate it, drop the section" if run is None else "a simulation is another run"
    raise InputError(
        f"{what} is for real devices ([deployment]), which come to a server; start `tacit serve` with the recipe, or "
        f"give the collector that asks them (collector=); {simulated}."
    )


def check_splits(cache: Cache, clients: int) -> None:
    """Refuse what nobody trains on, or what would fail at the first evaluation, or after the last round.

    clients: how many train; where devices bring their own text, none of them is in the cache.
    """
    for split, share in {"train": "most of them", "validation": "a tenth of many", "test": "a tenth of many"}.items():
        if not (clients if split == "train" else len(cache.clients(split))):
            raise InputError(
                f"the cache '{cache.path}' has {cache.manifest.clients} clients and none of them is in the {split} "
                f"split, which is {share}; import more clients, or a folder with a file of each split."
            )


def check_client_cost(recipe: Recipe, vocabulary: int, parameters: int) -> None:
    """Refuse a client's training that no machine has the memory or the time for, before anything is allocated.

    vocabulary: ids. parameters: of the network.
    """
    recipe.client_cost(vocabulary=vocabulary, parameters=parameters).check()


def check_participation(recipe: Recipe, plan: RoundPlan, clients: int, key: bytes, hooks: Hooks) -> None:
    """Refuse a plan of which a later round would find too few clients. A collector finds its own.

    clients: how many train. key: the run's. Raises: ParticipationError naming what would fit.
    """
    if hooks.collector is None:
        sampler_for(recipe, plan, clients, key, hooks).init(clients, report_goal=plan.report_goal)


def check_decryptors(plan: RoundPlan, hooks: Hooks) -> None:
    """Refuse noise that would be added to sums which somebody else makes, and has seen."""
    if plan.simulated_decryptors and hooks.collector is not None:
        raise InputError(
            f"aggregation.decryptors={plan.decryptors} are simulated and add noise to the sums of a simulation, and "
            "collector= brings sums that are opened already; drop aggregation.decryptors (the server adds the noise "
            "then), or the collector."
        )


def begun_at(recipe: Recipe, out: Path, hooks: Hooks) -> Run:
    """The run at `out`. Raises: RunError that names how its recipe differs from the given one."""
    run = Run.open(out)
    try:
        training = run.of_kind(TrainingMetadata, "choose another --out")
        begun = Recipe.from_toml(training.asked, where=str(out / SETTINGS))
        if changed := begun.differences(recipe):
            raise RunError(
                f"'{out}' exists already and was begun with another recipe ({'; '.join(changed)}); choose another "
                f"--out, or continue what was begun with `tacit resume {out}`."
            )
        hooks.required(training.hooks, str(out))
        reconciled(run)
    except BaseException:
        run.close()
        raise
    return run


def same_precision(run: Run, work: ClientWork, platform: str) -> None:
    """What the recipe asks for is used where there are units for it; a run is in one precision to its end."""
    computes = precision_of(work, platform)
    began = run.notes.get("precision")
    if began is None:
        run.note("precision", computes)
    elif began != computes:
        raise RunError(
            f"'{run.path}' began in {began} and this processor computes it in {computes}, which is another result; "
            "resume it on a machine like the one it began on, or start a new run."
        )


def same_clients(run: Run, learner: Learner) -> None:
    """Raises: RunError where somebody took part who is none of the training clients."""
    others = np.setdiff1d(run.participations()[1], learner.clients)
    if len(others):
        raise RunError(
            f"the log of '{run.path}' names the client {others[0]}, which is none of the {len(learner.clients):,} "
            f"training clients of '{learner.cache.path}'; {RESTORE}."
        )
