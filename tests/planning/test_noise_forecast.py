"""Noise against signal: what it does not depend on, what it grows with, and the way back from a share."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.design.losses import workload_errors
from tacit.design.workload import Workload
from tacit.errors import InputError
from tacit.planning.noise_forecast import FACTOR, GOOD, LEAST, PULL, NoiseForecast, ratio_for, share_kept
from tacit.privacy import Guarantee, Independent, Participation
from tacit.privacy.strategy import Strategy

PARTICIPATION = Participation(rounds=60, min_separation=20, max_participations=3)
positive = st.floats(0.01, 100)


FRESH = Independent()


def noise_forecast(
    noise: float = 1.0, clip: float = 1.0, rate: float = 1.0, goal: int = 20, strategy: Strategy | None = FRESH
) -> NoiseForecast:
    guarantee = Guarantee(
        participation=PARTICIPATION,
        strategy=strategy,
        clip_norm=clip,
        noise_multiplier=noise if strategy is not None else 0.0,
    )
    return NoiseForecast(guarantee=guarantee, report_goal=goal, learning_rate=rate, parameters=80_000)


def test_the_formula_by_hand() -> None:
    found = noise_forecast(noise=2.0, clip=0.5, rate=8.0, goal=40)
    assert found.reach == 4.0 and found.step == pytest.approx(40.0)
    error = workload_errors(Independent(), found.server, 60, PULL * 4.0).rms
    assert found.noise == pytest.approx(4.0 * error * 2.0 / 40)


@given(noise=positive, clip=positive, rate=positive, by=positive)
def test_a_larger_clip_norm_at_a_smaller_rate_changes_nothing(
    noise: float, clip: float, rate: float, by: float
) -> None:
    one, other = noise_forecast(noise, clip, rate), noise_forecast(noise, clip * by, rate / by)
    assert other.ratio == pytest.approx(one.ratio) and other.noisiness == one.noisiness


@given(noise=positive, by=st.floats(1.01, 100))
def test_more_noise_is_never_better(noise: float, by: float) -> None:
    less, more = noise_forecast(noise), noise_forecast(noise * by)
    assert more.ratio > less.ratio and more.share_kept <= less.share_kept
    order = ("quiet", "noisy", "too noisy")
    assert order.index(more.noisiness) >= order.index(less.noisiness)


@given(noise=positive, goal=st.integers(1, 1000), by=st.integers(1, 50))
def test_noise_in_proportion_to_the_report_goal_is_the_same(noise: float, goal: int, by: int) -> None:
    assert noise_forecast(noise * by, goal=goal * by).ratio == pytest.approx(noise_forecast(noise, goal=goal).ratio)


@given(noise=positive, rate=st.floats(0.05, 0.99))
def test_a_lower_rate_is_quieter_and_the_signal_holds_a_little_less(noise: float, rate: float) -> None:
    slow, fast = noise_forecast(noise, rate=rate), noise_forecast(noise)
    assert rate * fast.ratio < slow.ratio < fast.ratio


@given(reach=st.floats(0.01, 1e6), by=st.floats(1.1, 100), nesterov=st.booleans(), momentum=st.sampled_from([0.0, 0.9]))
def test_however_far_a_round_reaches_there_is_more_noise_in_the_model(
    reach: float, by: float, nesterov: bool, momentum: float
) -> None:
    server = Workload(momentum=momentum, nesterov=nesterov and momentum > 0)
    near, far = (replace(noise_forecast(rate=each), server=server).noise for each in (reach, reach * by))
    assert near < far < float("inf")


@given(noise=positive, parameters=st.integers(1_000, 10**7))
def test_a_larger_network_bears_less_and_one_of_the_size_that_works_works(noise: float, parameters: int) -> None:
    found = replace(noise_forecast(noise), parameters=parameters)
    assert replace(found, parameters=2 * parameters).ratio > found.ratio
    if found.working_parameters > 100:
        smaller = replace(found, parameters=found.working_parameters)
        assert smaller.share_kept >= GOOD * (1 - 1e-3)


@given(share=st.floats(0.001, 0.999))
def test_the_ratio_for_a_share_is_the_way_back(share: float) -> None:
    assert share_kept(ratio_for(share)) == pytest.approx(share)


@given(noise=positive)
def test_what_would_work_works(noise: float) -> None:
    found = noise_forecast(noise)
    quiet = Guarantee.for_zcdp(found.working_zcdp, participation=PARTICIPATION, strategy=Independent(), clip_norm=1.0)
    assert replace(found, guarantee=quiet).share_kept == pytest.approx(GOOD)
    larger = found.working_population(100_000) / 100_000  # so many times the report goal
    assert noise_forecast(noise * 1000, goal=round(20_000 * larger)).ratio <= ratio_for(GOOD) * 1.01


def test_the_interval_holds_what_is_expected_and_its_upper_end_decides() -> None:
    for noise in (0.1, 1.0, 3.0, 10.0):
        found = noise_forecast(noise)
        low, high = found.interval
        assert low <= found.share_kept <= high
        assert (found.noisiness == "too noisy") == (high < LEAST)
        assert high == share_kept(found.ratio / FACTOR)


def test_without_noise_all_is_kept() -> None:
    found = noise_forecast(strategy=None)
    assert (found.noise, found.ratio, found.share_kept, found.noisiness) == (0.0, 0.0, 1.0, "quiet")


@pytest.mark.parametrize("share", [0.0, 1.0, -1.0, 2.0])
def test_a_share_that_is_none_is_refused(share: float) -> None:
    with pytest.raises(InputError, match="is not between 0 and 1"):
        ratio_for(share)
