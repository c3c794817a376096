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
from tacit.federation.collector import Answered, Collector
from tacit.federation.report_shape import LOSS, SHORT
from tacit.mechanisms import NoiseState, stream_for
from tacit.mechanisms.all_rounds import with_noise_of
from tacit.privacy import Guarantee
from tacit.privacy.encoding import Encoding
from tacit.privacy.separation import DeviceSeparation
from tacit.privacy.shared_noise import of_one
from tacit.statements import NoisedSum
from tacit.statements.ledger import CLIP_ESTIMATE, TRAINING_LOSS, ledger_record
from tacit.training.adaptive_clipping import AdaptiveClipping, ClipState, clip_of_round, first_clip, follow
from tacit.training.client import ClientTraining
from tacit.training.collect import TrainQuestion
from tacit.training.decryptors import first_states, noise_words, state_replayed
from tacit.training.private_loss import PrivateLoss, first_noise, release
from tacit.training.randomness import seed_for
from tacit.training.secure_updates import Residues, RoundEncoding, SecureUpdates, round_signs
from tacit.training.server import ServerOptimizer, server_step

Replay = Callable[[NoiseState, NDArray[np.uint8]], NoiseState]  # as `NoiseStream.again`
OwnOptimizer = Callable[[int], optax.GradientTransformation]  # of a run of so many rounds


@dataclass(frozen=True, kw_only=True)
class RoundPlan:
    """All that determines a run, besides its model, its devices and its key."""

    guarantee: Guarantee  # of all that is released together
    report_goal: int
    client: ClientTraining
    server: ServerOptimizer
    clipping: AdaptiveClipping | None = None  # None: the clip norm of the guarantee, in every round
    loss: PrivateLoss | None = None  # None: no training loss is released
    secure: SecureUpdates | None = None  # updates are summed as integers; None: in the clear
    optimizer: OwnOptimizer | None = None  # in place of the one that `server` describes; sees noised means only
    separation: DeviceSeparation | None = None  # of devices without identities; None: it is logged who took part

    @property
    def rounds(self) -> int:
        return self.guarantee.participation.rounds

    @property
    def updates(self) -> Guarantee:
        """What the model updates promise by themselves, with the first clip norm."""
        rest = self._without_losses
        return rest if self.clipping is None else self.clipping.guarantees(rest, self.report_goal)[0]

    @property
    def counts(self) -> Guarantee | None:
        """What the counts of short updates promise by themselves; None: there are none."""
        return None if self.clipping is None else self.clipping.guarantees(self._without_losses, self.report_goal)[1]

    @property
    def losses(self) -> Guarantee | None:
        """What the sums of losses promise by themselves; None: there are none."""
        return None if self.loss is None else self.loss.guarantees(self.guarantee, self.report_goal)[1]

    def encoding(self, parameters: int) -> Encoding | None:
        """Of the updates of a model of so many parameters, with the first clip norm; None: they are not encoded.

        Raises: InputError for a report goal beyond the modulus, or below the threshold.
        """
        if self.secure is None:
            return None
        encoding = self.secure.encoding(parameters, self.updates, self.report_goal)
        if not self.decryptors:
            return encoding
        return with_noise_of(self.decryptors, encoding, self.updates, honest=self.honest_decryptors)

    @property
    def decryptors(self) -> int:
        """How many parties each add noise to every sum, in the server's place; 0: the server adds it."""
        return 0 if self.secure is None else self.secure.decryptors

    @property
    def honest_decryptors(self) -> int:
        """How many of them together add the noise that is accounted; 1: each adds all of it."""
        return 1 if self.secure is None else self.secure.honest_decryptors

    @property
    def simulated_decryptors(self) -> int:
        """How many decryptors are played here: those of real devices are elsewhere, and have their noise themselves."""
        return self.decryptors if self.separation is None else 0

    @property
    def beside(self) -> dict[str, Guarantee]:
        """What is released beside the updates in every round, by the names of the ledger."""
        sides = {CLIP_ESTIMATE: self.counts, TRAINING_LOSS: self.losses}
        return {what: guarantee for what, guarantee in sides.items() if guarantee is not None}

    @property
    def _without_losses(self) -> Guarantee:
        """What is left for the updates and their counts."""
        return self.guarantee if self.loss is None else self.loss.guarantees(self.guarantee, self.report_goal)[0]

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
    loss: NoiseState | None = None  # of the losses' noise; None: none are released, or the run is not private
    # of each decryptor's noise, where there are decryptors; `noise` is None then
    decryptors: tuple[NoiseState, ...] = ()


