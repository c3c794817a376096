"""The server's end of what is not JSON on the wire: reports are read and bounded, models, matrices and sums written.

What a reader takes is checked against the question's shape before it may be in a sum (`federation.report_shape`): its
size, its kind, its bounds, and what it says beside the tensor.
"""

import re

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save

from tacit.errors import InputError
from tacit.federation.report_shape import LOSS, SHORT, ReportShape
from tacit.privacy.strategy import Matrix
from tacit.protocol.bodies import DTYPES, LENGTH_BYTES, MOST_HEADER, Buffer, ReportBody, sha256, tensor_of
from tacit.protocol.messages import MatrixFile, RoundTask


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
    values, said = tensor_of(body, shape.tensor, shape.length)
    asked = {"assignment", "usable"} | shape.beside
    if said.keys() != asked:
        raise InputError(f"the report's metadata are {sorted(said)}, and {sorted(asked)} were expected.")
    if said["assignment"] != assignment:
        raise InputError("the report is for another assignment.")
    usable = _is_true("usable", said["usable"])
    short = _is_true(SHORT, said[SHORT]) if SHORT in asked else None
    loss = _loss(said[LOSS], shape.loss_bound) if LOSS in asked else None
    if not usable:
        if values.any():
            raise InputError("the report says that it is not usable, and is not zero.")
    else:
        shape.check(values)
    return ReportBody(values, usable, short, loss)


def model_body(model: NDArray[np.float32]) -> bytes:
    """A model (d,) as devices fetch it."""
    return save({"model": np.ascontiguousarray(model, DTYPES["model"])})


def matrix_body(values: NDArray[np.float64]) -> bytes:
    """The numbers (rows, columns) of a strategy matrix as devices fetch them, row by row."""
    return save({"matrix": np.ascontiguousarray(values, DTYPES["matrix"]).reshape(-1)})


def matrix_file(matrix: Matrix) -> tuple[MatrixFile, bytes]:
    """What a plan says of the matrix, and the file."""
    body = matrix_body(matrix.values)
    name, (rounds, bands) = sha256(body), matrix.values.shape
    shape = {"kind": matrix.kind, "rounds": rounds, "bands": bands}
    file = {"sha256": name, "bytes": len(body), "path": f"/v1/models/{name}"}
    return MatrixFile.model_validate(shape | file), body


def sum_body(total: NDArray[np.float32] | NDArray[np.uint32]) -> bytes:
    """A sum of reports' values, as workers and coordinators keep it: float32 in the clear, uint32 modulo 2^32."""
    name = "words" if total.dtype == np.uint32 else "update"
    return save({name: np.ascontiguousarray(total, DTYPES[name])})


def read_sum(body: Buffer, task: RoundTask) -> NDArray[np.float32] | NDArray[np.uint32]:
    """The sum, a view of the body: (d,) float32, or (length,) uint32. Raises: InputError for another file."""
    shape = task.asks.shape()
    values, _ = tensor_of(body, shape.tensor, shape.length)
    return values


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
