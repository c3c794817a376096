"""What a training will need after its first round, played before it: see `jobs/rehearsal.py`, which lists it.

The end of the run is the real one (`release.py`), in a folder that is thrown away: with the model before the first
round in place of the last, and a round that nobody took part in. No noise is drawn, and of held-out text nothing is
asked that the run's own evaluations do not ask.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from tacit.compute.cores import Cores
from tacit.data import Cache
from tacit.errors import TrainingError
from tacit.extras import has_extra
from tacit.jobs.export import rehearse_export
from tacit.jobs.rehearsal import (
    DISK,
    EXPORT,
    NUMBERS,
    REHEARSING,
    STATEMENT,
    VALIDATION,
    check_finite,
    check_room,
    refused,
    scratch_run,
)
from tacit.jobs.train.learner import learner_of
from tacit.jobs.train.release import HeldOutClients, release, write_reports
from tacit.mechanisms import fresh_key, stream_for
from tacit.mechanisms.all_rounds import carrying_stream
from tacit.networks.language_model import LanguageModel
from tacit.privacy.guarantee import Guarantee
from tacit.progress import Progress, StageBegan, StageEnded, silent
from tacit.recipe import Recipe
from tacit.records import to_plain
from tacit.runs import Run, StepEntry, TrainingMetadata
from tacit.statements import NoisedSum
from tacit.statements.ledger import MODEL_UPDATE, ledger_record
from tacit.statements.run_facts import statement_of
from tacit.training import Learner, RoundPlan
from tacit.training.checkpoint import leaves, save_checkpoint
from tacit.training.hooks import Hooks
from tacit.training.loop import checked_metrics, record_evaluation
from tacit.training.rounds import initial_state
from tacit.training.states import KEPT

STATES = KEPT + 2  # in the folder at one time: those kept, the last whole one, and the one that is being written
CLOCK = 16  # bytes of a client in the state of who took part when
FILE = "round-000000.safetensors"


@dataclass(frozen=True, kw_only=True)
class Begun:
    """A training that is about to begin."""

    recipe: Recipe
    plan: RoundPlan
    cache: Cache
    key: bytes  # of the run: of it only the first model is made here
    hooks: Hooks
    cores: Cores


def rehearsed(
    out: Path,
    settings: str,
    metadata: TrainingMetadata,
    begun: Begun,
    *,
    strategy: str | None = None,
    progress: Progress = silent,
) -> Mapping[str, float]:
    """Play everything; the metrics of the first model on validation clients.

    The other arguments are those of `Run.create`. Raises: InputError naming what fails; nothing is left on disk.
    """
    progress(StageBegan(REHEARSING))
    plan = replace(begun.plan, optimizer=begun.hooks.optimizer)
    with refused(NUMBERS):
        _check_numbers(plan, metadata.delta)
    with scratch_run(out, settings, metadata, fresh_key(), strategy=strategy) as run:
        learner = learner_of(run, begun.recipe, begun.cache, begun.hooks, key=begun.key)
        held_out = HeldOutClients(begun.recipe, begun.cache, learner, begun.cores, few=True)
        model = jnp.asarray(learner.start)
        with refused(DISK):
            digest = _write_state(run, plan, learner)
        with refused(VALIDATION):
            measured = checked_metrics(0, "validation", held_out.evaluated("validation", model).metrics())
        _play_round(run, plan, begun.hooks, learner, digest)
        record_evaluation(run, 0, "validation", measured, silent)
        with refused(STATEMENT):
            statement_of(run)
        release(run, held_out, model, refused, silent)
        write_reports(run, refused)
        if _exports(held_out.network):
            with refused(EXPORT):
                rehearse_export(run)
    progress(StageEnded(REHEARSING))
    return measured


class _Nobody:
    """The devices of a rehearsal: nothing is carried for them, and nobody is asked."""

    def init(self) -> Any:
        """See Collector."""
        return ()

    def collect(self, state: Any, question: Any, *, seed: bytes) -> Any:
        """See Collector."""
        raise TrainingError("nobody is asked in a rehearsal.")


def _exports(network: LanguageModel) -> bool:
    """Whether a model of this network can be exported here; of others nobody expects it."""
    if not has_extra("export"):
        return False
    from tacit.networks.onnx.step import HasOnnxCell

    return isinstance(network, HasOnnxCell)


def _check_numbers(plan: RoundPlan, delta: float) -> None:
    guarantee = plan.guarantee
    if guarantee.private:
        noise = guarantee.noise_multiplier
        check_finite({"noise multiplier": noise, "zCDP": guarantee.zcdp, "epsilon": guarantee.epsilon(delta)})


def _write_state(run: Run, plan: RoundPlan, learner: Learner) -> str:
    """Write the state before the first round, where there is room for those that follow; its SHA-256."""
    dimension = len(learner.start)
    state = leaves(initial_state(learner.start, plan, _Nobody()))
    grown = _carried(plan, dimension) + CLOCK * len(learner.clients)
    size = sum(array.nbytes for array in state.values()) + grown
    check_room(run.path, disk=STATES * size, memory=size)
    return save_checkpoint(run.path / "steps" / FILE, state)


def _carried(plan: RoundPlan, dimension: int) -> int:
    """Bytes of the vectors that the updates' noise carries in the last round."""
    strategy, encoding = plan.updates.strategy, plan.encoding(dimension)
    if strategy is None:
        return 0
    stream, vectors = stream_for(strategy), dimension
    if plan.decryptors and encoding is not None:
        stream, vectors = carrying_stream(strategy), encoding.dimension * plan.simulated_decryptors
    return stream.memory(plan.rounds) * vectors * np.dtype(stream.carries).itemsize


def _play_round(run: Run, plan: RoundPlan, hooks: Hooks, learner: Learner, digest: str) -> None:
    """A round as the journal will have it, made up: of the first clients, who were not asked. digest: of its state."""
    goal = plan.report_goal
    came: NDArray[np.int64] | int = goal
    if plan.separation is None:
        came = np.arange(goal) if hooks.collector is not None else learner.clients[:goal]
    common: dict[str, Any] = {"round": 0, "reports": goal, "dropped": 0}
    updates = NoisedSum(
        what=MODEL_UPDATE,
        **_row(plan.updates),
        decryptors=plan.decryptors,
        honest_decryptors=plan.honest_decryptors,
        clip_inflation=plan.updates.clip_inflation,
        **common,
    )
    beside = [NoisedSum(what=what, **_row(each), **common) for what, each in plan.beside.items()]
    measures = {} if hooks.collector is not None else {"loss": 1.0, "clipped": 0.5}
    if plan.clipping is not None:
        measures |= {"clip_norm": plan.updates.clip_norm, "clip_estimate": plan.updates.clip_norm}
    if plan.loss is not None:
        measures["private_loss"] = 1.0
    releases = tuple(map(to_plain, (updates, *beside)))
    run.commit(StepEntry(step=0, file=FILE, digest=digest, releases=releases, measures=measures), clients=came)


def _row(guarantee: Guarantee) -> dict[str, Any]:
    """What a row of the ledger says of the noise."""
    return {
        "strategy_record": ledger_record(guarantee.strategy),
        "clip_norm": guarantee.clip_norm,
        "noise_multiplier": guarantee.noise_multiplier,
    }
