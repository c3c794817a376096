"""Polynomials over several primes: the transform, products, sums and interpolation, beside schoolbook twins."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import InputError
from tacit.secure_aggregation.one_message.ring import LIMBS, Residues, Ring, as_limbs, primitive_root, reversed_bits
from tacit.secure_aggregation.one_message.ring_inverse import centred, inverted

PRIMES = (2305843009211596801, 2305843009211400193, 2305843009210515457, 2305843009210023937)


def schoolbook(one: list[int], other: list[int], modulus: int) -> list[int]:
    """The product modulo X^N + 1, term by term."""
    degree = len(one)
    found = [0] * degree
    for i, left in enumerate(one):
        for j, right in enumerate(other):
            sign = 1 if i + j < degree else -1
            found[(i + j) % degree] += sign * left * right
    return [value % modulus for value in found]


def as_numbers(limbs: Residues) -> list[int]:
    return [int.from_bytes(row.astype("<u8").tobytes(), "little", signed=True) for row in limbs]


def random_residues(ring: Ring, seed: int) -> Residues:
    words = np.random.default_rng(seed)
    return np.stack([words.integers(0, prime, ring.degree, dtype=np.uint64) for prime in ring.primes])


rings = st.builds(Ring, st.sampled_from([2, 4, 16, 32]), st.sampled_from([PRIMES, PRIMES[:1], PRIMES[1:3], (193, 257)]))
seeds = st.integers(0, 2**32 - 1)


@given(ring=rings, seed=seeds)
def test_the_transform_is_the_values_at_odd_powers_of_psi(ring: Ring, seed: int) -> None:
    given_ = random_residues(ring, seed)
    transformed = ring.transform(given_.copy())
    for row, found, prime in zip(given_.tolist(), transformed.tolist(), ring.primes, strict=True):
        psi = primitive_root(prime, ring.degree)
        points = [pow(psi, 2 * reversed_bits(at, ring.degree) + 1, prime) for at in range(ring.degree)]
        assert found == [sum(x * pow(at, j, prime) for j, x in enumerate(row)) % prime for at in points]
    assert np.array_equal(inverted(ring, transformed), given_)


@given(ring=rings, seed=seeds)
def test_products_are_the_schoolbook_ones(ring: Ring, seed: int) -> None:
    one, other, more = (random_residues(ring, seed + at) for at in range(3))
    total = more.copy()
    product = ring.transform(total)
    ring.add_product(product, ring.transform(one.copy()), ring.prepared(ring.transform(other.copy())))
    inverted(ring, product)
    for at, prime in enumerate(ring.primes):
        expected = schoolbook(one[at].tolist(), other[at].tolist(), prime)
        assert product[at].tolist() == [(x + y) % prime for x, y in zip(expected, more[at].tolist(), strict=True)]


@given(ring=rings, seed=seeds, factor=st.integers(-(2**70), 2**230))
def test_sums_and_multiples(ring: Ring, seed: int, factor: int) -> None:
    one, other = random_residues(ring, seed), random_residues(ring, seed + 1)
    total, scaled = one.copy(), ring.scaled(one, factor)
    ring.add(total, other)
    for at, prime in enumerate(ring.primes):
        pairs = zip(one[at].tolist(), other[at].tolist(), strict=True)
        assert total[at].tolist() == [(x + y) % prime for x, y in pairs]
        assert scaled[at].tolist() == [x * factor % prime for x in one[at].tolist()]


@given(ring=rings, data=st.data())
def test_interpolation_gives_back_whole_numbers_between_minus_and_plus_half(ring: Ring, data: st.DataObject) -> None:
    half = (ring.modulus - 1) // 2
    edge = st.sampled_from([0, 1, -1, half, -half, half - 1])
    numbers = data.draw(st.lists(st.integers(-half, half) | edge, min_size=ring.degree, max_size=ring.degree))
    residues = np.array([[number % prime for number in numbers] for prime in ring.primes], np.uint64)
    assert as_numbers(centred(ring, residues)) == numbers


@given(ring=rings, data=st.data())
def test_limbs_are_reduced_as_whole_numbers_are(ring: Ring, data: st.DataObject) -> None:
    words = st.integers(0, 2 ** (64 * LIMBS) - 1) | st.sampled_from([0, 2 ** (64 * LIMBS) - 1])
    numbers = data.draw(st.lists(words, min_size=ring.degree, max_size=ring.degree))
    found = ring.reduced_limbs(np.stack([as_limbs(number) for number in numbers]))
    assert found.tolist() == [[number % prime for number in numbers] for prime in ring.primes]


@given(ring=rings, data=st.data())
def test_small_signed_coefficients(ring: Ring, data: st.DataObject) -> None:
    small = st.integers(-(2**40), 2**40)
    numbers = data.draw(st.lists(small, min_size=ring.degree, max_size=ring.degree))
    found = ring.reduced(np.array(numbers, np.int64))
    assert found.tolist() == [[number % prime for number in numbers] for prime in ring.primes]


def test_the_largest_residues_do_not_overflow() -> None:
    ring = Ring(2**14, PRIMES)
    most = np.stack([np.full(ring.degree, prime - 1, np.uint64) for prime in PRIMES])
    assert np.array_equal(inverted(ring, ring.transform(most.copy())), most)


@pytest.mark.parametrize(
    ("degree", "primes", "reason"),
    [
        (12, PRIMES, "degree=12"),
        (1, PRIMES, "degree=1"),
        (16, (101,), "101"),
        (16, (2**62 - 57,), "prime"),
        (16, (193 * 257,), "prime"),
        (16, (97, 97), "different"),
        (16, (), "different"),
    ],
)
def test_other_rings_are_refused(degree: int, primes: tuple[int, ...], reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        Ring(degree, primes)
