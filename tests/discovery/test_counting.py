"""Counts of the found words: unbiased, in their intervals as often as promised; a wrong debiasing is seen."""

import numpy as np
import pytest
from scipy.stats import binomtest, norm

from tacit.discovery.counting import count_words, score_interval
from tacit.errors import InputError
from tacit.randomizers import SubsetSelection, sample_votes

HOLDERS = np.array([900, 50, 5, 0, *[3] * 30, 2000, 4000])  # words, another word, null
REPORTS = int(HOLDERS.sum())
RANDOMIZER = SubsetSelection(domain=len(HOLDERS), epsilon=2.0)
COVERAGE = HOLDERS[:-2].sum() / HOLDERS[:-1].sum()


def repeated(times: int) -> np.ndarray:
    generator = np.random.default_rng(11)
    return np.array([sample_votes(RANDOMIZER, HOLDERS, generator) for _ in range(times)])


def test_counts_are_unbiased_and_a_wrong_debiasing_is_rejected() -> None:
    votes = repeated(400)
    counts = [count_words(row, REPORTS, RANDOMIZER) for row in votes]
    values = np.array([[word.value for word in each.counts] for each in counts])
    deviation = np.array([RANDOMIZER.variance(REPORTS, float(held)) for held in HOLDERS[:-2]]) ** 0.5 / 20
    right = (values.mean(axis=0) - HOLDERS[:-2]) / deviation
    assert norm.sf(np.abs(right).max()) * 2 * len(right) > 0.01
    frequency_oracle = votes.mean(axis=0)[:-2] / RANDOMIZER.p  # divides by p and forgets q
    assert norm.sf(np.abs((frequency_oracle - HOLDERS[:-2]) / deviation)).max() < 1e-6
    coverages = [each.coverage for each in counts]
    assert np.mean([c.value for c in coverages if c]) == pytest.approx(COVERAGE, abs=0.02)


def test_intervals_hold_the_count_as_often_as_promised() -> None:
    for confidence in (0.8, 0.95):
        inside = []
        for row in repeated(200):
            counts = count_words(row, REPORTS, RANDOMIZER, confidence=confidence).counts
            inside += [word.low <= held <= word.high for word, held in zip(counts, HOLDERS, strict=False)]
        assert abs(np.mean(inside) - confidence) < 0.02
        half = [word.value + (word.high - word.low) / 4 for word in counts]
        assert all(word.low <= value <= word.high or word.low == 0 for word, value in zip(counts, half, strict=True))
    assert binomtest(int(np.sum(inside)), len(inside), 0.8).pvalue < 1e-6  # 95% intervals are not 80% ones


def test_the_coverage_interval_errs_wide() -> None:
    coverages = [count_words(row, REPORTS, RANDOMIZER).coverage for row in repeated(200)]
    inside = [c.low <= COVERAGE <= c.high for c in coverages if c]
    assert len(inside) == 200
    assert np.mean(inside) >= 0.95


def test_the_score_interval_solves_its_equation() -> None:
    z, p, q, reports = 1.96, 0.6, 0.05, 10_000
    for votes in (520, 700, 3000):
        for end in score_interval(np.array([votes]), reports, p, q, z):
            if 0 < end[0] < reports:
                mean = end[0] * p + (reports - end[0]) * q
                spread = (end[0] * p * (1 - p) + (reports - end[0]) * q * (1 - q)) ** 0.5
                assert abs(votes - mean) == pytest.approx(z * spread, rel=1e-9)


def test_nobody_said_anything_and_confidence_that_is_none() -> None:
    only_null = np.zeros_like(HOLDERS)
    only_null[-1] = REPORTS
    votes = sample_votes(RANDOMIZER, only_null, np.random.default_rng(1))
    assert count_words(votes, REPORTS, RANDOMIZER).coverage is None
    with pytest.raises(InputError, match="is not between 0 and 1"):
        count_words(votes, REPORTS, RANDOMIZER, confidence=1.0)
