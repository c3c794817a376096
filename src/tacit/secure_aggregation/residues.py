"""Residues of w bits as bytes, laid out so that a processor's vectors unpack and add them at the speed of memory.

The N residues of a polynomial modulo a prime of w bits are 64 rows of N/64 lanes. Each lane is a string of 64 w bits,
residue after residue, the lowest bit first; it is cut into w words of 64 bits, and word k of all lanes come one after
the other, little-endian: 8 w N/64 bytes in all, without a bit to spare.
"""

import numpy as np

from tacit.compiled import compiled
from tacit.secure_aggregation.one_message.ring import Residues, Ring

ROWS = 64  # residues of a lane: as many as a word has bits, so that a lane fills whole words


def packed_bytes(ring: Ring) -> int:
    """Bytes of one polynomial."""
    return sum(ring.degree * prime.bit_length() // 8 for prime in ring.primes)


def pack(ring: Ring, residues: Residues) -> bytes:
    """Residues (primes, N) as bytes."""
    parts = []
    for row, prime in zip(residues, ring.primes, strict=True):
        words = np.zeros((prime.bit_length(), ring.degree // ROWS), np.uint64)
        _pack(row.reshape(ROWS, -1), words)
        parts.append(words.astype("<u8", copy=False).tobytes())
    return b"".join(parts)


@compiled
def _pack(residues: Residues, words: Residues) -> None:
    width, lanes = words.shape
    for row in range(ROWS):
        word, shift = (row * width) // ROWS, (row * width) % ROWS
        up, down = np.uint64(shift), np.uint64(ROWS - shift)
        for lane in range(lanes):
            words[word, lane] |= residues[row, lane] << up
        if shift + width > ROWS:
            for lane in range(lanes):
                words[word + 1, lane] |= residues[row, lane] >> down
