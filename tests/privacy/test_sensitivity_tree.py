"""The tree's sensitivity against every pattern, against the search that cuts nothing off, and the published tables."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.accounting.tree_accounting_is_exact_and_instant import published
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.privacy import slow_tree
from tests.support.privacy.every_pattern import brute_force, participations

from tacit.privacy import Participation, Tree
from tacit.privacy import sensitivity_tree as searching
from tacit.privacy.sensitivity import sensitivity_squared, tree_sensitivity_squared

TREES: dict[str, Any] = json.loads((Path(__file__).parent.parent / "golden" / "tree_tables.json").read_text())


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
@given(participation=participations(14), restarts=st.sets(st.integers(1, 16), max_size=3), few=st.sampled_from([1, 3]))
def test_cutting_off_patterns_loses_none(participation: Participation, restarts: set[int], few: int) -> None:
    tree = Tree(restarts=tuple(sorted(restarts)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(searching, "_FEW", few)
        assert tree_sensitivity_squared(participation, restarts=tree.restarts) == brute_force(tree, participation)


@settings(max_examples=60, deadline=None)
@given(
    rounds=st.integers(30, 900),
    separation=st.integers(1, 40),
    times=st.integers(1, 60),
    restarts=st.sets(st.integers(1, 900), max_size=2),
)
def test_long_trees_agree_with_the_search_that_cuts_nothing_off(
    rounds: int, separation: int, times: int, restarts: set[int]
) -> None:
    served = Participation(rounds=rounds, min_separation=separation, max_participations=times)
    again = tuple(sorted(restarts))
    assert tree_sensitivity_squared(served, restarts=again) == slow_tree.tree_sensitivity_squared(
        served, restarts=again
    )


@settings(max_examples=40, deadline=None)
@given(rounds=st.integers(1, 60), between=st.integers(0, 12), times=st.integers(1, 6))
def test_the_published_program_agrees(rounds: int, between: int, times: int) -> None:
    """The dynamic program of the tree colab, as the benchmark writes it out."""
    served = Participation.from_rounds_between(rounds=rounds, rounds_between=between, max_participations=times)
    assert tree_sensitivity_squared(served) == published(rounds, between, times)


@pytest.mark.parametrize(
    ("rounds", "separation", "times", "squared"),
    [
        (20_000, 100, 150, 46_604),
        (200_000, 312, 640, 447_655),  # two participations fewer than fit
        (200_000, 2, 640, 3_457_024),
        (200_000, 10, 640, 2_526_000),
        (200_000, 313, 640, 444_288),
    ],
)
def test_very_long_trees(rounds: int, separation: int, times: int, squared: int) -> None:
    # Values of slow_tree, which takes up to six seconds for one.
    served = Participation(rounds=rounds, min_separation=separation, max_participations=times)
    assert tree_sensitivity_squared(served) == squared


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


def test_a_separation_off_by_one_does_not_give_the_published_rows() -> None:
    """MinS counts the rounds between: taken for the difference of the round numbers, published rows come out wrong."""

    def squared(row: dict[str, Any], separation: int) -> int:
        return tree_sensitivity_squared(
            Participation(rounds=row["rounds"], min_separation=separation, max_participations=row["max_p"])
        )

    assert all(squared(row, row["min_s"] + 1) == row["exact_sens2"] for row in TREES["rows"])
    eight = Participation.from_rounds_between(rounds=8, rounds_between=3)
    assert (eight.min_separation, tree_sensitivity_squared(eight)) == (4, 2 * 3 + 4)
    assert tree_sensitivity_squared(Participation.worst_case(8, 3)) == brute_force(
        Tree(), Participation.worst_case(8, 3)
    )
    assert tree_sensitivity_squared(Participation.worst_case(8, 3)) > tree_sensitivity_squared(eight)
