"""The discrete Gaussian of keys and errors: its table, its sampler beside a search, its distribution by statistics."""

import bisect
import math
from fractions import Fraction

import numpy as np
from scipy.stats import chisquare

from tacit.secure_aggregation.discrete_gaussian import BITS, TAIL, WIDTH, sample, thresholds
from tacit.secure_aggregation.secrets import seeded

COUNT = 400_000


def masses(width: float) -> list[float]:
    """P(X = x) for x = -TAIL, ..., TAIL."""
    found = [math.exp(-(x**2) / (2 * width**2)) for x in range(-TAIL, TAIL + 1)]
    return [each / math.fsum(found) for each in found]


def drawn() -> list[int]:
    found: list[int] = sample(COUNT, seeded(bytes(range(32)))).tolist()
    return found


def fits(numbers: list[int], width: float) -> float:
    """The p-value of a chi-squared test of numbers against the discrete Gaussian of a width, tails taken together."""
    most = 22
    clipped = np.bincount(np.clip(numbers, -most, most) + most, minlength=2 * most + 1)
    expected = masses(width)[TAIL - most : TAIL + most + 1]
    expected[0] = expected[-1] = (1 - math.fsum(expected[1:-1])) / 2
    return float(chisquare(clipped, np.array(expected) * len(numbers)).pvalue)


def test_numbers_have_the_width_that_is_claimed_and_no_other() -> None:
    numbers = drawn()
    assert fits(numbers, float(WIDTH)) > 0.01
    for wrong in (0.99, 1.01):
        assert fits(numbers, wrong * float(WIDTH)) < 1e-3
    assert fits([number + 1 for number in numbers], float(WIDTH)) < 1e-3
    assert max(map(abs, numbers)) <= TAIL


def test_the_table_is_the_distribution() -> None:
    table = thresholds()
    sums = np.cumsum(masses(float(WIDTH)))[:-1]
    assert np.allclose([Fraction(each, 2**BITS) for each in table], sums, rtol=0, atol=1e-14)
    # Symmetric: what is below -x and what is above x, to the last of 128 bits.
    assert all(abs(low + high - 2**BITS) <= 1 for low, high in zip(table, reversed(table), strict=True))
    assert table[0] <= 2 and 2**BITS - table[-1] <= 2  # a tail of 2^-127 at most


def test_a_word_is_looked_up_as_a_search_looks_it_up() -> None:
    table = thresholds()
    edges = [each + by for each in table for by in (-1, 0, 1) if 0 <= each + by < 2**BITS]
    words = [*edges, 0, 2**BITS - 1, 2**64 - 1, 2**64, *(2**127 + (at << 64) for at in range(-3, 4))]
    data = b"".join(word.to_bytes(16, "little") for word in words)
    assert sample(len(words), lambda size: data[:size]).tolist() == [
        bisect.bisect_right(table, word) - TAIL for word in words
    ]
