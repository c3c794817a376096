"""Intervals against what they promise: the share of samples in which they cover the truth, and slow references."""

import numpy as np
import pytest
from benchmarks.utility.slopes import slope_of
from hypothesis import given
from hypothesis import strategies as some
from scipy import stats

from tacit.errors import InputError
from tacit.evaluation.intervals import (
    CONFIDENCE,
    NORMAL,
    UNKNOWN,
    Estimate,
    as_share,
    complement,
    mean_of,
    quantile_of,
    ratio_of_means,
    share_of,
    worst_share_of,
)

SAMPLES = 1000


def coverage(estimates: list[Estimate], truth: float) -> float:
    return float(np.mean([each.low <= truth <= each.high for each in estimates]))


def as_promised(share: float) -> bool:
    """Whether so many of SAMPLES intervals is what chance allows of 95%; 90% is not, nor is 99.5%."""
    return 0.93 < share < 0.972


def test_mean_and_worst_decile_and_ratio_cover_as_promised() -> None:
    draw = np.random.default_rng(3)
    samples = [draw.gamma(4.0, 0.05, size=300) for _ in range(SAMPLES)]
    assert as_promised(coverage([mean_of(x) for x in samples], 0.2))
    at = stats.gamma.ppf(0.1, 4.0, scale=0.05)
    worst = stats.gamma.expect(lambda x: x, (4.0,), scale=0.05, ub=at) / 0.1
    assert as_promised(coverage([worst_share_of(x, 0.1) for x in samples], worst))
    pairs = [(0.1 * x + 0.02 * draw.standard_normal(300), x) for x in samples]
    assert as_promised(coverage([ratio_of_means(*pair) for pair in pairs], 0.1))


def test_a_slope_covers_where_the_spread_grows() -> None:
    draw = np.random.default_rng(11)
    along = draw.uniform(0, 10, (SAMPLES, 200))
    found = [slope_of(x, 2.0 - 0.3 * x + 0.2 * x * draw.standard_normal(200)) for x in along]
    assert as_promised(coverage(found, -0.3))
    with pytest.raises(InputError, match="no slope"):
        slope_of([1.0, 1.0, 1.0], [1.0, 2.0, 3.0])


def test_a_narrower_interval_would_not_cover() -> None:
    draw = np.random.default_rng(3)
    found = [mean_of(draw.standard_normal(50)) for _ in range(SAMPLES)]
    narrow = [Estimate(e.value, e.value - 0.7 * (e.value - e.low), e.value + 0.7 * (e.high - e.value)) for e in found]
    assert as_promised(coverage(found, 0.0)) and not as_promised(coverage(narrow, 0.0))


@pytest.mark.parametrize("q", [0.1, 0.5, 0.9])
def test_quantiles_cover_whatever_the_distribution(q: float) -> None:
    draw = np.random.default_rng(5)
    for distribution in (stats.norm(), stats.cauchy(), stats.lognorm(2.0)):
        found = [quantile_of(distribution.rvs(80, random_state=draw), q) for _ in range(500)]
        assert coverage(found, float(distribution.ppf(q))) > 0.93
        assert np.mean([np.isfinite(each.high - each.low) for each in found]) == 1


def test_quantiles_of_losses_without_end_are_among_the_values() -> None:
    losses = np.array([-np.inf, -np.inf, -np.inf, 0.1, 0.2, 0.3, 0.4, 0.5])
    for q in (0.1, 0.25, 0.375, 0.5, 0.75, 0.9):
        slow = min(value for value in losses if np.mean(losses <= value) >= q)
        assert quantile_of(losses, q).value == slow
    assert quantile_of([-np.inf, -np.inf], 0.5) == (-np.inf, -np.inf, np.inf)


def test_a_small_sample_has_no_end_for_an_extreme_quantile() -> None:
    assert quantile_of(np.arange(10.0), 0.01).low == -np.inf
    assert quantile_of(np.arange(10.0), 0.99).high == np.inf


@given(clients=some.integers(1, 400), data=some.data())
def test_a_share_without_noise_has_wilsons_interval(clients: int, data: some.DataObject) -> None:
    holds = data.draw(some.integers(0, clients))
    found = share_of(holds, clients)
    slow = stats.binomtest(holds, clients).proportion_ci(CONFIDENCE, method="wilson")
    assert found == pytest.approx((holds / clients, slow.low, slow.high), abs=1e-9)


def test_noise_widens_a_share_and_still_covers() -> None:
    draw = np.random.default_rng(7)
    clients, share, spread = 400, 0.3, 12.0
    noisy = draw.binomial(clients, share, SAMPLES) + spread * draw.standard_normal(SAMPLES)
    found = [share_of(float(x), clients, noise_variance=(spread / clients) ** 2) for x in noisy]
    assert as_promised(coverage(found, share))
    assert not as_promised(coverage([share_of(float(x), clients) for x in noisy], share))


def test_a_share_that_noise_pushes_outside_stays_a_share() -> None:
    for holds in (-50.0, 450.0):
        found = share_of(holds, 400, noise_variance=0.001)
        assert 0 <= found.low <= found.value <= found.high <= 1
    assert np.isnan(share_of(3.0, -1.0).value)


def test_the_worst_share_is_the_mean_of_the_lowest() -> None:
    values = np.random.default_rng(2).permutation(np.arange(200.0))
    assert worst_share_of(values, 0.1).value == pytest.approx(np.arange(20).mean())
    assert worst_share_of(values, 1.0).value == pytest.approx(values.mean())
    assert pytest.approx(1.96, abs=1e-3) == NORMAL


def test_too_little_to_speak_of_is_refused() -> None:
    with pytest.raises(InputError, match="1 clients have no spread"):
        mean_of([0.3])
    with pytest.raises(InputError, match="cannot be compared with"):
        ratio_of_means([0.1, 0.2], [0.0, 0.0])
    with pytest.raises(InputError, match="no share"):
        worst_share_of([0.1, 0.2], 0.0)


def test_of_a_share_what_cannot_be_is_cut_off() -> None:
    rare = np.r_[np.zeros(40), 0.02]
    found = mean_of(rare)
    assert found.low < 0 and as_share(found) == (found.value, 0.0, found.high)
    assert as_share(complement(found)) == complement(as_share(found))
    assert as_share(Estimate(-0.02, -0.1, 0.06)) == (0.0, 0.0, 0.06)
    assert as_share(UNKNOWN) is UNKNOWN
