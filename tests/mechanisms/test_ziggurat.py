"""The numbers are those of a ziggurat written for one number at a time, and they are standard normal."""

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtri
from scipy.stats import chisquare, kstest, norm

from tacit.mechanisms.ziggurat import EDGE, EDGES, TAIL, Ziggurat


def generator(key: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(key=key))


def filled(key: int, size: int, times: int = 1) -> npt.NDArray[np.float32]:
    draw, ziggurat, numbers = generator(key), Ziggurat(size), np.empty((times, size), np.float32)
    for row in numbers:
        ziggurat.fill(draw, row)
    return numbers


def one_by_one(key: int, size: int) -> list[np.float32]:
    """Marsaglia and Tsang, in words: choose a strip, a place in it, and if it is not under the bell say what then."""
    draw = generator(key)
    words = [half for word in draw.bit_generator.random_raw(size // 2) for half in (int(word) % 2**32, int(word) >> 32)]
    places, outside = [], []
    for word in words:
        strip, place = word % 256, (word // 256) * 256 + 128
        signed = place - 2**32 if place >= 2**31 else place
        numbers = np.float32(signed) * np.float32(EDGES[strip] * 2.0**-31)
        if abs(numbers) >= np.float32(EDGES[strip + 1]):
            outside.append((len(places), strip))
        places.append(numbers)
    heights = [1.0 - draw.random() for _ in outside]
    for (at, strip), height in zip(outside, heights, strict=True):
        place, below, above = float(places[at]), *np.exp(-0.5 * EDGES[strip : strip + 2] ** 2)
        if strip == 0:
            places[at] = np.float32(np.copysign(ndtri(TAIL * height), place))
        elif below + height * (above - below) >= np.exp(-0.5 * place**2):
            places[at] = draw.standard_normal(dtype=np.float32)
    return places


@given(key=st.integers(0, 2**64 - 1), half=st.integers(1, 400))
def test_an_array_at_a_time_is_one_by_one(key: int, half: int) -> None:
    np.testing.assert_array_equal(filled(key, 2 * half)[0], one_by_one(key, 2 * half))


def test_all_strips_are_as_large_as_the_first() -> None:
    """x_i (f(x_(i+1)) - f(x_i)) = V for all of them, and the topmost ends at f(0) = 1. Source: Doornik 2005."""
    heights = np.exp(-0.5 * EDGES**2)
    areas = EDGES[1:-1] * np.diff(heights[1:])
    np.testing.assert_allclose(areas, 0.00492867323399, rtol=1e-11)
    assert EDGE * heights[1] + TAIL * np.sqrt(2 * np.pi) == pytest.approx(areas[0], rel=1e-13)


def test_numbers_are_standard_normal() -> None:
    """Eight million of them, between the edges of all strips and further out; and their neighbours are strangers."""
    numbers = filled(3, 1 << 15, 256).astype(np.float64)
    edges = np.unique(np.concatenate([-EDGES, EDGES, [-4.0, 4.0, -4.5, 4.5]]))
    counts = np.bincount(np.searchsorted(edges, numbers.ravel()), minlength=edges.size + 1)
    assert chisquare(counts, numbers.size * np.diff(norm.cdf(edges), prepend=0.0, append=1.0)).pvalue > 0.01
    assert kstest(numbers[:8].ravel(), "norm").pvalue > 0.01
    scale = numbers.size**-0.5
    assert abs(numbers.mean()) < 4 * scale
    assert abs((numbers**2).mean() - 1) < 4 * 2**0.5 * scale
    assert abs((numbers**4).mean() - 3) < 4 * 96**0.5 * scale
    for lag in (1, 2, 1 << 14):
        assert abs((numbers[:, lag:] * numbers[:, :-lag]).mean()) < 5 * scale


def test_the_tail_is_that_of_the_bell() -> None:
    numbers = np.abs(filled(5, 1 << 15, 256).astype(np.float64))
    tail = numbers[numbers > EDGE]
    assert abs(tail.size - 2 * TAIL * numbers.size) < 4 * (2 * TAIL * numbers.size) ** 0.5
    assert kstest(norm.sf(tail) / TAIL, "uniform").pvalue > 0.01
    assert tail.max() > 5.0


def test_no_number_is_zero_and_both_signs_are_alike() -> None:
    numbers = filled(7, 1 << 15, 64)
    assert numbers.all()
    assert abs((numbers > 0).mean() - 0.5) < 4 * 0.5 * numbers.size**-0.5
