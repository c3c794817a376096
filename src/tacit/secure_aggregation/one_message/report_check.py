"""Whether a report's ciphertexts are under the key that its shares give: what a report says of itself for that.

All is modulo p = 2^31 - 1, the field of the shares. Scaled by p / q and rounded, ciphertexts and public polynomials
keep their meaning: gamma_j - alpha_j s is small for the right key (modulus switching, Brakerski and Vaikuntanathan,
FOCS 2011). Each of TESTS tests asks for one number

    y = sum_c sign_c (gamma_j - alpha_j s)[i] + <factors, s> + u,    (j, i) = pick c of PICKS, signs of -1, 0, 1

that must be small. The key occurs linearly, so decryptors' shares give shares of its part; u, the test's mask, is
shared among them alike. The challenge (picks, signs, factors) follows from what the report has fixed by then; so its
client knows what each decryptor finds, and sends it for a quorum. A decryptor compares; the server sees that what these
shares give is small, with the gammas. A client draws its masks again until all y are in the range where each is as
likely as any other, whatever key and vector are (Lyubashevsky, ASIACRYPT 2009): a report that passes says nothing else.
docs/secure-aggregation-protocols.md has the proof.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from tacit.compiled import compiled
from tacit.secure_aggregation.discrete_gaussian import WIDTH
from tacit.secure_aggregation.one_message.lattice import FAILURE_BITS, LatticeParameters, public_polynomial
from tacit.secure_aggregation.one_message.ring import Integers, Residues, Ring, high_half, quotient_of, times
from tacit.secure_aggregation.one_message.ring_inverse import inverted
from tacit.secure_aggregation.secrets import Draw, derived, seeded
from tacit.secure_aggregation.shares import PRIME, Elements, combined, uniform

TESTS = 64  # a report that is wrong everywhere passes with probability at most 2^-64, whatever its client tries once
PICKS = 16  # coefficients of ciphertexts in a test, half of them times zero
CODE_TESTS = 2  # that the shares are values of polynomials of degree `quorum - 1`: 2^-62
_ROOM = 5  # 2^_ROOM p, added to a sum of PICKS + 1 elements and their negatives, makes it positive


@dataclass(frozen=True)
class Range:
    """Of the tests of one set of parameters.

    shift: what |y - u| stays within, but for 2^-64 of all reports; factor: the key's own factors are from -factor to
    factor - 1. Both are powers of two, so that two programs that compute them differ nowhere.
    """

    shift: int
    factor: int

    @property
    def mask(self) -> int:
        """u is uniform from -mask to mask - 1; a client draws again with probability 1 - (1 - 1/TESTS)^TESTS, 0.63."""
        return TESTS * self.shift

    @property
    def most(self) -> int:
        """Each y is from -most to most - 1, uniform."""
        return self.mask - self.shift


@lru_cache(maxsize=8)
def check_range(parameters: LatticeParameters) -> Range:
    """From tails of sums of discrete Gaussians, which are subgaussian with their width."""
    tail = math.sqrt(2 * math.log(2.0) * (3 + math.log2(TESTS) + FAILURE_BITS)) * float(WIDTH)
    scale = PRIME * 2.0**parameters.plain_bits / parameters.ring.modulus  # of t e + m
    scaled = scale * (PICKS + tail * math.sqrt(PICKS))
    rounded = PICKS + tail * math.sqrt(PICKS * parameters.degree / 6)  # random roundings have half of this variance
    key = tail * math.sqrt(parameters.degree)
    shift = 1 << math.ceil(math.log2(scaled + rounded + key))
    return Range(shift, 1 << math.floor(math.log2((shift - scaled - rounded) / key)))


@dataclass(frozen=True)
class Challenge:
    """What the tests of one report ask.

    words: (TESTS, PICKS) uint64, of which the high bits pick a coefficient and the lowest two its sign; factors:
    (TESTS, N) uint8, whose low bits are the factor of each number of the key, and `Range.factor`; code: (CODE_TESTS,
    columns) elements, by which shares are summed.
    """

    words: Residues
    factors: npt.NDArray[np.uint8]
    code: Elements

    @classmethod
    def from_seed(cls, seed: bytes, degree: int, columns: int) -> "Challenge":
        """seed: 32 bytes that nobody knows before all else of the report is fixed."""
        draw = seeded(seed)
        words = np.frombuffer(draw(8 * TESTS * PICKS), "<u8").reshape(TESTS, PICKS)
        factors = np.frombuffer(draw(TESTS * degree), np.uint8).reshape(TESTS, degree)
        return cls(words, factors, uniform(CODE_TESTS * columns, draw).reshape(CODE_TESTS, columns))


def challenge_seed(round: bytes, client: bytes, digests: tuple[bytes, ...]) -> bytes:
    """digests: of all boxes, of the tag and of the ciphertexts, so nobody chooses them by what is asked."""
    return derived(round, "report check", client, *digests)


def switched(ring: Ring, transformed: Residues) -> Elements:
    """The coefficients (N,) times p / q, rounded, of a polynomial whose transform is taken in its place."""
    residues = inverted(ring, transformed)
    fractions = np.zeros(ring.degree, np.uint64)
    for row, prime in zip(residues, ring.primes, strict=True):
        part = pow(ring.modulus // prime, -1, prime)
        whole, rest = divmod((1 << 128) // prime, 1 << 64)
        numbers = np.uint64(part), quotient_of(part, prime), np.uint64(prime), np.uint64(whole), np.uint64(rest)
        _add_fraction(row, *numbers, fractions)
    return _of_field(fractions)


def public_rows(parameters: LatticeParameters, seed: bytes, polynomials: int) -> Elements:
    """(polynomials, 2 N - 1): numbers N - 1 - i to 2 N - 2 - i of row j times a key are coefficient i of alpha_j s."""
    ring = parameters.ring
    each = [switched(ring, public_polynomial(parameters, seed, index)) for index in range(polynomials)]
    return np.stack([as_row(alpha) for alpha in each])


def as_row(alpha: Elements) -> Elements:
    """A row of `public_rows` from the coefficients (N,)."""
    backwards = alpha[::-1]
    return np.concatenate([backwards, (np.uint32(PRIME) - backwards[:-1]) % np.uint32(PRIME)])


def key_parts(challenge: Challenge, rows: Elements, factor: int, shares: Elements, packed: int) -> Elements:
    """(parties, TESTS packed): each party's share of what the packed numbers of each kind add to each test.

    shares: (parties, columns). Number r + 1 of `packed` in test l is at place l packed + r.
    """
    return _key_parts(challenge.words, challenge.factors, rows, np.int64(factor), shares, np.int64(packed))


def opened_parts(parts: Elements, weights: Elements) -> Elements:
    """(TESTS,): what the key adds to each test, from the shares (parties, TESTS packed) of as many as give a key back.

    weights: (packed, parties), by which shares give the packed numbers of a column.
    """
    packed = weights.shape[0]
    numbers = combined(weights, parts).reshape(packed, TESTS, packed)
    of_each = np.diagonal(numbers, axis1=0, axis2=2).sum(1, dtype=np.int64)
    found: Elements = (of_each % PRIME).astype(np.uint32)
    return found


def code_sums(challenge: Challenge, shares: Elements, masks: Elements) -> Elements:
    """(parties, CODE_TESTS): random sums of each party's share and its masks (parties, CODE_TESTS): shares again."""
    sums = combined(challenge.code, np.ascontiguousarray(shares.T)).T
    return ((sums.astype(np.int64) + masks) % PRIME).astype(np.uint32)


