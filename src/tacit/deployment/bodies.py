"""What is not JSON on the wire: a device's report and a round's model, as safetensors; written, read, and bounded.

A report is one tensor, `update` (d,) float32 in the clear or `words` (length,) uint32 encoded, and metadata. What a
reader takes is checked against the round's task before it may be in a sum: its size, its kind, that it is finite and no
longer than the clip norm, and what it says beside the update.
"""

import hashlib
import json
import math
import re
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save

from tacit.deployment.messages import RoundTask
from tacit.errors import InputError
from tacit.records import strict_json

Buffer: TypeAlias = bytes | bytearray | memoryview
MOST_HEADER = 4096  # bytes of safetensors' header that a report may have
LENGTH_BYTES = 8  # before the header: how many it has
ROUNDING = 1e-5  # relative: by which an update clipped in float32 may be beyond the clip norm
LOSS_STEPS = 1 << 15  # of an encoded loss, to half its bound: training.private_loss.STEPS
BLOCK = 1 << 16  # coordinates whose squares are summed in float64 at a time
DTYPES = {"update": np.dtype("<f4"), "words": np.dtype("<u4"), "model": np.dtype("<f4")}
NAMES = {"<f4": "F32", "<u4": "U32"}  # of safetensors


class Report(NamedTuple):
    """What a device reports in a round of sums in the clear or of integers."""

    values: NDArray[np.float32] | NDArray[np.uint32]  # update (d,), or words (length,)
    usable: bool  # False: the update was not finite; the values are zeros and are not added
    short: bool | None  # as `training.one_by_one.DeviceReport`; None: not asked, or encoded
    bounded_loss: float | None  # the same


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What the task of a round lets a report be."""

    length: int  # of the tensor
    clip_norm: float
    asks_short: bool
    loss_bound: float | None
    task: RoundTask

    @classmethod
    def by(cls, task: RoundTask) -> "Expected":
        """That of a task; of one whose reports are sealed, what is in them."""
        return cls(
            length=task.model.parameters if task.encoded is None else task.encoded.length,
            clip_norm=task.clip_norm,
            asks_short=task.clip_estimate is not None,
            loss_bound=task.loss_bound,
            task=task,
        )

    @property
    def tensor(self) -> str:
        """The tensor's name."""
        return "update" if self.task.encoded is None else "words"

    @property
    def most_bytes(self) -> int:
        """No report is longer."""
        if self.task.sealed is not None:
            from tacit.deployment.sealed_reports import most_bytes

            return most_bytes(self.task.sealed)
        return LENGTH_BYTES + MOST_HEADER + DTYPES[self.tensor].itemsize * self.length


def sha256(body: Buffer) -> str:
    """64 hexadecimal digits."""
    return hashlib.sha256(body).hexdigest()


def report_body(report: Report, assignment: str) -> bytes:
    """The report as a device sends it: update (d,) float32, or words (length,) uint32."""
    said = {"assignment": assignment, "usable": _truth(report.usable)}
    if report.short is not None:
        said["short"] = _truth(report.short)
    if report.bounded_loss is not None:
        said["bounded_loss"] = repr(float(report.bounded_loss))
    name = "words" if report.values.dtype == np.uint32 else "update"
    return save({name: np.ascontiguousarray(report.values, DTYPES[name])}, said)


def read_report(body: Buffer, expected: Expected, assignment: str) -> Report:
    """The report, whose values are a view of the body, checked against its task in every respect.

    Raises: InputError naming what is wrong with it.
    """
    values, said = _tensor(body, expected.tensor, expected.length)
    encoded = expected.task.encoded is not None
    asked = {"assignment", "usable"}
    if not encoded:
        asked |= {"short"} if expected.asks_short else set()
        asked |= {"bounded_loss"} if expected.loss_bound is not None else set()
    if said.keys() != asked:
        raise InputError(f"the report's metadata are {sorted(said)}, and {sorted(asked)} were expected.")
    if said["assignment"] != assignment:
        raise InputError("the report is for another assignment.")
    usable = _is_true("usable", said["usable"])
    short = _is_true("short", said["short"]) if "short" in asked else None
    loss = _loss(said["bounded_loss"], expected.loss_bound) if "bounded_loss" in asked else None
    if not usable:
        if values.any():
            raise InputError("the report says that it is not usable, and is not zero.")
    elif encoded:
        check_words(values, expected.task)
    else:
        _check_norm(values, expected.clip_norm)
    return Report(values, usable, short, loss)


def model_body(model: NDArray[np.float32]) -> bytes:
    """A model (d,) as devices fetch it."""
    return save({"model": np.ascontiguousarray(model, DTYPES["model"])})


def read_model(body: Buffer, parameters: int) -> NDArray[np.float32]:
    """The model (parameters,), a view of the body. Raises: InputError for another file."""
    values, _ = _tensor(body, "model", parameters)
    if not np.isfinite(values).all():
        raise InputError("the model is not finite.")
    return values


def sum_body(total: NDArray[np.float32] | NDArray[np.uint32]) -> bytes:
    """A sum of reports' values, as workers and coordinators keep it: float32 in the clear, uint32 modulo 2^32."""
    name = "words" if total.dtype == np.uint32 else "update"
    return save({name: np.ascontiguousarray(total, DTYPES[name])})


def read_sum(body: Buffer, task: RoundTask) -> NDArray[np.float32] | NDArray[np.uint32]:
    """The sum, a view of the body: (d,) float32, or (length,) uint32. Raises: InputError for another file."""
    expected = Expected.by(task)
    values, _ = _tensor(body, expected.tensor, expected.length)
    return values


def check_words(words: NDArray[np.uint32], task: RoundTask) -> None:
    """That encoded words (length,) are those of one clipped update, as exactly as their integers tell.

    Coordinates lie in 0..2 C_inf and, less the shift, have squared norm at most `longest_squared`; behind them stand 1,
    a bit where it is asked, the digits of a loss. Raises: InputError.
    """
    assert task.encoded is not None  # the caller's to know
    encoding = task.encoded.encoding()
    update, behind = words[: encoding.dimension], [int(each) for each in words[encoding.dimension :]]
    if int(update.max()) > 2 * encoding.largest:
        raise InputError(f"a coordinate of the report is beyond {2 * encoding.largest}.")
    squared = 0
    for at in range(0, len(update), BLOCK):
        block = update[at : at + BLOCK].astype(np.int64) - encoding.largest
        squared += int(np.dot(block, block))
    if squared > encoding.longest_squared:
        raise InputError(f"the report is longer than the clip norm {task.clip_norm:g} allows.")
    if behind.pop(0) != 1:
        raise InputError("the report does not count as one.")
    if task.clip_estimate is not None and behind.pop(0) > 1:
        raise InputError("the report's bit on its length is neither 0 nor 1.")
    base = 2 * encoding.largest + 1
    if any(digit >= base for digit in behind):
        raise InputError(f"a digit of the report's loss is beyond {base - 1}.")
    if sum(digit * base**place for place, digit in enumerate(behind)) > 2 * LOSS_STEPS:
        raise InputError("the report's loss is beyond its bound.")


def _check_norm(update: NDArray[np.float32], clip_norm: float) -> None:
    squared = 0.0
    for at in range(0, len(update), BLOCK):
        block = update[at : at + BLOCK].astype(np.float64)
        squared += float(np.dot(block, block))
    if not math.isfinite(squared):
        raise InputError("the update is not finite; a device reports that it is not usable instead.")
    if math.sqrt(squared) > clip_norm * (1 + ROUNDING):
        raise InputError(f"the update's norm is beyond the clip norm {clip_norm:g}.")


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
