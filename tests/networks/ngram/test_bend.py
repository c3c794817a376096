"""What noisy counts are believed to say, against sums by hand, and a model that is bent by them."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.networks.ngram.slow_bend import SlowBend

from tacit.errors import InputError
from tacit.networks.ngram import bend as bend_module
from tacit.networks.ngram.bend import (
    LEAST_RATIO,
    MOST_RATIO,
    RATIO_STEP,
    SPREADS,
    Bend,
    Floats,
    Observed,
    ObservedCells,
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
        ObservedCells.dense(words + random.normal(0, stddev, WORDS), stddev),
        ObservedCells.dense(pairs + random.normal(0, stddev, (6, 6)), stddev),
    )


def test_a_model_is_bent_to_what_people_type(tables: NGramTables) -> None:
    bend = Bend.fitted(tables, observed(50.0))
    fifth, second, third = SPECIALS + 4, SPECIALS + 1, SPECIALS + 2
    plain = tables.after((BOS, SPECIALS))
    found = bend.bent(plain.copy(), (BOS, SPECIALS))
    assert found[fifth] / found[third] == pytest.approx(5 * plain[fifth] / plain[third], rel=0.1)
    pair = bend.bent(tables.after_pairs(second), (second,))
    assert pair[third] / pair[SPECIALS] == pytest.approx(10 * (WORDS - 2) / WORDS, rel=0.05)  # as they type
    for last in range(1, V):
        one = bend.bent(tables.after((SPECIALS, last)), (SPECIALS, last))
        assert one.sum(dtype=np.float64) == pytest.approx(1, abs=1e-6) and one[PAD] == one[BOS] == 0
        assert (one[[EOS, OOV]] > 0).sum() >= 1
    assert len(Bend.fitted(tables, observed(1e9)).after_one.words) == 0


def test_words_alone_bend_words_alone(tables: NGramTables) -> None:
    seen = observed(50.0)
    assert seen.words is not None
    bend = Bend.fitted(tables, Observed(seen.words))
    assert len(bend.after_one.words) == 0 and bend.ratios[SPECIALS + 4] > 3 * bend.ratios[SPECIALS + 3]
    nothing = Bend.fitted(tables, Observed(seen.words._replace(counts=-seen.words.counts)))
    assert (nothing.ratios == 1).all() and (Bend.fitted(tables, Observed()).ratios == 1).all()


@st.composite
def cell_lists(draw: st.DrawFn) -> Observed:
    """Of each length some cells in no order, or none; sentences' beginnings and ends among them."""
    found: list[ObservedCells | None] = []
    for length in (1, 2, 3):
        first, later = st.integers(BOS, V - 1), st.integers(EOS, V - 1)
        grams = st.tuples(*[later if length == 1 else first, *[later] * (length - 1)])
        drawn = draw(st.none() | st.lists(grams, unique=True, min_size=1, max_size=25))
        if drawn is None:
            found.append(None)
            continue
        counts = draw(st.lists(st.floats(-50, 4000), min_size=len(drawn), max_size=len(drawn)))
        stddev = draw(st.lists(st.floats(0, 60), min_size=len(drawn), max_size=len(drawn)))
        found.append(ObservedCells(np.array(drawn, np.int64), np.array(counts), np.array(stddev)))
    return Observed(*found)


@given(seen=cell_lists(), context=st.lists(st.integers(EOS, V - 1), max_size=3))
def test_it_is_the_slow_one_after_every_context(tables: NGramTables, seen: Observed, context: list[int]) -> None:
    bend = Bend.fitted(tables, seen)
    often = np.maximum(tables.frequencies.astype(float), tables.unigrams * 1e-3).tolist()
    slow = SlowBend(
        seen,
        after=lambda before: tables.after(before).tolist(),
        after_pairs=lambda before: tables.after_pairs(before[0]).tolist(),
        often=often,
    )
    listed = [cells.ids for cells in (seen.pairs, seen.trigrams) if cells is not None]
    asked = [(BOS, *context), *(tuple(row[:-1]) for ids in listed for row in ids.tolist())]
    for each in asked:
        found = bend.bent(tables.after(each), each)
        wanted = slow.bent(tables.after(each).tolist(), each)
        # A factor is rounded to a step of 0.03 nats, which float32 may round to the one beside it.
        np.testing.assert_allclose(found, wanted, rtol=0.07, atol=1e-7)
        assert np.mean(np.abs(found - wanted) > 1e-4 * np.array(wanted) + 1e-7) < 0.2 or len(bend.after_two.words)
        assert found.sum(dtype=np.float64) == pytest.approx(1, abs=1e-6) and found[PAD] == found[BOS] == 0


