"""Rounds made durable: each one's state on disk before its ledger row, models evaluated beside the rounds that follow.

A process that is killed at any instant goes on from the last committed round to the same bits. Where the devices are
outside of this machine, a round is on disk before its model is shown to any of them.
"""

import math
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from contextvars import copy_context
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import numpy as np
from jax import Array
from numpy.typing import ArrayLike

from tacit.compute.profile import WRITING, beside, phase
from tacit.errors import TrainingError
from tacit.federation.collector import Collector, broadcasts, participants, released
from tacit.progress import Advanced, Evaluated, Progress, StageBegan, StageEnded, Warned, silent
from tacit.records import to_plain
from tacit.runs import MetricEntry, Run, StepEntry
from tacit.runs.diagnostics import clipping_failure
from tacit.training.checkpoint import save_checkpoint
from tacit.training.cost import CostSoFar
from tacit.training.privacy_filter import PrivacyFilter
from tacit.training.rounds import RoundOutcome, RoundPlan, TrainingState, initial_state, noise_replayed, run_round
from tacit.training.states import KEPT, States

STAGE = "training"
_CALLED = {"loss": "training_loss"}  # in events, where other stages have losses of their own


class PeriodicEvaluation:
    """Evaluates on validation clients every so many rounds and after the last, each model once, beside the rounds.

    Only the numbers depend on it, no bit of the model: it looks at the same array that the next round broadcasts.
    """

    def __init__(
        self,
        run: Run,
        evaluate: Callable[[Array], Mapping[str, float]],
        *,
        every: int,
        rounds: int,
        trying: Callable[[int], AbstractContextManager[None]] = lambda rounds: nullcontext(),
        progress: Progress = silent,
    ) -> None:
        """evaluate(model) gives the metrics of a flat model; it is called in a thread of its own. trying: in which the
        one after so many rounds is done; where that lets a failure pass, the model has no metrics and the rounds go on.
        """
        self._run, self._evaluate, self._every, self._rounds, self._progress = run, evaluate, every, rounds, progress
        self._trying = trying
        self._known = {metric.step for metric in run.metrics() if metric.split == "validation"}
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="evaluation")
        self._begun: tuple[int, Future[Mapping[str, float]]] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown()

    def due(self, rounds: int) -> bool:
        """Whether the model after so many rounds is to be evaluated and its numbers are not yet in the run folder."""
        return (rounds % self._every == 0 or rounds == self._rounds) and rounds not in self._known

    def begin(self, rounds: int, model: Array) -> None:
        """The model after so many rounds is durable. What was begun before is in the run folder when this returns."""
        with phase("evaluation"):
            self.settle()
            if self.due(rounds):
                self._begun = rounds, self._pool.submit(copy_context().run, self._evaluate, model)
            elif not rounds and not self._run.steps_done:  # it was evaluated before the run began
                first = [each for each in self._run.metrics() if (each.step, each.split) == (0, "validation")]
                self._progress(Evaluated(0, "validation", {each.name: each.value for each in first}))

    def settle(self) -> None:
        """All that was begun is in the run folder when this returns. A database has one writer: the rounds' thread."""
        if self._begun is not None:
            rounds, evaluation = self._begun
            metrics: Mapping[str, float] = {}
            with self._trying(rounds):
                metrics = checked_metrics(rounds, "validation", evaluation.result())
            if metrics:
                record_evaluation(self._run, rounds, "validation", metrics, self._progress)
            self._known.add(rounds)
            self._begun = None


def checked_metrics(rounds: int, split: str, metrics: Mapping[str, float]) -> Mapping[str, float]:
    """The metrics of the model after so many rounds. Raises: TrainingError where one is nan."""
    if any(math.isnan(value) for value in metrics.values()):
        end = "; `tacit finish RUN` keeps its last model" if rounds else ""
        raise TrainingError(
            f"after {rounds} rounds the model's {split} metrics are no numbers: it has diverged; start another run "
            f"with a lower server.learning_rate or client.learning_rate{end}."
        )
    return metrics


def record_evaluation(run: Run, rounds: int, split: str, metrics: Mapping[str, float], progress: Progress) -> None:
    """Write the metrics of the model after so many rounds, then say them."""
    run.record_metrics([MetricEntry(step=rounds, split=split, name=n, value=v) for n, v in metrics.items()])
    progress(Evaluated(rounds, split, metrics))


def run_rounds(
    run: Run,
    start: ArrayLike,
    plan: RoundPlan,
    collector: Collector,
    *,
    evaluation: PeriodicEvaluation,
    cost: CostSoFar | None = None,
    until: int | None = None,
    stops: Callable[[], bool] = lambda: False,
    ends: Callable[[int, Array], bool] | None = None,
    opening: str = "",
    progress: Progress = silent,
) -> Array:
    """Play the rounds that `run` lacks (up to `until`, else all) and return the flat model after the last.

    stops: asked before each round whether to end here, as if killed. ends: asked the same with the rounds that are on
    disk and the flat model (d,) after them, once there is one and while rounds are left. opening: what listeners are
    told before the first.

    start: the initial model. The checkpoint of a round is written while the next round is computed, or before it, where
    the collector broadcasts; the round's ledger row is committed when its checkpoint is on disk, the collector is told
    then, and the checkpoint kept until its model is evaluated.
    cost: computes what so many rounds cost, for those who listen. Raises: what `run_round` and `Run.commit` do; the
    rounds before are whole then.
    """
    key, done = run.noise_key, run.steps_done
    watching = _Watching(run, plan.rounds, progress, cost, opening)
    states = States(run, noise_replayed(plan, len(np.asarray(start)), key))
    state = _found(run, states, start, plan, collector, evaluation)
    with ThreadPoolExecutor(1, thread_name_prefix="disk") as disk:
        pending: _Pending | None = None
        for round in range(done, plan.rounds if until is None else until):
            if stops():
                break
            if ends is not None and round:
                if pending is not None:
                    pending.at_once(run, states, collector, evaluation)
                    pending = None
                with phase("evaluation"):
                    evaluation.settle()  # so that a rule which looks at it sees the same however fast it is
                if ends(round, state.model):
                    break
            try:
                state, outcome = run_round(state, round, plan=plan, key=key, collector=collector)
            finally:  # a round that cannot be computed takes nothing from the one before it
                if pending is not None:
                    pending.commit(run, states, collector)
            if pending is not None:
                evaluation.begin(pending.outcome.round + 1, pending.state.model)
            finished = collector.finished if isinstance(collector, PrivacyFilter) else None
            pending = _Pending.begin(disk, run, states, state, outcome, finished)
            watching.computed(outcome)
            if broadcasts(collector):
                pending.at_once(run, states, collector, evaluation)
                pending = None
        if pending is not None:
            pending.at_once(run, states, collector, evaluation)
    with phase("evaluation"):
        evaluation.settle()
    progress(StageEnded(STAGE))
    return state.model


