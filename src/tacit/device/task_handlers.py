"""Which kinds of tasks a device can do: one `TaskHandler` each, and nothing of them is loaded before its first task."""

from tacit.device.own_text import OwnText
from tacit.device.task_handler import TaskHandler
from tacit.device.train import Trainer
from tacit.federation.kinds import FEDERATED, loaded


def task_handlers(text: OwnText, trainer: Trainer) -> dict[str, TaskHandler]:
    """Every kind of tasks that a device of this text can do."""
    return {name: loaded(kind.device)(text, trainer) for name, kind in FEDERATED.items()}
