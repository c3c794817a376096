"""A device's report by ONNX Runtime: the step of an exported `train.onnx`, and everything around it in NumPy.

For a device that has no JAX: it starts in a third of a second. What it computes is what `ByJax` does, but for rounding;
reports that are encoded need the simulation's code, and so JAX.
"""

import hashlib
import math
from collections.abc import Mapping
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tacit.device.own_text import OwnText
from tacit.device.task_handler import SEED_BYTES, Draw
from tacit.device.train import FloatArray, Training, check_size, network_said
from tacit.errors import InputError, TaskRefused
from tacit.files import PathLike
from tacit.keyboard.exported import TRAIN, load_exported
from tacit.keyboard.onnx_trainer import OnnxTrainer
from tacit.networks.language_model import model_of, settings_of
from tacit.protocol.bodies import ReportBody
from tacit.protocol.messages import Plan, RoundTask
from tacit.protocol.train import TrainDocument
from tacit.protocol.train import Training as ClientSettings

LARGEST = 1.8e19  # of a norm whose square float32 still has, as `aggregation.clip` computes it


class ByOnnx:
    """The network of one exported folder."""

    def __init__(self, text: OwnText, exported: PathLike) -> None:
        """Raises: InputError where the folder is no export with a step of training, or of other words than the text."""
        self._text = text
        found = load_exported(exported)
        if found.manifest.vocabulary.sha256 != text.vocabulary:
            raise InputError(
                f"the export '{found.folder}' knows other words than the text of this device was cut into; export a "
                "model of the same vocabulary."
            )
        found.file(TRAIN)
        self._network, self._exported = dict(found.manifest.network), found

    def check(self, plan: Plan) -> None:
        """See Trainer."""
        kind, settings = network_said(plan)
        if plan.aggregation.kind != "plain":
            raise TaskRefused(
                f"run {plan.run!r} sums reports {plan.aggregation.kind}, which ONNX Runtime alone does not make; leave "
                "--onnx out."
            )
        try:
            wanted = settings_of(model_of(kind, {**settings, "vocabulary": self._text.words}))
        except InputError as error:
            raise TaskRefused(f"the plan of run {plan.run!r} names no network: {error}") from error
        if wanted != self._network:
            raise TaskRefused(f"run {plan.run!r} trains {wanted}, and the export of this device is of {self._network}.")

    def prepare(self, plan: Plan, task: RoundTask, model: FloatArray) -> Training:
        """See Trainer."""
        # for this task alone: between tasks a device waits
        trainer = OnnxTrainer.from_export(self._exported, keeps=False)
        check_size(plan, sum(math.prod(shape) for shape in trainer.shapes.values()), task)
        return partial(self._trained, trainer, task.question(TrainDocument), model)

    def _trained(self, trainer: OnnxTrainer, question: TrainDocument, model: FloatArray, draw: Draw) -> ReportBody:
        """The same as `training.device_part.report_of`."""
        update, loss = self._update(trainer, model, question.client, draw(SEED_BYTES))
        norm = math.sqrt(float(np.einsum("i,i->", update, update, dtype=np.float64)))  # without a copy of it
        usable = math.isfinite(norm) and norm <= LARGEST
        if usable:
            update *= np.float32(min(1.0, question.clip_norm / norm) if norm > 0 else 1.0)
        return ReportBody(
            values=update if usable else np.zeros_like(update),
            usable=usable,
            short=None if question.clip_estimate is None else bool((norm if usable else 0.0) <= question.clip_estimate),
            bounded_loss=None if question.loss_bound is None else _bounded(loss, question.loss_bound),
        )

    def _update(
        self, trainer: OnnxTrainer, model: FloatArray, client: ClientSettings, seed: bytes
    ) -> tuple[FloatArray, float]:
        """(theta - model (d,), mean loss): `training.client.local_update`."""
        sentences, batches = self._sentences(client, seed)
        start = _parts(model, trainer.shapes)
        theta, total, steps = dict(start), 0.0, client.epochs * batches
        for step in range(steps):
            at = step % batches * client.batch_size
            below, loss = trainer.descend(theta, sentences[at : at + client.batch_size], client.learning_rate)
            if client.proximal:
                pull = np.float32(client.learning_rate * client.proximal)
                below = {name: value - pull * (theta[name] - start[name]) for name, value in below.items()}
            theta, total = below, total + loss
        flat = np.concatenate([theta.pop(name).ravel() for name in trainer.shapes])
        flat -= model
        return flat, total / max(steps, 1)

    def _sentences(self, client: ClientSettings, seed: bytes) -> tuple[NDArray[np.int32], int]:
        """(padded sentences, batches that hold any): `training.client.gather`."""
        own = hashlib.sha256(seed + self._text.client.to_bytes(8, "little")).digest()
        draw = np.random.Generator(np.random.PCG64(int.from_bytes(own, "little")))
        chosen = draw.permutation(self._text.sentence_count(self._text.client))[: client.sentences]
        batches = -(-len(chosen) // client.batch_size)
        sentences = np.zeros((batches * client.batch_size, client.words + 1), np.int32)
        sentences[: len(chosen)] = self._text.padded(self._text.client, chosen, client.words + 1)
        return sentences, batches


def _parts(flat: FloatArray, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, FloatArray]:
    """The parameters by name, in the order in which the vector has them."""
    ends = np.cumsum([math.prod(shape) for shape in shapes.values()])
    return {
        name: part.reshape(shape) for (name, shape), part in zip(shapes.items(), np.split(flat, ends[:-1]), strict=True)
    }


def _bounded(loss: float, bound: float) -> float:
    """`training.report_encoding.bounded_sum` of one."""
    return float(np.clip(np.nan_to_num(np.float64(np.float32(loss)), nan=bound, posinf=bound), 0.0, bound)) - bound / 2
