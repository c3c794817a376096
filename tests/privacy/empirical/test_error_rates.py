"""What two error rates show, against mechanisms whose curves are known, and Clopper and Pearson against the tail."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import bdtr, ndtr

from tacit.privacy.empirical.error_rates import epsilon_shown, mu_shown, rate_at_most
from tacit.privacy.gaussian import epsilon_of_mu

rates = st.floats(1e-9, 1 - 1e-9)


@pytest.mark.parametrize("trials", [1, 7, 60])
@pytest.mark.parametrize("error", [0.05, 0.001])
def test_at_the_bound_so_few_cases_have_just_the_error(trials: int, error: float) -> None:
    for count in range(trials):
        assert bdtr(count, trials, rate_at_most(count, trials, error)) == pytest.approx(error, rel=1e-9)
    assert rate_at_most(trials, trials, error) == 1


@pytest.mark.parametrize(("mu", "delta"), [(0.5, 1e-3), (1.0, 1e-5), (3.0, 1e-2)])
def test_the_best_threshold_of_a_gaussian_mechanism_shows_all_of_it(mu: float, delta: float) -> None:
    thresholds = np.linspace(-4, 9, 20_001)
    fpr, fnr = ndtr(-thresholds), ndtr(thresholds - mu)
    assert epsilon_shown(fpr, fnr, delta).max() == pytest.approx(epsilon_of_mu(mu, delta), rel=1e-5)
    near = np.abs(thresholds) < 5
    assert mu_shown(fpr[near], fnr[near]) == pytest.approx(mu, rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.1, 2.0])
def test_randomized_response_shows_its_epsilon(epsilon: float) -> None:
    flipped = 1 / (1 + math.exp(epsilon))
    assert epsilon_shown(flipped, flipped, 0.0) == pytest.approx(epsilon, rel=1e-12)
    assert epsilon_shown(0.5, 0.5, 0.0) == 0 == mu_shown(0.5, 0.5)


@given(rates, rates, rates, st.floats(0, 0.5))
def test_larger_rates_show_less(one: float, other: float, third: float, delta: float) -> None:
    low, high = sorted((one, other))
    assert epsilon_shown(low, third, delta) >= epsilon_shown(high, third, delta) >= 0
    assert epsilon_shown(third, low, delta) >= epsilon_shown(third, high, delta)
    assert mu_shown(low, third) >= mu_shown(high, third) >= 0
    assert epsilon_shown(low, third, delta) <= epsilon_shown(low, third, 0.0)


def test_what_never_errs_shows_everything_and_no_test_nothing() -> None:
    assert epsilon_shown(0.0, 0.0, 1e-5) == math.inf == mu_shown(0.0, 0.0)
    assert epsilon_shown(0.0, 1.0, 0.0) == 0 == epsilon_shown(1.0, 1.0, 0.1)
    assert mu_shown(1.0, 1.0) == 0
