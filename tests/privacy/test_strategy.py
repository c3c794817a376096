"""Strategy matrices: what they look like, what they refuse, and that records keep them."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from tacit.errors import AccountingError, InputError, UnknownRelease
from tacit.privacy import Blt, Independent, Toeplitz, Tree
from tacit.privacy import toeplitz as series
from tacit.privacy.strategy import (
    PUBLISHED_BLT,
    Banded,
    BandedInverse,
    BandedToeplitz,
    Dense,
    Strategy,
    strategy_from_record,
)

EXAMPLES: list[Strategy] = [
    Independent(),
    Tree(),
    Tree(restarts=(3, 10), variance_reduced=True),
    Toeplitz(coefficients=(1.0, 0.5, 0.25)),
    BandedToeplitz((1.0, 0.5, 0.25)),
    BandedInverse((1.0, -0.9)),
    Blt(theta=(0.9, 0.5), omega=(0.1, 0.3)),
    Banded(np.array([[1.0, 0.5], [1.5, 0.1], [0.7, 0.0]])),
    Dense(np.array([[1.0, 0.0, 0.0], [0.5, 0.3, 0.0], [0.1, -0.2, 0.9]])),
]


@pytest.mark.parametrize("strategy", EXAMPLES, ids=repr)
def test_a_record_survives_json(strategy: Strategy) -> None:
    again = strategy_from_record(json.loads(json.dumps(strategy.to_record())))
    assert again == strategy
    assert hash(again) == hash(strategy)
    assert len({again, *EXAMPLES}) == len(EXAMPLES)


@pytest.mark.parametrize("strategy", EXAMPLES, ids=repr)
def test_a_strategy_says_how_many_rounds_it_defines(strategy: Strategy) -> None:
    if strategy.rounds_defined is None:
        assert strategy.dense(9).shape[1] == 9
        return
    assert strategy.rounds_defined == 3
    assert_array_equal(strategy.dense(2), strategy.dense(3)[:2, :2])
    with pytest.raises(AccountingError, match=r"do(es)? not say what round 4 does"):
        strategy.dense(4)


@pytest.mark.parametrize("strategy", [each for each in EXAMPLES if hasattr(each, "column")], ids=repr)
def test_the_inverse_column_is_that_of_the_inverse(strategy: Toeplitz) -> None:
    rounds = strategy.rounds_defined or 40
    dense = strategy.dense(rounds)
    assert_array_equal(dense[:, 0], strategy.column(rounds))
    assert_allclose(strategy.inverse_column(rounds), np.linalg.inv(dense)[:, 0], atol=1e-14)


def test_long_inverses_by_newton_are_those_by_the_recursion(monkeypatch: pytest.MonkeyPatch) -> None:
    root = np.cumprod([1.0, *(1 - 0.5 / np.arange(1, 5000))])  # of 1 / (1 - x): the inverse's column is known
    inverse = np.cumprod([1.0, *(1 - 1.5 / np.arange(1, 5000))])
    assert_allclose(series.reciprocal_series(root, 5000), inverse, atol=1e-14)
    monkeypatch.setattr(series, "_DIRECT", 1)
    assert_allclose(series.reciprocal_series(root, 5000), inverse, atol=1e-14)
    assert_allclose(series.reciprocal_series(inverse, 5000), root, atol=1e-13)


def test_numbers_are_held_read_only_and_compared_by_content() -> None:
    given_numbers = np.eye(2)
    dense = Dense(given_numbers)
    given_numbers[1, 0] = 5.0
    assert dense == Dense(np.eye(2)) != Banded(np.array([[1.0], [1.0]]))
    with pytest.raises(ValueError, match="read-only"):
        dense.matrix[0, 0] = 2.0
    assert_array_equal(Banded(np.array([[1.0], [1.0]])).dense(2), np.eye(2))


@pytest.mark.parametrize(
    "record",
    [
        {"kind": "banded", "bands": 4},
        {"kind": "dense", "shape": [2, 2], "values": "AAAA"},
        {"kind": "dense", "shape": [1, 1], "values": "not base64"},
        {"kind": "dense", "shape": 3, "values": ["AAAA"]},
        {"kind": ["tree"]},
        {},
        {"kind": "tree", "branching": 3},
        {"kind": "blt", "theta": [2.0], "omega": [1.0]},
        {"kind": "toeplitz"},
        {"kind": "blt", "theta": 1.0, "omega": 1.0},
    ],
    ids=repr,
)
def test_a_record_of_something_else_is_refused(record: dict[str, object]) -> None:
    with pytest.raises(UnknownRelease):
        strategy_from_record(record)


@given(rounds=st.integers(1, 40), restarts=st.sets(st.integers(1, 45), max_size=4))
def test_the_forest_has_every_complete_node_once(rounds: int, restarts: set[int]) -> None:
    tree = Tree(restarts=tuple(sorted(restarts)))
    begins = [0, *(at for at in tree.restarts if at < rounds)]
    expected = []  # completed at round t: each 2^h that divides the rounds since the last restart
    for at in range(rounds):
        begin = max(start for start in begins if start <= at)
        size = 1
        while (at + 1 - begin) % size == 0 and size <= at + 1 - begin:
            expected.append([at + 1 - size <= other <= at for other in range(rounds)])
            size *= 2
    assert_array_equal(tree.dense(rounds), np.array(expected, dtype=float))
    assert sum(1 << height for _, height in tree.blocks(rounds)) == rounds


@given(
    theta=st.lists(st.floats(0.01, 1.0), min_size=1, max_size=4),
    omega=st.lists(st.floats(0.001, 0.25), min_size=4, max_size=4),
)
def test_the_inverse_of_a_blt_inverts_it(theta: list[float], omega: list[float]) -> None:
    blt = Blt(theta=tuple(theta), omega=tuple(omega[: len(theta)]))
    theta_hat, omega_hat = blt.inverse()
    assert (omega_hat <= 0).all()
    inverse = np.linalg.inv(blt.dense(24))[:, 0]
    assert_allclose(inverse[0], 1.0)
    assert_allclose(omega_hat @ theta_hat[:, None] ** np.arange(23), inverse[1:], atol=1e-12)


@pytest.mark.parametrize("name", PUBLISHED_BLT)
def test_the_inverse_holds_where_thetas_nearly_coincide(name: str) -> None:
    theta_hat, omega_hat = PUBLISHED_BLT[name].inverse()
    inverse = np.linalg.inv(PUBLISHED_BLT[name].dense(60))[1:, 0]
    assert_allclose(omega_hat @ theta_hat[:, None] ** np.arange(59), inverse, atol=1e-14)


def test_dense_blt_is_its_definition() -> None:
    blt = Blt(theta=(0.9, 0.5), omega=(0.1, 0.3))
    matrix = blt.dense(6)
    for row in range(6):
        for column in range(6):
            lag = row - column
            value = 0.0 if lag < 0 else 1.0 if lag == 0 else 0.1 * 0.9 ** (lag - 1) + 0.3 * 0.5 ** (lag - 1)
            assert matrix[row, column] == pytest.approx(value, abs=1e-15)
    assert_array_equal(Independent().dense(3), np.eye(3))
    assert blt.dense(1).tolist() == [[1.0]]


def test_toeplitz_never_fills_in_coefficients() -> None:
    assert Toeplitz(coefficients=(1, 0.5)).dense(2).tolist() == [[1.0, 0.0], [0.5, 1.0]]
    with pytest.raises(AccountingError, match="2 coefficients do not say what round 3 does"):
        Toeplitz(coefficients=(1, 0.5)).dense(3)


@pytest.mark.parametrize(
    ("build", "complaint"),
    [
        (lambda: Tree(restarts=(0, 3)), "restarts"),
        (lambda: Tree(restarts=(5, 3)), "restarts"),
        (lambda: Tree(restarts=(1.5,)), "restarts"),  # type: ignore[arg-type]
        (lambda: Toeplitz(coefficients=()), "at least one"),
        (lambda: Toeplitz(coefficients=(0.0, 1.0)), "positive"),
        (lambda: BandedToeplitz((0.0, 1.0)), "positive"),
        (lambda: BandedInverse((-1.0,)), "positive"),
        (lambda: Banded(np.ones((2, 3))), "3 bands for 2 rounds"),
        (lambda: Banded(np.ones((3, 2))), "below row 2"),
        (lambda: Banded(np.array([[1.0], [0.0]])), r"columns\[1, 0\] is 0"),
        (lambda: Banded(np.ones(3)), "two axes"),
        (lambda: Dense(np.ones((2, 2))), "above its diagonal"),
        (lambda: Dense(np.ones((2, 1))), "square"),
        (lambda: Dense(np.diag([1.0, -1.0])), r"matrix\[1, 1\] is -1"),
        (lambda: Dense(np.diag([1.0, np.inf])), "not finite"),
        (lambda: Blt(theta=(0.5,), omega=(0.5, 0.1)), "1 theta and 2 omega"),
        (lambda: Blt(theta=(1.01,), omega=(0.5,)), r"\(0, 1\]"),
        (lambda: Blt(theta=(0.5,), omega=(0.0,)), "positive"),
        (lambda: Blt(theta=(float("nan"),), omega=(0.5,)), "finite"),
    ],
)
def test_impossible_parameters_are_refused(build: object, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        build()  # type: ignore[operator]
