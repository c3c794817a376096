"""Federated learning of any model with DP-FTRL: what is planned, what is carried, and one round.

A round: ask the devices for the sum of their clipped updates, add the round's correlated noise, divide by the constant
report goal, take a server step. The residual form of ALGORITHMS section 1 is run, so no un-noised sum is ever stored.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array
from numpy.typing import ArrayLike, NDArray

from tacit.compute.profile import phase
from tacit.mechanisms import NoiseState, stream_for
from tacit.privacy import Guarantee
from tacit.statements import NoisedSum
from tacit.statements.ledger import ledger_record
from tacit.training.adaptive_clipping import AdaptiveClipping, ClipState, clip_of_round, first_clip, follow
from tacit.training.client import ClientTraining
from tacit.training.collect import Collected, Collector, TrainingTask, checked
from tacit.training.randomness import seed_for
from tacit.training.server import ServerOptimizer, server_step

OwnOptimizer = Callable[[int], optax.GradientTransformation]  # of a run of so many rounds


@dataclass(frozen=True, kw_only=True)
class RoundPlan:
    """All that determines a run, besides its model, its devices and its key."""

    guarantee: Guarantee  # of all that is released together
    report_goal: int
    client: ClientTraining
    server: ServerOptimizer
    clipping: AdaptiveClipping | None = None  # None: the clip norm of the guarantee, in every round
    optimizer: OwnOptimizer | None = None  # in place of the one that `server` describes; sees noised means only

    @property
    def rounds(self) -> int:
        return self.guarantee.participation.rounds

    @property
    def updates(self) -> Guarantee:
        """What the model updates promise by themselves, with the first clip norm."""
        return (
            self.guarantee if self.clipping is None else self.clipping.guarantees(self.guarantee, self.report_goal)[0]
        )

    @property
    def counts(self) -> Guarantee | None:
        """What the counts of short updates promise by themselves; None: there are none."""
        return None if self.clipping is None else self.clipping.guarantees(self.guarantee, self.report_goal)[1]

    def transformation(self) -> optax.GradientTransformation:
        """The server's optimizer."""
        return (self.optimizer or self.server.transformation)(self.rounds)


class TrainingState(NamedTuple):
    """What is carried from round to round and saved with each ledger row."""

    model: Array  # (d,) float32
    optimizer: optax.OptState
    noise: NoiseState | None  # None: the run is not private
    clock: Any  # the collector's: who may take part when
    clip: ClipState | None = None  # None: the clip norm is fixed


@dataclass(frozen=True, kw_only=True)
class RoundOutcome:
    """A released round, for those who watch."""

    round: int
    clients: NDArray[np.int64]
    release: NoisedSum
    seconds: float
    also: tuple[NoisedSum, ...] = ()  # released beside the updates
    loss: float | None = None  # mean over the counted clients of their training loss; simulations only
    clipped: float | None = None  # share of the counted clients whose update was clipped; simulations only
    clip_estimate: float | None = None  # after the round; None: the clip norm is fixed

    @property
    def measures(self) -> dict[str, float]:
        """What of a round is kept in its row."""
        found = {} if self.loss is None or self.clipped is None else {"loss": self.loss, "clipped": self.clipped}
        if self.clip_estimate is not None:
            found |= {"clip_norm": self.release.clip_norm, "clip_estimate": self.clip_estimate}
        return found


def initial_state(start: ArrayLike, plan: RoundPlan, collector: Collector) -> TrainingState:
    """The state before the first round. start: (d,) the initial model.

    Raises: what the collector refuses before the first round because it would fail in a later one.
    """
    model = jnp.asarray(start)
    strategy = plan.guarantee.strategy
    return TrainingState(
        model=model,
        optimizer=plan.transformation().init(model),
        noise=None if strategy is None else stream_for(strategy).init(len(model)),
        clock=collector.init(),
        clip=None if plan.clipping is None or plan.counts is None else first_clip(plan.clipping, plan.counts),
    )


def run_round(
    state: TrainingState, round: int, *, plan: RoundPlan, key: bytes, collector: Collector
) -> tuple[TrainingState, RoundOutcome]:
    """One round, a pure function of (state, round, key) and of what the devices answer.

    Raises: ParticipationError when too few clients are free; TrainingError when no client's update is finite.
    """
    began = time.perf_counter()
    updates, clip = _active_clip(plan, state.clip, round)
    task = TrainingTask(
        round=round,
        model=state.model,
        client=plan.client,
        clip_norm=updates.clip_norm,
        clip_estimate=None if clip is None else float(clip.estimate),
        report_goal=plan.report_goal,
    )
    received, clock = collector.collect(state.clock, task, seed=seed_for(key, "client", round))
    received = checked(received, task)
    with phase("noise"):
        total, noise = _add_noise(received.total, state.noise, updates, key)
        clip, also = _follow(plan, clip, received, round, key)
    with phase("server step"):
        model, optimizer = server_step(plan.transformation(), state.model, state.optimizer, total / plan.report_goal)
        jax.block_until_ready(model)  # type: ignore[no-untyped-call]
    outcome = _outcome(round, received, updates, clip, also, time.perf_counter() - began)
    return TrainingState(model, optimizer, noise, clock, clip), outcome


def _active_clip(plan: RoundPlan, clip: ClipState | None, round: int) -> tuple[Guarantee, ClipState | None]:
    """(of the round's updates, with the clip norm in force; the state of the clip norm with which it is played)."""
    if clip is None or plan.counts is None:
        return plan.updates, None
    clip = clip_of_round(clip, plan.counts, round)
    return replace(plan.updates, clip_norm=float(clip.active)), clip


def _follow(
    plan: RoundPlan, clip: ClipState | None, received: Collected, round: int, key: bytes
) -> tuple[ClipState | None, tuple[NoisedSum, ...]]:
    """The clip norm after the round, and what was released to move it: nothing where it is fixed."""
    if clip is None or plan.clipping is None or plan.counts is None or received.short_updates is None:
        return None, ()
    clip, release = follow(
        clip,
        received.short_updates,
        reports=received.reports,
        settings=plan.clipping,
        counts=plan.counts,
        report_goal=plan.report_goal,
        round=round,
        key=key,
    )
    return clip, (replace(release, dropped=received.dropped),)


def _add_noise(
    total: Array, noise: NoiseState | None, updates: Guarantee, key: bytes
) -> tuple[Array, NoiseState | None]:
    """The privatised sum of the round, (d,): total + seed_stddev * (row `noise.round` of C^{-1} Z)."""
    if updates.strategy is None or noise is None:
        return total, None
    stream = stream_for(updates.strategy)
    return stream.add_noise(noise, total, stddev=updates.seed_stddev, key=key, purpose="model update")


def _outcome(
    round: int,
    received: Collected,
    updates: Guarantee,
    clip: ClipState | None,
    also: tuple[NoisedSum, ...],
    seconds: float,
) -> RoundOutcome:
    release = NoisedSum(
        round=round,
        what="model update",
        strategy_record=ledger_record(updates.strategy),
        clip_norm=updates.clip_norm,
        noise_multiplier=updates.noise_multiplier,
        reports=received.reports,
        dropped=received.dropped,
    )
    seen = received.diagnostics
    return RoundOutcome(
        round=round,
        clients=received.clients,
        release=release,
        seconds=seconds,
        also=also,
        loss=None if seen is None else float(seen.losses[seen.finite].mean()),
        clipped=None if seen is None else float((seen.norms[seen.finite] > updates.clip_norm).mean()),
        clip_estimate=None if clip is None else float(clip.estimate),
    )
