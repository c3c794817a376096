"""The delta that follows from a population is a round number below 1/population; one that promises nothing is found."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import InputError
from tacit.privacy.delta import allows_publishing, default_delta, publishing_warning


@given(st.integers(1, 10**15))
def test_the_default_is_the_formula_rounded_down_to_one_digit(population: int) -> None:
    delta, exact = default_delta(population), min(1e-5, population**-1.1)
    digits, exponent = f"{delta:e}".split("e")
    assert float(digits) == int(float(digits)) and delta <= exact < delta + 10.0 ** int(exponent) * (1 + 1e-12)
    assert not allows_publishing(delta, population) and publishing_warning(delta, population) is None


@pytest.mark.parametrize(
    ("population", "delta"),
    [(1, 1e-5), (400, 1e-5), (35_112, 9e-6), (100_000, 3e-6), (1_000_000, 2e-7), (10**9, 1e-10)],
)
def test_the_default_of_some_populations(population: int, delta: float) -> None:
    assert default_delta(population) == delta


@given(st.integers(2, 10**12))
def test_one_in_the_population_allows_publishing_and_a_little_less_does_not(population: int) -> None:
    assert allows_publishing(1 / population, population) and allows_publishing(0.5, population)
    assert not allows_publishing(0.999 / population, population)
    assert f"1/{population:,} or more" in (publishing_warning(1 / population, population) or "")


def test_nobody_has_no_delta_and_the_smallest_delta_publishes_nobody() -> None:
    with pytest.raises(InputError, match="a population of 0"):
        default_delta(0)
    assert not allows_publishing(math.nextafter(0, 1), 10**15)
