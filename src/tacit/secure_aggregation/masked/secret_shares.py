"""A secret of 32 bytes in shares of the field of `shares.py`: a client's seeds and keys, for its neighbours."""

from collections.abc import Sequence

import numpy as np

from tacit.errors import ProtocolError
from tacit.secure_aggregation.secrets import SECRET_BYTES, Draw
from tacit.secure_aggregation.shares import elements, rebuilt, split

LIMB_BITS = 30
LIMBS = -(-8 * SECRET_BYTES // LIMB_BITS)  # 9: a secret of 32 bytes in limbs below 2^30, the lowest first
SHARE_BYTES = 4 * LIMBS


def split_secret(secret: bytes, points: Sequence[int], threshold: int, draw: Draw) -> list[bytes]:
    """A share of 36 bytes for each party, of a secret of 32 bytes; fewer than `threshold` of them tell nothing."""
    number = int.from_bytes(secret, "little")
    limbs = np.array([[number >> LIMB_BITS * limb & (1 << LIMB_BITS) - 1 for limb in range(LIMBS)]], np.uint32)
    return [share.astype("<u4").tobytes() for share in split(limbs, points, threshold, draw)]


def rebuilt_secret(shares: Sequence[bytes], points: Sequence[int]) -> bytes:
    """The secret from as many shares as its threshold.

    Raises: ProtocolError where they are shares of no secret; that they are of *the* secret, the caller checks, from
    what its owner committed to.
    """
    limbs = rebuilt(np.array([elements(share, LIMBS) for share in shares]), points)[0]
    number = sum(int(limb) << LIMB_BITS * place for place, limb in enumerate(limbs))
    if int(limbs.max()) >> LIMB_BITS or number >> 8 * SECRET_BYTES:
        raise ProtocolError("these shares are not those of one secret.")
    return number.to_bytes(SECRET_BYTES, "little")
