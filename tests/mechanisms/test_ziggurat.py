"""The numbers are those of a ziggurat written for one number at a time, and they are standard normal."""

import math
from collections.abc import Iterator
from fractions import Fraction

import mpmath
import numpy as np
import numpy.typing as npt
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES128
from cryptography.hazmat.primitives.ciphers.modes import ECB
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare, kstest, norm

from tacit.mechanisms.seeds import BLOCK, PIECE, SPARE, SPARES, WORDS, SeedVector
from tacit.mechanisms.ziggurat import (
    EDGE,
    EDGES,
    FLOOR,
    RISE,
    SLAB,
    STRIPS,
    TAIL,
    exact_interval,
    place,
    settle,
)

Numbers = npt.NDArray[np.float64]


def filled(key: int, size: int) -> Numbers:
    return SeedVector(key.to_bytes(16, "big")).draw(size)


# -- the slow reference: one number at a time, from one AES block at a time
# ------------------------------------------------


def words(key: bytes, use: int, vector: int, first: int) -> Iterator[int]:
    """AES-128 of the counters (use, vector, running), in 32, 32 and 64 bits; two words of 64 bits each."""
    aes = Cipher(AES128(key), ECB()).encryptor()
    running = first
    while True:
        two = aes.update(use.to_bytes(4, "big") + vector.to_bytes(4, "big") + running.to_bytes(8, "big"))
        yield from (int.from_bytes(two[:8], "little"), int.from_bytes(two[8:], "little"))
        running += 1


class Spares:
    """Words one after another, but never an attempt across the end of SPARE of them."""

    def __init__(self, source: Iterator[int]) -> None:
        self.source, self.used = source, 0

    def attempt(self) -> None:
        while SPARE - self.used % SPARE < 3:
            self.take()

    def take(self) -> int:
        self.used += 1
        return next(self.source)


def in_strip(word: int) -> tuple[int, float]:
    """Strip and place: the low byte, and the middle of the part that the other 56 bits say."""
    signed = (word >> 8) - ((word >> 63) << 56)
    return word % 256, (2 * signed + 1) * 2.0**-56 * float(EDGES[word % 256])


def share(word: int) -> float:
    return (word >> 11) * 2.0**-53


def one_number(word: int, spares: Spares) -> float:
    """Marsaglia and Tsang, in words: a strip, a place in it, and if it is not under the bell for certain what then."""
    while True:
        strip, number = in_strip(word)
        if abs(number) < EDGES[strip + 1]:
            return number
        if strip == 0:
            return math.copysign(tail_number(spares), number)
        spares.attempt()
        low, high = np.exp(-0.5 * EDGES[strip : strip + 2] ** 2)
        if low + share(spares.take()) * (high - low) < math.exp(-0.5 * number * number):
            return number
        word = spares.take()


def tail_number(spares: Spares) -> float:
    """A slab by the zeros at the end of a word, a place in it, taken by the bell's height over the slabs' halving."""
    while True:
        spares.attempt()
        zeros, within, height = spares.take(), spares.take(), share(spares.take())
        slab = min((zeros & -zeros).bit_length() - 1 if zeros else 63, 63)
        beyond = (slab + (2 * (within >> 9) + 1) * 2.0**-56) * SLAB
        if height < math.exp(slab * math.log(2.0) - EDGE * beyond - 0.5 * beyond * beyond):
            return EDGE + beyond


@given(key=st.integers(0, 2**128 - 1), size=st.integers(1, 2000), vector=st.integers(0, 5), block=st.integers(0, 3))
def test_an_array_at_a_time_is_one_by_one(key: int, size: int, vector: int, block: int) -> None:
    secret = key.to_bytes(16, "big")
    spares = Spares(words(secret, SPARES, vector, block * BLOCK))
    source = words(secret, WORDS, vector, block * BLOCK // 2)
    drawn = np.empty(PIECE)
    SeedVector(secret, vector).block(block).fill(drawn)
    np.testing.assert_array_equal(drawn[:size], [one_number(next(source), spares) for _ in range(size)])


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=300), st.integers(0, 99))
def test_a_number_is_the_middle_of_the_interval_that_its_word_says(given_words: list[int], seed: int) -> None:
    """To four roundings; also after it was drawn again, and in the tail, which every fourth of these words is in."""
    given_words = [word & ~0xFF | 0x7FFF << 48 if number % 4 == 0 else word for number, word in enumerate(given_words)]
    drawn, numbers = np.array(given_words, np.uint64), np.empty(len(given_words))
    at, strips = np.empty((2, len(given_words)), np.intp)
    outside = place(drawn, numbers, at, strips)
    spare = np.random.default_rng(seed).integers(0, 2**64, 9 * len(given_words) + 999, np.uint64)
    assert settle(drawn, numbers, at, strips, 0, outside, spare, 0)[0] == outside
    settled = dict(zip(at[:outside].tolist(), strips[:outside].tolist(), strict=True))
    for index, number in enumerate(numbers.tolist()):
        word = int(drawn[index])
        low, width = exact_interval(word, settled.get(index, word % 256))
        assert 0 < width <= Fraction(2) ** -53
        assert abs(low + width / 2 - Fraction(number)) <= abs(Fraction(number)) / 2**52
        assert settled.get(index, 0) < STRIPS or abs(number) > EDGE


# -- the law ---------------------------------------------------------------------------------------------------------


