"""Sums of packed residues (`residues.py`), as a server adds its clients' ciphertexts."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.compiled import compiled
from tacit.secure_aggregation.one_message.ring import Residues, Ring
from tacit.secure_aggregation.residues import ROWS, packed_bytes


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

    def take_off(self, state: Residues, report: bytes | memoryview) -> Residues:
        """The sum without a report that was added."""
        size, data = packed_bytes(self.ring), memoryview(report)
        for index, total in enumerate(state):
            one = np.zeros_like(total)
            add_packed(self.ring, one, data[index * size : (index + 1) * size])
            self.ring.add(total, self.ring.scaled(one, -1))
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
