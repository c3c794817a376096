"""Bounds on mu from normal scores: exact, so that they are wrong just as often as said, and no less often."""

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import chdtri, ndtr
from tests.privacy.empirical.mechanisms import coverage_allows, coverage_is

from tacit.errors import InputError
from tacit.privacy.empirical.normal_scores import (
    MuBound,
    mu_of_cosines,
    mu_of_known_noise,
    mu_of_known_shift,
    mu_of_normal_samples,
    noncentrality_at_least,
)

Rng = np.random.Generator
REPETITIONS = [300, pytest.param(2000, marks=pytest.mark.long)]
# Each way to a bound, with scores of a mechanism whose true mu is 1.2.
TRUE = 1.2
BOUNDS: dict[str, Callable[[Rng, float], MuBound]] = {
    "noise known": lambda rng, sure: mu_of_known_noise(TRUE + rng.normal(size=9), confidence=sure),
    "one score": lambda rng, sure: mu_of_known_noise(TRUE + rng.normal(size=1), confidence=sure),
    "shift known": lambda rng, sure: mu_of_known_shift(5 * rng.normal(size=30), 5 * TRUE, confidence=sure),
    "neither": lambda rng, sure: mu_of_normal_samples(
        7 + 5 * rng.normal(size=20), 7 + 5 * (TRUE + rng.normal(size=40)), confidence=sure
    ),
}


@pytest.mark.parametrize("repetitions", REPETITIONS)
@pytest.mark.parametrize("way", BOUNDS)
def test_bounds_are_wrong_just_as_often_as_said(way: str, repetitions: int) -> None:
    rng = np.random.default_rng(1)
    for confidence, other in (0.95, 0.8), (0.8, 0.95):
        found = np.array([BOUNDS[way](rng, confidence).lower <= TRUE for _ in range(repetitions)])
        # At 0 a bound is cut off, which changes nothing of whether it exceeds a mu above 0.
        assert coverage_is(found, confidence) and not coverage_is(found, other)


@pytest.mark.parametrize("repetitions", REPETITIONS)
def test_scores_that_know_nothing_show_nothing(repetitions: int) -> None:
    rng = np.random.default_rng(2)
    drawn = rng.normal(size=(repetitions, 2, 10))
    above = np.array([mu_of_normal_samples(one, other).lower > 0 for one, other in drawn])
    assert coverage_is(~above, 0.95)
    assert coverage_is(np.array([mu_of_known_noise(one).lower == 0 for one, _ in drawn]), 0.95)


def test_less_noise_than_promised_is_found() -> None:
    rng = np.random.default_rng(3)
    noise = rng.normal(size=4000)
    assert 0.95 < mu_of_known_shift(noise, 1.0).lower < 1.0 < mu_of_known_shift(0.9 * noise, 1.0).lower
    absent, present = rng.normal(size=(2, 20_000))
    assert 0.95 < mu_of_normal_samples(absent, present + 1).lower < 1.0
    assert mu_of_normal_samples(0.9 * absent, 0.9 * present + 1).lower > 1.0
    assert mu_of_known_noise(present + 1.1).lower > 1.0 > mu_of_known_noise(present + 1).lower


def test_how_many_runs_come_within_one_percent() -> None:
    """Of the promise, at 95%, where the shift is known: about (1.645 / 0.01)^2 / 2."""
    number = 14_000
    typical = np.full(number, math.sqrt(float(chdtri(number, 0.5)) / number))  # of the median sum of squares
    assert 0.99 < mu_of_known_shift(typical, 1.0).lower < 1
    assert mu_of_known_shift(typical[:12_000], 1.0).lower < 0.9901


def slow_noncentral_cdf(degrees: int, shift: float, t: float) -> float:
    """P(Z + shift <= t S), S^2 chi-squared over its degrees, by quantiles of S."""
    halves = (np.arange(20_000) + 0.5) / 20_000
    return float(ndtr(t * np.sqrt(chdtri(degrees, halves) / degrees) - shift).mean())


@pytest.mark.parametrize("degrees", [1, 5, 58, 4000, 10**6])
@pytest.mark.parametrize("t", [-3.0, 0.0, 2.5, 60.0])
def test_the_noncentral_bound_is_where_the_law_says(degrees: int, t: float) -> None:
    for error in (0.5, 0.05, 0.001):
        bound = noncentrality_at_least(t, degrees, error)
        assert slow_noncentral_cdf(degrees, bound, t) == pytest.approx(1 - error, abs=2e-5 * (1 + (degrees == 1)))


