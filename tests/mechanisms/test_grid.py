"""What is released is the multiple of the grid nearest to the exact sum of real numbers, whatever floats do."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kstest

from tacit.errors import InputError
from tacit.mechanisms import add_independent_noise
from tacit.mechanisms.grid import grid_for, nearest, release
from tacit.mechanisms.seeds import BLOCK, PIECE, SeedVector
from tacit.mechanisms.step import NoiseStep
from tacit.mechanisms.step_cpu import released

KEY = bytes(range(16))
UNIT = Fraction(1, 2**60)


def half_up(value: Fraction) -> int:
    return math.floor(value + Fraction(1, 2))


@given(st.floats(1e-30, 1e30))
def test_the_grid_is_the_power_of_two_up_to_a_256th(stddev: float) -> None:
    grid = grid_for(stddev)
    assert grid <= stddev / 256 < 2 * grid
    assert math.frexp(grid)[0] == 0.5


@pytest.mark.parametrize("stddev", [0.0, -1.0, math.inf, math.nan])
def test_noise_without_a_size_has_no_grid(stddev: float) -> None:
    with pytest.raises(InputError, match="positive standard deviation"):
        grid_for(stddev)


@given(
    sums=st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=20),
    exponent=st.integers(-30, 10),
    closeness=st.integers(-60, -20),
    seed=st.integers(0, 99),
)
def test_what_is_not_in_doubt_is_right_for_all_numbers_that_the_seed_may_stand_for(
    sums: list[float], exponent: int, closeness: int, seed: int
) -> None:
    """Sums that are made to lie as near to the middle between two multiples as can be, against rational arithmetic."""
    draw, stddev = np.random.default_rng(seed), 1.37 * 2.0**exponent
    summed, grid = np.array(sums, np.float32), grid_for(stddev)
    fresh = draw.standard_normal(summed.size)
    middles = (draw.integers(-999, 999, summed.size) + 0.5) * grid
    low = summed.astype(np.float64) - np.rint(summed / grid) * grid
    rest = (middles - low - stddev * fresh) / stddev * (1 + draw.choice([-1, 1], summed.size) * 2.0**closeness)
    out, doubtful = np.empty_like(summed), np.empty(summed.size, np.intp)
    count = release(summed, fresh, rest, stddev, stddev, grid, out, doubtful)
    for index in set(range(summed.size)) - set(doubtful[:count].tolist()):
        for off in (-1, 1):  # a seed of up to 4 in size stands for numbers less than 2^-51 away
            real = Fraction(float(fresh[index])) + off * abs(Fraction(float(fresh[index]))) / 2**51 + off * UNIT
            exact = Fraction(float(summed[index])) + Fraction(stddev) * real + Fraction(stddev * float(rest[index]))
            assert out[index] == np.float32(half_up(exact / Fraction(grid)) * grid)
    if closeness < -50:
        assert count > 0


@given(
    sums=st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1, max_size=20),
    exponent=st.integers(-40, 40),
)
def test_a_sum_is_split_exactly(sums: list[float], exponent: int) -> None:
    """high is a multiple of the grid, low at most half of it, and nothing is lost."""
    grid, exact = 2.0**exponent, np.array(sums, np.float32).astype(np.float64)
    high = np.rint(exact / grid)
    low = exact - high * grid
    for one, above, below in zip(exact.tolist(), high.tolist(), low.tolist(), strict=True):
        assert Fraction(one) == Fraction(above) * Fraction(grid) + Fraction(below)
        assert above == int(above) and abs(below) <= grid / 2


@pytest.mark.parametrize(("size", "carried"), [(2_000, 1e11), (BLOCK + PIECE + 321, 1e9)])
def test_a_release_is_the_exact_sum_rounded_once(size: int, carried: float) -> None:
    """End to end, against the exact sums; what is carried is so large that float64 alone would often be wrong."""
    draw, stddev, weight = np.random.default_rng(0), 0.3, -0.4
    summed = (100 * draw.standard_normal(size)).astype(np.float32)
    buffers = carried * draw.standard_normal((1, size))
    step, seed = NoiseStep(seeds=(0.5, weight), buffers=(1.0,)), SeedVector(KEY, 1)
    found = released(step, 1, buffers, [SeedVector(KEY), seed], summed.astype(np.float64), stddev)
    grid = grid_for(stddev * 0.5)
    rest = stddev * (weight * seed.draw(size) + buffers[0])
    naive = grid * np.rint((summed + stddev * 0.5 * SeedVector(KEY).draw(size) + rest) / grid)
    assert 0 < (naive != found).mean() < 0.2
    drawn, last = SeedVector(KEY).block((size - 1) // BLOCK), np.empty(PIECE)
    begin = (size - 1) // PIECE * PIECE
    for _ in range(begin % BLOCK // PIECE + 1):
        drawn.fill(last)
    checked = [at for at in range(begin, size) if naive[at] != found[at] or at % 16 == 0]
    for at in checked:
        fixed = Fraction(float(summed[at])) + Fraction(float(rest[at]))
        more = SeedVector(KEY).further(at)
        assert found[at] == nearest(fixed, stddev * 0.5, drawn.interval(at - begin), more, grid)
    assert size > BLOCK or any(naive[at] != found[at] for at in checked)


@given(
    share=st.fractions(0, 1),
    bits=st.lists(st.integers(0, 2**64 - 1), min_size=3, max_size=3),
    factor=st.sampled_from([0.37, -0.37]),
)
def test_further_bits_decide_as_the_real_number_would(share: Fraction, bits: list[int], factor: float) -> None:
    """The middle lies at `share` of the interval; what 192 more bits of the number say is what is released."""
    low, width, grid = Fraction(1, 3), Fraction(1, 2**55), 0.25
    fixed = Fraction(7, 2) * Fraction(grid) - Fraction(factor) * (low + share * width)
    number = sum(Fraction(word, 2 ** (64 * place)) for place, word in enumerate(bits, start=1))
    if abs(number - share) < Fraction(1, 2**180):
        return
    given_bits = iter(bits)
    found = nearest(fixed, factor, (low, width), lambda: next(given_bits), grid)
    exact = fixed + Fraction(factor) * (low + number * width)
    assert found == half_up(exact / Fraction(grid)) * grid


@pytest.mark.parametrize("stddev", [0.1, 3.0, 1e6])
def test_a_release_by_itself_is_on_its_grid_and_bound_to_all_that_it_says(stddev: float) -> None:
    """Counts of any size, as histograms have them: exact in float64, and noise of their own for each."""
    counts = np.random.default_rng(0).integers(0, 2**40, 3_000)

    def noise(summed: np.ndarray = counts, deviation: float = stddev, round: int = 3) -> np.ndarray:
        noised = add_independent_noise(summed, stddev=deviation, key=KEY, purpose="evaluation histogram", round=round)
        assert (noised % grid_for(stddev) == 0).all()
        return (noised - summed) / stddev

    one = noise()
    assert kstest(one, "norm").pvalue > 0.01
    np.testing.assert_array_equal(one, noise())
    more = counts.copy()
    more[0] += 1
    for other in (noise(more), noise(round=4), noise(deviation=stddev * (1 + 1e-15))):
        assert abs(np.corrcoef(one, other)[0, 1]) < 5 / counts.size**0.5


def test_further_bits_of_a_number_are_its_own() -> None:
    words = [SeedVector(KEY, vector).further(index) for vector in (0, 1) for index in (0, 1, 2**40)]
    found = [more() for more in words for _ in range(3)]
    assert len(set(found)) == len(found)
    again = SeedVector(KEY).further(0)
    assert [again(), again(), again()] == found[:3]
