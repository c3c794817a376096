"""Encodings for secure sums: as coarse as the inflation allows, and sums that never overflow."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import InputError
from tacit.privacy.encoding import Encoding, clip_inflation


@given(
    parameters=st.integers(1, 10**8),
    clip_norm=st.floats(1e-3, 1e3),
    inflation=st.floats(1e-6, 2).map(lambda excess: 1 + excess),
)
def test_the_coarsest_within_the_inflation(parameters: int, clip_norm: float, inflation: float) -> None:
    found = Encoding.within(parameters, clip_norm, inflation=inflation)
    assert found.dimension >= parameters > found.dimension // 2 and found.dimension.bit_count() == 1
    assert found.inflation <= inflation
    coarser = clip_inflation(clip_norm, found.dimension, found.scale * (1 - 1e-6))
    assert coarser > inflation or math.isclose(coarser, inflation, rel_tol=1e-9)


@given(parameters=st.integers(2, 10**7), report_goal=st.integers(1, 10**5))
def test_the_bits_are_those_of_the_modulus(parameters: int, report_goal: int) -> None:
    found = Encoding.within(parameters, 1.0)
    largest = math.ceil(2 * found.scale * math.log(found.dimension) / math.sqrt(found.dimension))
    modulus = 2 * largest * report_goal + 1
    assert 2 ** (found.bits(report_goal) - 1) < modulus <= 2 ** found.bits(report_goal)


@pytest.mark.parametrize("inflation", [1.0, 0.5, math.inf, math.nan])
def test_no_inflation_is_refused(inflation: float) -> None:
    with pytest.raises(InputError, match="above 1"):
        Encoding.within(100, 1.0, inflation=inflation)