def check_values(challenge: Challenge, ciphertexts: Elements, key: Elements) -> Integers:
    """y of each test (TESTS,), between -p/2 and p/2.

    ciphertexts: the gammas (polynomials, N); key: (TESTS,), what the key adds less the masks.
    """
    found: Integers = (_picked(challenge.words, ciphertexts).astype(np.int64) - key) % PRIME
    return np.where(found > PRIME // 2, found - PRIME, found)


def within(values: Integers, most: int) -> bool:
    """Whether all are from -most to most - 1, as those of an honest report are."""
    return bool(np.all((values >= -most) & (values < most)))


def check_masks(most: int, draw: Draw) -> Elements:
    """u of each test (TESTS,), uniform from -most to most - 1, a power of two: the low bits of 4 random bytes."""
    low = np.frombuffer(draw(4 * TESTS), "<u4").astype(np.int64) & (2 * most - 1)
    return ((low - most) % PRIME).astype(np.uint32)


def subtracted(elements: Elements, less: Elements) -> Elements:
    """Their differences."""
    return ((elements.astype(np.int64) - less) % PRIME).astype(np.uint32)


# -- loops -------------------------------------------------------------------------------------------------------------


@compiled
def _add_fraction(
    residues: Residues,
    part: np.uint64,
    quotient: np.uint64,
    prime: np.uint64,
    whole: np.uint64,
    rest: np.uint64,
    fractions: Residues,
) -> None:
    """Add floor(y floor(2^128 / prime) / 2^64) modulo 2^64, y = residue * part modulo the prime."""
    for at in range(residues.size):
        y = times(residues[at], part, quotient, prime)
        y = y - prime if y >= prime else y
        fractions[at] += y * whole + high_half(y, rest)


@compiled
def _of_field(fractions: Residues) -> Elements:
    """Of each 64-bit fraction of one: the nearest multiple of 1 / p, upwards from the middle."""
    found = np.empty(fractions.size, np.uint32)
    for at in range(found.size):
        up = (fractions[at] * np.uint64(PRIME)) >> np.uint64(63)
        value = high_half(fractions[at], np.uint64(PRIME)) + up
        found[at] = value if value < np.uint64(PRIME) else np.uint64(0)
    return found


@compiled
def _key_parts(
    words: Residues,
    factors: npt.NDArray[np.uint8],
    rows: Elements,
    factor: np.int64,
    shares: Elements,
    packed: np.int64,
) -> Elements:
    degree, prime, low = factors.shape[1], np.uint64(PRIME), 2 * factor - 1
    parties, columns = shares.shape
    row = np.empty(degree, np.int64)
    reduced = np.empty(degree, np.uint64)
    found = np.empty((parties, words.shape[0] * packed), np.uint32)
    for test in range(words.shape[0]):
        numbers = factors[test]  # what loops go along is cut out before: indices that are sums are not vectorised
        for at in range(degree):
            row[at] = factor - (np.int64(numbers[at]) & low)  # of what is taken off
        for pick in range(words.shape[1]):
            word = words[test, pick]
            sign = np.int64(word & np.uint64(1)) - np.int64((word >> np.uint64(1)) & np.uint64(1))
            if sign != 0:
                index = np.int64(high_half(word, np.uint64(rows.shape[0] * degree)))
                start = degree - 1 - index % degree
                public = rows[index // degree, start : start + degree]
                for at in range(degree):
                    row[at] += sign * np.int64(public[at])
        for at in range(degree):
            value = np.uint64(row[at] + np.int64(PRIME << _ROOM))
            reduced[at] = (value & prime) + (value >> np.uint64(31))
        for packs in range(packed):
            part = reduced[packs * columns : min((packs + 1) * columns, degree)]
            for party in range(parties):
                share, inner = shares[party], np.uint64(0)
                for column in range(part.size):
                    product = part[column] * np.uint64(share[column])
                    inner += (product & prime) + (product >> np.uint64(31))
                found[party, test * packed + packs] = inner % prime
    return found


@compiled
def _picked(words: Residues, ciphertexts: Elements) -> Elements:
    polynomials, degree = ciphertexts.shape
    found = np.empty(words.shape[0], np.uint32)
    for test in range(words.shape[0]):
        total = np.int64(0)
        for pick in range(words.shape[1]):
            word = words[test, pick]
            sign = np.int64(word & np.uint64(1)) - np.int64((word >> np.uint64(1)) & np.uint64(1))
            index = np.int64(high_half(word, np.uint64(polynomials * degree)))
            total += sign * np.int64(ciphertexts[index // degree, index % degree])
        found[test] = total % np.int64(PRIME)
    return found
