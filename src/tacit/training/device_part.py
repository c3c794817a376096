"""What one device computes in a round of training: its own text, the round's model, a clipped report.

`report_of` is a device's whole part; a transport carries a task to it and its report back. A phone computes it, and a
simulation for each of its clients.
"""

from typing import NamedTuple, Protocol

import jax
import numpy as np
from jax import Array
from numpy.typing import NDArray

from tacit.training.client import NOBODY, ClientTraining, ClientWork, gather, one_client, precision_of
from tacit.training.report_encoding import ReportEncoding, bounded_sum, shorter

__all__ = [
    "ClientTraining",
    "ClientWork",
    "DeviceReport",
    "DeviceTask",
    "ReportEncoding",
    "RoundModel",
    "compile_report",
    "report_of",
]


class DeviceTask(Protocol):
    """What a device is told of a round."""

    @property
    def model(self) -> Array:
        """(d,) float32, the broadcast model."""
        ...

    @property
    def client(self) -> ClientTraining:
        """What it computes."""
        ...

    @property
    def clip_norm(self) -> float:
        """The norm that its update may not exceed."""
        ...

    @property
    def clip_estimate(self) -> float | None:
        """It says in one bit whether its update is no longer than this; None: not asked."""
        ...

    @property
    def loss_bound(self) -> float | None:
        """It sends its training loss, clipped to [0, this]; None: not asked."""
        ...

    @property
    def secure(self) -> ReportEncoding | None:
        """How it encodes its report; None: in the clear."""
        ...


class RoundModel(NamedTuple):
    """A `DeviceTask` and nothing else."""

    model: Array
    client: ClientTraining
    clip_norm: float
    clip_estimate: float | None
    loss_bound: float | None
    secure: ReportEncoding | None


class DeviceReport(NamedTuple):
    """What a device sends: the first four to the aggregator; the last two stay in a simulation."""

    # (d,) float32, clipped; or all that it reports (length,) uint32, encoded, where the task says how
    update: NDArray[np.float32] | NDArray[np.uint32]
    usable: bool  # False: the update was not finite, and adds nothing
    short: bool | None  # whether it was no longer than the estimate before clipping; None: not asked, or encoded
    bounded_loss: float | None  # its training loss, clipped to [0, bound], minus half the bound; None: the same
    norm: np.float32  # before clipping
    loss: np.float32  # mean training loss over the device's batches


def compile_report(work: ClientWork, task: RoundModel) -> None:
    """So that the first `report_of` of these sizes computes and no more: it is run for nobody, whose text is empty."""
    report_of(work, task._replace(secure=None), NOBODY, seed=bytes(32))


def report_of(work: ClientWork, task: DeviceTask, client: int, *, seed: bytes) -> DeviceReport:
    """One device's part in a round: train on its own text, clip, report."""
    data = gather(work.cache, np.array([client]), task.client, seed)
    precision = precision_of(work) if jax.default_backend() == "cpu" else None
    part = one_client(work.loss, work.unravel, task.client, work.algorithm, precision)
    update, norm, finite, loss = part(task.model, data.sentences[0], data.batches[0], np.float32(task.clip_norm))
    sent = np.asarray(update)
    seen = np.float32(norm), np.float32(loss)
    if task.secure is not None:
        sent = np.zeros(task.secure.length, np.uint32)
        if finite:
            sent = task.secure.encoded(np.asarray(update), norm=seen[0], loss=seen[1], seed=seed, client=client)
        return DeviceReport(sent, bool(finite), None, None, *seen)
    short = bool(shorter(np.asarray(norm)[None], task.clip_estimate)) if task.clip_estimate is not None else None
    return DeviceReport(sent, bool(finite), short, bounded_sum(np.asarray(loss)[None], task.loss_bound), *seen)
