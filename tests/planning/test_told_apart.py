"""Settings beside the chosen one: intervals as of one trial's clients, and what chance alone tells apart."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.evaluation.comparison_models import MODEL, ComparisonModels
from tacit.evaluation.intervals import ratio_of_means
from tacit.planning.told_apart import ComparedSetting, compared
from tacit.planning.tuning import METRIC, Choice, Measured, Setting, Trial, choose

WORDS = (10.0, 20.0, 15.0, 30.0, 25.0, 12.0, 18.0, 9.0)


def counts(right: list[float], words: tuple[float, ...] = WORDS) -> ComparisonModels:
    sums = {"top1_accuracy": tuple(right), "cross_entropy": tuple(5.0 * each for each in words)}
    return ComparisonModels(predicted=words, sums={MODEL: sums})


def trial(rate: float, right: list[float], **other: object) -> Trial:
    validated = counts(right)
    score = validated.value(MODEL, "top1_accuracy")
    assert score is not None
    setting = Setting(server_learning_rate=rate, quantile=0.5)
    return Trial(**{"setting": setting, "score": score, "clip_estimates": (1.0,), "validated": validated} | other)  # type: ignore[arg-type]


def settled(trials: list[Trial], by: Measured = "accuracy") -> dict[float, ComparedSetting]:
    found = compared(trials, choose(trials, by), by)
    return {each.setting.server_learning_rate: each for each in found}


RIGHT = st.lists(st.floats(0, 9), min_size=len(WORDS), max_size=len(WORDS))


@given(RIGHT, RIGHT)
def test_one_trial_each_is_the_interval_over_clients_of_the_difference(one: list[float], other: list[float]) -> None:
    found = settled([trial(1.0, one), trial(2.0, other)])
    (best,) = [each for each in found.values() if each.chosen]
    (rest,) = [each for each in found.values() if not each.chosen]
    ours, theirs = (one, other) if best.setting.server_learning_rate == 1.0 else (other, one)
    slow = ratio_of_means(np.array(theirs) - np.array(ours), WORDS)
    assert best.interval is not None and rest.against_chosen is not None and best.against_chosen is None
    assert best.interval.interval.low == pytest.approx(ratio_of_means(ours, WORDS).low, abs=1e-9)
    assert rest.against_chosen.interval.low == pytest.approx(slow.low, abs=1e-9)
    assert rest.against_chosen.interval.high == pytest.approx(slow.high, abs=1e-9)
    assert rest.against_chosen.interval.value <= 1e-12 and rest.told_apart is not None
    assert rest.to_record()["covers"] == "clients" and rest.to_record()["clients"] == len(WORDS)


def test_what_differs_by_chance_is_not_told_apart_and_what_differs_everywhere_is() -> None:
    noise = [1.0, -1.0, 0.5, -0.5, 1.5, -1.5, 0.2, 0.1]
    base = [3.0] * len(WORDS)
    found = settled(
        [
            trial(1.0, [each + off for each, off in zip(base, noise, strict=True)]),
            trial(2.0, base),
            trial(3.0, [0.1 * each for each in base]),
        ]
    )
    assert found[1.0].chosen and found[1.0].told_apart is None
    assert found[2.0].told_apart is False
    assert found[3.0].told_apart is True


def test_three_trials_of_a_setting_cover_seeds_too() -> None:
    tries = [trial(rate, [at + rate] * len(WORDS)) for rate in (1.0, 1.1) for at in (1.0, 4.0, 2.5)]
    found = settled(tries)
    assert {each.interval.covers for each in found.values() if each.interval} == {"seeds and clients"}
    assert found[1.0].trials == 3 and found[1.0].told_apart is not None
    alone = settled(tries[:1] + tries[3:4])
    one, three = alone[1.1].interval, found[1.1].interval
    assert one is not None and three is not None and one.covers == "clients"
    assert three.interval.high - three.interval.low > one.interval.high - one.interval.low, "seeds differ"


def test_what_was_not_counted_alike_has_no_interval() -> None:
    unlike = counts([1.0] * len(WORDS), tuple(each + 1 for each in WORDS))
    found = settled([trial(1.0, [2.0] * len(WORDS)), trial(2.0, [1.0] * len(WORDS), validated=unlike)])
    assert found[2.0].interval is not None and found[2.0].against_chosen is None and found[2.0].told_apart is None
    blind = settled([trial(1.0, [2.0] * len(WORDS), validated=None)])
    assert blind[1.0].interval is None and blind[1.0].to_record()["covers"] is None


def test_failed_settings_are_left_out_and_nothing_chosen_is_nothing_compared() -> None:
    tries = [trial(1.0, [2.0] * len(WORDS)), trial(2.0, [9.0] * len(WORDS), failure="diverged")]
    assert set(settled(tries)) == {1.0}
    assert compared(tries[1:], None, "accuracy") == ()


def test_by_cross_entropy_less_is_better() -> None:
    tries = [trial(1.0, [2.0] * len(WORDS), score=5.0), trial(2.0, [9.0] * len(WORDS), score=4.0)]
    found = compared(tries, choose(tries, "cross-entropy"), "cross-entropy")
    assert [each.chosen for each in found] == [False, True]
    assert found[0].against_chosen is not None, METRIC["cross-entropy"]
    assert isinstance(choose(tries, "cross-entropy"), Choice)
