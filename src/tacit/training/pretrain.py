"""Pre-training on public text, before the first private round [paper 1, section 2.3].

Central training that is evaluated on held-out public text now and then, keeps the model that did best there, stops when
it has long not done better, and survives kill -9: each evaluation is a step of its run. A private run that begins from
its model pays nothing for it: no client's text was used.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import numpy as np
from numpy.typing import NDArray

from tacit.data import Cache
from tacit.errors import InputError
from tacit.progress import Advanced, Progress, StageBegan, StageEnded, compiling, silent
from tacit.runs import Run, StepEntry
from tacit.training.central import CentralState, CentralTraining, central_start, central_states
from tacit.training.checkpoint import forget_old_checkpoints, leaves, load_checkpoint, save_checkpoint
from tacit.training.client import Loss, Model

STAGE = "pre-training"


@dataclass(frozen=True, kw_only=True)
class Pretraining:
    """How long, and when to stop."""

    central: CentralTraining = field(default_factory=CentralTraining)
    sentences: int = 1_000_000  # at most; the learning rate falls to 0 along a cosine of this length
    every: int = 50_000  # sentences from one evaluation on held-out text to the next
    patience: int = 5  # evaluations without a better one, after which training stops

    def __post_init__(self) -> None:
        for name in ("sentences", "every", "patience"):
            if getattr(self, name) < 1:
                raise InputError(f"pretraining {name}={getattr(self, name)} must be at least 1.")


class HeldOutEvaluation(NamedTuple):
    """One evaluation on held-out public text."""

    sentences: int  # trained on before it
    loss: float  # nats a word of the last training steps; nan before the first
    held_out: float  # nats a word of the held-out text

    @property
    def measures(self) -> dict[str, float]:
        """What a step keeps of it."""
        kept = {"sentences": float(self.sentences), "held_out": self.held_out}
        return kept if math.isnan(self.loss) else {**kept, "loss": self.loss}


class Pretrained(NamedTuple):
    """What pre-training gives."""

    model: Model  # the one that did best on held-out text
    evaluations: tuple[HeldOutEvaluation, ...]
    stopped_early: bool


class _Kept(NamedTuple):
    """What a step's file holds: where training is, and the best model so far."""

    training: CentralState
    best: Model


def evaluations_of(run: Run) -> tuple[HeldOutEvaluation, ...]:
    """Those that a run has, in order."""
    kept = (step.measures for step in run.steps())
    return tuple(HeldOutEvaluation(int(of["sentences"]), of.get("loss", float("nan")), of["held_out"]) for of in kept)


def best_of(evaluations: tuple[HeldOutEvaluation, ...]) -> HeldOutEvaluation:
    """The one with the least loss on held-out text; the first of equals."""
    return min(evaluations, key=lambda evaluation: evaluation.held_out)


def pretrain(
    run: Run,
    loss: Loss,
    start: Model,
    cache: Cache,
    clients: NDArray[np.int64],
    *,
    plan: Pretraining,
    measure: Callable[[Model], float],
    progress: Progress = silent,
) -> Pretrained:
    """Train on the pooled text of `clients`, from `start` or from where the run's last step is.

    measure(model) is the cross-entropy on held-out text, lower is better. Deterministic given the run's key, however
    often it is interrupted. Raises: InputError when there is nothing to train on; TrainingError when training
    diverges; RunError for a damaged folder.
    """
    key = run.noise_key
    kept = _Kept(central_start(start, plan.sentences, plan.central), jax.tree.map(np.asarray, start))
    found = evaluations_of(run)
    if found:
        kept = _last(run, kept)
    else:
        found = (HeldOutEvaluation(0, float("nan"), measure(start)),)
        _keep(run, kept, found)
    ended = _exhausted(found, plan)
    opening = "" if ended else compiling(STAGE, loss, plan.central, plan.sentences)
    progress(StageBegan(STAGE, plan.sentences, found[-1].sentences, opening=opening))
    if not ended:
        for training in central_states(
            loss, kept.training, cache, clients, sentences=plan.sentences, settings=plan.central, key=key
        ):
            due = training.sentences // plan.every > found[-1].sentences // plan.every
            if due or training.sentences >= plan.sentences:
                evaluation = HeldOutEvaluation(training.sentences, training.loss, measure(training.model))
                better = evaluation.held_out < best_of(found).held_out
                kept, found = _Kept(training, training.model if better else kept.best), (*found, evaluation)
                _keep(run, kept, found)
            figures = {"training_loss": training.loss}
            if len(found) > 1:  # of the initial model it says nothing of training
                figures |= {"held_out": found[-1].held_out, "best": best_of(found).held_out}
            progress(Advanced(STAGE, training.sentences, figures))
            if _exhausted(found, plan):
                break
    progress(StageEnded(STAGE))
    return Pretrained(kept.best, found, stopped_early=found[-1].sentences < plan.sentences)


def _exhausted(found: tuple[HeldOutEvaluation, ...], plan: Pretraining) -> bool:
    """Whether there is nothing left to do, or nothing to be gained by it."""
    best = found.index(best_of(found))
    return found[-1].sentences >= plan.sentences or len(found) - 1 - best >= plan.patience


def _keep(run: Run, kept: _Kept, found: tuple[HeldOutEvaluation, ...]) -> None:
    """The file first, then the step that names it: killed in between, the earlier pair is still whole."""
    number = len(found) - 1
    name = f"evaluation-{number:06d}.safetensors"
    digest = save_checkpoint(run.path / "steps" / name, leaves(kept))
    run.commit(StepEntry(step=number, file=name, digest=digest, measures=found[-1].measures))
    forget_old_checkpoints(run.path / "steps", keep=1)


def _last(run: Run, like: _Kept) -> _Kept:
    step = run.steps()[-1]
    kept: _Kept = load_checkpoint(run.path / "steps" / step.file, like, step.digest)
    training: Any = kept.training
    return kept._replace(training=training._replace(sentences=int(training.sentences), loss=float(training.loss)))
