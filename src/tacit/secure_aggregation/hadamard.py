"""Hadamard matrices of orders h * 2^j, and how a vector is multiplied by one without writing it down.

A Hadamard matrix has entries +1 and -1 and orthogonal rows. Here it is H_h (x) S_j: Paley's matrix of order h (1: no
Paley matrix) times Sylvester's of order 2^j. `hadamard_matrix` writes it down, the slow reference of `rotate`.
"""

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tacit.compiled import compiled
from tacit.errors import InputError
from tacit.privacy.encoding import PALEY_ORDERS

ROW = 1 << 12  # floats that are transformed inside the innermost cache
WIDTH = 64  # columns that are combined at a time: a few lines of the cache of every row

Vector = NDArray[np.float32] | NDArray[np.float64]


def factors(dimension: int) -> tuple[int, int]:
    """(h, 2^j) of an order, h the smallest that there is.

    Raises: InputError where Paley's constructions over prime fields give no such order.
    """
    for paley in PALEY_ORDERS:
        rest, remainder = divmod(dimension, paley)
        if not remainder and rest > 0 and rest.bit_count() == 1:
            return paley, rest
    raise InputError(
        f"dimension={dimension} is no order h * 2^j of a Hadamard matrix that is known here; take the dimension of "
        "encoding_within."
    )


@lru_cache(maxsize=8)
def paley_matrix(order: int) -> NDArray[np.int8]:
    """Paley's Hadamard matrix (order, order) of +1 and -1.

    With chi the quadratic character of the field of q elements, Q[a, b] = chi(a - b). For q = order - 1 = 3 modulo 4:
    I + [[0, 1], [-1, Q]] (construction I). For q = order/2 - 1 = 1 modulo 4: with C = [[0, 1], [1, Q]] it is
    C (x) [[1, 1], [1, -1]] + I (x) [[1, -1], [-1, -1]] (construction II). Source: Paley, On orthogonal matrices, 1933.
    Raises: InputError for an order that is none of PALEY_ORDERS.
    """
    if order not in PALEY_ORDERS:
        raise InputError(f"order={order} is none of Paley's that are used here; take one of {PALEY_ORDERS}.")
    if order == 1:
        return np.ones((1, 1), np.int8)
    first = (order - 1) % 4 == 3 and all((order - 1) % p for p in range(2, math.isqrt(order - 1) + 1))
    q = order - 1 if first else order // 2 - 1
    character = np.full(q, -1, np.int8)
    character[np.arange(q) ** 2 % q] = 1
    character[0] = 0
    bordered = np.ones((q + 1, q + 1), np.int8)
    bordered[0, 0] = 0
    bordered[1:, 1:] = character[np.subtract.outer(np.arange(q), np.arange(q)) % q]
    if first:
        bordered[1:, 0] = -1
        return bordered + np.eye(q + 1, dtype=np.int8)
    corners = np.array([[1, 1], [1, -1]], np.int8), np.array([[1, -1], [-1, -1]], np.int8)
    found: NDArray[np.int8] = np.kron(bordered, corners[0]) + np.kron(np.eye(q + 1, dtype=np.int8), corners[1])
    return found


def hadamard_matrix(dimension: int) -> NDArray[np.int8]:
    """The whole matrix (dimension, dimension) of +1 and -1: what `rotate` multiplies by, slowly. See `factors`."""
    paley, power = factors(dimension)
    matrix = np.ones((1, 1), np.int8)
    while len(matrix) < power:
        matrix = np.kron(np.array([[1, 1], [1, -1]], np.int8), matrix)
    found: NDArray[np.int8] = np.kron(paley_matrix(paley), matrix)
    return found


