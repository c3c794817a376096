"""Polynomials modulo X^N + 1 and a product of primes: the number-theoretic transform, sums and products, residues.

What takes a transform back is in `ring_inverse.py`: only who opens a sum does that.

A polynomial is held as its residues modulo each prime, an array (primes, N) of uint64, each below its prime. Its
transform are its values at the odd powers of psi, where products and sums are taken number by number:

    transformed[i] = sum_j x[j] psi^(j (2 reversed(i) + 1)) mod p

reversed(i) turns the log2(N) bits of i round; psi = c^((p - 1) / (2N)) for the smallest c >= 2 with psi^N = -1 mod p.
Butterflies after Harvey (arXiv:1205.2926): numbers stay below 4p, and a product with a known number takes Shoup's
quotient, floor(w 2^64 / p). The high half of a product is put together from 32-bit halves: on a processor with vectors
that is faster than its own 64-bit product (0.29 against 0.34 ms for a transform of N = 2^14 on an EPYC 9004).
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tacit.compiled import compiled, compiled_with
from tacit.errors import InputError

Residues = npt.NDArray[np.uint64]
Integers = npt.NDArray[np.int64]

LIMBS = 4  # of 64 bits: whole numbers from -2^255 to 2^255, the least significant limb first, in two's complement
_HALF, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)


@dataclass(frozen=True)
class Ring:
    """Z_q[X] / (X^N + 1): `degree` N, a power of two, and q the product of different `primes`, each 1 modulo 2N.

    Raises: InputError for anything else, and for a prime beyond 61 bits or a q beyond 254, which no loop here holds.
    """

    degree: int
    primes: tuple[int, ...]

    def __post_init__(self) -> None:
        if self.degree < 2 or self.degree & (self.degree - 1):
            raise InputError(f"degree={self.degree} is no power of two above 1; give 4096, say.")
        for prime in self.primes:
            if prime.bit_length() > 61 or (prime - 1) % (2 * self.degree) or pow(3, prime - 1, prime) != 1:
                raise InputError(f"{prime} is no prime of at most 61 bits that is 1 modulo {2 * self.degree}.")
        if not self.primes or len(set(self.primes)) < len(self.primes) or self.modulus.bit_length() > 254:
            raise InputError(f"the primes {self.primes} are not different ones of at most 254 bits together.")

    @cached_property
    def modulus(self) -> int:
        """q."""
        product = 1
        for prime in self.primes:
            product *= prime
        return product

    def reduced(self, coefficients: Integers) -> Residues:
        """Residues (primes, N) of small signed coefficients (N,)."""
        return np.stack([np.mod(coefficients, np.int64(prime)).astype(np.uint64) for prime in self.primes])

    def reduced_limbs(self, limbs: Residues) -> Residues:
        """Residues (primes, N) of whole numbers from 0 to 2^256 - 1, as limbs (N, LIMBS)."""
        found = np.empty((len(self.primes), self.degree), np.uint64)
        for row, tables in zip(found, self._tables, strict=True):
            _reduce_limbs(limbs, tables.powers, tables.power_quotients, tables.prime, row)
        return found

    def transform(self, residues: Residues) -> Residues:
        """The transform of residues (primes, N), in their place."""
        for row, tables in zip(residues, self._tables, strict=True):
            _transform(row, tables.roots, tables.root_quotients, tables.prime)
        return residues

    def add(self, total: Residues, summand: Residues) -> None:
        """Add residues, or transforms, to `total`."""
        for row, more, tables in zip(total, summand, self._tables, strict=True):
            _add(row, more, tables.prime)

    def scaled(self, residues: Residues, factor: int) -> Residues:
        """The residues times a whole number."""
        found = np.empty_like(residues)
        for row, given, tables in zip(found, residues, self._tables, strict=True):
            by = factor % int(tables.prime)
            _scale(given, np.uint64(by), quotient_of(by, int(tables.prime)), tables.prime, row)
        return found

    def prepared(self, factor: Residues) -> Residues:
        """A factor as `add_product` takes it: times 2^64 (Montgomery's form)."""
        return self.scaled(factor, 1 << 64)

    def add_product(self, total: Residues, transformed: Residues, prepared: Residues) -> None:
        """Add the product of a transform and of a prepared one to `total`, number by number."""
        for row, one, other, tables in zip(total, transformed, prepared, self._tables, strict=True):
            _add_product(row, one, other, tables.prime, tables.negative_inverse)

    @cached_property
    def _tables(self) -> tuple["_Tables", ...]:
        return tuple(_Tables.from_prime(prime, self.degree) for prime in self.primes)


def as_limbs(number: int) -> Residues:
    """A whole number from -2^255 to 2^256 - 1 as limbs (LIMBS,)."""
    return np.frombuffer((number % (1 << (64 * LIMBS))).to_bytes(8 * LIMBS, "little"), "<u8").astype(np.uint64)


@dataclass(frozen=True)
class _Tables:
    """What the loops need of one prime; a quotient stands beside each number that is multiplied with."""

    prime: np.uint64
    negative_inverse: np.uint64  # -1 / p modulo 2^64
    roots: Residues  # (N,) psi^reversed(i)
    root_quotients: Residues
    powers: Residues  # (LIMBS,) 2^(64 k)
    power_quotients: Residues

    @classmethod
    def from_prime(cls, prime: int, degree: int) -> "_Tables":
        psi = primitive_root(prime, degree)
        roots = powers_of(psi, prime, degree)
        powers = [pow(2, 64 * limb, prime) for limb in range(LIMBS)]
        return cls(
            np.uint64(prime),
            np.uint64(-pow(prime, -1, 1 << 64) % (1 << 64)),
            *with_quotients(roots, prime),
            *with_quotients(powers, prime),
        )


def primitive_root(prime: int, degree: int) -> int:
    """psi, a 2N-th root of one: c^((p - 1) / (2N)) for the smallest c >= 2 that makes psi^N = -1."""
    roots = (pow(base, (prime - 1) // (2 * degree), prime) for base in range(2, prime))
    return next(psi for psi in roots if pow(psi, degree, prime) == prime - 1)


def reversed_bits(number: int, degree: int) -> int:
    """The log2(degree) bits of a number below it, turned round."""
    bits = degree.bit_length() - 1
    return int(f"{number:0{bits}b}"[::-1], 2)


def powers_of(psi: int, prime: int, degree: int) -> list[int]:
    straight = [1]
    while len(straight) < degree:
        straight.append(straight[-1] * psi % prime)
    return [straight[reversed_bits(at, degree)] for at in range(degree)]


def quotient_of(factor: int, prime: int) -> np.uint64:
    return np.uint64((factor << 64) // prime)


def with_quotients(factors: list[int], prime: int) -> tuple[Residues, Residues]:
    return np.array(factors, np.uint64), np.array([quotient_of(factor, prime) for factor in factors], np.uint64)


# -- loops -------------------------------------------------------------------------------------------------------------


@compiled_with(inline="always")
def high_half(one: np.uint64, other: np.uint64) -> np.uint64:
    """The high 64 bits of a product of 64-bit words."""
    low, high, other_low, other_high = one & _LOW, one >> _HALF, other & _LOW, other >> _HALF
    middle = high * other_low + ((low * other_low) >> _HALF)
    other_middle = low * other_high + (middle & _LOW)
    return high * other_high + (middle >> _HALF) + (other_middle >> _HALF)


@compiled_with(inline="always")
def times(number: np.uint64, factor: np.uint64, quotient: np.uint64, prime: np.uint64) -> np.uint64:
    """number * factor modulo the prime, below twice the prime (Shoup); the number may be any word."""
    return factor * number - high_half(quotient, number) * prime


@compiled
def _transform(x: Residues, roots: Residues, quotients: Residues, prime: np.uint64) -> None:
    twice, blocks, half = prime + prime, 1, x.size // 2
    while half > 0:
        for block in range(blocks):
            root, quotient, start = roots[blocks + block], quotients[blocks + block], 2 * block * half
            for at in range(start, start + half):
                one = x[at]
                one = one - twice if one >= twice else one
                other = times(x[at + half], root, quotient, prime)
                x[at] = one + other
                x[at + half] = one - other + twice
        blocks, half = 2 * blocks, half // 2
    for at in range(x.size):
        value = x[at]
        value = value - twice if value >= twice else value
        x[at] = value - prime if value >= prime else value


@compiled
def _add(total: Residues, summand: Residues, prime: np.uint64) -> None:
    for at in range(total.size):
        value = total[at] + summand[at]
        total[at] = value - prime if value >= prime else value


@compiled
def _scale(given: Residues, factor: np.uint64, quotient: np.uint64, prime: np.uint64, found: Residues) -> None:
    for at in range(given.size):
        value = times(given[at], factor, quotient, prime)
        found[at] = value - prime if value >= prime else value


@compiled
def _add_product(
    total: Residues, one: Residues, prepared: Residues, prime: np.uint64, negative_inverse: np.uint64
) -> None:
    for at in range(total.size):
        low = one[at] * prepared[at]
        # Montgomery 1985: the low half of the product and of m p cancel and carry one, unless they are zero.
        carried = high_half(one[at], prepared[at]) + high_half(low * negative_inverse, prime) + np.uint64(low != 0)
        value = total[at] + (carried - prime if carried >= prime else carried)
        total[at] = value - prime if value >= prime else value


@compiled
def _reduce_limbs(limbs: Residues, powers: Residues, quotients: Residues, prime: np.uint64, found: Residues) -> None:
    twice = prime + prime
    for at in range(found.size):
        value = np.uint64(0)
        for limb in range(LIMBS):
            value += times(limbs[at, limb], powers[limb], quotients[limb], prime)
            value = value - twice if value >= twice else value
        found[at] = value - prime if value >= prime else value
