"""From a transform back to whole numbers: what the server does with a sum, once a round, and no client ever."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tacit.compiled import compiled
from tacit.secure_aggregation.one_message.ring import (
    LIMBS,
    Residues,
    Ring,
    as_limbs,
    high_half,
    powers_of,
    primitive_root,
    quotient_of,
    times,
    with_quotients,
)


def inverted(ring: Ring, transformed: Residues) -> Residues:
    """The residues (primes, N) whose transform it was, in its place."""
    for row, tables in zip(transformed, _inverse_tables(ring), strict=True):
        _invert(row, tables.roots, tables.quotients, tables.last, tables.last_quotient, tables.prime)
    return transformed


def centred(ring: Ring, residues: Residues) -> Residues:
    """The coefficients between -q/2 and q/2, as limbs (N, LIMBS), by Garner's interpolation."""
    garner = _garner(ring)
    return _centred(residues, garner.primes, garner.inverses, garner.quotients, garner.modulus, garner.half)


@dataclass(frozen=True)
class _InverseTables:
    """What the loop needs of one prime; a quotient stands beside each number that is multiplied with."""

    prime: np.uint64
    roots: Residues  # (N,) psi^-reversed(i)
    quotients: Residues
    last: np.uint64  # 1 / N
    last_quotient: np.uint64


@lru_cache(maxsize=8)
def _inverse_tables(ring: Ring) -> tuple[_InverseTables, ...]:
    found = []
    for prime in ring.primes:
        roots = powers_of(pow(primitive_root(prime, ring.degree), -1, prime), prime, ring.degree)
        last = pow(ring.degree, -1, prime)
        tables = np.uint64(prime), *with_quotients(roots, prime), np.uint64(last), quotient_of(last, prime)
        found.append(_InverseTables(*tables))
    return tuple(found)


@dataclass(frozen=True)
class _Garner:
    primes: Residues
    inverses: Residues  # (primes, primes): [k, j] is 1 / p_j modulo p_k, for j < k
    quotients: Residues
    modulus: Residues  # (LIMBS,)
    half: Residues


@lru_cache(maxsize=8)
def _garner(ring: Ring) -> _Garner:
    count = len(ring.primes)
    inverses, quotients = np.zeros((count, count), np.uint64), np.zeros((count, count), np.uint64)
    for at, prime in enumerate(ring.primes):
        for below in range(at):
            inverse = pow(ring.primes[below], -1, prime)
            inverses[at, below], quotients[at, below] = inverse, quotient_of(inverse, prime)
    return _Garner(
        np.array(ring.primes, np.uint64), inverses, quotients, as_limbs(ring.modulus), as_limbs(ring.modulus // 2)
    )


# -- loops -------------------------------------------------------------------------------------------------------------


@compiled
def _invert(
    x: Residues, roots: Residues, quotients: Residues, last: np.uint64, last_quotient: np.uint64, prime: np.uint64
) -> None:
    twice, blocks, half = prime + prime, x.size // 2, 1
    while blocks > 0:
        for block in range(blocks):
            root, quotient, start = roots[blocks + block], quotients[blocks + block], 2 * block * half
            for at in range(start, start + half):
                one, other = x[at], x[at + half]
                total = one + other
                x[at] = total - twice if total >= twice else total
                x[at + half] = times(one - other + twice, root, quotient, prime)
        blocks, half = blocks // 2, 2 * half
    for at in range(x.size):
        value = times(x[at], last, last_quotient, prime)
        x[at] = value - prime if value >= prime else value


@compiled
def _centred(
    residues: Residues, primes: Residues, inverses: Residues, quotients: Residues, modulus: Residues, half: Residues
) -> Residues:
    count, degree = residues.shape
    found = np.zeros((degree, LIMBS), np.uint64)
    digits = np.zeros(count, np.uint64)
    for at in range(degree):
        # Mixed radix: x = d_0 + p_0 (d_1 + p_1 (d_2 + ...)).
        for k in range(count):
            prime = primes[k]
            value = residues[k, at]
            for j in range(k):
                value = times(value + prime - digits[j] % prime, inverses[k, j], quotients[k, j], prime)
                value = value - prime if value >= prime else value
            digits[k] = value
        for k in range(count - 1, -1, -1):
            carry = digits[k]
            for limb in range(LIMBS):
                word = found[at, limb]
                low = word * primes[k]
                found[at, limb] = low + carry
                carry = high_half(word, primes[k]) + np.uint64(found[at, limb] < low)
        above = False
        for limb in range(LIMBS):
            above = found[at, limb] > half[limb] or (above and found[at, limb] == half[limb])
        if above:
            borrow = np.uint64(0)
            for limb in range(LIMBS):
                word = found[at, limb]
                less = word - modulus[limb]
                found[at, limb] = less - borrow
                borrow = np.uint64(word < modulus[limb] or less < borrow)
    return found
