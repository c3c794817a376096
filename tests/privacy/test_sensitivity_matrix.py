"""Banded and dense matrices against every participation pattern, with every choice of signs."""

import gc
import itertools
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.privacy.every_pattern import brute_force, participations, patterns, worst_signs
from tests.support.privacy.random_matrices import random_banded, random_dense

from tacit.design.dense import full_tree
from tacit.errors import AccountingError
from tacit.privacy import Participation, Toeplitz, Tree
from tacit.privacy import sensitivity_matrix as matrices
from tacit.privacy.sensitivity import sensitivity_bound_squared, sensitivity_squared, tree_sensitivity_squared
from tacit.privacy.strategy import Banded, Dense


@settings(max_examples=150, deadline=None)
@given(served=participations(9), extra=st.integers(0, 3), seed=st.integers(0, 10**6))
def test_bands_up_to_twice_the_separation_are_exact_whatever_the_signs(
    served: Participation, extra: int, seed: int
) -> None:
    rounds = served.rounds + extra  # fewer rounds than the matrix has: its leading block
    bands = 1 + seed % min(rounds, 2 * served.min_separation)
    banded = random_banded(rounds, bands, seed, -1.0)
    value = sensitivity_squared(banded, served)
    assert value == pytest.approx(worst_signs(banded.dense(served.rounds), served))


@settings(max_examples=100, deadline=None)
@given(served=participations(12), bands=st.integers(1, 12), seed=st.integers(0, 10**6))
def test_non_negative_bands_are_exact(served: Participation, bands: int, seed: int) -> None:
    banded = random_banded(served.rounds, min(bands, served.rounds), seed, 0.0)
    assert sensitivity_squared(banded, served) == pytest.approx(brute_force(banded, served))


@settings(max_examples=100, deadline=None)
@given(served=participations(12), seed=st.integers(0, 10**6))
def test_non_negative_dense_matrices_are_exact(served: Participation, seed: int) -> None:
    dense = random_dense(served.rounds, seed, 0.0)
    assert sensitivity_squared(dense, served) == pytest.approx(brute_force(dense, served))


@settings(max_examples=80, deadline=None)
@given(served=participations(8), seed=st.integers(0, 10**6))
def test_mixed_signs_are_exact_or_bounded(served: Participation, seed: int) -> None:
    dense = random_dense(served.rounds, seed, -1.0)
    value, exact = sensitivity_bound_squared(dense, served)
    worst = worst_signs(dense.dense(served.rounds), served)
    if exact:
        assert value == pytest.approx(worst)
    else:
        assert value >= worst * (1 - 1e-12)
        with pytest.raises(AccountingError, match="at most"):
            sensitivity_squared(dense, served)


@settings(max_examples=60, deadline=None)
@given(served=participations(12), seed=st.integers(0, 10**6), work=st.integers(1, 30))
def test_a_search_that_gives_up_leaves_a_bound(served: Participation, seed: int, work: int) -> None:
    dense = random_dense(served.rounds, seed, 0.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matrices, "_WORK", work)
        value, exact = matrices.dense_sensitivity_squared(dense, served)
    expected = brute_force(dense, served)
    assert value == pytest.approx(expected) if exact else value >= expected * (1 - 1e-12)


@pytest.mark.parametrize("bands", [1, 50, 100, 150])
def test_a_long_toeplitz_band_costs_what_its_column_says(bands: int) -> None:
    rounds, served = 600, Participation.worst_case(600, 100)
    column = np.zeros(rounds)
    column[:bands] = np.cumprod([1.0, *(1 - 0.5 / np.arange(1, bands))])
    columns = np.tile(column[:bands], (rounds, 1))
    for band in range(bands):
        columns[rounds - band :, band] = 0.0
    expected = sensitivity_squared(Toeplitz(coefficients=tuple(column)), served)
    assert sensitivity_squared(Banded(columns), served) == pytest.approx(expected, rel=1e-12)
    assert sensitivity_squared(Dense(Banded(columns).dense(rounds)), served) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("rounds", [1, 2, 13, 16, 100])
def test_the_full_tree_costs_what_the_tree_costs(rounds: int) -> None:
    """TreeAgg-Full: lower-triangular L with L^T L = N^T N for the node matrix N."""
    nodes = Tree().dense(rounds)
    gram = (nodes.T @ nodes)[::-1, ::-1]
    full = Dense(np.tril(np.linalg.cholesky(gram)[::-1, ::-1].T))
    for separation, times in [(1, rounds), (3, 5), (rounds, 1), (7, 4)]:
        served = Participation(rounds=rounds, min_separation=separation, max_participations=times)
        assert sensitivity_squared(full, served) == pytest.approx(tree_sensitivity_squared(served), rel=1e-12)


