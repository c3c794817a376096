"""A model on disk: the weights by name, the size of the network and the vocabulary, in one folder.

One that was made from public text alone says so in `origin.json`, and only such a model may be a private run's first:
a model that has seen clients' text has a price of its own, which the later run's ledger does not know.
"""

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

import jax.numpy as jnp
import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from tacit.errors import InputError
from tacit.files import sweep_drafts, write_whole
from tacit.keyboard.cifg import Cifg, ModelSettings
from tacit.keyboard.vocabulary import Vocabulary

WEIGHTS, SIZE, WORDS, ORIGIN = "model.safetensors", "settings.json", "vocabulary.json", "origin.json"


def write_model(folder: Path, model: Cifg, settings: ModelSettings, vocabulary: bytes) -> None:
    """Write a model; each file is there whole or not. vocabulary: the content of its file."""
    folder.mkdir(parents=True, exist_ok=True)
    sweep_drafts(folder)
    weights = {name: np.ascontiguousarray(array) for name, array in model._asdict().items()}
    write_whole(folder / WEIGHTS, save(weights))
    write_whole(folder / SIZE, (json.dumps(asdict(settings), indent=1) + "\n").encode())
    write_whole(folder / WORDS, vocabulary)


def write_origin(folder: Path, public_text: str) -> None:
    """Say that the model in `folder` was made from this public text, and from nothing else."""
    write_whole(folder / ORIGIN, (json.dumps({"public_text": public_text}, ensure_ascii=False) + "\n").encode())


@dataclass(frozen=True, kw_only=True)
class FirstModel:
    """A model of public text, as a run begins from it."""

    path: Path
    model: Cifg
    public_text: str
    digest: str  # SHA-256 of the weights' file


def load_first_model(path: Path, settings: ModelSettings, vocabulary: Vocabulary) -> FirstModel:
    """The model to begin from, which must have this size and these words.

    Raises: InputError when there is none, it is of another size or other words, or not known to be of public text.
    """
    model, size, words = load_model(path)
    if words.sha256 != vocabulary.sha256:
        raise InputError(
            f"the model in '{path}' knows other words than the cache (vocabulary {words.sha256[:12]} against "
            f"{vocabulary.sha256[:12]}); import both texts with one vocabulary (--vocabulary vocabulary.json)."
        )
    if size != settings:
        different = [
            f"{name}={now} (the recipe: {asked})"
            for (name, now), asked in zip(asdict(size).items(), asdict(settings).values(), strict=True)
            if now != asked
        ]
        raise InputError(f"the model in '{path}' has {', '.join(different)}; give the recipe's [model] the same size.")
    folder = _folder(path)
    try:
        public_text = json.loads((folder / ORIGIN).read_text(encoding="utf-8"))["public_text"]
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        raise InputError(
            f"the model in '{path}' is not known to be of public text only (no {ORIGIN}), and what it cost the people "
            "whose text it saw would be missing from this run's statement; begin from a model of `tacit pretrain`."
        ) from None
    digest = hashlib.sha256((folder / WEIGHTS).read_bytes()).hexdigest()
    return FirstModel(path=path.resolve(), model=model, public_text=public_text, digest=digest)


def _folder(path: Path) -> Path:
    return path / "model" if (path / "model" / WEIGHTS).is_file() else path


def load_model(path: Path) -> tuple[Cifg, ModelSettings, Vocabulary]:
    """The model of a folder that `write_model` wrote, or of the run or pre-training whose `model/` it is.

    Raises: InputError when there is none, or its files do not belong together.
    """
    folder = _folder(path)
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
