"""Who asks the devices: a task goes out, a sum of clipped updates comes back. Rounds do not know how.

`SimulatedCollector` draws the cohort of a simulated population and has this machine's processors (or a cluster) train
it. A server with real devices is another `Collector`, and so is anything that takes a task and brings a bounded sum.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from tacit.compute.profile import phase
from tacit.data import Cache
from tacit.errors import TrainingError
from tacit.training.client import ClientAlgorithm, ClientTraining, ClientWork, Loss
from tacit.training.cohort import Workers, train_cohort
from tacit.training.private_loss import bounded_sum
from tacit.training.sampling import Cohorts
from tacit.training.secure_updates import RoundEncoding


@dataclass(frozen=True, kw_only=True)
class TrainingTask:
    """What the devices of a round are asked."""

    round: int
    model: Array  # (d,) float32, the broadcast model
    client: ClientTraining  # what each of them computes
    clip_norm: float  # the norm that no update may exceed in the sum
    clip_estimate: float | None  # each says in one bit whether its update is no longer than this; None: not asked
    report_goal: int  # how many reports are wanted
    loss_bound: float | None = None  # each sends its training loss, clipped to [0, this]; None: not asked
    secure: RoundEncoding | None = None  # each encodes its update so, for a sum modulo 2^b; None: updates in the clear
    least: int = 1  # no sum of fewer reports may be opened


class Diagnostics(NamedTuple):
    """What a simulation sees of single clients, and no server of real devices."""

    norms: NDArray[np.float32]  # (clients,) of the updates before clipping
    finite: NDArray[np.bool_]  # (clients,): False were dropped
    losses: NDArray[np.float32]  # (clients,) mean training loss over the client's batches


class Collected(NamedTuple):
    """What comes back of a round's devices."""

    total: Array  # (d,) float32: the sum of clipped updates, in the clear or decoded from a secure sum
    reports: int  # updates in the sum
    dropped: int  # devices that sent nothing usable
    short_updates: int | None  # how many said that their update was no longer than the estimate; None: not asked
    clients: NDArray[np.int64]  # who took part, for the log: each once; pseudonyms where devices are real
    diagnostics: Diagnostics | None = None  # simulations only
    losses: float | None = None  # sum of the reports' clipped losses, each minus half the bound; None: not asked


class Collector(Protocol):
    """Asks devices. Each device takes part at most once in a round, and its summand has norm at most the clip norm.

    The guarantee of a run rests on these two sentences, and on what its log says of who took part when.
    """

    def init(self) -> Any:
        """What is carried from round to round, before the first: arrays in any nesting, saved with the model."""
        ...

    def collect(self, state: Any, task: TrainingTask, *, seed: bytes) -> tuple[Collected, Any]:
        """The answers of the round's devices, and the state after it; `state` is left as it was.

        seed: of the devices' own randomness in this round; neither the noise nor the choice of devices follows from it.
        """
        ...


def checked(collected: Collected, task: TrainingTask) -> Collected:
    """What was collected, if a model may be made from it. Raises: TrainingError."""
    if not collected.reports:
        raise TrainingError(
            f"round {task.round}: none of {collected.dropped} clients' updates was finite, so the model has diverged; "
            "lower server.learning_rate or client.learning_rate. The run folder keeps the round before."
        )
    if collected.reports < task.least:
        raise TrainingError(
            f"round {task.round}: {collected.reports} reports came, and no sum of fewer than {task.least} is opened "
            "(aggregation.threshold); nothing was released. Look at why so many were dropped, or begin a new run with "
            "a lower threshold."
        )
    wrong = None
    if collected.total.shape != task.model.shape or collected.total.dtype != task.model.dtype:
        wrong = f"a sum of shape {collected.total.shape} in {collected.total.dtype}"
    elif not bool(jnp.isfinite(collected.total).all()):
        wrong = "a sum that is not finite"
    elif len(np.unique(collected.clients)) < len(collected.clients):
        wrong = "a client twice"
    elif len(collected.clients) < collected.reports:
        wrong = f"{collected.reports} reports of {len(collected.clients)} clients"
    elif collected.short_updates is None and task.clip_estimate is not None:
        wrong = "no count of short updates"
    elif collected.short_updates is not None and task.clip_estimate is None:
        wrong = "a count of short updates that nobody asked for"
    elif collected.short_updates is not None and not 0 <= collected.short_updates <= collected.reports:
        wrong = f"{collected.short_updates} short updates of {collected.reports}"
    elif (collected.losses is None) != (task.loss_bound is None):
        wrong = "no sum of losses" if collected.losses is None else "a sum of losses that nobody asked for"
    elif collected.losses is not None and not abs(collected.losses) <= collected.reports * (task.loss_bound or 0) / 2:
        wrong = f"losses that sum up to {collected.losses:g}, beyond {collected.reports} times half their bound"
    if wrong:
        raise TrainingError(
            f"round {task.round}: the collector brought {wrong}, and no guarantee covers that; mend its `collect`."
        )
    return collected


@dataclass(frozen=True, kw_only=True)
class Learner:
    """What is trained and on whose text: a flat vector, how it becomes a model, its loss, the clients of a cache."""

    start: NDArray[np.float32]  # (d,) the initial model
    unravel: Callable[[Array], Any]
    loss: Loss
    cache: Cache
    clients: NDArray[np.int64]  # the training clients, as numbers in the cache
    algorithm: ClientAlgorithm | None = None  # what a device computes; None: local SGD

    def work(self, settings: ClientTraining) -> ClientWork:
        """What its clients compute."""
        return ClientWork(
            loss=self.loss, unravel=self.unravel, cache=self.cache, settings=settings, algorithm=self.algorithm
        )


class SimulatedCollector:
    """A population whose text is in a cache: its cohorts say who takes part, workers train them."""

    def __init__(self, learner: Learner, cohorts: Cohorts, workers: Workers) -> None:
        self._learner, self._cohorts, self._workers = learner, cohorts, workers

    def init(self) -> Any:
        """See Collector. Raises: ParticipationError or InputError for what must fail in a later round."""
        return self._cohorts.init()

    def collect(self, state: Any, task: TrainingTask, *, seed: bytes) -> tuple[Collected, Any]:
        """See Collector. Raises: ParticipationError when too few clients are free."""
        with phase("cohort"):
            clients, after = self._cohorts.draw(state, task.round)
        with phase("training"):
            received = train_cohort(
                self._learner.work(task.client),
                task.model,
                clients,
                seed=seed,
                clip_norm=task.clip_norm,
                workers=self._workers,
                secure=task.secure,
            )
        reports = int(received.finite.sum())
        collected = Collected(
            total=received.total,
            reports=reports,
            dropped=len(clients) - reports,
            short_updates=shorter(received.norms[received.finite], task.clip_estimate),
            clients=clients,
            diagnostics=Diagnostics(received.norms, received.finite, received.losses),
            losses=bounded_sum(received.losses[received.finite], task.loss_bound, whole=task.secure is not None),
        )
        return collected, after


def shorter(norms: NDArray[np.float32], estimate: float | None) -> int | None:
    """How many norms are at most the estimate, compared in float64."""
    return None if estimate is None else int((norms <= np.float64(estimate)).sum())
