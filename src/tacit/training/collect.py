"""Who asks the devices: a task goes out, a sum of clipped updates comes back. Rounds do not know how.

`SimulatedCollector` draws the cohort of a simulated population and has this machine's processors (or a cluster) train
it. A server with real devices is another `Collector`, and so is anything that takes a task and brings a bounded sum.

Two attributes of a collector are optional. `broadcasts = True` says that its tasks leave this machine: a round's model
is then asked about only when the ledger row of the round is on disk. `released(round)` is called when it is; after a
kill, and when a run is gone on with, once more for the last round.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from tacit.compute.profile import phase
from tacit.data import Cache
from tacit.errors import ParticipationError, RoundAborted, TrainingError
from tacit.privacy.separation import DeviceSeparation
from tacit.training.client import ClientAlgorithm, ClientTraining, ClientWork, Loss
from tacit.training.cohort import Workers, train_cohort
from tacit.training.report_encoding import bounded_sum, shorter
from tacit.training.sampling import Cohorts
from tacit.training.secure_updates import Residues, RoundEncoding


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
    separation: DeviceSeparation | None = None  # what each keeps by itself; None: the collector says who took part
    noise: tuple[Residues, ...] = ()  # of a simulation's keepers: what each sends, of which no sum is without

    @property
    def least(self) -> int:
        """No sum of fewer reports may be opened."""
        return 1 if self.secure is None else self.secure.threshold


ATTEMPTS = 10  # cohorts that are asked in a round whose protocols are aborted
WAY_OUT = "Look at why so many sent nothing usable, or begin a new run with a lower aggregation.threshold."
WAY_OUT_PLAYED = (
    "Look at whether updates are finite, or begin a new run with more aggregation.protocol_clients, a lower "
    "aggregation.protocol_dropout or a lower aggregation.threshold."
)


class Diagnostics(NamedTuple):
    """What a simulation sees of single clients of the cohort in the sum, and no server of real devices."""

    norms: NDArray[np.float32]  # (clients,) of the updates before clipping
    counted: NDArray[np.bool_]  # (clients,): False were dropped
    losses: NDArray[np.float32]  # (clients,) mean training loss over the client's batches


class Collected(NamedTuple):
    """What comes back of a round's devices."""

    total: Array  # (d,) float32: the sum of clipped updates, in the clear or decoded from a secure sum (with its noise)
    reports: int  # updates in the sum
    dropped: int  # devices that took part and are not in the sum: what they sent was not usable, or they vanished
    short_updates: int | None  # how many said that their update was no longer than the estimate; None: not asked
    # Who took part, for the log: each once, pseudonyms where devices are real; how many, where they have no identities.
    clients: NDArray[np.int64] | int
    diagnostics: Diagnostics | None = None  # simulations only
    losses: float | None = None  # sum of the reports' clipped losses, each minus half the bound; None: not asked

    @property
    def came(self) -> int:
        """How many took part."""
        return came(self.clients)


def came(clients: NDArray[np.int64] | int) -> int:
    """How many took part, of those who did or of their number."""
    return clients if isinstance(clients, int) else len(clients)


class Collector(Protocol):
    """Asks devices. Each device takes part at most once in a round, and its summand has norm at most the clip norm.

    The guarantee of a run rests on these two sentences, and on what its log says of who took part when; where devices
    have no identities, on the separation that each of them keeps by itself.
    """

    def init(self) -> Any:
        """What is carried from round to round, before the first: arrays in any nesting, saved with the model."""
        ...

    def collect(self, state: Any, task: TrainingTask, *, seed: bytes) -> tuple[Collected, Any]:
        """The answers of the round's devices, and the state after it; `state` is left as it was.

        seed: of simulated devices' own randomness in this round; real ones draw their own. Neither the noise nor the
        choice of devices follows from it.
        """
        ...


def broadcasts(collector: Collector) -> bool:
    """Whether its tasks leave this machine: then a model is asked about only once its release is on disk."""
    return bool(getattr(collector, "broadcasts", False))


def tell_released(collector: Collector, round: int) -> None:
    """The round's ledger row is on disk; told again after a kill. Collectors that have no use for it have no method."""
    released = getattr(collector, "released", None)
    if released is not None:
        released(round)


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
    if isinstance(collected.clients, int) != (task.separation is not None):
        raise TrainingError(f"round {task.round}: {_misidentified(task)}; nothing was released.")
    if collected.total.shape != task.model.shape or collected.total.dtype != task.model.dtype:
        wrong = f"a sum of shape {collected.total.shape} in {collected.total.dtype}"
    elif not bool(jnp.isfinite(collected.total).all()):
        wrong = "a sum that is not finite"
    elif not isinstance(collected.clients, int) and len(np.unique(collected.clients)) < len(collected.clients):
        wrong = "a client twice"
    elif isinstance(collected.clients, int) and collected.clients != collected.reports + collected.dropped:
        wrong = (
            f"{collected.clients} devices of which {collected.reports} reported and {collected.dropped} were dropped"
        )
    elif collected.came < collected.reports:
        wrong = f"{collected.reports} reports of {collected.came} clients"
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


