"""Comparisons of an experiment, corrected for their number: against Holm's procedure itself, step by step."""

import numpy as np
import pytest
from benchmarks.utility.many_comparisons import differs_by_chance, holm, of_interval, of_table
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats


def rejected(p_values: list[float], alpha: float) -> list[bool]:
    """The least p is held to alpha / m, the next to alpha / (m - 1), and so on; the first that fails ends it."""
    left, found = list(range(len(p_values))), [False] * len(p_values)
    while left:
        least = min(left, key=lambda at: p_values[at])
        if p_values[least] * len(left) > alpha:
            break
        found[least] = True
        left.remove(least)
    return found


@given(
    st.lists(st.sampled_from([0.0, 0.001, 0.01, 0.02, 0.03, 0.5, 1.0]), min_size=1, max_size=9),
    st.sampled_from([0.0101, 0.0499, 0.0501, 0.2]),
)
def test_what_is_below_alpha_is_what_the_procedure_rejects(p_values: list[float], alpha: float) -> None:
    assert [each <= alpha for each in holm(p_values)] == rejected(p_values, alpha)


def test_chance_alone_rarely_rejects_anything() -> None:
    """Of 1,000 experiments of 30 comparisons with nothing in them, at most 5% tell anything; uncorrected most do."""
    random = np.random.default_rng(1)
    drawn = stats.ttest_1samp(random.standard_normal((1000, 30, 8)), 0.0, axis=2).pvalue
    told = np.mean([min(holm(list(row))) < 0.05 for row in drawn])
    assert told < 0.05 + 3 * (0.05 * 0.95 / 1000) ** 0.5
    assert np.mean(drawn.min(axis=1) < 0.05) > 0.7


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=8).filter(lambda values: max(values) - min(values) > 1e-3))
def test_p_is_below_five_percent_where_the_interval_leaves_out_nought(values: list[float]) -> None:
    low, high = stats.t.interval(0.95, len(values) - 1, loc=np.mean(values), scale=stats.sem(values))
    assert (differs_by_chance(values) < 0.05) == (low > 0 or high < 0) or min(abs(low), abs(high)) < 1e-9


@pytest.mark.parametrize(("given", "expected"), [([0.01, 0.04, 0.03], [0.03, 0.06, 0.06]), ([0.9, 0.6], [1.0, 1.0])])
def test_by_hand(given: list[float], expected: list[float]) -> None:
    assert holm(given) == pytest.approx(expected)


@given(st.lists(st.floats(-1, 1), min_size=3, max_size=8).filter(lambda values: max(values) - min(values) > 0.2))
def test_a_printed_interval_has_a_p_value_that_is_no_smaller_than_the_true_one(values: list[float]) -> None:
    low, high = stats.t.interval(0.95, len(values) - 1, loc=np.mean(values), scale=stats.sem(values))
    for digits, near in ((2, 0.3), (9, 1e-6)):
        said = of_interval(f"{np.mean(values):+.{digits}f} ({low:+.{digits}f} to {high:+.{digits}f})", len(values))
        assert differs_by_chance(values) - 1e-12 <= said <= differs_by_chance(values) + near


def test_every_interval_of_a_table_is_followed_by_its_p_value_among_all() -> None:
    table = "| | seeds | points | nats |\n|---|---|\n| a - b | 8 | +0.21 (+0.13 to +0.29) | -0.03 (-0.2 to +0.2) |"
    first, second = of_interval("+0.21 (+0.13 to +0.29)", 8), of_interval("-0.03 (-0.2 to +0.2)", 8)
    assert first < 0.001 < 0.5 < second
    said = of_table(table)
    assert f"+0.29), p {2 * first:.4f} |" in said and "2 comparisons." in said
    assert of_table(said) == said, "what has p values already is given none besides"
