"""Encodings for secure sums: as coarse as the inflation allows, padded as little as can be, and no sum overflows."""

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import InputError
from tacit.privacy.encoding import PALEY_ORDERS, clip_inflation, inflated_clip_norm
from tacit.privacy.encoding_choice import encoding_within, padded_dimension

SMALL = encoding_within(1000, 1.0, 100)


@given(
    parameters=st.integers(1, 10**8),
    clip_norm=st.floats(1e-3, 1e3),
    inflation=st.floats(1e-6, 2).map(lambda excess: 1 + excess),
)
def test_the_coarsest_within_the_inflation(parameters: int, clip_norm: float, inflation: float) -> None:
    found = encoding_within(parameters, clip_norm, 10, inflation=inflation)
    assert found.dimension >= parameters
    assert found.inflation <= inflation
    coarser = clip_inflation(clip_norm, found.dimension, found.scale * (1 - 1e-6))
    assert coarser > inflation or math.isclose(coarser, inflation, rel_tol=1e-9)


@given(parameters=st.integers(1, 10**8))
def test_padding_is_the_least_of_all_orders(parameters: int) -> None:
    orders = (paley << power for paley in PALEY_ORDERS for power in range(28))
    assert padded_dimension(parameters) == min(order for order in orders if order >= parameters)


def test_the_orders_are_those_of_paleys_primes() -> None:
    assert PALEY_ORDERS[:7] == (1, 12, 20, 28, 36, 44, 60)  # 52 = 2 (5^2 + 1) would need a field that is not prime
    assert {148, 252} <= set(PALEY_ORDERS) and 92 not in PALEY_ORDERS
    padding = [padded_dimension(parameters) / parameters for parameters in range(10_000, 100_000, 997)]
    assert max(padding) < 1.12  # 2 with powers of two


def test_the_production_model_of_the_papers() -> None:
    # 2.38 million parameters and clip norm 5: pads by 1.8%, where a power of two pads by 76%.
    found = encoding_within(2_380_000, 5.0, 6500)
    assert found.dimension == 148 * 2**14
    assert found.scale == pytest.approx(1104.05, abs=0.01)
    assert (found.largest, found.bits) == (36, 19)
    assert found.inflation == pytest.approx(1.01, rel=1e-12)
    assert found.clipping_probability < 2e-16
    assert found.most_reports == (2**19 - 1) // 72 == 7281


@given(parameters=st.integers(2, 10**7), report_goal=st.integers(1, 10**5), sigmas=st.floats(0.1, 20))
def test_the_bits_are_those_of_the_modulus(parameters: int, report_goal: int, sigmas: float) -> None:
    found = encoding_within(parameters, 1.0, report_goal, sigmas=sigmas)
    assert found.largest >= sigmas * found.scale / math.sqrt(found.dimension) > found.largest - 1
    needed = 2 * found.largest * report_goal + 1
    assert found.modulus // 2 < needed <= found.modulus
    assert found.most_reports >= report_goal
    assert 2 * found.largest * found.most_reports < found.modulus <= 2 * found.largest * (found.most_reports + 1)


@given(clip_norm=st.floats(1e-12, 1e12))
def test_another_clip_norm_has_the_same_integers(clip_norm: float) -> None:
    other = SMALL.with_clip_norm(clip_norm)
    assert (other.bits, other.largest, other.dimension) == (SMALL.bits, SMALL.largest, SMALL.dimension)
    assert other.inflation == pytest.approx(SMALL.inflation, rel=1e-14)
    assert other.longest_squared == pytest.approx(SMALL.longest_squared, abs=1)


@given(parameters=st.integers(1, 10**7), clip_norm=st.floats(1e-3, 1e3))
def test_the_longest_integers_keep_within_the_inflated_clip_norm(parameters: int, clip_norm: float) -> None:
    found = encoding_within(parameters, clip_norm, 1)
    bound = inflated_clip_norm(clip_norm, found.dimension, found.scale) * found.scale
    assert math.sqrt(found.longest_squared) <= bound
    assert found.longest_squared + 2 > bound**2 * (1 - 1e-14)


@pytest.mark.parametrize("inflation", [1.0, 0.5, math.inf, math.nan])
def test_no_inflation_is_refused(inflation: float) -> None:
    with pytest.raises(InputError, match="above 1"):
        encoding_within(100, 1.0, 10, inflation=inflation)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"parameters": 0}, "parameters=0"),
        ({"parameters": SMALL.dimension + 1}, "does not hold"),
        ({"report_goal": 0}, "report_goal=0"),
        ({"report_goal": True}, "report_goal=True"),
        ({"clip_norm": math.nan}, "clip_norm=nan"),
        ({"scale": 0.0}, "scale=0.0"),
        ({"sigmas": math.inf}, "sigmas=inf"),
        ({"sigmas": 0.0}, "sigmas=0.0"),
    ],
)
def test_numbers_that_make_no_encoding_are_refused(changes: dict[str, float], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        replace(SMALL, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("asked", "complaint"),
    [
        (("9", 1.0, 10), "parameters='9' is no number of them"),
        ((9.5, 1.0, 10), "parameters=9.5"),
        ((9, 0, 10), "clip_norm=0 is not a finite number above 0"),
        ((9, "1", 10), "clip_norm='1' is not"),
        ((9, 1e-300, 10), "clip_norm 1e-300 is beyond any number"),
        ((9, 1e300, 10), "clip_norm 1e\\+300 is beyond any number"),
        ((9, 1.0, "many"), "report_goal='many'"),
    ],
)
def test_what_no_encoding_is_for_is_refused(asked: Any, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        encoding_within(*asked)
    with pytest.raises(InputError, match="inflation='1'"):
        encoding_within(9, 1.0, 10, inflation="1")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="clip_norm=0 is not"):
        SMALL.with_clip_norm(0)
    with pytest.raises(InputError, match="sigmas='x'"):
        encoding_within(9, 1.0, 10, sigmas="x")  # type: ignore[arg-type]


def test_a_report_goal_beyond_the_modulus_is_refused() -> None:
    assert encoding_within(2_380_000, 5.0, 50_000_000).bits == 32
    with pytest.raises(InputError, match=r"report_goal=60,000,000 .* need 33 bits"):
        encoding_within(2_380_000, 5.0, 60_000_000)
