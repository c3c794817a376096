"""Devices asked one by one: what each of them computes by itself (`device_part.report_of`), and the plain sum.

`DevicesOneByOne` is the slow reference of `SimulatedCollector`: the same clients, the same reports within rounding (a
compiler orders the additions of one client otherwise than those of many, and a sum of shards otherwise than a sum of
clients).
"""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from tacit.aggregation import Counted, FloatSum, ReportSum, merged
from tacit.federation.collector import Answered
from tacit.training.cohort import opened_sum
from tacit.training.collect import Diagnostics, Learner, TrainQuestion, beside, from_cohorts
from tacit.training.device_part import DeviceReport, report_of
from tacit.training.sampling import Cohorts
from tacit.training.secure_updates import OpenedSum, Residues, RoundEncoding


class DevicesOneByOne:
    """The population of a `SimulatedCollector`, each device asked by itself: memory of one, time of all."""

    def __init__(self, learner: Learner, cohorts: Cohorts) -> None:
        self._learner, self._cohorts = learner, cohorts

    def init(self) -> Any:
        """See Collector."""
        return self._cohorts.init()

    def collect(self, state: Any, question: TrainQuestion, *, seed: bytes) -> tuple[Answered, Any]:
        """See Collector. Raises: as `from_cohorts`."""
        return from_cohorts(self._cohorts, state, question, self._trained, seed=seed)

    def _trained(self, clients: NDArray[np.int64], question: TrainQuestion, seed: bytes) -> Answered:
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
