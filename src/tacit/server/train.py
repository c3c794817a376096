"""Real devices as a training `Collector`: a round's task out, the sum of its clipped updates back."""

import dataclasses
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np

from tacit.errors import TrainingError
from tacit.protocol.bodies import model_body
from tacit.protocol.train import EncodedSum, Training, TrainingAsked
from tacit.server.rounds.rounds import ServedRounds, Wanted
from tacit.server.store.round_states import Total
from tacit.training import Collected, TrainingTask
from tacit.training.collect import checked
from tacit.training.secure_updates import RoundEncoding


class ServedCollector(ServedRounds):
    """Rounds of real devices that train; see `tacit.training.Collector`."""

    broadcasts = True  # models leave this machine: the ledger row first

    def init(self) -> Any:
        """Nothing is carried from round to round: who may take part when, each device knows."""
        return ()

    def collect(self, state: Any, task: TrainingTask, *, seed: bytes) -> tuple[Collected, Any]:
        """See `tacit.training.Collector`. seed: not used, for devices draw from their operating systems.

        Raises: what `ServedRounds.sum_of` does.
        """
        if task.noise:
            raise TrainingError("keepers of a simulation add no noise to the sums of real devices; drop them.")
        if task.separation is None:
            raise TrainingError("real devices have no identities; the recipe's [deployment] says what each keeps.")
        body = model_body(np.asarray(task.model))
        wanted = Wanted(
            asked=self.asked(task.round, body, _asks(task)),
            content=body,
            goal=task.report_goal,
            least=_least(task),
            check=partial(_check, task),
        )
        values, total, came = self.sum_of(wanted)
        return _collected(values, total, came, task), state


def _asks(task: TrainingTask) -> TrainingAsked:
    return TrainingAsked(
        kind="train",
        parameters=len(task.model),
        client=Training(**dataclasses.asdict(task.client)),
        clip_norm=task.clip_norm,
        clip_estimate=task.clip_estimate,
        loss_bound=task.loss_bound,
        encoded=None if task.secure is None else _encoded(task.secure, _least(task)),
    )


def _least(task: TrainingTask) -> int:
    """No sum of fewer reports is bound: a round that does not reach its goal is given up."""
    return max(task.report_goal, task.least)


def _encoded(secure: RoundEncoding, least: int) -> EncodedSum:
    numbers = dataclasses.asdict(secure.encoding)
    return EncodedSum(**numbers, signs=secure.signs.hex(), length=secure.length, threshold=least)


def _check(task: TrainingTask, values: Any, total: Total) -> None:
    """See Wanted. Raises: InputError, TrainingError."""
    checked(_collected(values, total, total.reports, task), task)


def _collected(values: Any, total: Total, came: int, task: TrainingTask) -> Collected:
    """What training gets. came: devices that were given the task; those with no report are dropped."""
    short, losses, update = total.short_updates, total.losses, values
    if task.secure is not None:
        update, short, losses = task.secure.opened(values, total.reports)
    return Collected(
        total=jnp.asarray(update),
        reports=total.reports,
        dropped=came - total.reports,
        short_updates=short,
        clients=came,
        losses=losses,
    )
