"""Evidence at any time: false alarms are as rare as said whenever one looks, and a fault of a tenth is found."""

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr
from tests.privacy.empirical.mechanisms import MECHANISMS, Known

from tacit.errors import InputError
from tacit.privacy.empirical import sequential
from tacit.privacy.empirical.sequential import (
    Evidence,
    evidence_against_mu,
    evidence_by_threshold,
    evidence_of_larger_shift,
    evidence_of_less_noise,
    first_alarm,
)

Rng = np.random.Generator
RUNS = 2000  # scores, at most, after which a fault of a tenth must be found
KEPT: dict[str, Callable[[Rng], Evidence]] = {
    "just the noise": lambda rng: evidence_of_less_noise(rng.normal(size=RUNS)),
    "another mean": lambda rng: evidence_of_less_noise(0.5 + rng.normal(size=RUNS)),
    "just the shift": lambda rng: evidence_of_larger_shift(2 + rng.normal(size=RUNS), 2.0),
    "a smaller shift": lambda rng: evidence_of_larger_shift(1 + rng.normal(size=RUNS), 2.0),
    "just mu": lambda rng: evidence_against_mu(rng.normal(size=RUNS // 2), 2 + rng.normal(size=RUNS // 2), 1.0, 2.0),
    "no privacy lost": lambda rng: evidence_against_mu(rng.normal(size=RUNS // 2), rng.normal(size=RUNS // 2), 0, 0.1),
}


def alarms(evidence: Callable[[Rng], Evidence], repetitions: int, seed: int = 1) -> list[int | None]:
    rng = np.random.default_rng(seed)
    return [first_alarm(evidence(rng), confidence=0.99) for _ in range(repetitions)]


@pytest.mark.parametrize("repetitions", [100, pytest.param(2000, marks=pytest.mark.long)])
@pytest.mark.parametrize("way", KEPT)
def test_false_alarms_are_rare(way: str, repetitions: int) -> None:
    false = sum(alarm is not None for alarm in alarms(KEPT[way], repetitions))
    assert false <= 0.01 * repetitions + 3 * math.sqrt(0.01 * 0.99 * repetitions)


@pytest.mark.parametrize("repetitions", [30, pytest.param(500, marks=pytest.mark.long)])
def test_a_tenth_too_little_noise_is_found_in_2000_scores(repetitions: int) -> None:
    found = alarms(lambda rng: evidence_of_less_noise(0.9 * rng.normal(size=RUNS)), repetitions)
    assert sum(each is not None for each in found) >= 0.98 * repetitions
    assert np.median([each or RUNS for each in found]) < 650


def test_a_shift_a_tenth_too_large_is_found() -> None:
    found = alarms(lambda rng: evidence_of_larger_shift(2.2 + rng.normal(size=RUNS), 2.0), 30)
    assert all(found) and np.median([each or RUNS for each in found]) < 350


def test_by_a_threshold_the_same_takes_more_and_knows_no_law() -> None:
    """Of a mu of 3, where bits say most: about 900 pairs."""
    pairs = 4 * RUNS

    def evidence(rng: Rng) -> Evidence:
        return evidence_against_mu(0.9 * rng.normal(size=pairs), 3 + 0.9 * rng.normal(size=pairs), 1.5, 3.0)

    found = alarms(evidence, 20)
    assert all(found) and 600 < np.median([each or pairs for each in found]) < 1400


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
@pytest.mark.parametrize("delta", [0.0, 1e-3, 0.2])
def test_no_bet_gains_from_a_mechanism_that_keeps_its_promise(mechanism: Known, delta: float) -> None:
    """The mean of the wealth after one pair, exactly from what the rates are; and it gains from a smaller promise."""
    if math.isinf(epsilon := mechanism.epsilon(delta) if delta else math.inf):
        epsilon = 30.0
    absent, present = mechanism.draw(np.random.default_rng(2), 100_000)
    threshold = 0.5
    without, within = (absent > threshold).mean(), (present > threshold).mean()

    def mean_wealth(promised: float) -> float:
        each = itertools.product([(1.0, without), (0.0, 1 - without)], [(1.0, within), (0.0, 1 - within)])
        return sum(
            p * q * math.exp(evidence_by_threshold([x], [y], threshold, epsilon=promised, delta=delta)[0])
            for (x, p), (y, q) in each
        )

    assert mean_wealth(epsilon) <= 1 + 0.003
    if (one := (within - delta) / without) > 1:
        assert mean_wealth(math.log(one) * 0.5) > 1


@given(st.lists(st.floats(-4, 4), min_size=1, max_size=20))
@settings(max_examples=50, deadline=None)
def test_more_noise_and_less_shift_are_less_evidence(scores: list[float]) -> None:
    noise = np.array(scores)
    assert (evidence_of_less_noise(1.5 * noise) <= evidence_of_less_noise(noise)).all()
    assert (evidence_of_larger_shift(noise - 0.5, 1.0) <= evidence_of_larger_shift(noise, 1.0)).all()
    assert (evidence_of_less_noise(noise[:1]) == evidence_of_less_noise(noise)[:1]).all()


def test_evidence_is_a_mean_of_likelihood_ratios() -> None:
    drawn = np.random.default_rng(3).normal(size=5)
    ratios = [math.prod(math.exp(-(x**2) / 2 * (r**-2 - 1)) / r for x in drawn) for r in sequential.NOISE_LEFT]
    assert evidence_of_less_noise(drawn)[-1] == pytest.approx(math.log(np.mean(ratios)), rel=1e-9)
    ratios = [
        math.prod(math.exp((k - 1) * 2 * (x - 2) - ((k - 1) * 2) ** 2 / 2) for x in drawn) for k in sequential.TOO_FAR
    ]
    assert evidence_of_larger_shift(drawn, 2.0)[-1] == pytest.approx(math.log(np.mean(ratios)), rel=1e-9)


def test_against_mu_is_its_delta_at_that_epsilon() -> None:
    absent, present = np.random.default_rng(4).normal(size=(2, 50))
    delta = 2 * float(ndtr(0.5)) - 1  # of mu = 1 at epsilon = 0
    by_mu, by_delta = (
        evidence_against_mu(absent, present, 0.2, 1.0),
        evidence_by_threshold(absent, present, 0.2, epsilon=0.0, delta=delta),
    )
    assert by_mu == pytest.approx(by_delta, rel=1e-9)


def test_an_alarm_is_the_first() -> None:
    assert first_alarm(np.array([0.0, 5.0, -3.0, 9.0]), confidence=0.99) == 2
    assert first_alarm(np.array([0.0, 4.0]), confidence=0.99) is None
    assert first_alarm(np.array([math.log(20)]), confidence=0.95) == 1


def test_looking_often_without_evidence_alarms_far_too_often() -> None:
    """A test of a fixed size, looked at after each score: so the false alarms above are few for a reason."""
    rng = np.random.default_rng(5)
    sums = np.cumsum(np.square(rng.normal(size=(200, RUNS))), axis=1)
    number = np.arange(1, RUNS + 1)
    deviations = (sums - number) / np.sqrt(2 * number)
    assert (deviations[:, 20:] < -2.326).any(axis=1).mean() > 0.03


def test_bad_input_is_refused() -> None:
    with pytest.raises(InputError, match="noise has 0 scores"):
        evidence_of_less_noise([])
    with pytest.raises(InputError, match=r"present\[0\]=nan"):
        evidence_of_larger_shift([math.nan], 1.0)
    with pytest.raises(InputError, match="mu=0 must be finite and above 0"):
        evidence_of_larger_shift([1.0], 0)
    with pytest.raises(InputError, match="mu=-1 must be finite and above 0"):
        evidence_against_mu([1.0], [1.0], 0.5, -1)
    with pytest.raises(InputError, match=r"2 scores without the canary, 1 with it.*give pairs"):
        evidence_by_threshold([1.0, 2.0], [1.0], 0.5, epsilon=1.0, delta=0.0)
    with pytest.raises(InputError, match="threshold=nan"):
        evidence_by_threshold([1.0], [1.0], math.nan, epsilon=1.0, delta=0.0)
    with pytest.raises(InputError, match="epsilon=-1"):
        evidence_by_threshold([1.0], [1.0], 0.5, epsilon=-1, delta=0.0)
    with pytest.raises(InputError, match="delta=1"):
        evidence_by_threshold([1.0], [1.0], 0.5, epsilon=1.0, delta=1)
    with pytest.raises(InputError, match="confidence=1"):
        first_alarm(np.zeros(1), confidence=1)
