"""Hadamard matrices: orthogonal rows of +1 and -1, and the fast product beside the one that is written down."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import InputError
from tacit.privacy.encoding import PALEY_ORDERS
from tacit.secure_aggregation.hadamard import factors, hadamard_matrix, paley_matrix, rotate


@pytest.mark.parametrize("order", PALEY_ORDERS)
def test_every_paley_matrix_is_a_hadamard_matrix(order: int) -> None:
    matrix = paley_matrix(order).astype(np.int64)
    assert set(np.unique(matrix)) <= {-1, 1}
    assert (matrix @ matrix.T == order * np.eye(order, dtype=np.int64)).all()


@given(
    dimension=st.sampled_from([1, 2, 4, 8, 16, 32, 128, 1024, 12, 24, 40, 56, 148, 192, 296, 252, 504, 640, 960]),
    kind=st.sampled_from([np.float32, np.float64]),
    seed=st.integers(0, 2**32),
)
def test_the_fast_product_is_that_of_the_matrix(dimension: int, kind: type, seed: int) -> None:
    vector = np.random.default_rng(seed).standard_normal(dimension).astype(kind)
    expected = hadamard_matrix(dimension).astype(np.float64) @ vector / np.sqrt(dimension)
    tolerance = 3e-6 if kind is np.float32 else 1e-13
    fast = vector.copy()
    rotate(fast)
    np.testing.assert_allclose(fast, expected, rtol=0, atol=tolerance * np.linalg.norm(vector))
    rotate(fast, back=True)
    np.testing.assert_allclose(fast, vector, rtol=0, atol=tolerance * np.linalg.norm(vector))


@pytest.mark.parametrize("dimension", [2**14, 12 * 2**13, 148 * 2**10, 2**18])
def test_large_vectors_are_turned_and_turned_back(dimension: int) -> None:
    vector = np.random.default_rng(dimension).standard_normal(dimension)
    turned = vector.copy()
    rotate(turned)
    assert np.linalg.norm(turned) == pytest.approx(np.linalg.norm(vector), rel=1e-12)
    paley, power = factors(dimension)
    row = int(np.random.default_rng(1).integers(dimension))  # one coordinate by its row of the matrix
    bits = [(row % power & column).bit_count() for column in range(power)]
    sylvester = 1 - 2 * (np.array(bits) % 2)
    expected = np.kron(paley_matrix(paley)[row // power], sylvester) @ vector / np.sqrt(dimension)
    assert turned[row] == pytest.approx(expected, abs=1e-10)
    rotate(turned, back=True)
    np.testing.assert_allclose(turned, vector, rtol=0, atol=1e-11)


@pytest.mark.parametrize("dimension", [0, 3, 92, 1000, 13 * 4])
def test_orders_that_are_not_known_are_refused(dimension: int) -> None:
    with pytest.raises(InputError, match=f"dimension={dimension}"):
        rotate(np.zeros(dimension))
    with pytest.raises(InputError, match="order=3"):
        paley_matrix(3)
