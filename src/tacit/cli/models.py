"""A model on disk: the weights by name, the size of the network and the vocabulary, in one folder."""

import json
from dataclasses import asdict
from pathlib import Path

import jax.numpy as jnp
import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from tacit.errors import InputError
from tacit.keyboard.model import Cifg, ModelSettings
from tacit.keyboard.vocabulary import Vocabulary
from tacit.runs import sweep_drafts, write_whole

WEIGHTS, SIZE, WORDS = "model.safetensors", "settings.json", "vocabulary.json"


def write_model(folder: Path, model: Cifg, settings: ModelSettings, vocabulary: bytes) -> None:
    """Write a model; each file is there whole or not. vocabulary: the content of its file."""
    folder.mkdir(parents=True, exist_ok=True)
    sweep_drafts(folder)
    weights = {name: np.ascontiguousarray(array) for name, array in model._asdict().items()}
    write_whole(folder / WEIGHTS, save(weights))
    write_whole(folder / SIZE, (json.dumps(asdict(settings), indent=1) + "\n").encode())
    write_whole(folder / WORDS, vocabulary)


def load_model(path: Path) -> tuple[Cifg, ModelSettings, Vocabulary]:
    """The model of a folder that `write_model` wrote, or of the run or pre-training whose `model/` it is.

    Raises: InputError when there is none, or its files do not belong together.
    """
    folder = path / "model" if (path / "model" / WEIGHTS).is_file() else path
    try:
        weights = load((folder / WEIGHTS).read_bytes())
        settings = ModelSettings(**json.loads((folder / SIZE).read_text(encoding="utf-8")))
    except FileNotFoundError:
        raise InputError(
            f"'{path}' holds no model (no {WEIGHTS} with its {SIZE}); name a finished run, or a model folder."
        ) from None
    except (SafetensorError, ValueError, TypeError) as error:
        raise InputError(f"the model in '{folder}' is damaged ({error}); restore it from a copy.") from error
    vocabulary = Vocabulary.load(folder / WORDS)
    v, e, h = settings.vocabulary, settings.embedding, settings.units
    shapes = Cifg((v, e), (2 * e, 3 * h), (3 * h,), (h, e), (e, 0 if settings.tied else v), (v,))  # type: ignore[arg-type]
    found = {name: (array.shape, array.dtype.name) for name, array in weights.items()}
    if found != {name: (shape, "float32") for name, shape in shapes._asdict().items()} or vocabulary.size != v:
        raise InputError(f"the files of the model in '{folder}' do not belong together; restore them from a copy.")
    return Cifg(**{name: jnp.asarray(array) for name, array in weights.items()}), settings, vocabulary
