"""Which kinds of tasks a device can do: one `Doing` each, and nothing of them is loaded before its first task."""

from tacit.deployment.client.doing import Doing
from tacit.deployment.client.histograms import HistogramsDoing
from tacit.deployment.client.own_text import OwnText
from tacit.deployment.client.training import Trainer, TrainingDoing
from tacit.deployment.client.words import WordsDoing


def doings_of(text: OwnText, trainer: Trainer) -> dict[str, Doing]:
    """Every kind of tasks that a device of this text can do."""
    about_models = HistogramsDoing(text)
    return {
        "train": TrainingDoing(trainer, text),
        "discover": WordsDoing(text),
        "evaluate": about_models,
        "personalize": about_models,
    }
