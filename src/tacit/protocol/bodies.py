"""What is not JSON on the wire: a device's report and a round's model, as safetensors; written, read, and bounded.

A report is one tensor, `update` (d,) float32 in the clear or `words` (length,) uint32 of whole numbers, and metadata.
What a reader takes is checked against the question's shape before it may be in a sum (`federation.report_shape`): its
size, its kind, its bounds, and what it says beside the tensor.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save

from tacit.aggregation import Counted
from tacit.errors import InputError
from tacit.federation.report_shape import LOSS, SHORT, ReportShape
from tacit.protocol.messages import RoundTask
from tacit.records import strict_json

LENGTH_BYTES = 8  # of a safetensors file before its header: how many bytes that has
MOST_HEADER = 4096  # bytes of safetensors' header that a report may have
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

    @property
    def counted(self) -> Counted:
        """As a sum of one, whose values are these."""
        return Counted.one(self.values, self.short, self.bounded_loss)


def sha256(body: Buffer) -> str:
    """64 hexadecimal digits."""
    return hashlib.sha256(body).hexdigest()


def report_body(report: ReportBody, assignment: str) -> bytes:
    """The report as a device sends it: update (d,) float32, or words (length,) uint32."""
    said = {"assignment": assignment, "usable": _truth(report.usable)}
    if report.short is not None:
        said[SHORT] = _truth(report.short)
    if report.bounded_loss is not None:
        said[LOSS] = repr(float(report.bounded_loss))
    name = "words" if report.values.dtype == np.uint32 else "update"
    return save({name: np.ascontiguousarray(report.values, DTYPES[name])}, said)


def most_bytes(task: RoundTask) -> int:
    """No report of the task is longer."""
    if task.sealed is not None:
        from tacit.protocol.one_message_shape import most_sealed_bytes  # reports in the clear need nothing of it

        return most_sealed_bytes(task.sealed)
    return LENGTH_BYTES + MOST_HEADER + task.asks.shape().bytes


def read_report(body: Buffer, shape: ReportShape, assignment: str) -> ReportBody:
    """The report, whose values are a view of the body, checked against its task in every respect.

    Raises: InputError naming what is wrong with it.
    """
    values, said = _tensor(body, shape.tensor, shape.length)
    expected = {"assignment", "usable"} | shape.beside
    if said.keys() != expected:
        raise InputError(f"the report's metadata are {sorted(said)}, and {sorted(expected)} were expected.")
    if said["assignment"] != assignment:
        raise InputError("the report is for another assignment.")
    usable = _is_true("usable", said["usable"])
    short = _is_true(SHORT, said[SHORT]) if SHORT in expected else None
    loss = _loss(said[LOSS], shape.loss_bound) if LOSS in expected else None
    if not usable:
        if values.any():
            raise InputError("the report says that it is not usable, and is not zero.")
    else:
        shape.check(values)
    return ReportBody(values, usable, short, loss)


def model_body(model: NDArray[np.float32]) -> bytes:
    """A model (d,) as devices fetch it."""
    return save({"model": np.ascontiguousarray(model, DTYPES["model"])})


def read_model(body: Buffer, parameters: int) -> NDArray[np.float32]:
    """The model (parameters,), a view of the body. Raises: InputError for another file."""
    values, _ = _tensor(body, "model", parameters)
    if not np.isfinite(values).all():
        raise InputError("the model is not finite.")
    return values


def matrix_body(values: NDArray[np.float64]) -> bytes:
    """The numbers (rows, columns) of a strategy matrix as devices fetch them, row by row."""
    return save({"matrix": np.ascontiguousarray(values, DTYPES["matrix"]).reshape(-1)})


def read_matrix(body: Buffer, rows: int, columns: int) -> NDArray[np.float64]:
    """The numbers (rows, columns), a view of the body. Raises: InputError for another file."""
    values, _ = _tensor(body, "matrix", rows * columns)
    return values.reshape(rows, columns)


def sum_body(total: NDArray[np.float32] | NDArray[np.uint32]) -> bytes:
    """A sum of reports' values, as workers and coordinators keep it: float32 in the clear, uint32 modulo 2^32."""
    name = "words" if total.dtype == np.uint32 else "update"
    return save({name: np.ascontiguousarray(total, DTYPES[name])})


def read_sum(body: Buffer, task: RoundTask) -> NDArray[np.float32] | NDArray[np.uint32]:
    """The sum, a view of the body: (d,) float32, or (length,) uint32. Raises: InputError for another file."""
    shape = task.asks.shape()
    values, _ = _tensor(body, shape.tensor, shape.length)
    return values


def _tensor(body: Buffer, name: str, length: int) -> tuple[NDArray[Any], dict[str, str]]:
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


def _is_true(name: str, said: str) -> bool:
    if said not in ("true", "false"):
        raise InputError(f"{name} is neither true nor false.")
    return said == "true"


def _loss(said: str, bound: float | None) -> float:
    """Raises: InputError for what is no number, or beyond half the bound."""
    if not re.fullmatch(r"-?[0-9]{1,20}(\.[0-9]{1,30})?(e[+-]?[0-9]{1,3})?", said):
        raise InputError("bounded_loss is no decimal number.")
    value = float(said)
    if bound is None or not abs(value) <= bound / 2:
        raise InputError(f"bounded_loss is beyond half its bound {bound}.")
    return value
