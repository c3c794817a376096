"""Residues as bytes, beside one string of bits for each lane."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tacit.secure_aggregation.one_message.ring import Residues, Ring
from tacit.secure_aggregation.residue_sums import PackedSum, add_packed
from tacit.secure_aggregation.residues import ROWS, pack, packed_bytes

RINGS = [Ring(64, (257, 769)), Ring(128, (2305843009211596801, 1125899906629633)), Ring(256, (274877816833,))]


def packed_slowly(ring: Ring, residues: Residues) -> bytes:
    """Each lane a number whose lowest bits are its first residue; its words, word k of all lanes together."""
    found = b""
    for row, prime in zip(residues, ring.primes, strict=True):
        width, lanes = prime.bit_length(), ring.degree // ROWS
        strings = [
            sum(int(row[at * lanes + lane]) << (width * at) for at in range(ROWS)).to_bytes(8 * width, "little")
            for lane in range(lanes)
        ]
        found += b"".join(string[8 * word : 8 * word + 8] for word in range(width) for string in strings)
    return found


def random_residues(ring: Ring, seed: int) -> Residues:
    words = np.random.default_rng(seed)
    return np.stack([words.integers(0, prime, ring.degree, dtype=np.uint64) for prime in ring.primes])


@given(ring=st.sampled_from(RINGS), seed=st.integers(0, 2**32 - 1))
def test_bytes_and_sums_of_bytes(ring: Ring, seed: int) -> None:
    total, summand = random_residues(ring, seed), random_residues(ring, seed + 1)
    data = pack(ring, summand)
    assert data == packed_slowly(ring, summand) and len(data) == packed_bytes(ring)
    expected = [
        [(int(x) + int(y)) % prime for x, y in zip(total[at], summand[at], strict=True)]
        for at, prime in enumerate(ring.primes)
    ]
    add_packed(ring, total, memoryview(data))
    assert total.tolist() == expected


@given(ring=st.sampled_from(RINGS), seed=st.integers(0, 2**32 - 1))
def test_what_is_taken_off_was_never_there(ring: Ring, seed: int) -> None:
    """Words beyond their primes, too."""
    bytes_of = np.random.default_rng(seed)
    first, second = (bytes_of.bytes(2 * packed_bytes(ring)) for _ in range(2))
    sums = PackedSum(ring, polynomials=2)
    alone = sums.add(sums.zero(), first)
    both = sums.add(sums.add(sums.zero(), second), first)
    assert sums.take_off(both, second).tolist() == alone.tolist()


def test_a_word_beyond_its_prime_stands_for_its_residue() -> None:
    ring = Ring(64, (257,))
    total = np.full((1, 64), 256, np.uint64)
    add_packed(ring, total, memoryview(b"\xff" * packed_bytes(ring)))
    assert set(total.ravel().tolist()) == {(256 + 511) % 257}
