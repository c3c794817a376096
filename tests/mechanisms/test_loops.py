"""Compiled loops give the bits of the array expressions that they stand for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.mechanisms.loops import STRETCH, add_rows, add_scaled, decay_on, fade

SIZES = st.integers(0, 3 * STRETCH + 7)
CARRIED = st.sampled_from([np.float32, np.float64])


def vectors(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


@given(size=SIZES, weight=st.floats(-2, 2), seed=st.integers(0, 99), carried=CARRIED)
def test_sums_are_rounded_twice(size: int, weight: float, seed: int, carried: type) -> None:
    total, row = vectors(seed, 2, size)
    row = row.astype(carried)
    out = total.copy()
    add_scaled(out, row, weight)
    np.testing.assert_array_equal(out, total + weight * row.astype(np.float64))
    faded, before = row.copy(), row.astype(np.float64)
    fade(faded, total, weight)
    np.testing.assert_array_equal(faded, (before + (total - weight * before)).astype(carried))


@pytest.mark.parametrize("start", [0, 5])
@given(size=SIZES, rows=st.integers(0, 5), seed=st.integers(0, 99), carried=CARRIED)
def test_rows_are_added_up_and_fade(start: int, size: int, rows: int, seed: int, carried: type) -> None:
    fresh, before = vectors(seed, 2, size)
    buffers = vectors(seed + 1, rows, size + 9).astype(carried)
    weights, rates = vectors(seed + 2, 2, rows)
    weights[1::2] = 0.0
    expected, rest = buffers.copy(), before.copy()
    columns = slice(start, start + size)
    for weight, buffer in zip(weights, buffers, strict=True):
        rest = rest + weight * buffer[columns].astype(np.float64)
    noise = 1.5 * fresh + rest
    for rate, buffer in zip(rates, expected, strict=True):
        held = buffer[columns].astype(np.float64)
        buffer[columns] = held + (noise - rate * held)
    added, found = before.copy(), np.empty(size)
    add_rows(added, buffers, start, weights)
    np.testing.assert_array_equal(added, rest)
    decay_on(fresh, 1.5, before, buffers, start, weights, rates, found)
    np.testing.assert_array_equal(before, rest)
    np.testing.assert_array_equal(found, noise)
    np.testing.assert_array_equal(buffers, expected)
