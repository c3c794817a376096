"""A model as the files that keyboards load: PARTS says which there are and who writes each.

The folder appears whole or not at all. What is in it is computed from the model alone.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from onnx import ModelProto
from safetensors.numpy import save

from tacit.errors import InputError
from tacit.files import write_whole
from tacit.folders import folder_beside, replace_folder
from tacit.keyboard.dictionaries.combined_list import DICTIONARY, combined
from tacit.keyboard.dictionaries.entries import Dictionary
from tacit.keyboard.dictionaries.from_model import LOCALE, NOTHING_GIVEN, Given, dictionary_of
from tacit.keyboard.exported import (
    MANIFEST,
    SCORE,
    STEP,
    TRAIN,
    Exported,
    ExportedFile,
    ExportedWords,
    ExportManifest,
    Promise,
    load_exported,
)
from tacit.keyboard.model_folder import TrainedModel
from tacit.keyboard.phone_model import phone_model_of
from tacit.networks.language_model import leaves, parameter_count, settings_of
from tacit.networks.models import WEIGHTS, WORDS
from tacit.networks.onnx.graph import OPSET
from tacit.networks.onnx.quantized import int4, int8
from tacit.networks.onnx.step import score_graph, step_graph
from tacit.networks.onnx.training import HasOnnxTraining, training_graph
from tacit.version import __version__


@dataclass(frozen=True)
class Exporting:
    """What is exported and how; each writer of a part takes from it what it needs."""

    model: TrainedModel
    privacy: Promise  # of the model
    date: int  # in seconds since 1970, of the dictionary
    locale: str = LOCALE  # of the dictionary
    given: Given = NOTHING_GIVEN  # to the dictionary
    quantize: str | None = None  # a name of QUANTIZATIONS; None is float32

    def __post_init__(self) -> None:
        if self.quantize is not None and self.quantize not in QUANTIZATIONS:
            known = ", ".join(QUANTIZATIONS)
            raise InputError(f"quantize={self.quantize!r} is unknown; it is one of {known}, or left out.")

    @cached_property
    def step(self) -> ModelProto:
        """One word, quantized as asked."""
        return self._quantized(step_graph(self.model.network, self.model.parameters))

    @cached_property
    def score(self) -> ModelProto:
        """Sentences, quantized as asked."""
        return self._quantized(score_graph(self.model.network, self.model.parameters))

    @cached_property
    def dictionary(self) -> Dictionary:
        """The words, and what follows one of them."""
        return self.dictionary_with(pairs=False)

    def dictionary_with(self, *, pairs: bool) -> Dictionary:
        """The words; pairs: also what follows two of them."""
        model = phone_model_of(self.model)
        return dictionary_of(model, self.privacy, locale=self.locale, date=self.date, pairs=pairs, given=self.given)

    def _quantized(self, graph: ModelProto) -> ModelProto:
        return graph if self.quantize is None else QUANTIZATIONS[self.quantize](graph)


# By name: a graph of float32, from `onnx.step`, with smaller weights.
QUANTIZATIONS: Mapping[str, Callable[[ModelProto], ModelProto]] = MappingProxyType({"int8": int8, "int4": int4})


def _weights(request: Exporting) -> bytes:
    """The parameters by name, float32 whatever the quantization of the graphs."""
    return save({name: np.ascontiguousarray(leaf) for name, leaf in leaves(request.model.parameters).items()})


def _train(request: Exporting) -> bytes | None:
    """A step of SGD, float32 whatever the quantization; not there where the network does not say how it trains."""
    network = request.model.network
    return training_graph(network).SerializeToString() if isinstance(network, HasOnnxTraining) else None


# The files of an export, in the order in which they are written: a new one is a line here. None: there is none.
PARTS: Mapping[str, Callable[[Exporting], bytes | None]] = MappingProxyType(
    {
        STEP: lambda request: request.step.SerializeToString(),
        SCORE: lambda request: request.score.SerializeToString(),
        TRAIN: _train,
        WEIGHTS: _weights,
        WORDS: lambda request: request.model.vocabulary.to_json().encode(),
        DICTIONARY: lambda request: combined(request.dictionary).encode(),
    }
)


def check_place(out: Path) -> None:
    """Raises: InputError where `out` is there and more than an export: nothing else is replaced."""
    if out.is_symlink():
        raise InputError(
            f"'{out}' is a link, and the folder is written whole in its own place; give '{out.resolve()}'."
        )
    there = sorted(each.name for each in out.iterdir()) if out.is_dir() else [] if not out.exists() else [out.name]
    if not there:
        return
    try:
        own = {MANIFEST, *load_exported(out).manifest.files}
    except InputError as error:
        raise InputError(
            f"'{out}' exists and is no export, so it is not replaced; give another --out, or remove it."
        ) from error
    if strange := [name for name in there if name not in own]:
        raise InputError(
            f"'{out}' has {strange[0]!r} beside an export, and would lose it; move it away, or give another --out."
        )


def write_export(request: Exporting, out: Path, *, run: str | None = None) -> Exported:
    """Write the folder; an export that is there is replaced once the new one is whole.

    run: the seal of the run that trained the model. Raises: InputError where `out` is something else, or the network
    cannot be exported.
    """
    model = request.model
    facts = {
        "tacit": __version__,
        "model": model.digest,
        "run": run,
        "network": settings_of(model.network),
        "parameters": parameter_count(model.network),
        "quantization": request.quantize,
        "opset": OPSET,
        "vocabulary": ExportedWords.from_vocabulary(model.vocabulary),
        "privacy": request.privacy,
    }
    return write_folder(out, ((name, part(request)) for name, part in PARTS.items()), facts)


def write_folder(out: Path, contents: Iterable[tuple[str, bytes | None]], facts: Mapping[str, Any]) -> Exported:
    """Write files with their manifest; one without a content is not there.

    facts: of the manifest, its files left out. Raises: InputError where `out` is something else.
    """
    check_place(out)
    with folder_beside(out) as draft:
        files = {name: _written(draft / name, content) for name, content in contents if content is not None}
        manifest = ExportManifest(**facts, files=files)
        content = json.dumps(manifest.to_record(), indent=1, ensure_ascii=False) + "\n"
        write_whole(draft / MANIFEST, content.encode())
        replace_folder(out, draft)
    return load_exported(out)


def _written(path: Path, content: bytes) -> ExportedFile:
    write_whole(path, content)
    return ExportedFile(sha256=hashlib.sha256(content).hexdigest(), bytes=len(content))
