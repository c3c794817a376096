"""Whole rounds of training as an auditor plays them: `run_round` itself, with a cohort that the auditor invents.

Each run is a model of a few numbers, and the models of all runs are the coordinates of one vector, so one training is
many runs. The canary sends what no honest device would; the others send the opposite, at full length, so that whatever
depends on their sum or number moves most. Nothing is known beforehand of what is released: the score is learned.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from tacit.aggregation.clipping import clip
from tacit.audit.mechanism.case import Case, Play, Runs
from tacit.audit.mechanism.patterns import worst_pattern
from tacit.audit.mechanism.streams import NoisedSums, key_of, matrix_of
from tacit.federation.collector import Answered
from tacit.federation.report_shape import LOSS, SHORT
from tacit.privacy import Guarantee
from tacit.statements.ledger import CLIP_ESTIMATE, TRAINING_LOSS
from tacit.training.client import ClientTraining
from tacit.training.collect import TrainQuestion
from tacit.training.rounds import RoundPlan, initial_state, run_round
from tacit.training.server import ServerOptimizer

Update = dict[str, NDArray[np.float32]]  # by layer
Summed = Callable[[Sequence[Update], TrainQuestion], NDArray[np.float32]]
"""(a cohort's updates as devices computed them, the round's question) -> the sum that noise is added to, (d,)."""

LAYERS = ("embedding", "output")  # of one number each
FAR = 1e6  # how long the canary's update is
OTHERS = 7  # clients beside the canary
STEPS = ServerOptimizer(method="sgd", learning_rate=1.0)  # the model moves by the mean
PURPOSES = {CLIP_ESTIMATE: "clip norm", TRAINING_LOSS: "training loss"}  # of the noise of what is released beside
TRAINING = "sees the model after every round; chooses what the client sends and what all others send"


def clipped_sum(updates: Sequence[Update], question: TrainQuestion) -> NDArray[np.float32]:
    """As devices and servers do it: each update is clipped as a whole, then all are added."""
    total = np.zeros(len(LAYERS), np.float32)
    for update in updates:
        bounded = clip({name: jnp.asarray(layer) for name, layer in update.items()}, question.clip_norm).update
        total += np.concatenate([np.asarray(bounded[name]) for name in LAYERS])
    return total


class Canary(NamedTuple):
    """What the canary's device says it computed, and what the others' did: (d,), of no matter which length."""

    update: tuple[float, ...] = (FAR, FAR)
    others: tuple[float, ...] = (-FAR, -FAR)


LONG = Canary()


def _by_layer(update: tuple[float, ...]) -> Update:
    return {name: np.array([number], np.float32) for name, number in zip(LAYERS, update, strict=True)}


@dataclass(frozen=True)
class InventedCohort:
    """A collector (`federation.collector.Collector`): the answer holds one sum for each run, with the canary or not."""

    present: Runs
    pattern: frozenset[int]
    summed: Summed
    canary: Canary

    def init(self) -> Any:
        """Nothing is carried."""
        return ()

    def collect(self, state: Any, question: TrainQuestion, *, seed: bytes) -> tuple[Answered, Any]:
        """Sums (d * runs,): the first coordinate of all runs, then the second."""
        others = [_by_layer(self.canary.others)] * OTHERS
        without = self.summed(others, question)
        comes = question.round in self.pattern
        within = self.summed([*others, _by_layer(self.canary.update)], question) if comes else without
        values = np.where(self.present, within[:, None], without[:, None]).astype(np.float32)
        beside = {}
        if question.clip_estimate is not None:
            beside[SHORT] = float(OTHERS // 2)
        if question.loss_bound is not None:
            beside[LOSS] = 0.0
        clients = np.arange(OTHERS + 1)
        return Answered(jnp.asarray(values.ravel()), OTHERS + 1, clients, beside), state


def case_of_rounds(
    subject: str,
    plan: RoundPlan,
    *,
    summed: Summed = clipped_sum,
    canary: Canary = LONG,
    width: int = len(LAYERS),
    threat_model: str = TRAINING,
) -> Case:
    """What training releases by a plan. width: numbers of a run's model."""
    limits = plan.guarantee.participation
    pattern = worst_pattern(matrix_of(plan.updates), limits)
    return Case(
        subject=subject,
        claim=plan.guarantee.mu,
        rows=limits.rounds * (width + len(plan.beside)),
        play=_played(plan, frozenset(pattern), summed, canary, width),
        threat_model=threat_model,
        figures={"pattern": list(pattern)},
    )


def _played(plan: RoundPlan, pattern: frozenset[int], summed: Summed, canary: Canary, width: int) -> Play:
    def play(present: Runs, seed: int) -> NDArray[Any]:
        collector = InventedCohort(present, pattern, summed, canary)
        state = initial_state(np.zeros(width * len(present), np.float32), plan, collector)
        rows = []
        for round in range(plan.rounds):
            before = np.asarray(state.model, np.float64)
            state, outcome = run_round(state, round, plan=plan, key=key_of(seed), collector=collector)
            moved = (np.asarray(state.model, np.float64) - before).reshape(width, -1)
            rows.append(moved / outcome.release.clip_norm)  # which is public
        beside = [_beside(what, each, present, pattern, seed) for what, each in plan.beside.items()]
        return np.concatenate([*rows, *beside])

    return play


def _beside(what: str, guarantee: Guarantee, present: Runs, pattern: frozenset[int], seed: int) -> NDArray[Any]:
    """What is released beside the updates, (rounds, runs): a number of each run, by the same stream.

    In training it is one number a round, and a training is many runs here; so the canary's bit or loss, at its full
    length, is added to a sum of each run's own.
    """
    said = np.zeros(guarantee.participation.rounds, np.float32)
    said[list(pattern)] = guarantee.clip_norm
    return NoisedSums(guarantee, purpose=PURPOSES[what])(np.multiply.outer(said, present), seed)


def plan_of(guarantee: Guarantee, **more: Any) -> RoundPlan:
    """A plan whose devices and server do as little as they can beside what is audited."""
    return RoundPlan(guarantee=guarantee, report_goal=OTHERS + 1, client=ClientTraining(), server=STEPS, **more)
