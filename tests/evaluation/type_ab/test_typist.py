"""Who types: people drawn from a population, the random numbers of a word, and plausible misspellings."""

from dataclasses import replace

import numpy as np
import pytest
from benchmarks.keyboard.typist_fit import LEFT_WRONG, WORDS_A_MINUTE, fit, moved
from hypothesis import given
from hypothesis import strategies as some
from scipy import stats

from tacit.errors import InputError
from tacit.evaluation.type_ab.measures import Tally
from tacit.evaluation.type_ab.misspelling import SHORTEST, misspellings
from tacit.evaluation.type_ab.typist import LOOKING, NOTICING, POPULATION, Typist, flawless, generator, key_of, shifted
from tacit.keyboard.touch import LAYOUTS, TouchModel


def test_people_differ_as_much_as_the_population_says() -> None:
    people = [POPULATION.person(3, f"user {number}") for number in range(800)]

    def agrees(values: list[float], spread: float) -> bool:
        return bool(stats.kstest(np.array(values) / spread, "norm").pvalue > 0.01)

    paces = [np.log(each.interval / POPULATION.interval) for each in people]
    precision = [np.log(each.touch.deviation_x / POPULATION.touch.deviation_x) for each in people]
    odds = {
        name: [np.log(p / (1 - p)) for p in (getattr(each, name) for each in [POPULATION, *people])]
        for name in (*LOOKING, *NOTICING)
    }
    assert agrees(paces, POPULATION.spread_interval) and not agrees(paces, 1.3 * POPULATION.spread_interval)
    assert agrees(precision, POPULATION.spread_precision) and not agrees(precision, 1.3 * POPULATION.spread_precision)
    for name, (middle, *each) in odds.items():
        spread = POPULATION.spread_looking if name in LOOKING else POPULATION.spread_noticing
        assert agrees([one - middle for one in each], spread)
        assert not agrees([one - middle for one in each], 1.3 * spread)
    assert abs(np.corrcoef(paces, odds["notice"][1:])[0, 1]) < 0.12


def test_a_person_is_the_same_for_a_seed_and_a_name_and_is_nobody_else() -> None:
    assert POPULATION.person(1, "ann") == POPULATION.person(1, "ann")
    assert POPULATION.person(1, "ann") != POPULATION.person(2, "ann")
    assert POPULATION.person(1, "ann") != POPULATION.person(1, "bob")
    assert POPULATION.person(1, "ann").person(1, "ann") == POPULATION.person(1, "ann")  # a person has no spread
    assert flawless(TouchModel()).person(1, "ann") == flawless(TouchModel())


def test_a_word_s_random_numbers_follow_from_its_place_alone() -> None:
    key = key_of(1, "ann")
    there = generator(key, 3, 5).random(4)
    generator(key, 3, 4).random(10_000)
    assert np.array_equal(there, generator(key, 3, 5).random(4))
    many = np.array(
        [generator(key_of(seed, "ann"), s, w).random(2) for seed in (1, 2) for s in range(20) for w in range(20)]
    )
    assert len(np.unique(many)) == many.size
    assert stats.kstest(many.ravel(), "uniform").pvalue > 0.01
    assert abs(np.corrcoef(many[:-1, 0], many[1:, 0])[0, 1]) < 0.12


@given(some.floats(0, 1), some.floats(-20, 20))
def test_shifted_odds_stay_probabilities_and_go_back(probability: float, log_odds: float) -> None:
    there = shifted(probability, log_odds)
    assert 0 <= there <= 1
    assert (there >= probability) if log_odds >= 0 else (there <= probability)
    if 1e-4 < probability < 1 - 1e-4 and abs(log_odds) < 5:
        assert shifted(there, -log_odds) == pytest.approx(probability)


@pytest.mark.parametrize(
    ("word", "language", "wrong"),
    [
        ("receive", "en", "recieve"),
        ("definitely", "en", "definately"),
        ("necessary", "en", "neccessary"),
        ("beginning", "en", "begining"),
        ("separate", "en", "seperate"),
        ("hablar", "es", "ablar"),
        ("vivir", "es", "bivir"),
        ("hacer", "es", "haser"),
    ],
)
def test_well_known_misspellings_are_made(word: str, language: str, wrong: str) -> None:
    assert wrong in misspellings(word, language)  # type: ignore[arg-type]


@given(some.text("abcdefghijklmnopqrstuvwxyzñ", max_size=14), some.sampled_from(["en", "es"]))
def test_misspellings_are_other_words_that_can_be_typed(form: str, language: str) -> None:
    found = misspellings(form, language)  # type: ignore[arg-type]
    assert form not in found and len(set(found)) == len(found)
    assert not found or len(form) >= SHORTEST
    layout = LAYOUTS["qwerty-es"]
    assert all(layout.typed_form(each) == each and abs(len(each) - len(form)) <= 2 for each in found)


def test_a_typist_of_impossible_parameters_is_refused() -> None:
    for name, value, rule in (
        ("notice", 1.5, "probability"),
        ("look", -0.1, "0 or more"),
        ("spread_looking", float("inf"), "finite"),
        ("interval", 0, "seconds from a key press"),
        ("language", "fr", "one of en, es"),
        ("touch", None, "touch"),
        ("reread", "often", "reread"),
    ):
        with pytest.raises(InputError, match=rule):
            replace(POPULATION, **{name: value})
    assert Typist() == POPULATION


def test_the_fit_meets_both_means() -> None:
    """On people of whom it is known what they do: each leaves wrong what is not noticed of 6% of 1,000 characters."""
    paces, looks = np.array([0.8, 1.0, 1.5]), np.array([0.0, 20.0, 60.0])

    def typed(typist: Typist) -> list[Tally]:
        seconds = 1100 * typist.interval * paces + looks
        wrong = 60 * (1 - typist.notice)
        return [Tally(characters=1000, keystrokes=1100, seconds=each, wrong_characters=wrong) for each in seconds]

    fitted = fit(moved(POPULATION, 2.0), typed, lambda typist: typist.interval * paces)
    assert 0.06 * (1 - fitted.notice) == pytest.approx(LEFT_WRONG, rel=0.02)
    assert np.mean([60 * 200 / each.seconds for each in typed(fitted)]) == pytest.approx(WORDS_A_MINUTE)
