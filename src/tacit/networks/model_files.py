"""The files of a model's folder, found and read; what they mean to a network, its reader says.

JAX is not loaded here, but by a network whose module does: `model_folder` builds a model that trains from these files,
`phone_model` what a phone runs.
"""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open

from tacit.errors import InputError, of_type
from tacit.files import read_bounded, write_whole
from tacit.networks.language_model import LanguageModel, model_of
from tacit.networks.models import COUNTED, ORIGIN, SETTINGS, WEIGHTS, WORDS
from tacit.parsing import parsed_json, strict_json
from tacit.text.vocabulary import Vocabulary

DTYPES = {"F32": np.float32, "F16": np.float16, "U8": np.uint8, "I8": np.int8, "U16": np.uint16, "U32": np.uint32}


@dataclass(frozen=True, kw_only=True)
class ModelFiles:
    """What the folder of a model holds."""

    folder: Path
    kind: str  # a name in `models.MODELS` or COUNTED, or "package.module:Class" of a network
    settings: dict[str, Any]  # of the network
    weights: dict[str, Any]  # NumPy arrays by the names of `language_model.leaves`, read where they lie in the file

    def network(self) -> LanguageModel:
        """The network of these settings. Raises: InputError where there is none."""
        if self.kind in COUNTED:
            raise InputError(
                f"the model in '{self.folder}' is of the kind {self.kind!r}, which is counted and no network; `tacit "
                "suggest`, `keyboard`, `type`, `evaluate` and `export` read it, and nothing trains it."
            )
        try:
            return model_of(self.kind, self.settings)
        except InputError as error:
            raise InputError(f"the model in '{self.folder}' cannot be built: {error}") from error

    def shapes(self) -> dict[str, tuple[tuple[int, ...], str]]:
        """The shape and the type of each weight, by name."""
        return {name: (array.shape, array.dtype.name) for name, array in self.weights.items()}

    @property
    def vocabulary(self) -> Vocabulary:
        """Its words. Raises: InputError where their file is missing or was changed."""
        return Vocabulary.load(self.folder / WORDS)

    @property
    def digest(self) -> str:
        """SHA-256 over everything that is read here: weights, settings, words, origin."""
        files = [self.folder / name for name in (WEIGHTS, SETTINGS, WORDS, ORIGIN)]
        listed = [f"{file.name} {hashlib.sha256(file.read_bytes()).hexdigest()}" for file in files if file.exists()]
        return hashlib.sha256("\n".join(listed).encode()).hexdigest()

    @property
    def public_text(self) -> str | None:
        """The public text it was made from, and from nothing else; None where that is not known."""
        try:
            text = parsed_json(read_bounded(self.folder / ORIGIN))["public_text"]
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None
        return text if isinstance(text, str) else None

    def apart(self) -> InputError:
        """That the weights, the settings and the words are not of one model."""
        return InputError(
            f"the files of the model in '{self.folder}' do not belong together; restore them from a copy."
        )


def read_files(path: Path) -> ModelFiles:
    """Of the model folder at `path`, or of the run or pre-training there whose `model/` it is.

    Raises: InputError where there is none, or a file is damaged.
    """
    folder = path / "model" if (path / "model" / WEIGHTS).is_file() else path
    try:
        weights = mapped(folder / WEIGHTS)
        settings = strict_json(read_bounded(folder / SETTINGS))
        kind = settings.pop("kind")
        of_type("kind", kind, str)
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(
            f"'{path}' holds no model (no {WEIGHTS} with its {SETTINGS}); name a finished run, or a model folder."
        ) from None
    except (SafetensorError, ValueError, TypeError, KeyError, AttributeError, InputError) as error:
        raise InputError(f"the model in '{folder}' is damaged ({error}); restore it from a copy.") from error
    return ModelFiles(folder=folder, kind=kind, settings=settings, weights=weights)


def write_origin(folder: Path, public_text: str) -> None:
    """Say that the model in `folder` was made from this public text, and from nothing else."""
    write_whole(folder / ORIGIN, (json.dumps({"public_text": public_text}, ensure_ascii=False) + "\n").encode())


def is_counted(path: Path) -> bool:
    """Whether the folder of a model, or its `model/`, says that it is of a kind in COUNTED."""
    try:
        return read_files(path).kind in COUNTED
    except InputError:
        return False


def mapped(file: Path) -> dict[str, Any]:
    """The arrays of a file of weights, by name, which are read from it when they are used.

    Raises: FileNotFoundError, NotADirectoryError; SafetensorError, ValueError, KeyError where it is damaged.
    """
    content = np.memmap(file, np.uint8, mode="r")
    with safe_open(file, "np") as checked:  # that each array lies in the file, and none in another
        names = set(checked.keys())
    begins = 8 + int.from_bytes(content[:8].tobytes(), "little")
    head = parsed_json(content[8:begins].tobytes())
    found = {}
    for name in sorted(names):
        first, last = head[name]["data_offsets"]
        numbers = content[begins + first : begins + last].view(DTYPES[head[name]["dtype"]])
        found[name] = np.asarray(numbers).reshape(head[name]["shape"])
    return found
