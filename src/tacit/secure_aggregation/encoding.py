"""An update as integers that may be added modulo 2^b; `decoding.py` makes a sum of updates of a sum of such integers.

A device's part of arXiv:2305.18465, Algorithm 2: clip, scale, random signs that all share, rotation, clip of each
coordinate, conditional stochastic rounding, shift. The numbers are those of `privacy.encoding.Encoding`, and what an
encoded update may be is enforced on its integers, which are exact.
"""

import math

import numpy as np
from numpy.typing import NDArray

from tacit.compiled import compiled
from tacit.errors import InputError
from tacit.privacy.encoding import ATTEMPTS, Encoding
from tacit.secure_aggregation.hadamard import rotate
from tacit.secure_aggregation.secrets import SECRET_BYTES, Draw, seeded

SEED_BYTES = SECRET_BYTES
LANES = 16  # partial sums that are carried side by side
BELOW = 1 - 1e-9  # of the clip norm, for what is rounded toward zero: more than a sum of squares in float64 errs

Vector = NDArray[np.float32] | NDArray[np.float64]
Residues = NDArray[np.uint32]


def encode(update: NDArray[np.float32], encoding: Encoding, *, signs: bytes, rounding: bytes) -> Residues:
    """An update (parameters,) as (dimension,) residues modulo 2^bits.

    signs: the round's public seed of 32 bytes, the same on every device. rounding: 32 private bytes, of the operating
    system on a device; used for one update and never again. Less the shift, the integers have squared norm at most
    encoding.longest_squared, always: after ATTEMPTS draws that were longer they are rounded toward zero, which
    lengthens nothing. Raises: InputError for an update that is not finite or of another length, and for seeds that are
    none.
    """
    rotated = _rotated(update, encoding.checked(), signs)
    whole = np.empty(encoding.dimension, np.int32)
    draw = _stream(rounding, "rounding")
    for _ in range(ATTEMPTS):
        draws = np.frombuffer(draw(4 * encoding.dimension), "<u4")
        if _round(rotated, draws, whole) <= encoding.longest_squared:
            break
    else:
        norm, longest = math.sqrt(_squared_norm(rotated)), BELOW * encoding.scale * encoding.clip_norm
        _truncate(rotated, longest / norm if norm > longest else 1.0, whole)
    whole += np.int32(encoding.largest)
    return whole.view(np.uint32)


def _rotated(update: NDArray[np.float32], encoding: Encoding, signs: bytes) -> NDArray[np.float32]:
    """The clipped, scaled, rotated update (dimension,), each coordinate within the largest."""
    if not is_array(update, (encoding.parameters,), np.float32):
        raise InputError(
            f"an update {described(update)} is not ({encoding.parameters},) in float32, which "
            "the encoding is for; give one of the model's length."
        )
    norm = math.sqrt(_squared_norm(update))
    if not math.isfinite(norm):
        raise InputError("the update holds NaN or an infinity, of which no sum can be made; report nothing instead.")
    factor = encoding.scale * min(1.0, encoding.clip_norm / norm if norm else 1.0)
    vector = np.zeros(encoding.dimension, np.float32)
    vector[: encoding.parameters] = update
    flip(vector[: encoding.parameters], sign_bits(signs, encoding), factor)
    rotate(vector)
    np.clip(vector, -encoding.largest, encoding.largest, out=vector)
    return vector


def is_array(vector: object, shape: tuple[int, ...], kind: type[np.generic]) -> bool:
    return isinstance(vector, np.ndarray) and vector.shape == shape and vector.dtype == kind


def described(vector: object) -> str:
    """What was given in place of a vector."""
    if isinstance(vector, np.ndarray):
        return f"of shape {vector.shape} in {vector.dtype}"
    return f"of the type {type(vector).__name__}"


def sign_bits(signs: bytes, encoding: Encoding) -> NDArray[np.uint8]:
    """Eight signs a byte, the first in its lowest bit: (ceil(dimension / 8),); 1 changes a coordinate's sign."""
    draw = _stream(signs, "signs")
    return np.frombuffer(draw(-(-encoding.dimension // 8)), np.uint8)


def _stream(key: bytes, name: str) -> Draw:
    """`secrets.seeded`. Raises: InputError for a seed that has not 32 bytes."""
    if not isinstance(key, bytes):
        raise InputError(
            f"{name} is of the type {type(key).__name__}, and a seed here has {SEED_BYTES} bytes; give so many."
        )
    if len(key) != SEED_BYTES:
        raise InputError(f"{name} has {len(key)} bytes, and a seed here has {SEED_BYTES}; give so many.")
    return seeded(key)


# -- loops over vectors ------------------------------------------------------------------------------------------------


@compiled
def _squared_norm(vector: Vector) -> float:
    """Sum of squares in float64: not finite where a coordinate is not."""
    sums = np.zeros(LANES)
    whole = vector.size - vector.size % LANES
    for begin in range(0, whole, LANES):
        for lane in range(LANES):
            value = np.float64(vector[begin + lane])
            sums[lane] += value * value
    for index in range(whole, vector.size):
        value = np.float64(vector[index])
        sums[0] += value * value
    return float(sums.sum())


@compiled
def flip(vector: Vector, bits: NDArray[np.uint8], factor: float) -> None:
    """vector *= factor, and -factor where the bit is 1."""
    for index in range(vector.size):
        sign = 1 - 2 * np.int32((bits[index >> 3] >> (index & 7)) & 1)
        vector[index] = vector[index] * (factor * sign)


@compiled
def _round(vector: NDArray[np.float32], draws: NDArray[np.uint32], whole: NDArray[np.int32]) -> int:
    """Each coordinate rounded up with the probability of its fraction, in steps of 2^-32; the squared norm."""
    squared = np.int64(0)
    for index in range(vector.size):
        value = np.float64(vector[index])
        below = np.floor(value)
        up = np.float64(draws[index]) < (value - below) * 4294967296.0
        rounded = np.int32(below) + np.int32(up)
        whole[index] = rounded
        squared += np.int64(rounded) * np.int64(rounded)
    return int(squared)


@compiled
def _truncate(vector: NDArray[np.float32], factor: float, whole: NDArray[np.int32]) -> None:
    """factor * vector rounded toward zero: no coordinate becomes larger in magnitude."""
    for index in range(vector.size):
        whole[index] = np.int32(np.trunc(np.float64(vector[index]) * factor))
