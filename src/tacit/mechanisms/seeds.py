"""Seeds: standard normal vectors that are a pure function of a round's key, so that none need be kept.

AES-128 in counter mode makes the words, the ziggurat makes the numbers. A round's key is `keys.round_key`.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext
from cryptography.hazmat.primitives.ciphers.algorithms import AES128
from cryptography.hazmat.primitives.ciphers.modes import CTR

from tacit.errors import InputError
from tacit.mechanisms import ziggurat

SEED_KEY_BYTES = 16
# Changing BLOCK or SPARE changes the seeds; PIECE does not.
BLOCK = 1 << 18  # seeds whose words stand in a row, drawn by one thread
SPARE = 1 << 10  # words taken at a time for the places that are not under the bell for certain
PIECE = 1 << 14  # drawn at a time, 128 KiB: words, numbers and what is done with them stay in a core's second cache
WORDS, SPARES, FURTHER = range(3)  # what words are for: each has counters of its own
_ZEROS = bytes(8 * PIECE)  # what is encrypted


def each_block(run: Callable[[int], None], dimension: int) -> None:
    """run(block) for every block of `dimension` numbers, in threads: loops compute without the interpreter's lock."""
    blocks = range(-(-dimension // BLOCK))
    if len(blocks) == 1:
        run(0)
        return
    with ThreadPoolExecutor() as pool:
        list(pool.map(run, blocks))


class _RandomWords:
    """Uniform 64-bit words of AES-128 in counter mode: counter words (use, vector, running), 32, 32 and 64 bits."""

    def __init__(self, key: bytes, use: int, vector: int, first: int, size: int) -> None:
        """`first`: the first counter of 128 bits, two words each. `size`: the most words asked for at a time."""
        counter = use.to_bytes(4, "big") + vector.to_bytes(4, "big") + first.to_bytes(8, "big")
        self._cipher: CipherContext = Cipher(AES128(key), CTR(counter)).encryptor()
        self._room = np.empty(size + 2, np.uint64)  # two more: the cipher asks for as much
        self._bytes = memoryview(self._room.data).cast("B")
        self._zeros = memoryview(_ZEROS)[: 8 * size]

    def take(self) -> npt.NDArray[np.uint64]:
        """The next `size` words; those taken before are overwritten."""
        self._cipher.update_into(self._zeros, self._bytes)
        return self._room[:-2]


@dataclass(frozen=True)
class SeedVector:
    """A standard normal vector that is not drawn yet: seed `vector` of the round whose key this is."""

    key: bytes
    vector: int = 0

    def __post_init__(self) -> None:
        if len(self.key) != SEED_KEY_BYTES:
            raise InputError(
                f"a key of seeds has {len(self.key)} bytes, but must have {SEED_KEY_BYTES}: take round_key(...).seeds."
            )

    def block(self, block: int) -> "SeedBlock":
        """Draws the numbers from `block * BLOCK` on, PIECE by PIECE, BLOCK of them."""
        return SeedBlock(self, block)

    def draw(self, dimension: int) -> npt.NDArray[np.float64]:
        """The first `dimension` numbers. Each block has its own counters, so threads may fill them."""
        numbers = np.empty(dimension, np.float64)

        def fill(block: int) -> None:
            drawing, piece = self.block(block), np.empty(PIECE, np.float64)
            for start in range(block * BLOCK, min((block + 1) * BLOCK, dimension), PIECE):
                drawing.fill(piece)
                numbers[start : start + PIECE] = piece[: dimension - start]

        each_block(fill, dimension)
        return numbers

    def further(self, index: int) -> Callable[[], int]:
        """Gives, each time that it is called, 64 bits more of the place of number `index`."""
        words = _RandomWords(self.key, FURTHER, self.vector, index << 16, 2)

        def more() -> int:
            return int(words.take()[0])

        return more


class SeedBlock:
    """Where drawing stands in one block of a seed vector."""

    def __init__(self, seed: SeedVector, block: int) -> None:
        self._seed = seed
        self._words = _RandomWords(seed.key, WORDS, seed.vector, block * BLOCK // 2, PIECE)
        self._spares = _RandomWords(seed.key, SPARES, seed.vector, block * BLOCK, SPARE)
        self._spare, self._used = self._spares.take(), 0
        self._at, self._strips = np.empty((2, PIECE), np.intp)
        self._outside = 0
        self._drawn: npt.NDArray[np.uint64] = np.empty(0, np.uint64)

    def fill(self, numbers: npt.NDArray[np.float64]) -> None:
        """The next PIECE numbers. All but exp is exact or rounded as IEEE 754 says."""
        self._drawn = self._words.take()
        self._outside = ziggurat.place(self._drawn, numbers, self._at, self._strips)
        settled = 0
        while True:
            settled, self._used = ziggurat.settle(
                self._drawn, numbers, self._at, self._strips, settled, self._outside, self._spare, self._used
            )
            if settled == self._outside:
                return
            self._spare, self._used = self._spares.take(), 0

    def interval(self, place: int) -> tuple[Fraction, Fraction]:
        """(low, width) of the real number that stands at this place of the piece drawn last (`exact_interval`)."""
        word = int(self._drawn[place])
        found = np.flatnonzero(self._at[: self._outside] == place)
        return ziggurat.exact_interval(word, int(self._strips[found[0]]) if found.size else word & 0xFF)


def standard_normal_seeds(key: bytes, count: int, dimension: int) -> npt.NDArray[np.float64]:
    """Standard normal vectors (count, dimension) float64: a pure function of the key, 16 bytes that `round_key` makes.

    Vectors and blocks of 2**18 numbers have counters of their own: neither the number of threads nor the order
    matters. Their law is that of the bell to a relative error of 2**-44 (docs/floating-point.md).
    """
    if count < 0 or dimension < 1:
        raise InputError(f"count={count}, dimension={dimension} cannot be: counts begin at 0, a dimension at 1.")
    rows = [SeedVector(key, vector).draw(dimension) for vector in range(count)]
    return np.array(rows).reshape(count, dimension)
