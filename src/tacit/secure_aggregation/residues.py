"""Residues of w bits as bytes, laid out so that a processor's vectors unpack and add them at the speed of memory.

The N residues of a polynomial modulo a prime of w bits are 64 rows of N/64 lanes. Each lane is a string of 64 w bits,
residue after residue, the lowest bit first; it is cut into w words of 64 bits, and word k of all lanes come one after
the other, little-endian: 8 w N/64 bytes in all, without a bit to spare.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

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


def add_packed(ring: Ring, total: Residues, data: memoryview) -> None:
    """Add packed residues (as many bytes as `packed_bytes`) to `total` (primes, N), modulo each prime.

    A word of w bits that is not below its prime stands for its residue: nobody gains by sending it.
    """
    start = 0
    for row, prime in zip(total, ring.primes, strict=True):
        size = ring.degree * prime.bit_length() // 8
        words = np.frombuffer(data[start : start + size], "<u8").reshape(prime.bit_length(), -1)
        _add_packed(row.reshape(ROWS, -1), words, np.uint64(prime))
        start += size


@dataclass(frozen=True)
class PackedSum:
    """An `Aggregation` of packed polynomials, one after another, modulo the primes of their ring."""

    ring: Ring
    polynomials: int

    def zero(self) -> Residues:
        """(polynomials, primes, N)."""
        return np.zeros((self.polynomials, len(self.ring.primes), self.ring.degree), np.uint64)

    def add(self, state: Residues, report: bytes | memoryview) -> Residues:
        """See Aggregation."""
        size, data = packed_bytes(self.ring), memoryview(report)
        for index, total in enumerate(state):
            add_packed(self.ring, total, data[index * size : (index + 1) * size])
        return state

    def merge(self, state: Residues, other: Residues) -> Residues:
        """See Aggregation."""
        for total, more in zip(state, other, strict=True):
            self.ring.add(total, more)
        return state

    def finish(self, state: Residues) -> Residues:
        """See Aggregation."""
        return state


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


@compiled
def _add_packed(total: Residues, words: npt.NDArray[np.uint64], prime: np.uint64) -> None:
    width, lanes = words.shape
    mask = (np.uint64(1) << np.uint64(width)) - np.uint64(1)
    for row in range(ROWS):
        word, shift = (row * width) // ROWS, (row * width) % ROWS
        up, down = np.uint64(shift), np.uint64(ROWS - shift)
        if shift + width > ROWS:
            for lane in range(lanes):
                value = ((words[word, lane] >> up) | (words[word + 1, lane] << down)) & mask
                value = total[row, lane] + (value - prime if value >= prime else value)
                total[row, lane] = value - prime if value >= prime else value
        else:
            for lane in range(lanes):
                value = (words[word, lane] >> up) & mask
                value = total[row, lane] + (value - prime if value >= prime else value)
                total[row, lane] = value - prime if value >= prime else value
