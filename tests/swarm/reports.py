"""What simulated devices report: updates drawn from a seed, which cost nothing, or trained on a cache's text."""

import hashlib
from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tacit.device.own_text import OwnText
from tacit.device.train import ByJax, encoding_of
from tacit.protocol.bodies import ReportBody
from tacit.protocol.messages import Plan, RoundTask
from tacit.protocol.train import TrainDocument

FloatArray = NDArray[np.float32]


class Reports(Protocol):
    """Makes devices' reports: the same one as often as it is asked, so that whoever tries a server can add them up."""

    def report(self, device: int, plan: Plan, task: RoundTask, model: FloatArray) -> ReportBody:
        """What the device reports in a task that begins with this model (d,)."""
        ...


class DrawnReports:
    """Reports of clipped Gaussian vectors, drawn from the seed, the device, and the round: no training at all."""

    def __init__(self, seed: int, *, distinct: int | None = None) -> None:
        """distinct: so many vectors for all devices of a round, kept, where drawing one each would take too long."""
        self._seed, self._distinct = seed, distinct
        self._kept: dict[tuple[str, int], ReportBody] = {}

    def report(self, device: int, plan: Plan, task: RoundTask, model: FloatArray) -> ReportBody:
        """See Reports."""
        if self._distinct is None:
            return self._drawn(device, task)
        key = task.task, device % self._distinct
        if key not in self._kept:
            self._kept = {known: report for known, report in self._kept.items() if known[0] == task.task}
            self._kept[key] = self._drawn(key[1], task)
        return self._kept[key]

    def _drawn(self, device: int, task: RoundTask) -> ReportBody:
        asks, draw = task.question(TrainDocument), np.random.default_rng([self._seed, device, task.round])
        update = draw.standard_normal(asks.parameters, np.float32)
        norm = np.float32(asks.clip_norm * draw.uniform(0.1, 0.99))
        update *= norm / np.float32(np.sqrt(np.square(update, dtype=np.float64).sum()))
        loss = np.float32((asks.loss_bound or 0.0) * draw.uniform())
        secure = encoding_of(task)
        if secure is not None:
            seed = hashlib.sha256(f"swarm {self._seed} {task.round}".encode()).digest()
            return ReportBody(secure.encoded(update, norm=norm, loss=loss, seed=seed, client=device), True, None, None)
        short = None if asks.clip_estimate is None else bool(norm <= asks.clip_estimate)
        return ReportBody(update, True, short, None if asks.loss_bound is None else float(loss) - asks.loss_bound / 2)


class Trained:
    """Reports as devices compute them: each device has the text of one client of a cache."""

    def __init__(self, text_of: Callable[[int], OwnText], seed: int) -> None:
        """text_of: a device's."""
        self._text_of, self._seed = text_of, seed

    def report(self, device: int, plan: Plan, task: RoundTask, model: FloatArray) -> ReportBody:
        """See Reports."""

        def draw(count: int) -> bytes:
            said = f"swarm {self._seed} {device} {task.run} {task.round}".encode()
            return hashlib.shake_256(said).digest(count)

        return ByJax(self._text_of(device)).prepare(plan, task, model)(draw)
