"""Clipping against NumPy in float64: bound, direction, and nothing that is not finite."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from jax import Array

from tacit.aggregation.clipping import Clipped, clip

Leaf = npt.NDArray[np.float32]
numbers = st.floats(-100.0, 100.0, width=32, allow_subnormal=False)  # XLA flushes subnormal numbers to 0
SHAPES = ({"a": (3, 5), "b": (4,)}, {"c": (1,)})  # few: each is compiled
updates = st.sampled_from(SHAPES).flatmap(
    lambda shapes: st.fixed_dictionaries(
        {name: arrays(np.float32, shape, elements=numbers) for name, shape in shapes.items()}
    )
)


class Model(NamedTuple):
    kernel: Array
    bias: Array


def norm_of(update: object) -> float:
    leaves = [np.asarray(leaf, np.float64).ravel() for leaf in jax.tree.leaves(update)]
    return float(np.linalg.norm(np.concatenate(leaves)))


@given(update=updates, clip_norm=st.floats(0.01, 1000.0))
def test_clipping_is_the_scaling_of_algorithm_1(update: dict[str, Leaf], clip_norm: float) -> None:
    clipped = clip(update, clip_norm)
    norm = norm_of(update)
    factor = min(1.0, clip_norm / norm) if norm else 1.0
    assert clipped.finite
    assert float(clipped.norm) == pytest.approx(norm, rel=1e-5)
    for name, leaf in update.items():
        np.testing.assert_allclose(clipped.update[name], factor * leaf, rtol=1e-5, atol=1e-30)
    assert norm_of(clipped.update) <= clip_norm * (1 + 1e-6)


@given(update=updates)
def test_what_is_small_enough_is_left_alone(update: dict[str, Leaf]) -> None:
    clipped = clip(update, max(norm_of(update) * 1.001, 0.1))
    for name, leaf in update.items():
        np.testing.assert_array_equal(clipped.update[name], leaf)
    for name, leaf in update.items():
        np.testing.assert_array_equal(clip(update, np.inf).update[name], leaf)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 3e19])
def test_what_is_not_finite_contributes_nothing_and_says_so(bad: float) -> None:
    """3e19 is finite, but the norm of an update that holds it is beyond float32."""
    update = Model(jnp.ones((3, 4)), jnp.array([1.0, bad]))
    clipped = clip(update, 1.0)
    assert not clipped.finite
    assert float(clipped.norm) == 0.0
    assert isinstance(clipped.update, Model)
    assert all((np.asarray(leaf) == 0.0).all() for leaf in clipped.update)


def test_the_bound_holds_for_a_model_of_millions() -> None:
    """Float32 sums of 2.4 million squares stay exact enough for the bound that the docstring states."""
    big = np.random.default_rng(5).standard_t(3, 2_382_250).astype(np.float32)
    clipped = jax.jit(clip)({"big": big}, 0.5)
    assert float(clipped.norm) == pytest.approx(norm_of(big), rel=1e-6)
    assert norm_of(clipped.update) == pytest.approx(0.5, rel=1e-6)


def test_the_norm_is_of_the_whole_model_and_not_of_each_part() -> None:
    clipped = clip(Model(jnp.array([[3.0]]), jnp.array([4.0])), 1.0)
    assert float(clipped.norm) == 5.0
    np.testing.assert_allclose(clipped.update.kernel, [[0.6]], rtol=1e-6)
    np.testing.assert_allclose(clipped.update.bias, [0.8], rtol=1e-6)


def test_clipping_stands_inside_a_jitted_scan_over_clients() -> None:
    """The sum of a cohort in which one client diverged is the sum of the others."""
    clients = np.random.default_rng(1).standard_normal((5, 7)).astype(np.float32)
    clients[2, 3] = np.nan

    def add(total: Array, update: Array) -> tuple[Array, Clipped[Array]]:
        clipped = clip(update, jnp.float32(0.5))
        return total + clipped.update, clipped

    total, each = jax.jit(lambda all: jax.lax.scan(add, jnp.zeros(7), all))(clients)
    assert each.finite.tolist() == [True, True, False, True, True]
    good = np.delete(clients, 2, axis=0).astype(np.float64)
    expected = (good * np.minimum(1.0, 0.5 / np.linalg.norm(good, axis=1))[:, None]).sum(axis=0)
    np.testing.assert_allclose(total, expected, rtol=1e-5, atol=1e-6)
