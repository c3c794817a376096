"""Seeds: standard normal vectors that are a pure function of (key, purpose, round), so that none need be kept."""

import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.errors import InputError
from tacit.mechanisms.ziggurat import Ziggurat

KEY_BYTES = 16  # Philox has a key of 128 bits
# What seeds are drawn for; append only, because the place in this tuple is part of the generator's counter.
PURPOSES = ("model update", "clip norm", "evaluation histogram", "local reports")
# Changing either of these changes the seeds.
BLOCK = 1 << 18  # seeds from one counter block, 1 MiB
PIECE = 1 << 15  # drawn at a time, 128 KiB: some ten such arrays fit into a core's second cache


def fresh_key() -> bytes:
    """A key of 128 bits from the operating system: what private noise is made of."""
    return secrets.token_bytes(KEY_BYTES)


def each_block(run: Callable[[int], None], dimension: int) -> None:
    """run(block) for every block of `dimension` numbers, in threads: NumPy computes without the interpreter's lock."""
    blocks = range(-(-dimension // BLOCK))
    if len(blocks) == 1:
        run(0)
        return
    with ThreadPoolExecutor() as pool:
        list(pool.map(run, blocks))


@dataclass(frozen=True)
class SeedSource:
    """The seeds of one round, not drawn yet. InputError for a key, purpose or round that cannot be."""

    key: bytes
    purpose: str
    round: int

    def __post_init__(self) -> None:
        if len(self.key) != KEY_BYTES:
            raise InputError(
                f"a noise key has {len(self.key)} bytes, but must have {KEY_BYTES}: take one from fresh_key()."
            )
        if self.purpose not in PURPOSES:
            raise InputError(f"purpose={self.purpose!r} is not one that seeds are drawn for: {', '.join(PURPOSES)}.")
        if self.round < 0:
            raise InputError(f"round={self.round} cannot be: rounds begin at 0.")

    def block(self, block: int) -> np.random.Generator:
        """From which `Ziggurat.fill` draws seeds `block * BLOCK` and on, PIECE by PIECE, BLOCK of them.

        NumPy's Philox4x64-10, counter words (running, block, purpose, round) from the lowest: blocks start 2**64
        steps apart.
        """
        words = np.frombuffer(self.key, dtype="<u8").astype(np.uint64)
        counter = np.array([0, block, PURPOSES.index(self.purpose), self.round], dtype=np.uint64)
        return np.random.Generator(np.random.Philox(key=words, counter=counter))

    def draw(self, dimension: int) -> npt.NDArray[np.float32]:
        """The first `dimension` seeds, (dimension,). Each block has its own counter, so threads may fill them."""
        seeds = np.empty(dimension, np.float32)

        def fill(block: int) -> None:
            generator, ziggurat, piece = self.block(block), Ziggurat(PIECE), np.empty(PIECE, np.float32)
            for start in range(block * BLOCK, min((block + 1) * BLOCK, dimension), PIECE):
                ziggurat.fill(generator, piece)
                seeds[start : start + PIECE] = piece[: dimension - start]

        each_block(fill, dimension)
        return seeds


def standard_normal_seeds(key: bytes, purpose: str, round: int, count: int, dimension: int) -> npt.NDArray[np.float32]:
    """Standard normal vectors (count, dimension) float32: a pure function of the arguments.

    Drawn in blocks of 2**18 numbers with their own counters, so threads may fill them and neither their number nor
    the order matters. One number in 130 comes from NumPy's ziggurat, which may change with a new NumPy (its NEP 19); a
    golden test watches. Philox is a statistical generator, not a cipher: the server that adds the noise is trusted
    to keep the key.
    """
    source = SeedSource(key, purpose, round)
    if count < 0 or dimension < 1:
        raise InputError(f"count={count}, dimension={dimension} cannot be: counts begin at 0, a dimension at 1.")
    return source.draw(count * dimension).reshape(count, dimension)