def rotate(vector: Vector, *, back: bool = False) -> None:
    """vector = H vector / sqrt(dimension) in place, or its inverse, the transpose: lengths stay.

    vector: (dimension,) float32 or float64. In the vector's own precision and in one order of additions, so that every
    processor gives the same bits. Raises: InputError for a dimension of no known matrix.
    """
    paley, power = factors(len(vector))
    row = min(power, ROW)
    _sylvester_rows(vector, row)
    if power > row:
        _sylvester_columns(vector.reshape(paley, power // row, row))
    if paley > 1:
        _paley_columns(vector.reshape(paley, power), _pluses(paley, back))
    vector *= vector.dtype.type(1 / math.sqrt(len(vector)))


@lru_cache(maxsize=16)
def _pluses(order: int, transposed: bool) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where the rows of the (transposed) matrix are +1, row after row, and where each row begins among them."""
    matrix = paley_matrix(order).T if transposed else paley_matrix(order)
    places = [np.flatnonzero(row == 1) for row in matrix]
    begins = np.concatenate([[0], np.cumsum([len(each) for each in places])])
    return np.concatenate(places).astype(np.int64), begins.astype(np.int64)


@compiled
def _sixteen(vector: Vector) -> None:
    """Each stretch of 16 by itself: written out, since so short a loop is slower than its work."""
    for o in range(0, vector.size, 16):
        a0, a1, a2, a3 = vector[o], vector[o + 1], vector[o + 2], vector[o + 3]
        a4, a5, a6, a7 = vector[o + 4], vector[o + 5], vector[o + 6], vector[o + 7]
        a8, a9, aa, ab = vector[o + 8], vector[o + 9], vector[o + 10], vector[o + 11]
        ac, ad, ae, af = vector[o + 12], vector[o + 13], vector[o + 14], vector[o + 15]
        a0, a1, a2, a3 = a0 + a1, a0 - a1, a2 + a3, a2 - a3
        a4, a5, a6, a7 = a4 + a5, a4 - a5, a6 + a7, a6 - a7
        a8, a9, aa, ab = a8 + a9, a8 - a9, aa + ab, aa - ab
        ac, ad, ae, af = ac + ad, ac - ad, ae + af, ae - af
        a0, a1, a2, a3 = a0 + a2, a1 + a3, a0 - a2, a1 - a3
        a4, a5, a6, a7 = a4 + a6, a5 + a7, a4 - a6, a5 - a7
        a8, a9, aa, ab = a8 + aa, a9 + ab, a8 - aa, a9 - ab
        ac, ad, ae, af = ac + ae, ad + af, ac - ae, ad - af
        a0, a1, a2, a3, a4, a5, a6, a7 = a0 + a4, a1 + a5, a2 + a6, a3 + a7, a0 - a4, a1 - a5, a2 - a6, a3 - a7
        a8, a9, aa, ab, ac, ad, ae, af = a8 + ac, a9 + ad, aa + ae, ab + af, a8 - ac, a9 - ad, aa - ae, ab - af
        vector[o], vector[o + 1], vector[o + 2], vector[o + 3] = a0 + a8, a1 + a9, a2 + aa, a3 + ab
        vector[o + 4], vector[o + 5], vector[o + 6], vector[o + 7] = a4 + ac, a5 + ad, a6 + ae, a7 + af
        vector[o + 8], vector[o + 9], vector[o + 10], vector[o + 11] = a0 - a8, a1 - a9, a2 - aa, a3 - ab
        vector[o + 12], vector[o + 13], vector[o + 14], vector[o + 15] = a4 - ac, a5 - ad, a6 - ae, a7 - af


@compiled
def _two(low: Vector, high: Vector) -> None:
    """low, high = low + high, low - high."""
    for index in range(low.size):
        a, b = low[index], high[index]
        low[index] = a + b
        high[index] = a - b


@compiled
def _four(a: Vector, b: Vector, c: Vector, d: Vector) -> None:
    """Two levels of butterflies in one pass."""
    for index in range(a.size):
        p, q = a[index] + b[index], a[index] - b[index]
        r, s = c[index] + d[index], c[index] - d[index]
        a[index], b[index], c[index], d[index] = p + r, q + s, p - r, q - s


@compiled
def _levels(vector: Vector, step: int) -> None:
    """The butterflies of a vector of 2^j from distance `step` on."""
    size = vector.size
    while 4 * step <= size:
        for o in range(0, size, 4 * step):
            _four(
                vector[o : o + step],
                vector[o + step : o + 2 * step],
                vector[o + 2 * step : o + 3 * step],
                vector[o + 3 * step : o + 4 * step],
            )
        step *= 4
    if 2 * step <= size:
        _two(vector[:step], vector[step:])


@compiled
def _sylvester_rows(vector: Vector, length: int) -> None:
    """Sylvester's matrix of this length, times each row of so many."""
    for begin in range(0, vector.size, length):
        row = vector[begin : begin + length]
        if length >= 16:
            _sixteen(row)
            _levels(row, 16)
        else:
            _levels(row, 1)


@compiled
def _sylvester_columns(blocks: Vector) -> None:
    """Sylvester's matrix along the middle axis of (paley, rows, columns), a few columns of all rows at a time."""
    rows, columns = blocks.shape[1:]
    near = np.empty(rows * WIDTH, blocks.dtype)
    for block in range(blocks.shape[0]):
        for begin in range(0, columns, WIDTH):
            for row in range(rows):
                near[row * WIDTH : (row + 1) * WIDTH] = blocks[block, row, begin : begin + WIDTH]
            _levels(near, WIDTH)
            for row in range(rows):
                blocks[block, row, begin : begin + WIDTH] = near[row * WIDTH : (row + 1) * WIDTH]


@compiled
def _add(total: Vector, row: Vector) -> None:
    """total += row."""
    for index in range(total.size):
        total[index] += row[index]


@compiled
def _paley_columns(table: Vector, pluses: tuple[NDArray[np.int64], NDArray[np.int64]]) -> None:
    """Paley's matrix times (order, columns): a row of it is twice the sum where it is +1, less the sum of all."""
    places, begins = pluses
    order, columns = table.shape
    near = np.empty((order, WIDTH), table.dtype)
    everything = np.empty(WIDTH, table.dtype)
    chosen = np.empty(WIDTH, table.dtype)
    for begin in range(0, columns, WIDTH):
        width = min(WIDTH, columns - begin)
        everything[:] = 0
        for row in range(order):
            near[row, :width] = table[row, begin : begin + width]
            _add(everything[:width], near[row, :width])
        for row in range(order):
            chosen[:] = 0
            for place in places[begins[row] : begins[row + 1]]:
                _add(chosen[:width], near[place, :width])
            for column in range(width):
                table[row, begin + column] = chosen[column] + chosen[column] - everything[column]
