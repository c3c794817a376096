"""Compiled loops give the bits of the array expressions that they stand for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.mechanisms.loops import STRETCH, add_scaled, decay_on, fade

SIZES = st.integers(0, 3 * STRETCH + 7)


def vectors(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


@given(size=SIZES, weight=st.floats(-2, 2, width=32), seed=st.integers(0, 99))
def test_sums_are_rounded_twice(size: int, weight: float, seed: int) -> None:
    total, row = vectors(seed, 2, size)
    factor, out = np.float32(weight), np.empty(size, np.float32)
    add_scaled(total, row, factor, out)
    np.testing.assert_array_equal(out, total + factor * row)
    faded = row.copy()
    fade(faded, total, factor)
    np.testing.assert_array_equal(faded, row + (total - factor * row))


@pytest.mark.parametrize("start", [0, 5])
@given(size=SIZES, rows=st.integers(0, 5), seed=st.integers(0, 99))
def test_buffers_are_added_up_and_fade(start: int, size: int, rows: int, seed: int) -> None:
    draw, buffers = vectors(seed, size), vectors(seed + 1, rows, size + 9)
    weights, rates = vectors(seed + 2, 2, rows)
    expected, noise = buffers.copy(), draw.copy()
    columns = slice(start, start + size)
    for weight, buffer in zip(weights, buffers, strict=True):
        noise = noise + weight * buffer[columns]
    for rate, buffer in zip(rates, expected, strict=True):
        buffer[columns] = buffer[columns] + (noise - rate * buffer[columns])
    found = np.empty(size, np.float32)
    decay_on(draw, buffers, start, weights, rates, found)
    np.testing.assert_array_equal(found, noise)
    np.testing.assert_array_equal(buffers, expected)
