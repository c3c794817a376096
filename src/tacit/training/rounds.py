"""Federated learning of any model with DP-FTRL: the round, and the loop that makes rounds durable.

A round: draw the cohort, let its clients train, sum their clipped updates, add the round's correlated noise, divide
by the constant report goal, take a server step. The residual form of ALGORITHMS section 1 is run, so no un-noised sum
is ever stored.
"""

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array
from numpy.typing import NDArray

from tacit.compute.profile import WRITING, Profile
from tacit.data import Cache
from tacit.errors import InputError, TrainingError
from tacit.mechanisms import NoiseState, stream_for
from tacit.population.cohorts import ParticipationClock, check_population, draw_cohort, start_clock
from tacit.population.simulated_cohorts import SimulatedClock, SimulatedCohorts
from tacit.population.supply import check_supply
from tacit.privacy import Guarantee
from tacit.records import to_plain
from tacit.runs import RoundRow, Run
from tacit.statements import NoisedSum
from tacit.statements.ledger import ledger_record
from tacit.training.adaptive_clipping import AdaptiveClipping, ClipState, clip_of_round, first_clip, follow
from tacit.training.checkpoint import forget_old_checkpoints, leaves, load_checkpoint, save_checkpoint
from tacit.training.client import ClientTraining, ClientWork, Loss
from tacit.training.cohort import CohortSum, Workers, train_cohort
from tacit.training.randomness import generator_for, seed_for
from tacit.training.server import ServerOptimizer, server_step

During = Callable[[str], AbstractContextManager[None]]  # Profile.phase
KEPT = 2  # checkpoints: the last, and the one before, whose model may still be under evaluation


@dataclass(frozen=True, kw_only=True)
class RoundPlan:
    """All that determines a run, besides its model, its population and its key."""

    guarantee: Guarantee  # of all that is released together
    report_goal: int
    client: ClientTraining
    server: ServerOptimizer
    clipping: AdaptiveClipping | None = None  # None: the clip norm of the guarantee, in every round
    cohorts: SimulatedCohorts | None = None  # None: drawn uniformly within the participation of the guarantee

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


class TrainingState(NamedTuple):
    """What is carried from round to round and saved with each ledger row."""

    model: Array  # (d,) float32
    optimizer: optax.OptState
    noise: NoiseState | None  # None: the run is not private
    clock: ParticipationClock | SimulatedClock
    clip: ClipState | None = None  # None: the clip norm is fixed


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
    release: NoisedSum
    loss: float  # mean over the counted clients of their training loss
    clipped: float  # share of the counted clients whose update was clipped
    seconds: float
    also: tuple[NoisedSum, ...] = ()  # released beside the updates
    clip_estimate: float | None = None  # after the round; None: the clip norm is fixed

    @property
    def measures(self) -> dict[str, float]:
        """What of a round is kept in its row."""
        found = {"loss": self.loss, "clipped": self.clipped}
        if self.clip_estimate is not None:
            found |= {"clip_norm": self.release.clip_norm, "clip_estimate": self.clip_estimate}
        return found


class Measure(Protocol):
    """Whoever looks at the models of a run. A look may be taken beside the rounds that follow."""

    def due(self, rounds: int) -> bool:
        """Whether the model after so many rounds is to be measured and its numbers are not yet in the run folder."""
        ...

    def __call__(self, rounds: int, model: Array) -> None:
        """The model after so many rounds is durable. What was begun before is in the run folder when this returns."""
        ...

    def settle(self) -> None:
        """All that was begun is in the run folder when this returns."""
        ...


def initial_state(learner: Learner, plan: RoundPlan) -> TrainingState:
    """The state before the first round."""
    model = jnp.asarray(learner.start)
    strategy = plan.guarantee.strategy
    return TrainingState(
        model=model,
        optimizer=plan.server.transformation(plan.rounds).init(model),
        noise=None if strategy is None else stream_for(strategy).init(len(learner.start)),
        clock=start_clock(len(learner.clients)) if plan.cohorts is None else plan.cohorts.start(),
        clip=None if plan.clipping is None or plan.counts is None else first_clip(plan.clipping, plan.counts),
    )


