"""What noisy counts are believed to say, against sums by hand, and a model that is bent by them."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.networks.ngram.bend import (
    LEAST_RATIO,
    MOST_RATIO,
    RATIO_STEP,
    SPREADS,
    Bend,
    Observed,
    _likelihoods,
    _posterior_mean,
    _weights,
    believed,
)
from tacit.networks.ngram.kneser_ney import kneser_ney
from tacit.networks.ngram.tables import NGramTables
from tacit.text.vocabulary import BOS, EOS, OOV, PAD, SPECIALS

V = 24
WORDS = V - SPECIALS


def normal(x: float, variance: float) -> float:
    return math.exp(-x * x / (2 * variance)) / math.sqrt(2 * math.pi * variance)


@given(
    deviation=st.lists(st.floats(-1, 3), min_size=2, max_size=12),
    error=st.floats(0.02, 2),
    weights=st.lists(st.floats(0.01, 1), min_size=len(SPREADS), max_size=len(SPREADS)),
)
def test_what_is_believed_is_the_posterior_mean(deviation: list[float], error: float, weights: list[float]) -> None:
    prior = np.array(weights) / sum(weights)
    found = _posterior_mean(np.array(deviation), np.full(len(deviation), error), prior)
    for one, mean in zip(deviation, found, strict=True):
        parts = [w * normal(one, error**2 + s**2) for w, s in zip(prior, SPREADS, strict=True)]
        means = [one * s**2 / (error**2 + s**2) for s in SPREADS]
        assert mean == pytest.approx(sum(p * m for p, m in zip(parts, means, strict=True)) / sum(parts), abs=1e-9)


@pytest.mark.parametrize("spread", [0.1, 0.4, 1.6])
def test_the_weights_are_those_of_the_deviations(spread: float) -> None:
    """What was drawn with one spread is given to it and its neighbours; and no other weights are likelier."""
    random = np.random.default_rng(3)
    error = random.uniform(0.05, 0.5, 4000)
    deviation = random.normal(0, np.hypot(error, spread))
    weights, likelihoods = _weights(deviation, error), _likelihoods(deviation, error)
    assert weights.sum() == pytest.approx(1) and weights @ SPREADS**2 == pytest.approx(spread**2, rel=0.2)
    best = np.log(likelihoods @ weights).sum()
    for other in random.dirichlet(np.ones(len(SPREADS)), 50):
        assert np.log(likelihoods @ (0.9 * weights + 0.1 * other)).sum() <= best + 1e-2


def test_noise_that_hides_all_leaves_the_model_as_it_is_and_none_gives_the_counts() -> None:
    random = np.random.default_rng(0)
    expected, truth = np.full(500, 1e6), np.exp(random.normal(0, 0.4, 500))
    counts = expected * truth / truth.mean()
    np.testing.assert_allclose(believed(counts, expected, np.zeros(500)), truth / truth.mean(), rtol=1e-3)
    hidden = np.full(500, 1e9)
    assert (believed(counts + random.normal(0, 1e9, 500), expected, hidden) == 1).all()
    assert (believed(-counts, expected, hidden) == 1).all()


@given(noise=st.floats(0.01, 1.0), seed=st.integers(0, 99))
def test_what_is_believed_is_nearer_to_the_truth_than_the_counts_and_than_the_model(noise: float, seed: int) -> None:
    random = np.random.default_rng(seed)
    expected, truth = np.exp(random.uniform(5, 9, 2000)), np.exp(random.normal(0, 0.3, 2000))
    truth *= expected.sum() / (expected * truth).sum()
    stddev = np.full(2000, noise * 1000)
    counts = random.poisson(expected * truth) + random.normal(0, stddev)
    found = believed(counts, expected, stddev)
    assert ((found >= LEAST_RATIO) & (found <= MOST_RATIO)).all()
    apart = [np.mean((each - truth) ** 2) for each in (found, counts / expected, np.ones(2000))]
    assert apart[0] <= 1.02 * min(apart[1:])


@pytest.fixture(scope="module")
def tables() -> NGramTables:
    random = np.random.default_rng(1)
    words = random.choice(np.arange(SPECIALS, V), (2000, 8), p=np.arange(WORDS, 0, -1) / (WORDS * (WORDS + 1) / 2))
    text = np.concatenate([[BOS, *row, EOS] for row in words])
    return NGramTables.packed(kneser_ney(text, vocabulary=V, order=3, cutoffs=(1, 1)), 0.2)


def observed(stddev: float) -> Observed:
    """Of people who type the fifth word five times as often, and the third after the second ten times."""
    random = np.random.default_rng(2)
    words = 1e5 * np.arange(WORDS, 0, -1.0) / WORDS
    words[4] *= 5
    pairs = np.outer(words[:6], words)[:, :6] / words.sum()
    pairs[1, 2] *= 10
    return Observed(
        words + random.normal(0, stddev, WORDS),
        np.full(WORDS, stddev),
        pairs + random.normal(0, stddev, (6, 6)),
        np.full((6, 6), stddev),
    )


def test_a_model_is_bent_to_what_people_type(tables: NGramTables) -> None:
    bend = Bend.fitted(tables, observed(50.0))
    fifth, second, third = SPECIALS + 4, SPECIALS + 1, SPECIALS + 2
    plain = tables.after((BOS, SPECIALS))
    found = bend.bent(plain.copy(), SPECIALS)
    assert found[fifth] / found[third] == pytest.approx(5 * plain[fifth] / plain[third], rel=0.1)
    pair = bend.bent(tables.after_pairs(second), second)
    assert pair[third] / pair[SPECIALS] == pytest.approx(10 * (WORDS - 2) / WORDS, rel=0.05)  # as they type
    for last in range(1, V):
        one = bend.bent(tables.after((SPECIALS, last)), last)
        assert one.sum(dtype=np.float64) == pytest.approx(1, abs=1e-6) and one[PAD] == one[BOS] == 0
        assert (one[[EOS, OOV]] > 0).sum() >= 1
    assert len(Bend.fitted(tables, observed(1e9)).words) == 0


def test_words_alone_bend_words_alone(tables: NGramTables) -> None:
    seen = observed(50.0)
    bend = Bend.fitted(tables, Observed(seen.words, seen.words_stddev))
    assert len(bend.words) == 0 and bend.ratios[SPECIALS + 4] > 3 * bend.ratios[SPECIALS + 3]
    nothing = Bend.fitted(tables, Observed(-seen.words, seen.words_stddev))
    assert (nothing.ratios == 1).all()


def test_its_arrays_are_read_back_and_others_are_refused(tables: NGramTables) -> None:
    bend = Bend.fitted(tables, observed(50.0))
    arrays = bend.arrays()
    again = Bend.from_arrays(arrays, V)
    assert all((getattr(again, name) == each).all() for name, each in arrays.items())
    wrong = {
        "ratios": [arrays["ratios"][:-1], arrays["ratios"] * np.float32(np.nan), arrays["ratios"] * np.float32(0)],
        "starts": [arrays["starts"][:-1], arrays["starts"] + np.uint32(1)],
        "words": [arrays["words"] + np.uint16(V), arrays["words"].astype(np.int64)],
        "contexts": [arrays["contexts"][::-1].copy(), arrays["contexts"][:-1]],
        "steps": [arrays["steps"][:-1]],
    }
    for name, values in wrong.items():
        for each in values:
            with pytest.raises(ValueError, match="bend"):
                Bend.from_arrays({**arrays, name: each}, V)
        with pytest.raises(ValueError, match="missing"):
            Bend.from_arrays({other: each for other, each in arrays.items() if other != name}, V)
    assert RATIO_STEP * 127 > math.log(MOST_RATIO) > 0
