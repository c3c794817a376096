"""What a device can do with one owner's text: a handler of every kind. A child process loads this, and no network."""

from pathlib import Path

from tacit.data.splits import TemporalSplit
from tacit.device.own_text import OwnText
from tacit.device.task_handler import TaskHandler
from tacit.device.train import ByJax, Trainer
from tacit.federation.kinds import FEDERATED, loaded
from tacit.files import PathLike


def own_handlers(
    data: Path, client: int | None, split: TemporalSplit | None, onnx: PathLike | None
) -> dict[str, TaskHandler]:
    """Those of a client's text, as `run_device` is told of it. Raises: CacheError, InputError."""
    text = OwnText(data, client, split)
    return task_handlers(text, ByJax(text) if onnx is None else by_onnx(text, onnx))


def task_handlers(text: OwnText, trainer: Trainer) -> dict[str, TaskHandler]:
    """Every kind of tasks that a device of this text can do; nothing of them is loaded before its first task."""
    return {name: loaded(kind.device)(text, trainer) for name, kind in FEDERATED.items()}


def by_onnx(text: OwnText, onnx: PathLike) -> Trainer:
    """What trains by an exported model. Raises: InputError."""
    from tacit.device.train_onnx import ByOnnx  # ONNX Runtime is an extra

    return ByOnnx(text, onnx)