def run_round(
    state: TrainingState,
    round: int,
    *,
    learner: Learner,
    plan: RoundPlan,
    key: bytes,
    workers: Workers,
    profile: Profile | None = None,
) -> tuple[TrainingState, RoundOutcome]:
    """One round, a pure function of (state, round, key).

    Raises: ParticipationError when too few clients are free; TrainingError when no client's update is finite.
    """
    began, during = time.perf_counter(), (profile or Profile()).phase
    updates, clip = _active_clip(plan, state.clip, round)
    with during("cohort"):
        cohort, clock = _cohort(plan, state.clock, round, key)
        clients = learner.clients[cohort]
    with during("training"):
        received = train_cohort(
            learner.work(plan.client),
            state.model,
            clients,
            seed=seed_for(key, "client", round),
            clip_norm=updates.clip_norm,
            workers=workers,
        )
    if not received.finite.any():
        raise TrainingError(
            f"round {round}: none of {len(cohort)} clients' updates was finite, so the model has diverged; "
            "lower server.learning_rate or client.learning_rate. The run folder keeps the round before."
        )
    with during("noise"):
        total, noise = _add_noise(received.total, state.noise, updates, key)
        clip, also = _follow(plan, clip, received, round, key)
    with during("server step"):
        step = plan.server.transformation(plan.rounds)
        model, optimizer = server_step(step, state.model, state.optimizer, total / plan.report_goal)
        jax.block_until_ready(model)  # type: ignore[no-untyped-call]
    outcome = _outcome(round, clients, received, updates, clip, also, time.perf_counter() - began)
    return TrainingState(model, optimizer, noise, clock, clip), outcome


def train(
    run: Run,
    learner: Learner,
    plan: RoundPlan,
    *,
    workers: Workers,
    watch: Callable[[RoundOutcome], None],
    measure: Measure,
    until: int | None = None,
    profile: Profile | None = None,
) -> Array:
    """Run the rounds that `run` lacks (up to `until`, else all) and return the flat model after the last.

    watch(outcome) is called when a round is computed; measure(rounds done, model) when it is durable, and for the
    state found at the start. The checkpoint of a round is written while the next round is computed; the round's
    ledger row is committed when its checkpoint is on disk, and its checkpoint kept until its model is measured.
    """
    check_cohorts(plan, len(learner.clients))
    profile = profile or Profile()
    during, key, done = profile.phase, run.noise_key, run.rounds_done
    state = _found(run, learner, plan, measure, during)
    with ThreadPoolExecutor(1, thread_name_prefix="disk") as disk:
        pending: _Pending | None = None
        for round in range(done, plan.rounds if until is None else until):
            try:
                state, outcome = run_round(
                    state, round, learner=learner, plan=plan, key=key, workers=workers, profile=profile
                )
            finally:  # a round that cannot be computed takes nothing from the one before it
                if pending is not None:
                    pending.commit(run, during)
            if pending is not None:
                with during("evaluation"):
                    measure(pending.outcome.round + 1, pending.state.model)
            pending = _Pending.begin(disk, run, state, outcome, profile)
            watch(outcome)
        if pending is not None:
            pending.commit(run, during)
            with during("evaluation"):
                measure(pending.outcome.round + 1, pending.state.model)
    with during("evaluation"):
        measure.settle()
    return state.model


def _found(run: Run, learner: Learner, plan: RoundPlan, measure: Measure, during: During) -> TrainingState:
    """The state after the last done round. What a killed process had no time to measure is measured now."""
    with during("start"):
        state = initial_state(learner, plan)
    with during("evaluation"):
        measure(0, state.model)
    for row in run.rounds()[-KEPT:]:
        path, last = run.path / "checkpoints" / row.checkpoint, row.round == run.rounds_done - 1
        if last or (measure.due(row.round + 1) and path.exists()):
            with during("start"):
                state = load_checkpoint(path, state, row.digest)
            with during("evaluation"):
                measure(row.round + 1, state.model)
    return state