@pytest.mark.parametrize("repetitions", [100, pytest.param(2000, marks=pytest.mark.long)])
@pytest.mark.parametrize(("canaries", "dimension", "noise"), [(50, 2000, 1.0), (100, 400, 0.5), (30, 3000, 3.0)])
def test_cosines_of_a_noisy_sum_of_canaries(canaries: int, dimension: int, noise: float, repetitions: int) -> None:
    rng = np.random.default_rng(4)
    below, estimates = [], []
    for _ in range(repetitions):
        vectors = rng.normal(size=(canaries, dimension))
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        total = vectors.sum(axis=0) + noise * rng.normal(size=dimension)
        found = mu_of_cosines(vectors @ total / np.linalg.norm(total), dimension)
        below.append(found.lower <= 1 / noise)
        estimates.append(found.estimate)
    assert coverage_allows(np.array(below), 0.95)
    # What is left of mu by the canaries' own part in the norm of the sum.
    assert np.mean(estimates) == pytest.approx(1 / math.sqrt(noise**2 + canaries / dimension), rel=0.06)


def test_cosines_of_canaries_that_took_no_part_show_nothing() -> None:
    rng = np.random.default_rng(5)
    vectors = rng.normal(size=(400, 30, 100))
    vectors /= np.linalg.norm(vectors, axis=2, keepdims=True)
    assert coverage_allows(np.array([mu_of_cosines(each[:, 0], 100).lower == 0 for each in vectors]), 0.95)


@given(st.lists(st.floats(-3, 3), min_size=3, max_size=12), st.floats(0.1, 10), st.floats(-5, 5))
@settings(max_examples=50, deadline=None)
def test_units_and_origin_change_nothing(scores: list[float], unit: float, origin: float) -> None:
    one = np.array(scores) + np.arange(len(scores)) / 7
    other = one[::-1] ** 2 / 5 + np.arange(len(scores))
    lower = mu_of_normal_samples(one, other).lower
    assert mu_of_normal_samples(unit * one + origin, unit * other + origin).lower == pytest.approx(lower, abs=1e-6)
    assert mu_of_known_shift(unit * one, unit).lower == pytest.approx(mu_of_known_shift(one, 1).lower, rel=1e-9)


def test_more_confidence_shows_less() -> None:
    scores: NDArray[np.float64] = np.random.default_rng(6).normal(size=(2, 50))
    for bound in (
        lambda sure: mu_of_known_noise(scores[0] + 1, confidence=sure),
        lambda sure: mu_of_known_shift(scores[0], 1.0, confidence=sure),
        lambda sure: mu_of_normal_samples(scores[0], scores[1] + 1, confidence=sure),
        lambda sure: mu_of_cosines(scores[0] / 100 + 0.02, 10_000, confidence=sure),
    ):
        lower = [bound(sure).lower for sure in (0.6, 0.9, 0.99)]
        assert all(one > other for one, other in itertools.pairwise(lower)) and lower[0] < bound(0.9).estimate


def test_bad_input_is_refused() -> None:
    with pytest.raises(InputError, match="present has 0 scores"):
        mu_of_known_noise([])
    with pytest.raises(InputError, match=r"noise\[0\]=inf"):
        mu_of_known_shift([math.inf], 1.0)
    with pytest.raises(InputError, match="shift=0 must be finite and above 0"):
        mu_of_known_shift([1.0], 0)
    with pytest.raises(InputError, match="no noise was added"):
        mu_of_known_shift([0.0, 0.0], 1.0)
    with pytest.raises(InputError, match="absent has 1 scores, and a bound needs at least 2"):
        mu_of_normal_samples([1.0], [1.0, 2.0])
    with pytest.raises(InputError, match="no noise was added"):
        mu_of_normal_samples([1.0, 1.0], [2.0, 2.0])
    with pytest.raises(InputError, match=r"cosines\[1\]=1\.5 is no cosine: divide by both norms"):
        mu_of_cosines([0.1, 1.5], 100)
    with pytest.raises(InputError, match="dimension=1 has no random directions"):
        mu_of_cosines([0.1], 1)
    for call in (
        lambda: mu_of_known_noise([1.0], confidence=1),
        lambda: mu_of_known_shift([1.0], 1.0, confidence=0),
        lambda: mu_of_normal_samples([1.0, 2], [1.0, 2], confidence=2),
        lambda: mu_of_cosines([0.1], 10, confidence=math.nan),
    ):
        with pytest.raises(InputError, match="confidence="):
            call()