@dataclass(frozen=True, kw_only=True)
class RoundOutcome:
    """A released round, for those who watch."""

    round: int
    clients: NDArray[np.int64] | int  # who took part, or how many did
    release: NoisedSum
    seconds: float
    also: tuple[NoisedSum, ...] = ()  # released beside the updates
    loss: float | None = None  # mean over the counted clients of their training loss; simulations only
    clipped: float | None = None  # share of the counted clients whose update was clipped; simulations only
    clip_estimate: float | None = None  # after the round; None: the clip norm is fixed
    private_loss: float | None = None  # the mean training loss as it was released; None: it was not

    @property
    def measures(self) -> dict[str, float]:
        """What of a round is kept in its row."""
        found = {} if self.loss is None or self.clipped is None else {"loss": self.loss, "clipped": self.clipped}
        if self.clip_estimate is not None:
            found |= {"clip_norm": self.release.clip_norm, "clip_estimate": self.clip_estimate}
        if self.private_loss is not None:
            found["private_loss"] = self.private_loss
        return found


def initial_state(start: ArrayLike, plan: RoundPlan, collector: Collector) -> TrainingState:
    """The state before the first round. start: (d,) the initial model.

    Raises: what the collector refuses before the first round because it would fail in a later one; InputError for sums
    that no words hold.
    """
    model = jnp.asarray(start)
    encoding, strategy = plan.encoding(len(model)), plan.guarantee.strategy
    kept = first_states(plan.simulated_decryptors, strategy, encoding.dimension) if strategy and encoding else ()
    return TrainingState(
        model=model,
        optimizer=plan.transformation().init(model),
        noise=None if strategy is None or plan.decryptors else stream_for(strategy).init(len(model)),
        clock=collector.init(),
        clip=None if plan.clipping is None or plan.counts is None else first_clip(plan.clipping, plan.counts),
        loss=None if plan.losses is None else first_noise(plan.losses),
        decryptors=kept,
    )


def noise_replayed(plan: RoundPlan, parameters: int, key: bytes) -> Replay | None:
    """How rounds of the model updates' noise are played again from their keys; None: no noise is drawn here.

    key: the run's, from which the bases of rounds follow, in which decryptors draw.
    """
    strategy, encoding = plan.updates.strategy, plan.encoding(parameters)
    if strategy is None:
        return None
    if not plan.decryptors or encoding is None:
        return stream_for(strategy).replayed
    if not plan.simulated_decryptors:
        return None
    return lambda state, keys: state_replayed(strategy, encoding, state, keys, key=key)


def run_round(
    state: TrainingState, round: int, *, plan: RoundPlan, key: bytes, collector: Collector
) -> tuple[TrainingState, RoundOutcome]:
    """One round, a pure function of (state, round, key) and of what the devices answer.

    Raises: ParticipationError when too few clients are free; TrainingError when no client's update is finite.
    """
    began = time.perf_counter()
    updates, clip = _active_clip(plan, state.clip, round)
    secure = _round_encoding(plan, state, updates, clip, key, round)
    with phase("noise"):
        words, kept = _noise_of_decryptors(state, of_one(updates, plan.honest_decryptors), secure, key)
    question = TrainQuestion(
        round=round,
        model=state.model,
        client=plan.client,
        clip_norm=updates.clip_norm,
        clip_estimate=None if clip is None else float(clip.estimate),
        report_goal=plan.report_goal,
        loss_bound=None if plan.loss is None else plan.loss.bound,
        secure=secure,
        separation=plan.separation,
        noise=words,
    )
    received, clock = collector.collect(state.clock, question, seed=seed_for(key, "client", round))
    question.check(received)
    with phase("noise"):
        total, noise = _add_noise(received.values, state.noise, updates, key)
        clip, counted = _follow(plan, clip, received, round, key)
        private_loss, loss, summed = _release_loss(plan, state.loss, received, round, key)
    with phase("server step"):
        model, optimizer = server_step(plan.transformation(), state.model, state.optimizer, total / plan.report_goal)
        jax.block_until_ready(model)  # type: ignore[no-untyped-call]
    outcome = replace(
        _outcome(round, received, updates, plan, clip, time.perf_counter() - began),
        also=(*counted, *summed),
        private_loss=private_loss,
    )
    return TrainingState(model, optimizer, noise, clock, clip, loss, kept), outcome


