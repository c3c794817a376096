"""The best threshold between two samples: never above the truth more often than said, whatever law and choice."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.privacy.empirical.mechanisms import MECHANISMS, Known, coverage_allows, gaussian

from tacit.errors import InputError
from tacit.privacy.empirical.error_rates import mu_shown, rate_at_most
from tacit.privacy.empirical.thresholds import How, epsilon_by_threshold, mu_by_threshold

HOWS: list[How] = ["split", "corrected"]
REPETITIONS = [60, pytest.param(2000, marks=pytest.mark.long)]
COVERAGE = [(0.8, 60)] + [pytest.param(each, 2000, marks=pytest.mark.long) for each in (0.8, 0.95)]
scores = st.lists(st.floats(-5, 5), min_size=4, max_size=40)


@pytest.mark.parametrize(("confidence", "repetitions"), COVERAGE)
@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
def test_bounds_lie_below_the_truth(mechanism: Known, how: How, confidence: float, repetitions: int) -> None:
    rng = np.random.default_rng(1)
    below = []
    for _ in range(repetitions):
        absent, present = mechanism.draw(rng, 300)
        epsilon = epsilon_by_threshold(absent, present, 1e-3, confidence=confidence, how=how).lower
        mu = mu_by_threshold(absent, present, confidence=confidence, how=how).lower
        below.append([epsilon <= mechanism.epsilon(1e-3), mu <= mechanism.mu])
    assert all(coverage_allows(each, confidence) for each in np.array(below).T)


@pytest.mark.parametrize("repetitions", REPETITIONS)
@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("tied", [False, True])
def test_scores_that_know_nothing_show_nothing(how: How, tied: bool, repetitions: int) -> None:
    rng = np.random.default_rng(2)
    above = []
    for _ in range(repetitions):
        drawn = rng.normal(size=(2, 200))
        absent, present = np.round(drawn) if tied else drawn
        above.append(mu_by_threshold(absent, present, how=how).lower > 0)
        assert epsilon_by_threshold(absent, present, 1e-5, how=how).lower <= 3
    assert np.mean(above) <= 0.05


def test_an_uncorrected_threshold_shows_what_is_not_there() -> None:
    """The threshold that looks best, judged by the scores that chose it: so the tests above have power."""
    rng, confidence, number = np.random.default_rng(3), 0.8, 300
    bound = rate_at_most(np.arange(number + 1), number, (1 - confidence) / 2)
    below = []
    for _ in range(300):
        absent, present = np.sort(gaussian(1.0).draw(rng, number), axis=1)
        above, missed = number - 1 - np.arange(number), np.searchsorted(present, absent, side="right")
        below.append(mu_shown(bound[above], bound[missed]).max() <= 1.0)
    assert not coverage_allows(np.array(below), confidence)


@pytest.mark.parametrize("how", HOWS)
def test_half_of_the_noise_is_missed_and_the_promised_noise_is_not(how: How) -> None:
    absent, present = gaussian(1.0).draw(np.random.default_rng(4), 2000)
    assert 0.7 < mu_by_threshold(absent, present, how=how).lower < 1
    assert mu_by_threshold(absent / 2, present / 2 + 0.5, how=how).lower > 1


@pytest.mark.parametrize("how", HOWS)
def test_more_confidence_shows_less_and_more_scores_show_more(how: How) -> None:
    absent, present = gaussian(1.5).draw(np.random.default_rng(5), 4000)
    # At each confidence another threshold may be chosen; so far apart ones say what the choice does not.
    unsure, sure = (mu_by_threshold(absent, present, confidence=each, how=how).lower for each in (0.5, 0.9999))
    assert unsure > sure > mu_by_threshold(absent[:500], present[:500], confidence=0.9999, how=how).lower


@given(scores, scores, st.floats(0.01, 3))
@settings(max_examples=20, deadline=None)
def test_only_the_order_counts(absent: list[float], present: list[float], stretched: float) -> None:
    both = np.sort(np.unique(absent + present))
    mapped = dict(zip(both, np.cumsum(np.arange(1, len(both) + 1) * stretched), strict=True))
    one, other = [mapped[each] for each in absent], [mapped[each] for each in present]
    for how in HOWS:
        try:
            found = mu_by_threshold(absent, present, how=how)
        except InputError:  # sorted by chance, and so they are when mapped
            continue
        moved = mu_by_threshold(one, other, how=how)
        assert moved.lower == found.lower and moved.threshold == mapped[found.threshold]


@given(scores, scores, st.floats(0, 5))
@settings(max_examples=20, deadline=None)
def test_higher_scores_with_the_canary_show_no_less(absent: list[float], present: list[float], more: float) -> None:
    raised = [each + more for each in present]
    for delta in (0.0, 0.01):
        assert (
            epsilon_by_threshold(absent, raised, delta, confidence=0.5).lower
            >= epsilon_by_threshold(absent, present, delta, confidence=0.5).lower
        )


def test_the_rates_beside_a_bound_are_those_that_give_it() -> None:
    absent, present = gaussian(2.0).draw(np.random.default_rng(6), 500)
    found = mu_by_threshold(absent, present)
    assert found.lower == mu_shown(found.false_positive, found.false_negative)
    assert found.false_positive > (absent > found.threshold).mean()
    assert found.false_negative > (present <= found.threshold).mean()


def test_infinite_scores_are_compared() -> None:
    absent, present = [-math.inf] * 50, [math.inf] * 50
    assert mu_by_threshold(absent, present).lower > 1


def test_sorted_samples_cannot_be_split() -> None:
    absent, present = gaussian(1.0).draw(np.random.default_rng(7), 100)
    for one, other, said in (np.sort(absent), present, "absent"), (absent, -np.sort(-present), "present"):
        with pytest.raises(InputError, match=f"{said} are sorted.*how='corrected'"):
            mu_by_threshold(one, other, how="split")
        assert mu_by_threshold(one, other).lower == mu_by_threshold(absent, present).lower


def test_bad_input_is_refused() -> None:
    for call in mu_by_threshold, lambda *scores, **named: epsilon_by_threshold(*scores, 0.1, **named):
        with pytest.raises(InputError, match="absent has 0 scores"):
            call([], [1.0])
        with pytest.raises(InputError, match="present has 1 scores, and a bound needs at least 2"):
            call([1.0, 2.0], [1.0], how="split")
        with pytest.raises(InputError, match=r"present\[0\]=nan"):
            call([1.0], [math.nan])
        with pytest.raises(InputError, match="confidence=1"):
            call([1.0], [1.0], confidence=1)
        with pytest.raises(InputError, match="how='best'"):
            call([1.0], [1.0], how="best")
    with pytest.raises(InputError, match="delta=1"):
        epsilon_by_threshold([1.0], [1.0], 1)