@dataclass(frozen=True, kw_only=True)
class _Pending:
    """A computed round whose checkpoint is being written."""

    written: "Future[str]"
    checkpoint: str
    state: TrainingState
    outcome: RoundOutcome

    @classmethod
    def begin(
        cls, disk: ThreadPoolExecutor, run: Run, state: TrainingState, outcome: RoundOutcome, profile: Profile
    ) -> "_Pending":
        name = f"round-{outcome.round:06d}.safetensors"
        with profile.phase("checkpoint"):
            taken = leaves(state)  # here, because the next round writes over the noise buffers

        def write() -> str:
            with profile.beside(WRITING):
                return save_checkpoint(run.path / "checkpoints" / name, taken)

        return cls(written=disk.submit(write), checkpoint=name, state=state, outcome=outcome)

    def commit(self, run: Run, during: During) -> None:
        """Raises: what the writing raised (OSError on a full disk); the round is not done then."""
        with during("checkpoint"):
            digest = self.written.result()
        row = RoundRow(
            round=self.outcome.round,
            checkpoint=self.checkpoint,
            digest=digest,
            release=to_plain(self.outcome.release),
            measures=self.outcome.measures,
            also=tuple(to_plain(each) for each in self.outcome.also),
        )
        with during("commit"):
            run.commit(row, clients=self.outcome.clients, finished=time.time(), seconds=self.outcome.seconds)
            forget_old_checkpoints(run.path / "checkpoints", keep=KEPT)


def check_cohorts(plan: RoundPlan, clients: int) -> None:
    """Refuse before the first round what must fail in a later one.

    Raises: ParticipationError naming what would fit; InputError where the simulated population is another one.
    """
    simulated = plan.cohorts
    if simulated is None:
        check_population(plan.guarantee.participation, clients=clients, report_goal=plan.report_goal)
        return
    devices, goal = simulated.population.devices, simulated.rules.report_goal
    if (devices, goal) != (clients, plan.report_goal):
        raise InputError(
            f"{devices} simulated devices with report_goal={goal} are not the {clients} clients with "
            f"report_goal={plan.report_goal} that train; simulate those."
        )
    check_supply(simulated.population, simulated.rules, plan.rounds, simulated.seed)


def _cohort(
    plan: RoundPlan, clock: ParticipationClock | SimulatedClock, round: int, key: bytes
) -> tuple[NDArray[np.int64], ParticipationClock | SimulatedClock]:
    """Who trains in this round, (report goal,) positions in the learner's clients, and the clock after it."""
    if isinstance(clock, ParticipationClock):
        return draw_cohort(
            clock,
            plan.guarantee.participation,
            round=round,
            report_goal=plan.report_goal,
            generator=generator_for(key, "cohort", round),
        )
    if plan.cohorts is None:
        raise InputError("the state is of a simulated population and the plan has none; give it the same cohorts.")
    happened, after = plan.cohorts.next_cohort(clock, round)
    return happened.clients, after


def _active_clip(plan: RoundPlan, clip: ClipState | None, round: int) -> tuple[Guarantee, ClipState | None]:
    """(of the round's updates, with the clip norm in force; the state of the clip norm with which it is played)."""
    if clip is None or plan.counts is None:
        return plan.updates, None
    clip = clip_of_round(clip, plan.counts, round)
    return replace(plan.updates, clip_norm=float(clip.active)), clip


def _follow(
    plan: RoundPlan, clip: ClipState | None, received: CohortSum, round: int, key: bytes
) -> tuple[ClipState | None, tuple[NoisedSum, ...]]:
    """The clip norm after the round, and what was released to move it: nothing where it is fixed."""
    if clip is None or plan.clipping is None or plan.counts is None:
        return None, ()
    clip, release = follow(
        clip,
        received.norms[received.finite],
        settings=plan.clipping,
        counts=plan.counts,
        report_goal=plan.report_goal,
        round=round,
        key=key,
    )
    return clip, (replace(release, dropped=int((~received.finite).sum())),)


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
    clients: NDArray[np.int64],
    received: CohortSum,
    updates: Guarantee,
    clip: ClipState | None,
    also: tuple[NoisedSum, ...],
    seconds: float,
) -> RoundOutcome:
    counted = received.finite
    release = NoisedSum(
        round=round,
        what="model update",
        strategy_record=ledger_record(updates.strategy),
        clip_norm=updates.clip_norm,
        noise_multiplier=updates.noise_multiplier,
        reports=int(counted.sum()),
        dropped=int((~counted).sum()),
    )
    return RoundOutcome(
        round=round,
        clients=clients,
        release=release,
        loss=float(received.losses[counted].mean()),
        clipped=float((received.norms[counted] > updates.clip_norm).mean()),
        seconds=seconds,
        also=also,
        clip_estimate=None if clip is None else float(clip.estimate),
    )