def _misidentified(task: TrainingTask) -> str:
    """Why what is said of who took part does not fit what devices were asked to keep."""
    if task.separation is None:
        return (
            "the collector brought a number of devices and not which, so that nobody knows how often each of them "
            "came; say in the recipe's [deployment] what devices keep by themselves, or bring who took part"
        )
    return (
        "the collector brought who took part, and the recipe's [deployment] says that devices have no identities; "
        "bring how many they were, or drop the section"
    )


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
        """See Collector. Raises: as `from_cohorts`."""
        return from_cohorts(self._cohorts, state, task, self._trained, seed=seed)

    def _trained(self, clients: NDArray[np.int64], task: TrainingTask, seed: bytes) -> Collected:
        with phase("training"):
            received = train_cohort(
                self._learner.work(task.client),
                task.model,
                clients,
                seed=seed,
                clip_norm=task.clip_norm,
                workers=self._workers,
                secure=task.secure,
                noise=task.noise,
            )
        reports, counted = int(received.counted.sum()), received.counted
        if received.opened is None:
            short = shorter(received.norms[counted], task.clip_estimate)
            losses = bounded_sum(received.losses[counted], task.loss_bound)
        else:
            short, losses = received.opened.short_updates, received.opened.losses
        return Collected(
            total=received.total,
            reports=reports,
            dropped=len(clients) - reports,
            short_updates=short,
            clients=clients,
            diagnostics=Diagnostics(received.norms, counted, received.losses),
            losses=losses,
        )


def from_cohorts(
    cohorts: Cohorts,
    state: Any,
    task: TrainingTask,
    ask: Callable[[NDArray[np.int64], TrainingTask, bytes], Collected],
    *,
    seed: bytes,
) -> tuple[Collected, Any]:
    """What the round's cohort answers, and the cohorts' state after it.

    Where clients play a protocol, it may be aborted: nothing was released then, and another cohort is asked, up to
    ATTEMPTS in a round, but not where keepers gave their noise, which is for one cohort. Whoever trained took part, and
    may not come again before its time: the log has the clients of abandoned cohorts too, as dropped ones. Raises:
    ParticipationError when too few clients are free; TrainingError, with the cause, when no sum was opened.
    """
    played = task.secure is not None and task.secure.played is not None
    attempts = ATTEMPTS if played and not task.noise else 1
    asked: list[NDArray[np.int64]] = []
    cause: RoundAborted | None = None
    for attempt in range(attempts):
        with phase("cohort"):
            clients, state = _drawn(cohorts, state, task, attempt, cause)
        asked.append(clients)
        try:
            found = ask(clients, task, seed_of_attempt(seed, attempt))
        except RoundAborted as aborted:
            cause = aborted
            continue
        everybody = _once(asked)
        return found._replace(clients=everybody, dropped=len(everybody) - found.reports), state
    tried = "" if attempts == 1 else f"So it went with {attempts} cohorts, the last of which is told of here. "
    raise TrainingError(
        f"round {task.round}: {cause} {tried}Nothing was released. {WAY_OUT_PLAYED if played else WAY_OUT} The run "
        "folder keeps the round before."
    )


def seed_of_attempt(seed: bytes, attempt: int) -> bytes:
    """Of the devices' own randomness in a round's first, second, ... cohort."""
    return seed if not attempt else hashlib.sha256(f"attempt {attempt} ".encode() + seed).digest()


def _drawn(
    cohorts: Cohorts, state: Any, task: TrainingTask, attempt: int, cause: RoundAborted | None
) -> tuple[NDArray[np.int64], Any]:
    try:
        return cohorts.draw(state, task.round)
    except ParticipationError as error:
        if not attempt:
            raise
        raise ParticipationError(
            f"{error} Before that, {attempt} cohorts of this round were given up, the last because: {cause}"
        ) from error


def _once(cohorts: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    """The clients of all cohorts, each once, in the order in which they came."""
    clients = np.concatenate(cohorts)
    return clients[np.sort(np.unique(clients, return_index=True)[1])]
