"""A counted model or a mixture as files of a phone: n-grams and bend as arrays, and the network as a graph of ONNX.

`onnx_reader.counted_phone_model` reads them; docs/dictionary.md#the-whole-mixture-on-a-phone has the layout.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save

from tacit.errors import InputError
from tacit.keyboard.export import QUANTIZATIONS, write_folder
from tacit.keyboard.exported import COUNTS, STEP, Exported, ExportedWords, Promise
from tacit.keyboard.mixture import KIND, NETWORK, network_files
from tacit.keyboard.model_folder import parameters_of
from tacit.networks.language_model import parameter_count
from tacit.networks.model_files import ModelFiles
from tacit.networks.models import SETTINGS, WORDS
from tacit.networks.onnx.graph import OPSET
from tacit.networks.onnx.step import step_graph
from tacit.version import __version__


def write_counted_export(files: ModelFiles, privacy: Promise, out: Path, *, quantize: str | None = None) -> Exported:
    """Write the folder; an export that is there is replaced once the new one is whole.

    quantize: of the network's graph, a name of QUANTIZATIONS. Raises: InputError where `out` is something else, there
    is nothing to quantize, or the network cannot be exported.
    """
    settings = files.settings.get("network") if files.kind == KIND else None
    if quantize is not None and settings is None:
        raise InputError(f"the model in '{files.folder}' has no network, so quantize={quantize!r} has nothing to do.")
    if quantize is not None and quantize not in QUANTIZATIONS:
        raise InputError(f"quantize={quantize!r} is unknown; it is one of {', '.join(QUANTIZATIONS)}, or left out.")
    part = None if settings is None else network_files(files, settings)
    facts: dict[str, Any] = {
        "tacit": __version__,
        "model": files.digest,
        "run": None,
        "network": {"kind": files.kind, **files.settings},
        "parameters": 0 if part is None else parameter_count(part.network()),
        "quantization": quantize,
        "opset": OPSET,
        "vocabulary": ExportedWords.from_vocabulary(files.vocabulary),
        "privacy": privacy,
    }
    return write_folder(out, _contents(files, part, quantize), facts)


def _contents(files: ModelFiles, network: ModelFiles | None, quantize: str | None) -> Iterator[tuple[str, bytes]]:
    counts = {name: np.ascontiguousarray(each) for name, each in files.weights.items() if not name.startswith(NETWORK)}
    yield COUNTS, save(counts)
    if network is not None:
        built = network.network()
        graph = step_graph(built, parameters_of(network, built, files.vocabulary))
        yield STEP, (graph if quantize is None else QUANTIZATIONS[quantize](graph)).SerializeToString()
    yield SETTINGS, (files.folder / SETTINGS).read_bytes()
    yield WORDS, (files.folder / WORDS).read_bytes()
