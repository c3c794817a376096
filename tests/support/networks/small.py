"""Small networks of every kind in MODELS, by the examples that each gives of itself."""

from typing import Any

from tacit.networks.language_model import LanguageModel, model_class, model_of
from tacit.networks.models import MODELS

VOCABULARY = 60


def examples(kind: str, **more: Any) -> list[LanguageModel]:
    """The examples of a kind, with other settings."""
    given: Any = model_class(kind)
    return [model_of(kind, {**each, "vocabulary": VOCABULARY, **more}) for each in given.examples]


SMALL = [network for kind in MODELS for network in examples(kind)]
