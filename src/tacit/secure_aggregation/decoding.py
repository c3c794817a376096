"""A sum of encoded updates as a sum of updates: the server's part of arXiv:2305.18465, Algorithm 2."""

from collections.abc import Callable
from numbers import Integral

import numpy as np
from numpy.typing import NDArray

from tacit.compiled import compiled
from tacit.errors import InputError
from tacit.privacy.encoding import Encoding
from tacit.secure_aggregation.encoding import Residues, described, flip, is_array, sign_bits
from tacit.secure_aggregation.hadamard import rotate

SessionOutcome = Callable[[NDArray[np.float64]], NDArray[np.float64]]


def decode(total: Residues, encoding: Encoding, *, signs: bytes, reports: int) -> NDArray[np.float32]:
    """The sum (parameters,) of `reports` encoded updates, of whose residues (dimension,) `total` is the sum.

    In float64, rounded once at the end. Raises: InputError for more reports than the modulus holds, and for a total
    that no such sum can be.
    """
    if (
        isinstance(reports, bool)
        or not isinstance(reports, Integral)
        or not 0 <= reports <= encoding.checked().report_goal
    ):
        raise InputError(
            f"reports={reports!r} is no whole number between 0 and report_goal={encoding.report_goal}, and the modulus "
            f"2^{encoding.bits} was chosen for sums of so many; encode for a larger report goal."
        )
    if not is_array(total, (encoding.dimension,), np.uint32):
        raise InputError(
            f"a total {described(total)} is not ({encoding.dimension},) in uint32; give the sum of what `encode` "
            "returned."
        )
    vector = np.empty(encoding.dimension, np.float64)
    farthest = _centred(total, np.uint32(encoding.modulus - 1), reports * encoding.largest, vector)
    most = reports * encoding.largest + encoding.margin
    if farthest > most:
        raise InputError(
            f"a coordinate of the total is {farthest}, beyond the {most} that {reports} reports can make; the sum was "
            "spoilt, or holds another number of reports."
        )
    rotate(vector, back=True)
    flip(vector, sign_bits(signs, encoding), 1 / encoding.scale)
    return vector[: encoding.parameters].astype(np.float32)


def basis(encoding: Encoding, signs: bytes) -> tuple[SessionOutcome, SessionOutcome]:
    """How a round turns vectors (dimension,) float64, and turns them back, in copies: orthogonal, and public."""
    bits = sign_bits(signs, encoding)

    def turn(vector: NDArray[np.float64]) -> NDArray[np.float64]:
        turned = np.array(vector, np.float64)
        flip(turned, bits, 1.0)
        rotate(turned)
        return turned

    def back(vector: NDArray[np.float64]) -> NDArray[np.float64]:
        turned = np.array(vector, np.float64)
        rotate(turned, back=True)
        flip(turned, bits, 1.0)
        return turned

    return turn, back


@compiled
def _centred(total: Residues, mask: np.uint32, shift: int, vector: NDArray[np.float64]) -> int:
    """vector = total - shift, modulo 2^b, as the nearest to 0; and the largest magnitude."""
    half, modulus = (np.int64(mask) + 1) >> 1, np.int64(mask) + 1
    farthest = np.int64(0)
    for index in range(total.size):
        value = (np.int64(total[index]) - shift) & np.int64(mask)
        if value >= half:
            value -= modulus
        farthest = max(farthest, abs(value))
        vector[index] = value
    return int(farthest)
