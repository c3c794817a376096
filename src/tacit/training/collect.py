"""Training's question to devices: clipped updates of a model, whose sum comes back; and a population that answers.

`SimulatedCollector` draws the cohort of a simulated population and has this machine's processors (or a cluster) train
it. What every collector owes, `federation/collector.py` says.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from tacit.aggregation import Counted
from tacit.compute.profile import phase
from tacit.data import Cache
from tacit.errors import ParticipationError, RoundAborted, TrainingError
from tacit.federation.collector import Answered
from tacit.federation.report_shape import LOSS, SHORT, ReportShape, encoded_shape, update_shape
from tacit.privacy.separation import DeviceSeparation
from tacit.training.client import ClientAlgorithm, ClientTraining, ClientWork, Loss
from tacit.training.cohort import Workers, train_cohort
from tacit.training.report_encoding import bounded_sum, shorter
from tacit.training.sampling import Cohorts
from tacit.training.secure_updates import Residues, RoundEncoding


@dataclass(frozen=True, kw_only=True)
class TrainQuestion:
    """The question of a round of training: a clipped update of the model; see `federation.collector.Question`."""

    kind: ClassVar[str] = "train"
    round: int
    model: Array  # (d,) float32, the broadcast model
    client: ClientTraining  # what each of them computes
    clip_norm: float  # the norm that no update may exceed in the sum
    clip_estimate: float | None  # each says in one bit whether its update is no longer than this; None: not asked
    report_goal: int  # how many reports are wanted
    loss_bound: float | None = None  # each sends its training loss, clipped to [0, this]; None: not asked
    secure: RoundEncoding | None = None  # each encodes its update so, for a sum modulo 2^b; None: updates in the clear
    separation: DeviceSeparation | None = None  # what each keeps by itself; None: the collector says who took part
    noise: tuple[Residues, ...] = ()  # of a simulation's decryptors: what each sends, of which no sum is without

    @property
    def goal(self) -> int:
        """See Question."""
        return self.report_goal

    @property
    def min_reports(self) -> int:
        """See Question."""
        return 1 if self.secure is None else self.secure.threshold

    def shape(self) -> ReportShape:
        """See Question."""
        clip, estimate = self.clip_norm, self.clip_estimate
        if self.secure is not None:
            return encoded_shape(self.secure.length, self.secure.encoding, clip_norm=clip, clip_estimate=estimate)
        return update_shape(len(self.model), clip_norm=clip, clip_estimate=estimate, loss_bound=self.loss_bound)

    def answered(self, total: Counted, clients: NDArray[np.int64] | int) -> Answered:
        """See Question: the sum of updates (d,), decoded where they are encoded."""
        update, short, losses = total.values, total.short_updates, total.losses
        if self.secure is not None:
            update, short, losses = self.secure.opened(total.values, total.reports)
        return Answered(jnp.asarray(update), total.reports, clients, beside(short, losses))

    def check(self, answered: Answered) -> None:
        """See Question. Raises: TrainingError."""
        if not answered.reports:
            raise TrainingError(
                f"round {self.round}: none of {answered.dropped} clients' updates was finite, so the model has "
                "diverged; lower server.learning_rate or client.learning_rate. The run folder keeps the round before."
            )
        if answered.reports < self.min_reports:
            raise TrainingError(
                f"round {self.round}: {answered.reports} reports came, and no sum of fewer than {self.min_reports} is "
                "opened (aggregation.threshold); nothing was released. Look at why so many were dropped, or begin a "
                "new run with a lower threshold."
            )
        if isinstance(answered.clients, int) != (self.separation is not None):
            raise TrainingError(f"round {self.round}: {_misidentified(self)}; nothing was released.")
        if (wrong := self._wrong_with(answered)) is not None:
            raise TrainingError(
                f"round {self.round}: the collector brought {wrong}, and no guarantee covers that; mend its `collect`."
            )

    def _wrong_with(self, answered: Answered) -> str | None:
        """What a collector brought that no guarantee covers."""
        values, reports = answered.values, answered.reports
        short, losses = answered.beside.get(SHORT), answered.beside.get(LOSS)
        if values.shape != self.model.shape or values.dtype != self.model.dtype:
            return f"a sum of shape {values.shape} in {values.dtype}"
        if not bool(jnp.isfinite(values).all()):
            return "a sum that is not finite"
        if not isinstance(answered.clients, int) and len(np.unique(answered.clients)) < len(answered.clients):
            return "a client twice"
        if answered.participants < reports:
            return f"{reports} reports of {answered.participants} clients"
        if short is None and self.clip_estimate is not None:
            return "no count of short updates"
        if short is not None and self.clip_estimate is None:
            return "a count of short updates that nobody asked for"
        if short is not None and not 0 <= short <= reports:
            return f"{short} short updates of {reports}"
        if (losses is None) != (self.loss_bound is None):
            return "no sum of losses" if losses is None else "a sum of losses that nobody asked for"
        if losses is not None and not abs(losses) <= reports * (self.loss_bound or 0) / 2:
            return f"losses that sum up to {losses:g}, beyond {reports} times half their bound"
        return None


def beside(short_updates: int | None, losses: float | None) -> dict[str, float]:
    """What the reports of a round say beside their updates; None: nobody asked."""
    said = {SHORT: short_updates, LOSS: losses}
    return {name: value for name, value in said.items() if value is not None}


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


def _misidentified(question: TrainQuestion) -> str:
    """Why what is said of who took part does not fit what devices were asked to keep."""
    if question.separation is None:
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

    def collect(self, state: Any, question: TrainQuestion, *, seed: bytes) -> tuple[Answered, Any]:
        """See Collector. Raises: as `from_cohorts`."""
        return from_cohorts(self._cohorts, state, question, self._trained, seed=seed)

    def _trained(self, clients: NDArray[np.int64], question: TrainQuestion, seed: bytes) -> Answered:
        with phase("training"):
            received = train_cohort(
                self._learner.work(question.client),
                question.model,
                clients,
                seed=seed,
                clip_norm=question.clip_norm,
                workers=self._workers,
                secure=question.secure,
                noise=question.noise,
            )
        reports, counted = int(received.counted.sum()), received.counted
        if received.opened is None:
            short = shorter(received.norms[counted], question.clip_estimate)
            losses = bounded_sum(received.losses[counted], question.loss_bound)
        else:
            short, losses = received.opened.short_updates, received.opened.losses
        return Answered(
            values=received.total,
            reports=reports,
            clients=clients,
            beside=beside(short, losses),
            diagnostics=Diagnostics(received.norms, counted, received.losses),
        )


def from_cohorts(
    cohorts: Cohorts,
    state: Any,
    question: TrainQuestion,
    ask: Callable[[NDArray[np.int64], TrainQuestion, bytes], Answered],
    *,
    seed: bytes,
) -> tuple[Answered, Any]:
    """What the round's cohort answers, and the cohorts' state after it.

    Where clients play a protocol, it may abort: then nothing was released, and another cohort is asked, up to ATTEMPTS
    in a round; but not where decryptors gave their noise, which is for one cohort. A client that trained took part and
    must keep its separation: the log has the clients of abandoned cohorts too, as dropped ones. Raises:
    ParticipationError when too few clients are free; TrainingError, with the cause, when no sum was opened.
    """
    played = question.secure is not None and question.secure.played is not None
    attempts = ATTEMPTS if played and not question.noise else 1
    invited: list[NDArray[np.int64]] = []
    cause: RoundAborted | None = None
    for attempt in range(attempts):
        with phase("cohort"):
            clients, state = _drawn(cohorts, state, question, attempt, cause)
        invited.append(clients)
        try:
            found = ask(clients, question, seed_of_attempt(seed, attempt))
        except RoundAborted as aborted:
            cause = aborted
            continue
        return found._replace(clients=_once(invited)), state
    tried = "" if attempts == 1 else f"So it went with {attempts} cohorts, the last of which is told of here. "
    raise TrainingError(
        f"round {question.round}: {cause} {tried}Nothing was released. {WAY_OUT_PLAYED if played else WAY_OUT} The run "
        "folder keeps the round before."
    )


def seed_of_attempt(seed: bytes, attempt: int) -> bytes:
    """Of the devices' own randomness in a round's first, second, ... cohort."""
    return seed if not attempt else hashlib.sha256(f"attempt {attempt} ".encode() + seed).digest()


def _drawn(
    cohorts: Cohorts, state: Any, question: TrainQuestion, attempt: int, cause: RoundAborted | None
) -> tuple[NDArray[np.int64], Any]:
    try:
        return cohorts.draw(state, question.round)
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
