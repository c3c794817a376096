"""Federated learning of any model with DP-FTRL: the round, and the loop that makes rounds durable.

A round: draw the cohort, let its clients train, sum their clipped updates, add the round's correlated noise, divide
by the constant report goal, take a server step. The residual form of ALGORITHMS section 1 is run, so no un-noised sum
is ever stored.
"""

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import optax
from jax import Array
from numpy.typing import NDArray

from tacit.errors import TrainingError
from tacit.mechanisms import NoiseState, NoiseStream, stream_for
from tacit.population import Cache
from tacit.population.cohorts import ParticipationClock, check_population, draw_cohort, start_clock
from tacit.privacy import Guarantee, RoundRelease
from tacit.runs import RoundRow, Run
from tacit.training.checkpoint import forget_old_checkpoints, leaves, load_checkpoint, save_checkpoint
from tacit.training.client import ClientTraining, ClientWork, Loss
from tacit.training.cohort import CohortSum, Workers, train_cohort
from tacit.training.randomness import generator_for, seed_for
from tacit.training.server import ServerOptimizer, server_step


@dataclass(frozen=True, kw_only=True)
class RoundPlan:
    """All that determines a run, besides its model, its population and its key."""

    guarantee: Guarantee
    report_goal: int
    client: ClientTraining
    server: ServerOptimizer

    @property
    def rounds(self) -> int:
        return self.guarantee.participation.rounds


class TrainingState(NamedTuple):
    """What is carried from round to round and saved with each ledger row."""

    model: Array  # (d,) float32
    optimizer: optax.OptState
    noise: NoiseState | None  # None: the run is not private
    clock: ParticipationClock


@dataclass(frozen=True, kw_only=True)
class Learner:
    """What is trained and on whom: the model arrives as a flat vector with its loss."""

    start: NDArray[np.float32]  # (d,) the initial model
    unravel: Callable[[Array], Any]
    loss: Loss
    cache: Cache
    clients: NDArray[np.int64]  # the training clients, as numbers in the cache

    def work(self, settings: ClientTraining) -> ClientWork:
        """What its clients compute."""
        return ClientWork(loss=self.loss, unravel=self.unravel, cache=self.cache, settings=settings)


@dataclass(frozen=True, kw_only=True)
class RoundOutcome:
    """A released round, for those who watch."""

    round: int
    clients: NDArray[np.int64]
    release: RoundRelease
    loss: float  # mean over the counted clients of their training loss
    clipped: float  # share of the counted clients whose update was clipped
    seconds: float


def initial_state(learner: Learner, plan: RoundPlan) -> TrainingState:
    """The state before the first round."""
    model = jnp.asarray(learner.start)
    stream = _stream(plan)
    return TrainingState(
        model=model,
        optimizer=plan.server.transformation(plan.rounds).init(model),
        noise=None if stream is None else stream.init(len(learner.start)),
        clock=start_clock(len(learner.clients)),
    )


def run_round(
    state: TrainingState, round: int, *, learner: Learner, plan: RoundPlan, key: bytes, workers: Workers
) -> tuple[TrainingState, RoundOutcome]:
    """One round, a pure function of (state, round, key).

    Raises: ParticipationError when too few clients are free; TrainingError when no client's update is finite.
    """
    began = time.perf_counter()
    guarantee = plan.guarantee
    cohort, clock = draw_cohort(
        state.clock,
        guarantee.participation,
        round=round,
        report_goal=plan.report_goal,
        generator=generator_for(key, "cohort", round),
    )
    clients = learner.clients[cohort]
    received = train_cohort(
        learner.work(plan.client),
        state.model,
        clients,
        seed=seed_for(key, "client", round),
        clip_norm=guarantee.clip_norm,
        workers=workers,
    )
    if not received.finite.any():
        raise TrainingError(
            f"round {round}: none of {len(cohort)} clients' updates was finite, so the model has diverged; "
            "lower server.learning_rate or client.learning_rate. The run folder keeps the round before."
        )
    total, noise = _add_noise(received.total, state.noise, plan, key)
    step = plan.server.transformation(plan.rounds)
    model, optimizer = server_step(step, state.model, state.optimizer, total / plan.report_goal)
    outcome = _outcome(round, clients, received, guarantee, time.perf_counter() - began)
    return TrainingState(model, optimizer, noise, clock), outcome