@settings(max_examples=60, deadline=None)
@given(served=participations(14), extra=st.integers(0, 8))
def test_a_prefix_of_the_full_tree_is_bounded_and_exact_where_a_block_ends(served: Participation, extra: int) -> None:
    full = full_tree(served.rounds + extra)
    value, exact = sensitivity_bound_squared(full, served)
    worst = brute_force(full, served)
    assert value == pytest.approx(worst) if exact else value >= worst * (1 - 1e-12)
    ends = {first + (1 << height) for first, height in Tree().blocks(served.rounds + extra)}
    assert exact or served.rounds not in ends


def test_the_cost_of_a_full_tree_never_falls_as_rounds_are_released() -> None:
    values = [
        sensitivity_bound_squared(full_tree(45), Participation.worst_case(rounds, 7))[0] for rounds in range(1, 46)
    ]
    assert values == sorted(values)


def test_more_rounds_than_there_are_or_fit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    dense = random_dense(6, 0, 0.0)
    with pytest.raises(AccountingError, match="does not say what round 7 does"):
        sensitivity_squared(dense, Participation.worst_case(7, 2))
    monkeypatch.setattr(matrices, "_LARGEST", 5)
    with pytest.raises(AccountingError, match="too many to compare all columns"):
        matrices.dense_sensitivity_squared(dense, Participation.worst_case(6, 2))
    assert matrices.dense_sensitivity_squared(dense, Participation.worst_case(6, 6))[1] is True


@settings(max_examples=60, deadline=None)
@given(
    served=participations(8),
    extra=st.integers(0, 2),
    bands=st.integers(0, 8),
    seed=st.integers(0, 10**6),
    least=st.sampled_from([-1.0, 0.0]),
)
def test_one_pattern_costs_what_its_columns_say_and_the_dearest_of_all_is_the_sensitivity(
    served: Participation, extra: int, bands: int, seed: int, least: float
) -> None:
    rounds = served.rounds + extra  # fewer rounds than the matrix has: its leading block
    given_bands = random_banded(rounds, min(bands, rounds), seed, least) if bands else None
    matrix = given_bands or random_dense(rounds, seed, least)
    dense, dearest = matrix.dense(served.rounds), 0.0
    for pattern in patterns(served):
        value = matrix.pattern_squared(pattern, served.rounds)
        signs = itertools.product((1.0, -1.0), repeat=len(pattern))
        worst = max(float(((dense[:, list(pattern)] @ np.array(each)) ** 2).sum()) for each in signs)
        assert value == pytest.approx(worst) if least == 0.0 or len(pattern) < 3 else value >= worst * (1 - 1e-12)
        for left_out in range(len(pattern)):
            fewer = pattern[:left_out] + pattern[left_out + 1 :]
            assert matrix.pattern_squared(fewer, served.rounds) <= value * (1 + 1e-12)
        dearest = max(dearest, value)
    bound, exact = sensitivity_bound_squared(matrix, served)
    assert dearest <= bound * (1 + 1e-12)
    assert not exact or dearest == pytest.approx(bound)


def test_a_worst_pattern_is_searched_for_where_more_than_neighbours_overlap() -> None:
    def searched(bands: int, separation: int, times: int) -> bool:
        limits = Participation(rounds=20, min_separation=separation, max_participations=times)
        return Banded.is_searched(bands, limits)

    assert not searched(8, 4, 5) and searched(9, 4, 5) and not searched(9, 4, 1) and not searched(30, 10, 2)
    assert Dense.is_searched(9, Participation.worst_case(9, 4))
    assert not Dense.is_searched(9, Participation.worst_case(9, 9))


def test_what_is_remembered_of_a_matrix_is_not_the_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    """A device prices matrices that an operator sends, one after another, up to 32 MiB each."""
    limits = Participation(rounds=3, min_separation=1, max_participations=2)
    first = Dense(np.eye(3) * 1.5)
    found, gone = first.sensitivity_squared(limits), weakref.ref(first)
    del first
    gc.collect()
    assert gone() is None
    monkeypatch.setattr(Dense, "worst_case", lambda self, participation: pytest.fail("it was computed before"))
    assert Dense(np.eye(3) * 1.5).sensitivity_squared(limits) == found == (2 * 1.5**2, True)
