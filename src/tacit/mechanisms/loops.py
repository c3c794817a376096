"""Loops over vectors, compiled: one pass over memory where NumPy needs one for each operation.

No fast mathematics: every product and every sum is rounded by itself, as NumPy does it, so a loop gives the bits of
the array expression that its docstring says. Sums are float64; vectors that are carried may be float32.
"""

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tacit.compiled import compiled

FloatArray: TypeAlias = npt.NDArray[np.float64]
Carried: TypeAlias = npt.NDArray[Any]  # float64 or float32

STRETCH = 512  # columns: 4 kB of a row


@compiled
def add_scaled(total: FloatArray, row: Carried, weight: float) -> None:
    """total += weight * row."""
    for index in range(total.size):
        total[index] += weight * np.float64(row[index])


@compiled
def add_rows(total: FloatArray, buffers: Carried, start: int, weights: FloatArray) -> None:
    """total += weights @ buffers in columns from `start` on, row after row; rows without weight are not read.

    A few thousand bytes of each row at a time: the sum stays in the innermost cache.
    """
    for begin in range(0, total.size, STRETCH):
        part = total[begin : begin + STRETCH]
        columns = slice(start + begin, start + begin + part.size)
        for row in range(weights.size):
            if weights[row] != 0.0:
                add_scaled(part, buffers[row, columns], weights[row])


@compiled
def fade(buffer: Carried, noise: FloatArray, rate: float) -> None:
    """buffer += noise - rate * buffer."""
    for index in range(buffer.size):
        before = np.float64(buffer[index])
        buffer[index] = before + (noise[index] - rate * before)


@compiled
def decay_on(
    fresh: FloatArray,
    weight: float,
    rest: FloatArray,
    buffers: Carried,
    start: int,
    weights: FloatArray,
    rates: FloatArray,
    noise: FloatArray,
) -> None:
    """rest += weights @ buffers; noise = weight * fresh + rest; then buffers += noise - rates * buffers.

    In columns from `start` on, as many as `fresh` has, a few thousand bytes of each row at a time: they stay in the
    innermost cache from the first pass to the last.
    """
    for begin in range(0, fresh.size, STRETCH):
        part, sum_ = noise[begin : begin + STRETCH], rest[begin : begin + STRETCH]
        columns = slice(start + begin, start + begin + part.size)
        for row in range(weights.size):
            if weights[row] != 0.0:
                add_scaled(sum_, buffers[row, columns], weights[row])
        for index in range(part.size):
            part[index] = weight * fresh[begin + index] + sum_[index]
        for row in range(rates.size):
            fade(buffers[row, columns], part, rates[row])
