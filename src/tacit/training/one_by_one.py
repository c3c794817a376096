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

from tacit.aggregation import Counted, FloatSum, ReportSum, merged
from tacit.federation.collector import Answered
from tacit.training.client import ClientWork, gather, one_client, precision_of
from tacit.training.cohort import opened_sum
from tacit.training.collect import Diagnostics, Learner, TrainQuestion, beside, from_cohorts, shorter
from tacit.training.private_loss import bounded_sum
from tacit.training.sampling import Cohorts
from tacit.training.secure_updates import OpenedSum, Residues, RoundEncoding


class DeviceReport(NamedTuple):
    """What a device sends: the first four to the aggregator; the last two stay in a simulation."""

    # (d,) float32, clipped; or all that it reports (length,) uint32, encoded, where the task says how
    update: NDArray[np.float32] | NDArray[np.uint32]
    usable: bool  # False: the update was not finite, and adds nothing
    short: bool | None  # whether it was no longer than the estimate before clipping; None: not asked, or encoded
    bounded_loss: float | None  # its training loss, clipped to [0, bound], minus half the bound; None: the same
    norm: np.float32  # before clipping
    loss: np.float32  # mean training loss over the device's batches


def report_of(work: ClientWork, question: TrainQuestion, client: int, *, seed: bytes) -> DeviceReport:
    """One device's part in a round: train on its own text, clip, report."""
    data = gather(work.cache, np.array([client]), question.client, seed)
    precision = precision_of(work) if jax.default_backend() == "cpu" else None
    part = one_client(work.loss, work.unravel, question.client, work.algorithm, precision)
    update, norm, finite, loss = part(
        question.model, data.sentences[0], data.batches[0], np.float32(question.clip_norm)
    )
    sent = np.asarray(update)
    seen = np.float32(norm), np.float32(loss)
    if question.secure is not None:
        sent = question.secure.sums.zero()
        if finite:
            sent = question.secure.encoded(np.asarray(update), norm=seen[0], loss=seen[1], seed=seed, client=client)
        return DeviceReport(sent, bool(finite), None, None, *seen)
    short = (
        bool(shorter(np.asarray(norm)[None], question.clip_estimate)) if question.clip_estimate is not None else None
    )
    return DeviceReport(sent, bool(finite), short, bounded_sum(np.asarray(loss)[None], question.loss_bound), *seen)


class OneByOne:
    """The population of a `SimulatedCollector`, each device asked by itself: memory of one, time of all."""

    def __init__(self, learner: Learner, cohorts: Cohorts) -> None:
        self._learner, self._cohorts = learner, cohorts

    def init(self) -> Any:
        """See Collector."""
        return self._cohorts.init()

    def collect(self, state: Any, question: TrainQuestion, *, seed: bytes) -> tuple[Answered, Any]:
        """See Collector. Raises: as `from_cohorts`."""
        return from_cohorts(self._cohorts, state, question, self._asked, seed=seed)

    def _asked(self, clients: NDArray[np.int64], question: TrainQuestion, seed: bytes) -> Answered:
        work = self._learner.work(question.client)
        reports = [report_of(work, question, int(client), seed=seed) for client in clients]
        finite = np.array([report.usable for report in reports])
        seen = np.array([report.norm for report in reports]), np.array([report.loss for report in reports])
        if question.secure is not None:
            opened, counted = _opened(question.secure, reports, finite, question.noise, seed)
            total, short, losses = opened
        else:
            counted, usable = finite, [report for report in reports if report.usable]
            sums = ReportSum(
                FloatSum(len(question.model)), question.clip_estimate is not None, question.loss_bound is not None
            )
            total, _, short, losses = merged(sums, map(_sum_of_one, usable))
        return Answered(
            values=jnp.asarray(total),
            reports=int(counted.sum()),
            clients=clients,
            beside=beside(short, losses),
            diagnostics=Diagnostics(seen[0], counted, seen[1]),
        )


def _sum_of_one(report: DeviceReport) -> Counted:
    return Counted.one(report.update, report.short, report.bounded_loss)


def _opened(
    secure: RoundEncoding,
    reports: Sequence[DeviceReport],
    finite: NDArray[np.bool_],
    noise: Sequence[Residues],
    seed: bytes,
) -> tuple[OpenedSum, NDArray[np.bool_]]:
    """What the sum of encoded reports holds, one added after another, and who is in it.

    Where nobody vanishes no protocol is played: its sum is the same.
    """
    playing = secure.played.devices if secure.played is not None and secure.dropout else 0
    residues = [report.update.astype(np.uint32, copy=False) for report in reports]
    others = merged(secure.sums, residues[playing:])
    return opened_sum(secure, others, residues[:playing], finite, noise=noise, seed=seed)