def test_three_words_are_held_against_what_pairs_say(tables: NGramTables) -> None:
    """Counts of three words that the pairs explain change nothing; what goes beyond them does."""
    first, second, third = SPECIALS, SPECIALS + 1, SPECIALS + 2
    seen = observed(1.0)
    pairs = Bend.fitted(tables, seen)
    ids = np.array([[first, second, word] for word in range(SPECIALS, V)])
    counts: Floats = 1e4 * pairs.bent(tables.after((first, second)), (first, second))[SPECIALS:].astype(np.float64)
    same = ObservedCells(ids, counts, np.ones(WORDS))
    assert len(Bend.fitted(tables, seen._replace(trigrams=same)).after_two.words) == 0
    other = same._replace(counts=np.where(ids[:, 2] == third, 4 * counts, counts))
    bent = Bend.fitted(tables, seen._replace(trigrams=other))
    before, after = (each.bent(tables.after((first, second)), (first, second)) for each in (pairs, bent))
    assert after[third] / after[first] == pytest.approx(4 * before[third] / before[first], rel=0.1)
    alone = bent.bent(tables.after((third, second)), (third, second))
    np.testing.assert_array_equal(alone, pairs.bent(tables.after((third, second)), (third, second)))


def test_only_those_that_change_most_are_kept(tables: NGramTables, monkeypatch: pytest.MonkeyPatch) -> None:
    every = Bend.fitted(tables, observed(20.0)).after_one
    monkeypatch.setattr(bend_module, "MOST_CELLS", 1)
    one = Bend.fitted(tables, observed(20.0)).after_one
    assert len(every.words) > 1
    assert (one.contexts.tolist(), one.words.tolist()) == ([SPECIALS + 1], [SPECIALS + 2])


def test_cells_that_are_none_are_refused(tables: NGramTables) -> None:
    def of(*ids: tuple[int, ...], counts: float = 1.0, stddev: float = 1.0) -> ObservedCells:
        return ObservedCells(np.array(ids), np.full(len(ids), counts), np.full(len(ids), stddev))

    for says, seen in (
        ("there twice", Observed(of((5,), (6,), (5,)))),
        ("there twice", Observed(None, of((BOS, 5), (BOS, 5)))),
        ("none of 24", Observed(of((V,)))),
        ("none of 24", Observed(None, of((PAD, 5)))),
        ("not first", Observed(of((BOS,)))),
        ("not first", Observed(None, None, of((BOS, BOS, 7)))),
        ("one row each", Observed(of((5, 6)))),
        ("no number", Observed(of((5,), stddev=-1.0))),
        ("no number", Observed(of((5,), counts=np.nan))),
    ):
        with pytest.raises(InputError, match=says):
            Bend.fitted(tables, seen)


def test_its_arrays_are_read_back_and_others_are_refused(tables: NGramTables) -> None:
    ids = np.array([[SPECIALS, SPECIALS + 1, word] for word in range(SPECIALS, V)])
    trigrams = ObservedCells(ids, np.linspace(1e3, 1e3 * WORDS, WORDS), np.ones(WORDS))
    bend = Bend.fitted(tables, observed(50.0)._replace(trigrams=trigrams))
    arrays = bend.arrays()
    again = Bend.from_arrays(arrays, V).arrays()
    assert again.keys() == arrays.keys() and all((again[name] == each).all() for name, each in arrays.items())
    wrong: dict[str, list[np.ndarray]] = {
        "format": [np.array([1], np.uint8), np.zeros(0, np.uint8), np.array([2], np.int64)],
        "ratios": [arrays["ratios"][:-1], arrays["ratios"] * np.float32(np.nan), arrays["ratios"] * np.float32(0)],
    }
    for length, contexts in ((2, V), (3, V**2)):
        of = {name: arrays[f"{name}.{length}"] for name in ("starts", "words", "contexts", "steps")}
        assert len(of["words"]) and of["contexts"].max() < contexts
        wrong |= {
            f"starts.{length}": [of["starts"][:-1], of["starts"] + np.uint32(1), of["starts"][::-1].copy()],
            f"words.{length}": [of["words"] + np.uint16(V), of["words"].astype(np.int64)],
            f"contexts.{length}": [of["contexts"] + np.uint32(contexts), of["contexts"][:-1]],
            f"steps.{length}": [of["steps"][:-1]],
        }
    for name, values in wrong.items():
        for each in values:
            with pytest.raises(ValueError, match="bend"):
                Bend.from_arrays({**arrays, name: each}, V)
        with pytest.raises(ValueError, match="missing"):
            Bend.from_arrays({other: each for other, each in arrays.items() if other != name}, V)
    assert RATIO_STEP * 127 > math.log(MOST_RATIO) > 0