def _active_clip(plan: RoundPlan, clip: ClipState | None, round: int) -> tuple[Guarantee, ClipState | None]:
    """(of the round's updates, with the clip norm in force; the state of the clip norm with which it is played)."""
    if clip is None or plan.counts is None:
        return plan.updates, None
    clip = clip_of_round(clip, plan.counts, round)
    return replace(plan.updates, clip_norm=float(clip.active)), clip


def _round_encoding(
    plan: RoundPlan, state: TrainingState, updates: Guarantee, clip: ClipState | None, key: bytes, round: int
) -> RoundEncoding | None:
    """How the round's devices encode: scale times clip norm stays, whatever the clip norm in force."""
    encoding = plan.encoding(len(state.model))
    if encoding is None or plan.secure is None:
        return None
    return RoundEncoding(
        encoding=encoding.with_clip_norm(updates.clip_norm),
        signs=round_signs(key, round),
        clip_estimate=None if clip is None else float(clip.estimate),
        loss_bound=None if plan.loss is None else plan.loss.bound,
        threshold=plan.secure.min_reports(plan.report_goal),
        played=plan.secure.played,
        dropout=plan.secure.dropout,
    )


def _noise_of_decryptors(
    state: TrainingState, one: Guarantee, secure: RoundEncoding | None, key: bytes
) -> tuple[tuple[Residues, ...], tuple[NoiseState, ...]]:
    """(what each decryptor adds to the round's sum, before anybody decodes it; what it carries then)."""
    if secure is None or not state.decryptors:
        return (), ()
    return noise_words(state.decryptors, one, secure, model=state.model, key=key)


def _follow(
    plan: RoundPlan, clip: ClipState | None, received: Answered, round: int, key: bytes
) -> tuple[ClipState | None, tuple[NoisedSum, ...]]:
    """The clip norm after the round, and what was released to move it: nothing where it is fixed."""
    if clip is None or plan.clipping is None or plan.counts is None or SHORT not in received.beside:
        return None, ()
    clip, release = follow(
        clip,
        int(received.beside[SHORT]),
        reports=received.reports,
        settings=plan.clipping,
        counts=plan.counts,
        report_goal=plan.report_goal,
        round=round,
        key=key,
    )
    return clip, (replace(release, dropped=received.dropped),)


def _release_loss(
    plan: RoundPlan, noise: NoiseState | None, received: Answered, round: int, key: bytes
) -> tuple[float | None, NoiseState | None, tuple[NoisedSum, ...]]:
    """The round's training loss as released, the state of its noise, its release: nothing where nobody asks."""
    if plan.loss is None or plan.losses is None or LOSS not in received.beside:
        return None, None, ()
    mean, noise, row = release(
        received.beside[LOSS],
        noise,
        settings=plan.loss,
        guarantee=plan.losses,
        report_goal=plan.report_goal,
        reports=received.reports,
        dropped=received.dropped,
        round=round,
        key=key,
    )
    return mean, noise, (row,)


def _add_noise(
    total: Array, noise: NoiseState | None, updates: Guarantee, key: bytes
) -> tuple[Array, NoiseState | None]:
    """The privatised sum of the round, (d,): total + seed_stddev * (row `noise.round` of C^{-1} Z); the total as it is,
    where no noise is the server's to add.
    """
    if updates.strategy is None or noise is None:
        return total, None
    stream = stream_for(updates.strategy)
    return stream.add_noise(noise, total, stddev=updates.seed_stddev, key=key, purpose="model update")


def _outcome(
    round: int,
    received: Answered,
    updates: Guarantee,
    plan: RoundPlan,
    clip: ClipState | None,
    seconds: float,
) -> RoundOutcome:
    updated = NoisedSum(
        round=round,
        what="model update",
        strategy_record=ledger_record(updates.strategy),
        clip_norm=updates.clip_norm,
        noise_multiplier=updates.noise_multiplier,
        reports=received.reports,
        dropped=received.dropped,
        clip_inflation=updates.clip_inflation,
        decryptors=plan.decryptors,
        honest_decryptors=plan.honest_decryptors,
    )
    seen = received.diagnostics
    return RoundOutcome(
        round=round,
        clients=received.clients,
        release=updated,
        seconds=seconds,
        loss=None if seen is None else float(seen.losses[seen.counted].mean()),
        clipped=None if seen is None else float((seen.norms[seen.counted] > updates.clip_norm).mean()),
        clip_estimate=None if clip is None else float(clip.estimate),
    )
