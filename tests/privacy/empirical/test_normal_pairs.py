"""Two normal laws: their closeness against integration, and a bound from samples against the truth."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.privacy.empirical.mechanisms import coverage_allows

from tacit.errors import InputError
from tacit.privacy import gaussian
from tacit.privacy.empirical.normal_pairs import LARGEST, delta_of_pair, epsilon_of_normal_samples, epsilon_of_pair
from tacit.privacy.empirical.normal_scores import mu_of_normal_samples

PAIRS = [(1.0, 1.0), (-2.0, 1.0), (0.0, 1.3), (0.7, 0.6), (-1.5, 1.9), (0.0, 1.0), (1.0, 1 + 1e-9)]


def integrated(mean: float, deviation: float, epsilon: float) -> float:
    x = np.linspace(-40, 40, 800_001)
    own = np.exp(-((x - mean) ** 2) / (2 * deviation**2)) / deviation
    other = np.exp(-(x**2) / 2)
    both = own - math.exp(epsilon) * other, other - math.exp(epsilon) * own
    return max(float(np.maximum(each, 0).sum()) for each in both) * (x[1] - x[0]) / math.sqrt(2 * math.pi)


@pytest.mark.parametrize(("mean", "deviation"), PAIRS)
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 2.0, 6.0])
def test_closeness_is_an_integral(mean: float, deviation: float, epsilon: float) -> None:
    assert delta_of_pair(mean, deviation, epsilon) == pytest.approx(integrated(mean, deviation, epsilon), abs=1e-9)


@given(st.floats(0.05, 5), st.floats(0, 8))
def test_of_one_deviation_it_is_gaussian_differential_privacy(mu: float, epsilon: float) -> None:
    assert delta_of_pair(mu, 1.0, epsilon) == pytest.approx(gaussian.delta(epsilon, mu), rel=1e-6, abs=1e-14)


@given(st.floats(-3, 3), st.floats(0.4, 2.5), st.sampled_from([1e-6, 1e-3, 0.1]))
@settings(max_examples=50, deadline=None)
def test_epsilon_is_where_delta_is(mean: float, deviation: float, delta: float) -> None:
    epsilon = epsilon_of_pair(mean, deviation, delta)
    if 0 < epsilon < LARGEST:
        assert delta_of_pair(mean, deviation, epsilon) == pytest.approx(delta, rel=1e-6)
    else:
        assert delta_of_pair(mean, deviation, epsilon) <= delta


@pytest.mark.parametrize("repetitions", [40, pytest.param(2000, marks=pytest.mark.long)])
@pytest.mark.parametrize(("mean", "deviation"), [(1.0, 1.0), (0.0, 1.0), (1.0, 0.8), (0.3, 1.3)])
def test_bounds_lie_below_the_truth(mean: float, deviation: float, repetitions: int) -> None:
    rng = np.random.default_rng(1)
    true = epsilon_of_pair(mean, deviation, 1e-2)
    below = []
    for _ in range(repetitions):
        absent, present = 4 + 3 * rng.normal(size=60), 4 + 3 * (mean + deviation * rng.normal(size=80))
        below.append(epsilon_of_normal_samples(absent, present, 1e-2, confidence=0.8) <= true + 1e-9)
    assert coverage_allows(np.array(below), 0.8)


def test_it_comes_near_and_finds_what_mu_alone_does_not() -> None:
    rng = np.random.default_rng(2)
    absent, present = rng.normal(size=(2, 20_000))
    true = gaussian.epsilon_of_mu(1.0, 1e-3)
    assert 0.9 * true < epsilon_of_normal_samples(absent, present + 1, 1e-3) < true
    # The canary makes the noise larger by half and moves nothing: no difference of means, and no privacy.
    assert mu_of_normal_samples(absent, 1.5 * present).lower < 0.03
    assert epsilon_of_normal_samples(absent, 1.5 * present, 1e-3) > 0.8 * epsilon_of_pair(0.0, 1.5, 1e-3) > 2


def test_more_confidence_shows_less() -> None:
    rng = np.random.default_rng(3)
    absent, present = rng.normal(size=(2, 200))
    lower = [epsilon_of_normal_samples(absent, present + 1, 1e-2, confidence=sure) for sure in (0.6, 0.9, 0.99)]
    assert lower[0] > lower[1] > lower[2] > 0


def test_bad_input_is_refused() -> None:
    with pytest.raises(InputError, match="deviation=0 must be finite and above 0"):
        delta_of_pair(1.0, 0, 1.0)
    with pytest.raises(InputError, match="of normal laws no epsilon is finite at 0"):
        epsilon_of_normal_samples([1.0, 2.0], [1.0, 2.5], 0)
    with pytest.raises(InputError, match="delta=1"):
        epsilon_of_normal_samples([1.0, 2.0], [1.0, 2.5], 1)
    with pytest.raises(InputError, match="present has 1 scores"):
        epsilon_of_normal_samples([1.0, 2.0], [1.0], 0.1)
    with pytest.raises(InputError, match="no noise was added"):
        epsilon_of_normal_samples([1.0, 1.0], [1.0, 2.0], 0.1)
    with pytest.raises(InputError, match="confidence=1"):
        epsilon_of_normal_samples([1.0, 2.0], [1.0, 2.5], 0.1, confidence=1)