def test_all_strips_are_as_large_as_the_first() -> None:
    """x_i (f(x_(i+1)) - f(x_i)) = V for all of them, and the topmost ends at f(0) = 1. Source: Doornik 2005."""
    heights = np.exp(-0.5 * EDGES**2)
    areas = EDGES[1:-1] * np.diff(heights[1:])
    np.testing.assert_allclose(areas, 0.00492867323399, rtol=1e-11)
    assert EDGE * heights[1] + TAIL * np.sqrt(2 * np.pi) == pytest.approx(areas[0], rel=1e-13)


def test_the_tables_make_the_bell_to_2_to_the_minus_47() -> None:
    """The density that the tables describe, with 40 digits, against the bell: docs/floating-point.md, step 2.

    Between two edges it is a constant and a multiple of the bell, so its ratio to the bell is extreme at the edges.
    """
    with mpmath.workdps(40):
        edges, floor, rise = ([mpmath.mpf(float(each)) for each in table] for table in (EDGES, FLOOR, RISE))
        bells = [mpmath.exp(-edge * edge / 2) for edge in edges]
        areas = [mpmath.sqrt(mpmath.pi / 2) * mpmath.erf(edge / mpmath.sqrt(2)) for edge in edges]  # 0 to an edge
        below = [mpmath.mpf(0)]  # the sum over the strips before of 1/width: those that reach over the whole strip
        for edge in edges[:-1]:
            below.append(below[-1] + 1 / edge)
        tail, taken = 1 - edges[1] / edges[0], mpmath.mpf(1)  # strip 0 rejects nothing
        for strip in range(1, STRIPS):
            wedge = areas[strip] - areas[strip + 1] - floor[strip] * (edges[strip] - edges[strip + 1])
            taken += (edges[strip + 1] + wedge / rise[strip]) / edges[strip]
        density = mpmath.sqrt(2 / mpmath.pi)
        for strip in range(1, STRIPS):
            for bell in bells[strip : strip + 2]:
                found = (below[strip] + (bell - floor[strip]) / rise[strip] / edges[strip]) / taken
                assert abs(mpmath.log(found / (density * bell))) < 2.0**-47
        assert abs(mpmath.log(tail / taken / mpmath.erfc(edges[1] / mpmath.sqrt(2)))) < 2.0**-47


def test_numbers_are_standard_normal() -> None:
    """Eight million of them, between the edges of all strips and further out; and their neighbours are strangers."""
    numbers = filled(3, 1 << 23)
    edges = np.unique(np.concatenate([-EDGES, EDGES, [-4.0, 4.0, -4.5, 4.5]]))
    counts = np.bincount(np.searchsorted(edges, numbers), minlength=edges.size + 1)
    assert chisquare(counts, numbers.size * np.diff(norm.cdf(edges), prepend=0.0, append=1.0)).pvalue > 0.01
    assert kstest(numbers[: 1 << 18], "norm").pvalue > 0.01
    assert kstest(numbers[: 1 << 18] * 1.02, "norm").pvalue < 1e-3
    scale = numbers.size**-0.5
    assert abs(numbers.mean()) < 4 * scale
    assert abs((numbers**2).mean() - 1) < 4 * 2**0.5 * scale
    assert abs((numbers**4).mean() - 3) < 4 * 96**0.5 * scale
    for lag in (1, 2, PIECE, BLOCK):
        assert abs((numbers[lag:] * numbers[:-lag]).mean()) < 5 * scale


def test_low_bits_of_a_place_are_uniform() -> None:
    """The 20 lowest bits that a number has, in whichever strip, by 1,024 values at a time."""
    numbers = filled(4, 1 << 21)
    found = np.abs(numbers[np.abs(numbers) > 2.0**-3]).view(np.int64)
    for shift in (0, 10):
        counts = np.bincount((found >> shift) & 1023, minlength=1024)
        assert chisquare(counts).pvalue > 0.001, shift


def test_the_tail_is_that_of_the_bell() -> None:
    """As many as there should be beyond the last strip, of the right law, from slab to slab; and beyond 4.5 and 5."""
    numbers = np.abs(filled(5, 1 << 23))
    tail = numbers[numbers > EDGE]
    assert kstest(norm.sf(tail) / TAIL, "uniform").pvalue > 0.01
    for far in (EDGE, 4.0, 4.5, 5.0):
        expected = 2 * norm.sf(far) * numbers.size
        assert abs((numbers > far).sum() - expected) < 4 * expected**0.5


def test_the_tail_deep_down() -> None:
    """Two million numbers that are all in the tail, where 4,000 are beyond 5 and a few beyond 6 deviations."""
    count = 1 << 21
    drawn, numbers = np.full(count, 0x7FFF << 48, np.uint64), np.empty(count)
    at, strips = np.empty((2, count), np.intp)
    outside = place(drawn, numbers, at, strips)
    spare = np.random.Generator(np.random.Philox(8)).bit_generator.random_raw(8 * count)
    assert (settle(drawn, numbers, at, strips, 0, outside, spare, 0)[0], outside) == (count, count)
    assert kstest(norm.sf(numbers[: 1 << 18]) / TAIL, "uniform").pvalue > 0.01
    for far in (4.0, 4.5, 5.0, 5.5, 6.0):
        expected = norm.sf(far) / TAIL * count
        assert abs((numbers > far).sum() - expected) < 4 * expected**0.5, far


def test_no_number_is_zero_and_both_signs_are_alike() -> None:
    numbers = filled(7, 1 << 21)
    assert numbers.all()
    assert abs((numbers > 0).mean() - 0.5) < 4 * 0.5 * numbers.size**-0.5
