"""Sensitivity against every participation pattern there is, and against the published tables."""

import itertools
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import AccountingError
from tacit.privacy import Blt, Independent, Participation, Toeplitz, Tree
from tacit.privacy.sensitivity import (
    sensitivity,
    sensitivity_squared,
    toeplitz_sensitivity,
    tree_sensitivity_squared,
)
from tacit.privacy.strategy import PUBLISHED_BLT, Strategy

GOLDEN = Path(__file__).parent.parent / "golden"
TREES: dict[str, Any] = json.loads((GOLDEN / "tree_tables.json").read_text())
BLTS: dict[str, Any] = json.loads((GOLDEN / "blt.json").read_text())


def patterns(participation: Participation) -> Iterator[tuple[int, ...]]:
    """Every set of rounds that one client may take part in."""
    for count in range(participation.max_participations + 1):
        for pattern in itertools.combinations(range(participation.rounds), count):
            if all(b - a >= participation.min_separation for a, b in itertools.pairwise(pattern)):
                yield pattern


def brute_force(strategy: Strategy, participation: Participation) -> float:
    """max over patterns of |C 1_pattern|^2: the slow twin of everything here."""
    matrix = strategy.dense(participation.rounds)
    return max(float((matrix[:, list(pattern)].sum(axis=1) ** 2).sum()) for pattern in patterns(participation))


@st.composite
def participations(draw: st.DrawFn, largest: int = 16) -> Participation:
    rounds = draw(st.integers(1, largest))
    return Participation(
        rounds=rounds,
        min_separation=draw(st.integers(1, rounds + 1)),
        max_participations=draw(st.integers(1, rounds + 1)),
    )


@settings(max_examples=150, deadline=None)
@given(participation=participations(14), restarts=st.sets(st.integers(1, 16), max_size=3))
def test_trees_with_restarts_are_exact(participation: Participation, restarts: set[int]) -> None:
    tree = Tree(restarts=tuple(sorted(restarts)))
    assert tree_sensitivity_squared(participation, restarts=tree.restarts) == brute_force(tree, participation)


@pytest.mark.parametrize("separation", [1, 2, 3, 4, 5, 7])
@pytest.mark.parametrize("times", [1, 2, 4, 16])
def test_trees_of_sixteen_rounds_are_exact(separation: int, times: int) -> None:
    participation = Participation(rounds=16, min_separation=separation, max_participations=times)
    assert tree_sensitivity_squared(participation) == brute_force(Tree(), participation)


@settings(max_examples=60, deadline=None)
@given(
    rounds=st.integers(20, 300),
    separation=st.integers(5, 60),
    times=st.integers(1, 6),
    restarts=st.sets(st.integers(1, 300), max_size=2),
)
def test_no_random_client_beats_a_larger_tree(rounds: int, separation: int, times: int, restarts: set[int]) -> None:
    served = Participation(rounds=rounds, min_separation=separation, max_participations=times)
    tree = Tree(restarts=tuple(sorted(restarts)))
    bound, matrix, draw = sensitivity_squared(tree, served), tree.dense(rounds), np.random.default_rng(rounds)
    for _ in range(30):
        at, visits = int(draw.integers(0, separation)), np.zeros(rounds)
        for _ in range(times):
            if at < rounds:
                visits[at] = 1
            at += separation + int(draw.integers(0, 3))
        assert ((matrix @ visits) ** 2).sum() <= bound


@settings(max_examples=100, deadline=None)
@given(
    participation=participations(12),
    falls=st.lists(st.floats(0, 1), min_size=16, max_size=16),
)
def test_toeplitz_matrices_are_exact(participation: Participation, falls: list[float]) -> None:
    coefficients = np.cumprod([1.0, *falls])[: participation.rounds]
    strategy = Toeplitz(coefficients=tuple(coefficients))
    assert sensitivity_squared(strategy, participation) == pytest.approx(brute_force(strategy, participation))


@settings(max_examples=60, deadline=None)
@given(
    participation=participations(12),
    theta=st.lists(st.floats(0.05, 1.0), min_size=2, max_size=2),
    omega=st.lists(st.floats(0.01, 0.5), min_size=2, max_size=2),
)
def test_blts_are_exact(participation: Participation, theta: list[float], omega: list[float]) -> None:
    blt = Blt(theta=tuple(theta), omega=tuple(omega))
    assert sensitivity_squared(blt, participation) == pytest.approx(brute_force(blt, participation))


@given(participation=participations())
def test_independent_noise_counts_participations(participation: Participation) -> None:
    assert sensitivity_squared(Independent(), participation) == participation.effective.max_participations


def greedy(participation: Participation) -> float:
    """As early as possible: the worst case of Toeplitz matrices, and not of trees."""
    served = participation.effective
    rounds = [visit * served.min_separation for visit in range(served.max_participations)]
    return float((Tree().dense(served.rounds)[:, rounds].sum(axis=1) ** 2).sum())


