"""The closed form of a BLT's sensitivity against its coefficients, every pattern, and arithmetic of 60 digits."""

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.privacy.every_pattern import brute_force, participations

from tacit.errors import AccountingError
from tacit.privacy import Blt, Participation
from tacit.privacy.sensitivity import sensitivity_bound_squared, sensitivity_squared, toeplitz_sensitivity_squared
from tacit.privacy.sensitivity_blt import blt_sensitivity_squared
from tacit.privacy.strategy import PUBLISHED_BLT


def closed(blt: Blt, participation: Participation) -> float:
    return blt_sensitivity_squared(blt.theta, blt.omega, participation)


def sixty_digits(blt: Blt, participation: Participation) -> mpmath.mpf:
    """The formula summed over every participation, O(k d^2), in 60 digits: where n is too large for n coefficients."""
    served = participation.effective
    n, b, k = served.rounds, served.min_separation, served.max_participations
    with mpmath.workdps(60):
        theta = [mpmath.mpf(value) for value in blt.theta]
        omega = [mpmath.mpf(value) for value in blt.omega]

        def geometric(ratio: mpmath.mpf, terms: int) -> mpmath.mpf:
            return mpmath.mpf(terms) if ratio == 1 else (1 - ratio**terms) / (1 - ratio)

        def after(visits: int, rounds: int) -> mpmath.mpf:
            amplitude = [w * geometric(t**b, visits) for t, w in zip(theta, omega, strict=True)]
            return sum(
                p * q * geometric(s * t, rounds)
                for p, s in zip(amplitude, theta, strict=True)
                for q, t in zip(amplitude, theta, strict=True)
            )

        total = mpmath.mpf(0)
        for visit in range(k):
            total += (
                1 + sum(w * t ** (b - 1) * geometric(t**b, visit) for t, w in zip(theta, omega, strict=True))
            ) ** 2
            total += after(visit + 1, b - 1 if visit < k - 1 else n - visit * b - 1)
        return total


@st.composite
def blts(draw: st.DrawFn) -> Blt:
    """Up to five buffers: decays of all sizes, equal, nearly equal, and 1; omegas that sum to at most 1."""
    size = draw(st.integers(1, 5))
    near_one = st.floats(-16, -0.01).map(lambda power: 1 - 10**power)
    theta = draw(st.lists(st.one_of(near_one, st.floats(1e-3, 1.0), st.just(1.0)), min_size=size, max_size=size))
    if draw(st.booleans()):
        theta[-1] = min(1.0, theta[0] * (1 + 1e-13))
    omega = draw(st.lists(st.floats(1e-6, 1.0), min_size=size, max_size=size))
    scale = draw(st.floats(1e-3, 0.999)) / sum(omega)
    return Blt(theta=tuple(theta), omega=tuple(weight * scale for weight in omega))


@settings(max_examples=80, deadline=None)
@given(blt=blts(), participation=participations(12))
def test_blts_are_exact(blt: Blt, participation: Participation) -> None:
    assert sensitivity_squared(blt, participation) == pytest.approx(brute_force(blt, participation), rel=1e-12)


@settings(max_examples=100, deadline=None)
@given(
    blt=blts(), rounds=st.integers(1, 4000), separation=st.integers(1, 500), times=st.sampled_from([1, 2, 7, 33, 5000])
)
def test_the_closed_form_is_the_sum_over_all_coefficients(blt: Blt, rounds: int, separation: int, times: int) -> None:
    served = Participation(rounds=rounds, min_separation=separation, max_participations=times)
    assert closed(blt, served) == pytest.approx(toeplitz_sensitivity_squared(blt.column(rounds), served), rel=1e-12)


@settings(max_examples=40, deadline=None)
@given(blt=blts(), rounds=st.integers(1, 10**9), times=st.integers(1, 12))
def test_sixty_digits_agree_up_to_a_thousand_million_rounds(blt: Blt, rounds: int, times: int) -> None:
    separation = max(rounds // times, 1)
    served = Participation(rounds=rounds, min_separation=separation, max_participations=times)
    assert closed(blt, served) == pytest.approx(float(sixty_digits(blt, served)), rel=1e-12)


@pytest.mark.parametrize("name", PUBLISHED_BLT)
@pytest.mark.parametrize(("rounds", "separation", "times"), [(2052, 342, 6), (3000, 10, 300), (10**9, 10**7, 100)])
def test_the_published_blts_agree_with_sixty_digits(name: str, rounds: int, separation: int, times: int) -> None:
    served = Participation(rounds=rounds, min_separation=separation, max_participations=times)
    expected = float(sixty_digits(PUBLISHED_BLT[name], served))
    assert closed(PUBLISHED_BLT[name], served) == pytest.approx(expected, rel=1e-12)


def test_neither_rounds_nor_participations_are_counted_one_by_one() -> None:
    # theta = 1 alone: v0(m) = 1 + m/2 and (m+1)/2 after it, sums of squares of whole numbers.
    served = Participation.worst_case(10**9, 100)
    visits = 10**7
    exact = sum_of_squares(visits + 1) - 1 + 99 * sum_of_squares(visits)  # in quarters: (m + 2)^2 and (m + 1)^2
    assert closed(Blt(theta=(1.0,), omega=(0.5,)), served) == pytest.approx(exact / 4, rel=1e-12)


def sum_of_squares(last: int) -> int:
    """1 + 4 + ... + last^2."""
    return last * (last + 1) * (2 * last + 1) // 6


def test_omegas_that_sum_to_more_than_one_are_refused() -> None:
    rising = Blt(theta=(0.9, 0.8), omega=(0.7, 0.6))
    with pytest.raises(AccountingError, match="omegas sum to at most 1"):
        closed(rising, Participation.worst_case(5, 2))
    assert closed(rising, Participation.worst_case(1, 1)) == 1.0
    with pytest.raises(AccountingError, match="omegas sum to at most 1"):
        sensitivity_bound_squared(rising, Participation.worst_case(5, 2))
    flat = Blt(theta=(1.0,), omega=(1.0,))
    served = Participation.worst_case(7, 3)
    assert closed(flat, served) == pytest.approx(toeplitz_sensitivity_squared(np.ones(7), served))