def train(
    run: Run,
    learner: Learner,
    plan: RoundPlan,
    *,
    workers: Workers,
    watch: Callable[[RoundOutcome], None],
    measure: Callable[[int, Array], None],
    until: int | None = None,
) -> Array:
    """Run the rounds that `run` lacks (up to `until`, else all) and return the flat model after the last.

    watch(outcome) is called when a round is computed; measure(rounds done, model) when it is durable, and for the
    state found at the start. The checkpoint of a round is written while the next round is computed; the round's
    ledger row is committed when its checkpoint is on disk.
    """
    check_population(plan.guarantee.participation, clients=len(learner.clients), report_goal=plan.report_goal)
    key = run.noise_key
    state = initial_state(learner, plan)
    if run.last_checkpoint is not None:
        state = load_checkpoint(run.last_checkpoint, state, run.rounds()[-1].digest)
    done = run.rounds_done
    measure(done, state.model)
    with ThreadPoolExecutor(1, thread_name_prefix="disk") as disk:
        pending: _Pending | None = None
        for round in range(done, plan.rounds if until is None else until):
            try:
                state, outcome = run_round(state, round, learner=learner, plan=plan, key=key, workers=workers)
            finally:  # a round that cannot be computed takes nothing from the one before it
                if pending is not None:
                    pending.commit(run)
            if pending is not None:
                measure(pending.outcome.round + 1, pending.state.model)
            pending = _Pending.begin(disk, run, state, outcome)
            watch(outcome)
        if pending is not None:
            pending.commit(run)
            measure(pending.outcome.round + 1, pending.state.model)
    return state.model


@dataclass(frozen=True, kw_only=True)
class _Pending:
    """A computed round whose checkpoint is being written."""

    written: "Future[str]"
    checkpoint: str
    state: TrainingState
    outcome: RoundOutcome

    @classmethod
    def begin(cls, disk: ThreadPoolExecutor, run: Run, state: TrainingState, outcome: RoundOutcome) -> "_Pending":
        name = f"round-{outcome.round:06d}.safetensors"
        # Copied here, because the next round may reuse the memory of the noise buffers (donation).
        written = disk.submit(save_checkpoint, run.path / "checkpoints" / name, leaves(state))
        return cls(written=written, checkpoint=name, state=state, outcome=outcome)

    def commit(self, run: Run) -> None:
        """Raises: what the writing raised (OSError on a full disk); the round is not done then."""
        row = RoundRow(
            round=self.outcome.round,
            checkpoint=self.checkpoint,
            digest=self.written.result(),
            release=self.outcome.release.to_record(),
            measures={"loss": self.outcome.loss, "clipped": self.outcome.clipped},
        )
        run.commit(row, clients=self.outcome.clients, finished=time.time(), seconds=self.outcome.seconds)
        forget_old_checkpoints(run.path / "checkpoints", keep=2)


def _stream(plan: RoundPlan) -> NoiseStream | None:
    return None if plan.guarantee.strategy is None else stream_for(plan.guarantee.strategy)


def _add_noise(total: Array, noise: NoiseState | None, plan: RoundPlan, key: bytes) -> tuple[Array, NoiseState | None]:
    """The privatised sum of the round, (d,): total + seed_stddev * (row `noise.round` of C^{-1} Z)."""
    stream = _stream(plan)
    if stream is None or noise is None:
        return total, None
    return stream.add_noise(noise, total, stddev=plan.guarantee.seed_stddev, key=key, purpose="model update")


def _outcome(
    round: int, clients: NDArray[np.int64], received: CohortSum, guarantee: Guarantee, seconds: float
) -> RoundOutcome:
    counted = received.finite
    release = RoundRelease(
        round=round,
        what="model update",
        strategy_record=None if guarantee.strategy is None else guarantee.strategy.to_record(),
        clip_norm=guarantee.clip_norm,
        noise_multiplier=guarantee.noise_multiplier,
        reports=int(counted.sum()),
        dropped=int((~counted).sum()),
    )
    return RoundOutcome(
        round=round,
        clients=clients,
        release=release,
        loss=float(received.losses[counted].mean()),
        clipped=float((received.norms[counted] > guarantee.clip_norm).mean()),
        seconds=seconds,
    )
