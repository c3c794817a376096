"""The coordinates of a sum, read out of the coefficients of its polynomials, and the checks that it has to pass."""

from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.compiled import compiled
from tacit.errors import RoundAborted
from tacit.secure_aggregation.one_message.ring import LIMBS, Residues
from tacit.secure_aggregation.one_message.slots import Slots, Vector


def opened(slots: Slots, limbs: Residues, index: int, reports: int) -> Vector:
    """The coordinates of the sum that polynomial `index` holds, modulo 2^32: with noise they may be negative.

    limbs: its coefficients (N, LIMBS) between -q/2 and q/2; reports: how many the sum holds, contributors aside.
    Raises: RoundAborted where errors are too large or a check does not hold: then somebody spoilt the sum.
    """
    count = min(slots.capacity, slots.dimension - index * slots.capacity)
    sums = np.zeros(slots.parameters.degree * slots.per_coefficient, np.uint64)
    fits = _read(limbs, sums, slots.width, slots.parameters.plain_bits, slots.error_bound)
    checks, coordinates, behind = np.split(sums, [slots.checks, slots.checks + count])
    right = not np.any(checks != reports + slots.contributors) and not np.any(behind)
    if not fits or not right or np.any(coordinates > slots.most(reports)):
        raise RoundAborted(
            f"the sum does not open: part {index + 1} of {slots.polynomials} fails its checks. A client's shares "
            "were not those of its key, or a client, a decryptor or the server changed what it passed on."
        )
    return coordinates.astype(np.uint32) - np.uint32(slots.margin * slots.contributors)


@compiled
def _read(limbs: Residues, sums: npt.NDArray[np.uint64], width: int, plain_bits: int, bound: int) -> bool:
    """All slots of all coefficients; whether errors are within the bound and spare bits zero."""
    slots, fits = sums.size // limbs.shape[0], True
    mask = (np.uint64(1) << np.uint64(width)) - np.uint64(1)
    for at in range(limbs.shape[0]):
        error = np.int64(_bits(limbs[at], plain_bits))
        spare = _bits(limbs[at], slots * width) & (
            (np.uint64(1) << np.uint64(plain_bits - slots * width)) - np.uint64(1)
        )
        if error < -bound or error > bound or spare != 0:
            fits = False
        for slot in range(slots):
            sums[at * slots + slot] = _bits(limbs[at], slot * width) & mask
    return fits


@compiled
def _bits(limbs: Residues, start: int) -> Any:
    """64 bits from `start` on of a number in two's complement."""
    limb, shift = start // 64, np.uint64(start % 64)
    low = limbs[limb] >> shift
    above = limbs[limb + 1] if limb + 1 < LIMBS else np.uint64(np.int64(limbs[limb]) >> np.int64(63))
    return low | (above << (np.uint64(64) - shift) if shift else np.uint64(0))
