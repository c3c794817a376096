"""Loops over vectors, compiled: one pass over memory where NumPy needs one for each operation.

No fast mathematics: every product and every sum is rounded by itself, as NumPy does it, so a loop gives the bits of
the array expression that its docstring says.
"""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from tacit.compiled import compiled

Vector: TypeAlias = npt.NDArray[np.float32]

STRETCH = 1024  # columns: 4 kB of a row


@compiled
def add_scaled(total: Vector, row: Vector, weight: np.float32, out: Vector) -> None:
    """out = total + weight * row."""
    for index in range(out.size):
        out[index] = total[index] + weight * row[index]


@compiled
def fade(buffer: Vector, noise: Vector, rate: np.float32) -> None:
    """buffer += noise - rate * buffer."""
    for index in range(buffer.size):
        buffer[index] = buffer[index] + (noise[index] - rate * buffer[index])


@compiled
def decay_on(
    seed: Vector,
    buffers: npt.NDArray[np.float32],
    start: int,
    weights: Vector,
    rates: Vector,
    noise: Vector,
) -> None:
    """noise = seed + weights @ buffers, then buffers += noise - rates * buffers, in columns from `start` on.

    As many columns as the seed has, a few thousand bytes of each row at a time: they stay in the innermost cache
    from the first pass to the last.
    """
    for begin in range(0, seed.size, STRETCH):
        part = noise[begin : begin + STRETCH]
        part[:] = seed[begin : begin + STRETCH]
        columns = slice(start + begin, start + begin + part.size)
        for row in range(weights.size):
            add_scaled(part, buffers[row, columns], weights[row], part)
        for row in range(rates.size):
            fade(buffers[row, columns], part, rates[row])
