"""The carried state on disk, bit for bit: written aside, synced, renamed; a torn file is never seen under its name."""

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load

from tacit.errors import RunError
from tacit.files import write_whole

Arrays = Mapping[str, NDArray[Any]]
_TYPES = {
    "float32": "F32",
    "float64": "F64",
    "int32": "I32",
    "int64": "I64",
    "uint32": "U32",
    "uint8": "U8",
    "bool": "BOOL",
}


def leaves(state: Any) -> dict[str, NDArray[Any]]:
    """The arrays of a state by their path in the pytree, in its order, as they are now; shapes and types unchanged.

    JAX's arrays never change and are not copied; NumPy's are, since a mechanism writes its buffers over each round.
    """
    flat, _ = jax.tree_util.tree_flatten_with_path(state)
    return {
        jax.tree_util.keystr(path): np.asarray(leaf) if isinstance(leaf, jax.Array) else np.array(leaf)
        for path, leaf in flat
    }


def save_checkpoint(path: Path, arrays: Arrays) -> str:
    """Write the leaves of a state and return the file's SHA-256. When this returns, the file survives a power cut.

    Raises: OSError (a full disk, say); then nothing is left under `path` and earlier checkpoints are as they were.
    """
    sha = hashlib.sha256()
    write_whole(
        path, _hashed(_safetensors({name: np.asarray(array, order="C") for name, array in arrays.items()}), sha)
    )
    return sha.hexdigest()


def _hashed(parts: Iterator[bytes | memoryview], sha: "hashlib._Hash") -> Iterator[bytes | memoryview]:
    """The parts as they are, counted into a digest on their way."""
    for part in parts:
        sha.update(part)
        yield part


def _safetensors(arrays: Arrays) -> Iterator[bytes | memoryview]:
    """The parts of a safetensors file, out of the arrays' own memory: its library copies a state twice first.

    Length of the header (8 bytes), header in JSON padded to 8 bytes, arrays one after another, widest type first
    (so that each is aligned). https://huggingface.co/docs/safetensors, section Format.
    """
    ordered = sorted(arrays.items(), key=lambda item: -item[1].itemsize)
    header, end = {}, 0
    for name, array in ordered:
        begin, end = end, end + array.nbytes
        header[name] = {"dtype": _TYPES[array.dtype.name], "shape": array.shape, "data_offsets": [begin, end]}
    written = json.dumps(header).encode()
    written += b" " * (-len(written) % 8)
    yield len(written).to_bytes(8, "little")
    yield written
    for _, array in ordered:
        yield array.reshape(-1).view(np.uint8).data


def load_checkpoint(path: Path, like: Any, expected: str) -> Any:
    """The state saved at `path`, with the structure of `like`; sizes are the file's, because noise buffers may grow.

    Raises: RunError when it is missing, of another structure, or not the file whose digest the ledger has.
    """
    return as_state(read_checkpoint(path, expected), like, path)


def read_checkpoint(path: Path, expected: str) -> Arrays:
    """The arrays saved at `path`, by name. Raises: RunError when it is missing or not the file with that SHA-256."""
    try:
        content = path.read_bytes()
        arrays: Arrays = load(content)
    except (OSError, SafetensorError) as error:
        raise RunError(
            f"the checkpoint '{path}' cannot be read ({error}); restore it from a copy of the run folder."
        ) from error
    if hashlib.sha256(content).hexdigest() != expected:
        raise RunError(f"the checkpoint '{path}' is not the state that its ledger row names; restore it from a copy.")
    return arrays


def as_state(arrays: Arrays, like: Any, path: Path) -> Any:
    """Arrays read at `path` as a state with the structure of `like`. Raises: RunError when it has another."""
    wanted = leaves(like)
    if {name: array.dtype for name, array in arrays.items()} != {name: a.dtype for name, a in wanted.items()}:
        raise RunError(f"the checkpoint '{path}' holds another recipe's state; restore the run folder as it was.")
    scalars = {name for name, array in wanted.items() if array.ndim == 0 and arrays[name].size == 1}
    found = [arrays[name].reshape(()) if name in scalars else arrays[name] for name in wanted]
    return jax.tree_util.tree_unflatten(jax.tree_util.tree_structure(like), found)


def forget_old_checkpoints(folder: Path, keep: int, also: Collection[str] = ()) -> None:
    """Remove all but the newest `keep` and those named in `also`."""
    for old in sorted(folder.glob("*.safetensors"))[: -keep or None]:
        if old.name not in also:
            old.unlink(missing_ok=True)
