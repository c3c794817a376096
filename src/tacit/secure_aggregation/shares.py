"""Shamir's secret sharing over the integers modulo p = 2^31 - 1, plain and packed.

Shamir, "How to share a secret", CACM 1979; packed: Franklin & Yung, STOC 1992. A vector of L secrets is the values of
a polynomial at -1, ..., -L; party i = 1, 2, ... holds its value at i. With a threshold of t the polynomial has degree
t + L - 2: any t + L - 1 shares give all secrets, any t - 1 nothing at all, whatever its holders can compute. L = 1 is
Shamir's.

Why this field: products of two elements fit 64-bit words, so loops need no wider arithmetic; an element is 4 bytes on
the wire, half of what 2^61 - 1 takes for the small numbers that decryptors add; and 2^31 exceeds both the parties that
there can be and the sums of keys. Secrecy does not depend on the size of p.
"""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from tacit.compiled import compiled
from tacit.errors import InputError, ProtocolError
from tacit.secure_aggregation.secrets import Draw

PRIME = (1 << 31) - 1
MOST_PARTIES = 1 << 24
Elements: TypeAlias = npt.NDArray[np.uint32]


def split(secrets: Elements, points: Sequence[int], threshold: int, draw: Draw, *, packed: int = 1) -> Elements:
    """Shares (parties, columns) uint32 of secrets (packed, columns): `threshold - 1` parties learn nothing.

    Column by column, the polynomial takes the secrets at -1, ..., -packed and random values at threshold - 1 points
    more: any `threshold + packed - 1` shares rebuild them. `points`: a number from 1 on for each party.
    """
    _must_be_points(points)
    if secrets.shape[0] != packed or not 1 <= threshold <= len(points) - packed + 1:
        raise InputError(
            f"{secrets.shape[0]} secrets, packed={packed}, threshold={threshold} and {len(points)} parties do not go "
            f"together: give {packed} rows, and a threshold of 1 to {len(points) - packed + 1}."
        )
    if secrets.size and int(secrets.max()) >= PRIME:
        raise InputError(f"a secret is {int(secrets.max())}, and must be below {PRIME}.")
    columns = secrets.shape[1]
    # The polynomial is random among those that take the secrets, so its values at any threshold - 1 points are uniform.
    free = [packed + 1 + index for index in range(threshold - 1)]
    nodes = [PRIME - node for node in (*range(1, packed + 1), *free)]
    values = np.concatenate([secrets, uniform((threshold - 1) * columns, draw).reshape(threshold - 1, columns)])
    return combined(lagrange(nodes, list(points)), values)


def rebuilt(shares: Elements, points: Sequence[int], *, packed: int = 1) -> Elements:
    """The secrets (packed, columns) from shares (threshold + packed - 1, columns), given exactly as many as needed."""
    _must_be_points(points)
    if shares.shape[0] != len(points):
        raise InputError(f"{shares.shape[0]} shares of {len(points)} parties: give one of each.")
    return combined(lagrange(list(points), [PRIME - 1 - index for index in range(packed)]), shares)


def elements(data: bytes, count: int) -> Elements:
    """Elements of the field (count,) from 4 bytes each. Raises: ProtocolError where they are not."""
    if len(data) != 4 * count:
        raise ProtocolError(f"{len(data)} bytes are not {count} elements of 4 bytes.")
    found = np.frombuffer(data, "<u4").astype(np.uint32)
    if count and int(found.max()) >= PRIME:
        raise ProtocolError(f"an element is {int(found.max())}, and must be below {PRIME}.")
    return found


def uniform(count: int, draw: Draw) -> Elements:
    """Uniform elements (count,): 31 random bits each, drawn again where they are p."""
    found = np.frombuffer(draw(4 * count), "<u4") & np.uint32(PRIME)
    while (again := np.flatnonzero(found == PRIME)).size:
        found[again] = np.frombuffer(draw(4 * again.size), "<u4") & np.uint32(PRIME)
    return found


def _must_be_points(points: Sequence[int]) -> None:
    if len(set(points)) != len(points) or not points or not 1 <= min(points) <= max(points) <= MOST_PARTIES:
        raise InputError(f"parties are numbered from 1 to {MOST_PARTIES:,}, each by a number of its own.")


def lagrange(nodes: Sequence[int], at: Sequence[int]) -> Elements:
    """Weights (at, nodes): the values at `at` of a polynomial of degree below `len(nodes)`, from those at `nodes`.

    All are elements; nodes differ from one another and from every point of `at`.
    """
    return _lagrange(np.array(nodes, np.uint64), np.array(at, np.uint64))


@compiled
def _times(a: np.uint64, b: np.uint64) -> np.uint64:
    """a * b modulo p, for elements in 64-bit words: 2^31 is 1, so the upper bits are added to the lower ones."""
    product = a * b
    folded = (product & np.uint64(PRIME)) + (product >> np.uint64(31))
    return folded - np.uint64(PRIME) if folded >= np.uint64(PRIME) else folded


@compiled
def _inverse(a: np.uint64) -> np.uint64:
    """a^(p - 2) modulo p (Fermat)."""
    result, exponent = np.uint64(1), np.uint64(PRIME - 2)
    while exponent:
        if exponent & np.uint64(1):
            result = _times(result, a)
        a, exponent = _times(a, a), exponent >> np.uint64(1)
    return result


@compiled
def _lagrange(nodes: npt.NDArray[np.uint64], at: npt.NDArray[np.uint64]) -> Elements:
    """weights[x, i] = prod_{j != i} (at_x - node_j) / (node_i - node_j)."""
    prime, count = np.uint64(PRIME), nodes.size
    scales = np.empty(count, np.uint64)
    for i in range(count):
        product = np.uint64(1)
        for j in range(count):
            if j != i:
                product = _times(product, (nodes[i] + prime - nodes[j]) % prime)
        scales[i] = _inverse(product)
    weights = np.empty((at.size, count), np.uint32)
    before = np.empty(count + 1, np.uint64)
    for x in range(at.size):
        before[0] = 1
        for i in range(count):
            before[i + 1] = _times(before[i], (at[x] + prime - nodes[i]) % prime)
        behind = np.uint64(1)
        for i in range(count - 1, -1, -1):
            weights[x, i] = _times(_times(before[i], behind), scales[i])
            behind = _times(behind, (at[x] + prime - nodes[i]) % prime)
    return weights


@compiled
def combined(weights: Elements, values: Elements) -> Elements:
    """weights @ values modulo p: (rows, inner) and (inner, columns) give (rows, columns), uint32."""
    out = np.empty((weights.shape[0], values.shape[1]), np.uint32)
    sums = np.empty(values.shape[1], np.uint64)
    for row in range(weights.shape[0]):
        sums[:] = 0
        for inner in range(weights.shape[1]):
            weight = np.uint64(weights[row, inner])
            for column in range(values.shape[1]):
                product = weight * np.uint64(values[inner, column])
                # Each addend is below 2^32, so 2^31 of them fit; there are at most MOST_PARTIES.
                sums[column] += (product & np.uint64(PRIME)) + (product >> np.uint64(31))
        for column in range(values.shape[1]):
            out[row, column] = sums[column] % np.uint64(PRIME)
    return out
