"""Devices asked one by one: what each of them computes by itself, and the plain sum of their reports.

`report_of` is a device's whole part in a round; a transport carries a task to it and its report back. `OneByOne` is the
slow twin of `SimulatedCollector`: the same clients, the same reports within rounding (a compiler orders the additions
of one client otherwise than those of many, and a sum of shards otherwise than a sum of clients).
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from tacit.training.client import ClientWork, gather, one_client, precision_of
from tacit.training.collect import Collected, Diagnostics, Learner, TrainingTask, shorter
from tacit.training.private_loss import bounded_sum
from tacit.training.sampling import Cohorts


class DeviceReport(NamedTuple):
    """What a device sends: the first four to the aggregator; the last two stay in a simulation."""

    # (d,) float32, clipped; or its residues (dimension,) uint32, where the task says how to encode
    update: NDArray[np.float32] | NDArray[np.uint32]
    usable: bool  # False: the update was not finite, and adds nothing
    short: bool | None  # whether it was no longer than the estimate before clipping; None: not asked
    bounded_loss: float | None  # its training loss, clipped to [0, bound], minus half the bound; None: not asked
    norm: np.float32  # before clipping
    loss: np.float32  # mean training loss over the device's batches


def report_of(work: ClientWork, task: TrainingTask, client: int, *, seed: bytes) -> DeviceReport:
    """One device's part in a round: train on its own text, clip, report."""
    data = gather(work.cache, np.array([client]), task.client, seed)
    precision = precision_of(work) if jax.default_backend() == "cpu" else None
    part = one_client(work.loss, work.unravel, task.client, work.algorithm, precision)
    update, norm, finite, loss = part(task.model, data.sentences[0], data.batches[0], np.float32(task.clip_norm))
    sent = np.asarray(update)
    if task.secure is not None:
        sent = task.secure.encoded(sent, seed=seed, client=client) if finite else task.secure.nothing()
    short = bool(shorter(np.asarray(norm)[None], task.clip_estimate)) if task.clip_estimate is not None else None
    bounded = bounded_sum(np.asarray(loss)[None], task.loss_bound, whole=task.secure is not None)
    return DeviceReport(sent, bool(finite), short, bounded, np.float32(norm), np.float32(loss))


class OneByOne:
    """The population of a `SimulatedCollector`, each device asked by itself: memory of one, time of all."""

    def __init__(self, learner: Learner, cohorts: Cohorts) -> None:
        self._learner, self._cohorts = learner, cohorts

    def init(self) -> Any:
        """See Collector."""
        return self._cohorts.init()

    def collect(self, state: Any, task: TrainingTask, *, seed: bytes) -> tuple[Collected, Any]:
        """See Collector."""
        clients, after = self._cohorts.draw(state, task.round)
        work = self._learner.work(task.client)
        reports = [report_of(work, task, int(client), seed=seed) for client in clients]
        usable = [report for report in reports if report.usable]
        collected = Collected(
            total=jnp.asarray(_sum(reports, task)),
            reports=len(usable),
            dropped=len(reports) - len(usable),
            short_updates=None if task.clip_estimate is None else sum(bool(report.short) for report in usable),
            clients=clients,
            diagnostics=Diagnostics(
                np.array([report.norm for report in reports]),
                np.array([report.usable for report in reports]),
                np.array([report.loss for report in reports]),
            ),
            losses=None if task.loss_bound is None else sum(report.bounded_loss or 0.0 for report in usable),
        )
        return collected, after


def _sum(reports: Sequence[DeviceReport], task: TrainingTask) -> NDArray[np.float32]:
    """Of the updates (d,); one report after another, residues decoded at the end. No protocol: its sum is the same."""
    if task.secure is None:
        total = np.zeros(task.model.shape, np.float32)
        for report in reports:
            total += report.update
        return total
    residues = task.secure.nothing()
    for report in reports:
        residues += report.update.astype(np.uint32, copy=False)
    return task.secure.decoded(residues, sum(report.usable for report in reports))