def test_coming_as_early_as_possible_is_not_the_worst_case_of_a_tree() -> None:
    # tests/golden/tree_tables.json: the smallest counterexample, and one of 4.9%.
    small = Participation(rounds=16, min_separation=3, max_participations=5)
    assert (greedy(small), tree_sensitivity_squared(small)) == (55, 57)
    larger = Participation(rounds=1000, min_separation=61, max_participations=12)
    assert (greedy(larger), tree_sensitivity_squared(larger)) == (243, 255)


@pytest.mark.parametrize("row", TREES["rows"], ids=lambda row: f"{row['table']} {row['task']}")
def test_the_published_tree_rows_are_exact(row: dict[str, Any]) -> None:
    participation = Participation.from_rounds_between(
        rounds=row["rounds"], rounds_between=row["min_s"], max_participations=row["max_p"]
    )
    assert tree_sensitivity_squared(participation) == row["exact_sens2"]
    rho = row["exact_sens2"] / (2 * row["noise_multiplier"] ** 2)
    assert (round(rho, 2) == row["paper_rho"]) == row["matches_paper"]


def test_there_are_twenty_two_published_tree_rows() -> None:
    assert len(TREES["rows"]) == 22


def test_a_long_tree_takes_milliseconds() -> None:
    served = Participation(rounds=20_000, min_separation=313, max_participations=64)
    best = float("inf")
    for _ in range(3):
        start = time.process_time()
        tree_sensitivity_squared(served)
        best = min(best, time.process_time() - start)
    assert best < 0.25  # about 10 ms on a quiet core


@pytest.mark.parametrize("name", PUBLISHED_BLT)
def test_the_published_parameters_are_those_of_the_reference(name: str) -> None:
    published = BLTS["published"][name]
    assert PUBLISHED_BLT[name] == Blt(theta=tuple(published["theta"]), omega=tuple(published["omega"]))


@pytest.mark.parametrize("row", BLTS["table4"], ids=lambda row: f"{row['task']} {row['min_s']}")
def test_the_published_blt_rows_are_reproduced(row: dict[str, Any]) -> None:
    participation = Participation.from_rounds_between(
        rounds=row["rounds"], rounds_between=row["min_s"], max_participations=row["max_p"]
    )
    rho = sensitivity(PUBLISHED_BLT[row["blt"]], participation) ** 2 / (2 * row["z"] ** 2)
    assert rho == pytest.approx(row["rho"], abs=5.1e-6)


def test_the_anchor_of_the_published_blt() -> None:
    # google-parfait/federated-compute, fcp/confidentialcompute/python/accounting_test.py: zCDP 3.17226586 at
    # z = 1.
    worst = Participation.worst_case(100, 50)
    assert sensitivity_squared(PUBLISHED_BLT["b400"], worst) / 2 == pytest.approx(3.17226586, abs=5e-9)


@pytest.mark.parametrize(
    ("coefficients", "complaint"),
    [
        ((1.0, 1.2, 0.1), "coefficient 1 is 1.2"),
        ((1.0, 0.5, -0.1), "coefficient 2 is -0.1"),
        ((1.0, 0.5), "2 coefficients"),
    ],
)
def test_coefficients_outside_the_theorem_are_refused(coefficients: tuple[float, ...], complaint: str) -> None:
    with pytest.raises(AccountingError, match=complaint):
        sensitivity(Toeplitz(coefficients=coefficients), Participation.worst_case(3, 1))
    with pytest.raises(AccountingError):
        toeplitz_sensitivity(np.array(coefficients), Participation.worst_case(3, 1))


def test_a_blt_whose_second_coefficient_rises_is_refused() -> None:
    with pytest.raises(AccountingError, match="omegas sum to at most 1"):
        sensitivity(Blt(theta=(0.9, 0.8), omega=(0.7, 0.6)), Participation.worst_case(5, 2))


def test_rounding_does_not_make_a_flat_tail_rise() -> None:
    blt = Blt(theta=(1.0, 0.5, 0.3, 0.1), omega=(0.1, 0.2, 0.3, 0.07))
    assert (np.diff(blt.column(3001)) <= 0).all()
    assert sensitivity(blt, Participation.worst_case(3001, 700)) > 0


def test_leaving_out_small_coefficients_would_understate() -> None:
    """The trap that Toeplitz refuses: zeros beyond the separation hide the other participations."""
    b400, served = PUBLISHED_BLT["b400"], Participation.worst_case(2000, 400)
    cut = np.where(np.arange(2000) < 400, b400.column(2000), 0.0)
    assert toeplitz_sensitivity(cut, served) < 0.95 * sensitivity(b400, served)
