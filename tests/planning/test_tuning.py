"""Which of a few trials goes to production: by the score, never a failed one, with a clip norm that was estimated."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import InputError
from tacit.planning.tuning import (
    Choice,
    Measured,
    Setting,
    Trial,
    at_the_edge,
    choose,
    fixed_clip_norm,
    grid,
    scaled_noise_multiplier,
    significant,
    trial_restarts,
)

settings = st.builds(
    Setting, server_learning_rate=st.sampled_from([0.5, 1.0, 2.0]), quantile=st.sampled_from([0.3, 0.5, 0.8])
)
trials = st.builds(
    Trial,
    setting=settings,
    score=st.one_of(st.just(math.nan), st.sampled_from([0.1, 0.2]), st.floats(0, 9)),
    clip_estimates=st.lists(st.floats(0.01, 10), min_size=1, max_size=12).map(tuple),
    failure=st.sampled_from([None, None, None, "no progress"]),
)


def obvious_choice(tried: Sequence[Trial], by: Measured) -> Setting | None:
    """One setting after another, keeping the better; written without looking at `choose`."""
    best: tuple[float, Setting] | None = None
    for rate in (0.5, 1.0, 2.0):
        for quantile in (0.3, 0.5, 0.8):
            setting = Setting(server_learning_rate=rate, quantile=quantile)
            same = [each for each in tried if each.setting == setting]
            if not same or any(each.failure or math.isnan(each.score) for each in same):
                continue
            score = math.fsum(each.score for each in same) / len(same)
            if best is None or (score > best[0] if by == "accuracy" else score < best[0]):
                best = score, setting
    return None if best is None else best[1]


@given(tried=st.lists(trials, max_size=14), by=st.sampled_from(["accuracy", "cross-entropy"]))
def test_the_choice_is_the_obvious_one(tried: list[Trial], by: Measured) -> None:
    found = choose(tried, by)
    assert (found and found.setting) == obvious_choice(tried, by)
    if found is not None:
        same = [each for each in tried if each.setting == found.setting]
        assert found.trials == len(same) and all(each.failure is None for each in same)
        assert found.clip_norm == fixed_clip_norm([each.clip_estimates for each in same])
        lows, highs = zip(*((min(each.clip_estimates), max(each.clip_estimates)) for each in same), strict=True)
        assert min(lows) * 0.99 <= found.clip_norm <= max(highs) * 1.01, "an estimate, to three digits"
        assert found.drift >= 1


@given(tried=st.lists(trials, max_size=10), by=st.sampled_from(["accuracy", "cross-entropy"]), draw=st.randoms())
def test_the_order_of_the_trials_does_not_matter(tried: list[Trial], by: Measured, draw: object) -> None:
    shuffled = list(tried)
    draw.shuffle(shuffled)  # type: ignore[attr-defined]
    assert choose(shuffled, by) == choose(tried, by)


def test_one_failed_seed_rules_its_setting_out() -> None:
    good, wild = (Setting(server_learning_rate=rate, quantile=0.5) for rate in (1.0, 4.0))
    tried = [
        Trial(setting=good, score=0.1, clip_estimates=(1.0,)),
        Trial(setting=wild, score=0.3, clip_estimates=(1.0,)),
        Trial(setting=wild, score=0.3, clip_estimates=(1.0,), failure="clip norm exploding"),
    ]
    found = choose(tried, "accuracy")
    assert found is not None and found.setting == good
    assert choose(tried[1:], "accuracy") is None


def test_the_clip_norm_is_the_median_of_the_last_quarter() -> None:
    rising = [0.01] * 6 + [2.0, 3.0]
    assert fixed_clip_norm([rising]) == 2.5
    assert fixed_clip_norm([rising, [9.0] * 6 + [1.0, 1.0]]) == 1.5
    assert fixed_clip_norm([[0.123456]]) == 0.123
    with pytest.raises(InputError, match="no round has estimated a clip norm"):
        fixed_clip_norm([[]])


def test_estimates_that_still_move_are_told() -> None:
    setting = Setting(server_learning_rate=1.0, quantile=0.5)
    for last, settled in (((1.0, 1.2), True), ((1.0, 2.0), False)):
        found = choose([Trial(setting=setting, score=0.1, clip_estimates=(0.1,) * 6 + last)], "accuracy")
        assert found is not None and found.settled is settled and found.drift == last[1] / last[0]


def test_noise_grows_with_the_report_goal_as_in_the_paper() -> None:
    """arXiv:2305.18465, Section 2.2: "report goal of 500 and noise multiplier of 0.54, versus ... 6500 and ... 7"."""
    assert scaled_noise_multiplier(0.54, report_goal=500, to=6500) == 7.02
    assert round(scaled_noise_multiplier(7, report_goal=6500, to=500), 2) == 0.54


@given(st.floats(1e-3, 50), st.integers(1, 10_000), st.integers(1, 10_000))
def test_the_noise_on_the_mean_stays(noise: float, small: int, large: int) -> None:
    scaled = scaled_noise_multiplier(noise, report_goal=small, to=large)
    assert math.isclose(scaled / large, noise / small, rel_tol=1e-8)


def test_trees_restart_where_the_paper_has_it_or_early_enough() -> None:
    assert trial_restarts(2_000) == (128, 1152)
    assert trial_restarts(2_177) == (128, 1152, 2176)
    assert trial_restarts(200) == (50, 100)
    assert trial_restarts(2) == (1,)
    assert trial_restarts(200, given=(20, 150, 900)) == (20, 150)
    assert all(0 < at < rounds for rounds in range(2, 3_000) for at in trial_restarts(rounds))
    with pytest.raises(InputError, match="at least 2 rounds"):
        trial_restarts(1)


def test_the_grid_has_each_pair_once_in_order() -> None:
    found = grid([2.0, 0.5, 2.0], [0.5, 0.3])
    assert [(each.server_learning_rate, each.quantile) for each in found] == [
        (0.5, 0.3),
        (0.5, 0.5),
        (2.0, 0.3),
        (2.0, 0.5),
    ]


@pytest.mark.parametrize(
    ("rates", "quantiles", "message"),
    [
        ([], [0.5], "the list of server learning rates is empty"),
        ([1.0], [], "the list of quantiles is empty"),
        ([0.0], [0.5], "a server learning rate of 0 is no step"),
        ([-1.0], [0.5], "a server learning rate of -1 is no step"),
        ([math.inf], [0.5], "a server learning rate of inf is no step"),
        ([math.nan], [0.5], "a server learning rate of nan is no step"),
        ([1.0], [0.0], "quantile 0 is no share of clients"),
        ([1.0], [1.0], "quantile 1 is no share of clients"),
        ([1.0], [50.0], "quantile 50 is no share of clients"),
    ],
)
def test_what_cannot_be_tried_is_refused(rates: list[float], quantiles: list[float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        grid(rates, quantiles)


def test_a_choice_at_the_edge_says_so() -> None:
    tried = [Trial(setting=each, score=0.0, clip_estimates=(1.0,)) for each in grid([0.5, 1.0, 2.0], [0.5])]

    def edge(rate: float) -> tuple[str, ...]:
        setting = Setting(server_learning_rate=rate, quantile=0.5)
        return at_the_edge(Choice(setting=setting, score=0.0, trials=1, clip_norm=1.0), tried)

    assert edge(0.5) == ("the smallest server learning rate",)
    assert edge(1.0) == ()
    assert edge(2.0) == ("the largest server learning rate",)


@given(st.floats(1e-6, 1e6), st.integers(1, 15))
def test_significant_digits(value: float, digits: int) -> None:
    found = significant(value, digits)
    assert np.isclose(found, value, rtol=0.5 * 10.0 ** (1 - digits) * (1 + 1e-9), atol=0)
    assert significant(found, digits) == found
