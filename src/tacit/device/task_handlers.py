"""Which kinds of tasks a device can do: one `Doing` each, and nothing of them is loaded before its first task."""

from tacit.device.count import HistogramsDoing
from tacit.device.discover import WordsDoing
from tacit.device.own_text import OwnText
from tacit.device.task_handler import Doing
from tacit.device.train import Trainer, TrainingDoing


def doings_of(text: OwnText, trainer: Trainer) -> dict[str, Doing]:
    """Every kind of tasks that a device of this text can do."""
    about_models = HistogramsDoing(text)
    return {
        "train": TrainingDoing(trainer, text),
        "discover": WordsDoing(text),
        "evaluate": about_models,
        "personalize": about_models,
    }
