"""Which kinds of tasks a device can do: one `TaskHandler` each, and nothing of them is loaded before its first task."""

from tacit.device.count import CountHandler
from tacit.device.discover import DiscoverHandler
from tacit.device.own_text import OwnText
from tacit.device.task_handler import TaskHandler
from tacit.device.train import Trainer, TrainHandler


def task_handlers(text: OwnText, trainer: Trainer) -> dict[str, TaskHandler]:
    """Every kind of tasks that a device of this text can do."""
    about_models = CountHandler(text)
    return {
        "train": TrainHandler(trainer, text),
        "discover": DiscoverHandler(text),
        "evaluate": about_models,
        "personalize": about_models,
    }