def last_model(run: Run, evaluation: PeriodicEvaluation) -> Array:
    """The flat model (d,) after the last round that is done, evaluated: of a run that ends with it."""
    row = run.steps()[-1]
    model = States(run, None).model(row)
    evaluation.begin(row.step + 1, model)
    with phase("evaluation"):
        evaluation.settle()
    return model


def _found(
    run: Run,
    states: States,
    start: ArrayLike,
    plan: RoundPlan,
    collector: Collector,
    evaluation: PeriodicEvaluation,
) -> TrainingState:
    """The state after the last done round. What a killed process had no time to evaluate is evaluated now."""
    with phase("start"):
        state = initial_state(start, plan, collector)
    evaluation.begin(0, state.model)
    for row in run.steps()[-KEPT:-1]:
        if evaluation.due(row.step + 1) and (run.path / "steps" / row.file).exists():
            with phase("start"):
                model = states.model(row)
            evaluation.begin(row.step + 1, model)
    for row in run.steps()[-1:]:
        with phase("start"):
            state = states.last(row, state)
            released(collector, row.step)  # a kill may have come between the row and this
        evaluation.begin(row.step + 1, state.model)
    if not run.steps_done:
        with phase("evaluation"):
            evaluation.settle()  # what fails with the first model fails before anything is released
    return state


@dataclass(frozen=True, kw_only=True)
class _Pending:
    """A computed round whose checkpoint is being written."""

    written: "Future[str]"
    checkpoint: str
    state: TrainingState
    outcome: RoundOutcome
    finished: float | None  # by which its cost was computed, in Unix seconds; None: when it is on disk

    @classmethod
    def begin(
        cls,
        disk: ThreadPoolExecutor,
        run: Run,
        states: States,
        state: TrainingState,
        outcome: RoundOutcome,
        finished: float | None,
    ) -> "_Pending":
        name = f"round-{outcome.round:06d}.safetensors"
        with phase("checkpoint"):
            taken = states.snapshot(state, outcome.round)  # here, because the next round writes over the noise buffers

        def write() -> str:
            with beside(WRITING):
                return save_checkpoint(run.path / "steps" / name, taken)

        written = disk.submit(copy_context().run, write)
        return cls(written=written, checkpoint=name, state=state, outcome=outcome, finished=finished)

    def at_once(self, run: Run, states: States, collector: Collector, evaluation: PeriodicEvaluation) -> None:
        """Commit it, and begin to evaluate its model."""
        self.commit(run, states, collector)
        evaluation.begin(self.outcome.round + 1, self.state.model)

    def commit(self, run: Run, states: States, collector: Collector) -> None:
        """On disk when this returns, and the collector told. Raises: what the writing raised (OSError on a full disk),
        and the round is not done then; what the collector raised, and it is told again when the run is gone on with.
        """
        with phase("checkpoint"):
            digest = self.written.result()
        row = StepEntry(
            step=self.outcome.round,
            file=self.checkpoint,
            digest=digest,
            releases=tuple(to_plain(each) for each in (self.outcome.release, *self.outcome.also)),
            measures=self.outcome.measures,
        )
        with phase("commit"):
            finished = time.time() if self.finished is None else self.finished
            run.commit(row, clients=self.outcome.clients, finished=finished, seconds=self.outcome.seconds)
            states.committed(row)
            released(collector, row.step)


class _Watching:
    """Says of each computed round how far training is, how fast, at what price so far, and what goes wrong."""

    def __init__(self, run: Run, rounds: int, progress: Progress, cost: CostSoFar | None, opening: str) -> None:
        self._progress, self._cost = progress, None if progress is silent else cost
        self._measures = [row.measures for row in run.steps()]
        self._seconds, self._trained = 0.0, 0
        self._warned: set[str] = set()
        progress(StageBegan(STAGE, rounds, run.steps_done, opening=opening))

    def computed(self, outcome: RoundOutcome) -> None:
        self._seconds += outcome.seconds
        self._trained += participants(outcome.clients)
        self._measures.append(outcome.measures)
        figures = {"clients_per_second": self._trained / self._seconds}
        figures |= {_CALLED.get(name, name): value for name, value in outcome.measures.items()}
        if self._cost is not None:
            figures |= self._cost.after(outcome.round, outcome.clients)
        self._progress(Advanced(STAGE, outcome.round + 1, figures))
        failure = clipping_failure(self._measures)
        if failure is not None and failure.name not in self._warned:  # once of each way in which it fails
            self._warned.add(failure.name)
            self._progress(Warned(failure.name, failure.advice))
