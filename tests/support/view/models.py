"""A model in a run's folder, untrained, with words that a keyboard can type."""

from pathlib import Path
from string import ascii_lowercase

import jax
from tests.support.training.tiny import SETTINGS

from tacit.keyboard.model_folder import write_model
from tacit.text.vocabulary import SPECIALS, Provenance, Vocabulary


def with_model(path: Path, seed: int = 1) -> Path:
    """The run with a model in it."""
    pairs = [a + b for a in ascii_lowercase for b in ascii_lowercase]
    words = tuple(f"wor{pair}" for pair in pairs[: SETTINGS.vocabulary - SPECIALS])
    vocabulary = Vocabulary(words=words, provenance=Provenance(kind="public", description="words"))
    write_model(path / "model", SETTINGS, SETTINGS.init(jax.random.key(seed)), vocabulary.to_json().encode())
    return path
