"""What is not JSON on the wire: a device's report and a round's model, as safetensors. This is a device's end of it.

A report is one tensor, `update` (d,) float32 in the clear or `words` (length,) uint32 of whole numbers, and metadata.
`served_bodies.py` is the server's end, where reports are read and checked.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError
from tacit.federation.report_shape import LOSS, SHORT
from tacit.parsing import strict_json

LENGTH_BYTES = 8  # of a safetensors file before its header: how many bytes that has
MOST_HEADER = 4096  # bytes of safetensors' header that a report may have
HEADER = 512  # that a device's has, filled up with spaces: as long whatever is said in it
Buffer: TypeAlias = bytes | bytearray | memoryview
DTYPES: Mapping[str, np.dtype[Any]] = {
    "update": np.dtype("<f4"),
    "words": np.dtype("<u4"),
    "model": np.dtype("<f4"),
    "matrix": np.dtype("<f8"),
}
NAMES = {"<f4": "F32", "<u4": "U32", "<f8": "F64"}  # of safetensors


class ReportBody(NamedTuple):
    """What a device reports in a round of sums in the clear or of integers."""

    values: NDArray[np.float32] | NDArray[np.uint32]  # update (d,), or words (length,)
    usable: bool  # False: the update was not finite; the values are zeros and are not added
    short: bool | None  # as `training.one_by_one.DeviceReport`; None: not asked, or encoded
    bounded_loss: float | None  # the same


def sha256(body: Buffer) -> str:
    """64 hexadecimal digits."""
    return hashlib.sha256(body).hexdigest()


def report_body(report: ReportBody, assignment: str) -> bytes:
    """The report as a device sends it: update (d,) float32, or words (length,) uint32; as long whatever it says."""
    said = {"assignment": assignment, "usable": _truth(report.usable)}
    if report.short is not None:
        said[SHORT] = _truth(report.short)
    if report.bounded_loss is not None:
        said[LOSS] = repr(float(report.bounded_loss))
    name = "words" if report.values.dtype == np.uint32 else "update"
    values = np.ascontiguousarray(report.values, DTYPES[name])
    tensor = {"dtype": NAMES[DTYPES[name].str], "shape": [values.size], "data_offsets": [0, values.nbytes]}
    header = json.dumps({"__metadata__": said, name: tensor}, separators=(",", ":")).encode().ljust(HEADER)
    return b"".join((len(header).to_bytes(LENGTH_BYTES, "little"), header, values.data))


def read_model(body: Buffer, parameters: int) -> NDArray[np.float32]:
    """The model (parameters,), a view of the body. Raises: InputError for another file."""
    values, _ = tensor_of(body, "model", parameters)
    if not np.isfinite(values).all():
        raise InputError("the model is not finite.")
    return values


def read_matrix(body: Buffer, rows: int, columns: int) -> NDArray[np.float64]:
    """The numbers (rows, columns), a view of the body. Raises: InputError for another file."""
    values, _ = tensor_of(body, "matrix", rows * columns)
    return values.reshape(rows, columns)


def tensor_of(body: Buffer, name: str, length: int) -> tuple[NDArray[Any], dict[str, str]]:
    """The one tensor (length,) of a safetensors file, a view, and the metadata. Raises: InputError."""
    view, dtype = memoryview(body), DTYPES[name]
    size = int.from_bytes(view[:LENGTH_BYTES], "little")
    if len(view) < LENGTH_BYTES or size > min(MOST_HEADER, len(view) - LENGTH_BYTES):
        raise InputError(f"this is no safetensors file with a header of at most {MOST_HEADER} bytes.")
    try:
        header = strict_json(bytes(view[LENGTH_BYTES : LENGTH_BYTES + size]).decode())
    except ValueError as error:
        raise InputError(f"the header is no JSON: {error}") from None
    wanted = {"dtype": NAMES[dtype.str], "shape": [length], "data_offsets": [0, dtype.itemsize * length]}
    if not isinstance(header, dict) or header.keys() - {"__metadata__"} != {name} or header[name] != wanted:
        raise InputError(f"the file is not one tensor `{name}` {json.dumps(wanted)}.")
    said = header.get("__metadata__", {})
    if not isinstance(said, dict) or not all(isinstance(value, str) for value in said.values()):
        raise InputError("the metadata are no table of text.")
    data = view[LENGTH_BYTES + size :]
    if len(data) != dtype.itemsize * length:
        raise InputError(f"the tensor has {len(data)} bytes, and {dtype.itemsize * length} were expected.")
    return np.frombuffer(data, dtype), said


def _truth(value: bool) -> str:
    return "true" if value else "false"
