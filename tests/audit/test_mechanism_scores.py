"""What an auditor's scores show of noise whose law is known: bounds that hold as often as they say, and find faults."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from tacit.audit.mechanism.case import Case, Known
from tacit.audit.mechanism.scores import audit, runs_needed
from tacit.audit.mechanism.streams import NoisedSums
from tacit.errors import InputError
from tacit.privacy import Guarantee
from tacit.privacy.participation import Participation
from tacit.privacy.strategy import PUBLISHED_BLT

MU = 2.0


def normal(seed: int, *shape: int) -> NDArray[np.float64]:
    return np.random.default_rng(seed).normal(size=shape)


def gaussian(deviation: float = 1.0) -> Case:
    """One number a run: noise of this deviation, and MU more where the canary is."""

    def play(present: NDArray[np.bool_], seed: int) -> NDArray[Any]:
        return deviation * normal(seed, 1, len(present)) + MU * present

    known = Known(weights=np.ones(1), moved=MU)
    return Case(subject="gaussian", claim=MU, rows=1, play=play, threat_model="sees it", known=known)


def test_bounds_are_above_the_truth_as_seldom_as_they_say() -> None:
    wrong = sum(audit(gaussian(), runs=1500, confidence=0.8, seed=seed).broken for seed in range(150))
    assert wrong <= binom.ppf(0.9999, 150, 0.2)


def test_bounds_are_tight() -> None:
    shown = [audit(gaussian(), runs=100_000, confidence=0.95, seed=seed).lower for seed in range(5)]
    assert min(shown) > 0.97 * MU


def test_a_little_less_noise_is_found_and_stops_a_sequential_test() -> None:
    alarms = [audit(gaussian(0.9), runs=4000, confidence=0.99, seed=seed).figures["alarm_after"] for seed in range(60)]
    assert all(alarm is not None and alarm <= 2000 for alarm in alarms)
    kept = [audit(gaussian(), runs=4000, confidence=0.99, seed=seed).figures["alarm_after"] for seed in range(60)]
    assert sum(alarm is not None for alarm in kept) <= binom.ppf(0.9999, 60, 0.01)


def test_noise_that_nobody_named_is_found_where_it_hides() -> None:
    """The second row has the noise of the first and not its canary: their difference has none."""

    def play(present: NDArray[np.bool_], seed: int) -> NDArray[Any]:
        noise = normal(seed, len(present))
        return np.array([noise + MU * present, noise])

    case = replace(gaussian(), rows=2, play=play, known=Known(weights=np.array([1.0, 0.0]), moved=MU))
    assert audit(case, runs=4000, confidence=0.99, seed=1).lower > 5


def test_runs_that_share_noise_are_no_runs() -> None:
    def play(present: NDArray[np.bool_], seed: int) -> NDArray[Any]:
        return np.repeat(normal(seed, len(present) // 4), 4)[None] + MU * present

    with pytest.raises(InputError, match=r"gaussian: runs that are 1 apart have correlation 0\.[45]"):
        audit(replace(gaussian(), play=play), runs=4000, confidence=0.99, seed=1)


def test_coordinates_batches_and_seeds_of_shipped_noise_share_nothing() -> None:
    limits = Participation(rounds=4, min_separation=2, max_participations=2)
    guarantee = Guarantee(participation=limits, strategy=PUBLISHED_BLT["b400"], clip_norm=1.0, noise_multiplier=1.0)
    nothing = np.zeros((4, 40_000), np.float32)
    one, again, other = (NoisedSums(guarantee)(nothing, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, again)
    far = 4.5 / np.sqrt(40_000)
    for row, elsewhere in zip(one, other, strict=True):
        assert abs(np.corrcoef(row, elsewhere)[0, 1]) < far
        for lag in (1, 2, 7, 1 << 14):
            assert abs(np.corrcoef(row[lag:], row[:-lag])[0, 1]) < 4.5 / np.sqrt(40_000 - lag)


def test_what_is_no_number_tells_all_of_whom_it_comes_with() -> None:
    def play(present: NDArray[np.bool_], seed: int) -> NDArray[Any]:
        return np.where(present, np.nan, normal(seed, 1, len(present)))

    assert audit(replace(gaussian(), play=play), runs=4000, confidence=0.99, seed=1).broken


def test_scores_of_any_law() -> None:
    """Laplace noise of scale 1: epsilon is MU, and no mu is claimed that its tail does not keep."""

    def play(present: NDArray[np.bool_], seed: int) -> NDArray[Any]:
        return np.random.default_rng(seed).laplace(size=(1, len(present))) + MU * present

    case = replace(gaussian(), play=play)
    shown = audit(case, runs=20_000, confidence=0.99, seed=1, law="any")
    # At the middle both errors are e^-1 / 2, so that mu is 1.8; no threshold shows more than 2.3.
    assert 1.6 < shown.lower < 2.3


def test_too_few_runs_and_other_shapes_are_refused() -> None:
    needed = runs_needed(MU, confidence=0.99)
    with pytest.raises(InputError, match=f"give at least {needed:,}"):
        audit(gaussian(), runs=needed - 1, confidence=0.99, seed=1)
    assert not audit(gaussian(), runs=needed, confidence=0.99, seed=1).broken
    with pytest.raises(InputError, match="2 rows were announced"):
        audit(replace(gaussian(), rows=2), runs=4000, confidence=0.99, seed=1)
    with pytest.raises(InputError, match="gaussian claims mu=inf"):
        audit(replace(gaussian(), claim=float("inf")), runs=4000, confidence=0.99, seed=1)


def test_so_many_runs_tell_a_tenth_more_as_often_as_not() -> None:
    """At `runs_needed` the bound of a promise is a tenth below it, on average."""
    needed = runs_needed(MU, confidence=0.99)
    shown = [audit(gaussian(), runs=needed, confidence=0.99, seed=seed).lower for seed in range(100)]
    assert np.mean(shown) == pytest.approx(0.9 * MU, rel=0.02)
