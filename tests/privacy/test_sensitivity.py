"""Sensitivity against every participation pattern there is, and against the published tables."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.privacy.every_pattern import brute_force, participations, worst_signs

from tacit.errors import AccountingError
from tacit.privacy import Blt, Independent, Participation, Toeplitz, toeplitz
from tacit.privacy.sensitivity import (
    sensitivity,
    sensitivity_bound_squared,
    sensitivity_squared,
    toeplitz_sensitivity,
    toeplitz_sensitivity_squared,
)
from tacit.privacy.strategy import PUBLISHED_BLT, BandedInverse, BandedToeplitz

GOLDEN = Path(__file__).parent.parent / "golden"
BLTS: dict[str, Any] = json.loads((GOLDEN / "blt.json").read_text())


@settings(max_examples=100, deadline=None)
@given(
    participation=participations(12),
    falls=st.lists(st.floats(0, 1), min_size=16, max_size=16),
)
def test_toeplitz_matrices_are_exact(participation: Participation, falls: list[float]) -> None:
    coefficients = np.cumprod([1.0, *falls])[: participation.rounds]
    strategy = Toeplitz(coefficients=tuple(coefficients))
    assert sensitivity_squared(strategy, participation) == pytest.approx(brute_force(strategy, participation))


def slow_toeplitz(column: np.ndarray, participation: Participation) -> float:
    """Shifted copies added one after another: O(n k)."""
    served = participation.effective
    response = np.zeros(served.rounds)
    for visit in range(served.max_participations):
        late = visit * served.min_separation
        response[late:] += column[: served.rounds - late]
    return float(response @ response)


@given(
    participation=participations(60),
    falls=st.lists(st.floats(0, 1), min_size=60, max_size=60),
)
def test_adding_once_is_adding_every_shifted_copy(participation: Participation, falls: list[float]) -> None:
    column = np.cumprod([1.0, *falls])[: participation.rounds]
    expected = slow_toeplitz(column, participation)
    assert toeplitz_sensitivity_squared(column, participation) == pytest.approx(expected, rel=1e-13)


@settings(max_examples=100, deadline=None)
@given(participation=participations(12), falls=st.lists(st.floats(0, 1), max_size=8))
def test_banded_toeplitz_matrices_are_exact(participation: Participation, falls: list[float]) -> None:
    strategy = BandedToeplitz(tuple(np.cumprod([2.0, *falls])))
    assert sensitivity_squared(strategy, participation) == pytest.approx(brute_force(strategy, participation))


@settings(max_examples=100, deadline=None)
@given(participation=participations(12), shares=st.lists(st.floats(0, 1), min_size=1, max_size=4))
def test_banded_inverses_are_exact_or_refused(participation: Participation, shares: list[float]) -> None:
    strategy = BandedInverse((1.0, *(-share / len(shares) for share in shares)))
    value, exact = sensitivity_bound_squared(strategy, participation)
    expected = brute_force(strategy, participation)
    if exact:
        assert value == sensitivity_squared(strategy, participation) == pytest.approx(expected, rel=1e-10)
    else:
        assert value >= expected * (1 - 1e-12)
        with pytest.raises(AccountingError):
            sensitivity_squared(strategy, participation)


@given(participation=participations(12), taken_back=st.floats(0, 1))
def test_lambda_cgd_is_exact(participation: Participation, taken_back: float) -> None:
    strategy = BandedInverse((1.0, -taken_back))
    assert sensitivity_squared(strategy, participation) == pytest.approx(brute_force(strategy, participation))


def test_rounding_of_a_long_column_is_no_rise(monkeypatch: pytest.MonkeyPatch) -> None:
    """By Newton's iteration a column that decays to nothing ends in rounding errors of either sign."""
    inverse_root = BandedInverse(tuple(np.cumprod([1.0, *(1 - 1.5 / np.arange(1, 64))])))
    served = Participation.worst_case(6000, 700)
    monkeypatch.setattr(toeplitz, "_DIRECT", 1)
    column = inverse_root.column(6000)
    assert (np.diff(column) > 0).any()
    assert sensitivity_squared(inverse_root, served) == pytest.approx(slow_toeplitz(column, served), rel=1e-12)


@given(participation=participations())
def test_independent_noise_counts_participations(participation: Participation) -> None:
    assert sensitivity_squared(Independent(), participation) == participation.effective.max_participations


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
    # google-parfait/federated-compute, fcp/confidentialcompute/python/accounting_test.py: zCDP 3.17226586 at z = 1.
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


def test_the_column_of_a_banded_inverse_does_not_end_with_its_band() -> None:
    """The same trap: two numbers describe C^{-1}, and all of C's coefficients count."""
    cgd, served = BandedInverse((1.0, -0.97)), Participation.worst_case(2052, 342)
    everything = slow_toeplitz(cgd.column(2052), served)
    assert sensitivity_squared(cgd, served) == pytest.approx(everything, rel=1e-12)
    for end in (2, 342):
        cut = np.where(np.arange(2052) < end, cgd.column(2052), 0.0)
        assert toeplitz_sensitivity_squared(cut, served) < everything * (1 - 1e-5)


def test_a_bound_stands_in_where_the_theorem_does_not_hold() -> None:
    rising = BandedInverse(coefficients=(1.0, -0.2, 0.6, -0.5, -0.3))
    served = Participation.worst_case(5, 2)
    value, exact = sensitivity_bound_squared(rising, served)
    assert not exact
    assert value >= worst_signs(rising.dense(5), served)
    assert sensitivity_bound_squared(Independent(), served) == (3.0, True)
    for wrong in (Blt(theta=(0.9,), omega=(1.5,)), Toeplitz(coefficients=(1.0, 0.2, -0.6, 0.1, 0.3))):
        with pytest.raises(AccountingError, match="coefficient"):
            sensitivity_bound_squared(wrong, served)


@pytest.mark.parametrize("off", [-1, 1])
def test_a_separation_off_by_one_is_another_guarantee(off: int) -> None:
    # Table 4 of arXiv:2408.08868 is reproduced above with b = MinS + 1; neither neighbour reproduces it.
    row = BLTS["table4"][0]
    wrong = Participation(rounds=row["rounds"], min_separation=row["min_s"] + 1 + off, max_participations=row["max_p"])
    rho = sensitivity(PUBLISHED_BLT[row["blt"]], wrong) ** 2 / (2 * row["z"] ** 2)
    assert abs(rho - row["rho"]) > 5.1e-6
