"""What a device learns of its own text: counts that grow, weights fitted to its past, and the gate before both."""

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.support.training.tiny import WORDS

from tacit.keyboard import own_text
from tacit.keyboard.held_reader import HeldReader
from tacit.keyboard.learning_session import LearningSession
from tacit.keyboard.own_text import PAST, PRIOR, OwnText, Predicted, fitted, fitted_to
from tacit.keyboard.phone_model import PhoneModel
from tacit.keyboard.suggest import TypingSession
from tacit.keyboard.user_cache import ALONE, Mix, UserCache
from tacit.text.vocabulary import BOS, EOS, PAD, SPECIALS, Provenance, Vocabulary

V = 9
FIRST = WORDS[:5]
VOCABULARY = Vocabulary(words=FIRST, provenance=Provenance(kind="public", description="made up"))
Ids = NDArray[np.int32]


class Always:
    """A reader whose scores are the same everywhere, and whose state says how many tokens were read."""

    def __init__(self, scores: list[float]) -> None:
        self.scores = np.array(scores, np.float32)

    def begin(self) -> int:
        return 0

    def step(self, state: int, token: int) -> tuple[int, NDArray[np.float32]]:
        return state + 1, self.scores.copy()


UNIFORM = Always([-50.0, -50.0, 0.0, 0.0, 0.3, 0.2, 0.1, 0.0, -0.1])  # its favourite is the first word


@st.composite
def texts(draw: st.DrawFn) -> Ids:
    """Padded sentences."""
    drawn = draw(st.lists(st.lists(st.integers(3, V - 1), max_size=4), max_size=6))
    padded = np.full((len(drawn), 6), PAD, np.int32)
    for row, words in zip(padded, drawn, strict=True):
        row[: len(words) + 2] = [BOS, *words, EOS]
    return padded


def learnt(sentences: Ids) -> OwnText:
    own = OwnText.none(V)
    for row in sentences:
        own = own.learnt([each for each in row.tolist() if each not in (PAD, BOS, EOS)])
    return own


@given(text=texts(), weights=st.sampled_from([(0.1, 0.0), (0.0, 0.3), (0.2, 0.5)]), before=st.integers(1, V - 1))
@settings(max_examples=200, deadline=None)
def test_counts_that_grow_mix_as_the_cache_of_the_whole_text(
    text: Ids, weights: tuple[float, float], before: int
) -> None:
    """`user_cache` counts at once what is learnt here sentence by sentence."""
    own, cache, mix = learnt(text), UserCache.from_sentences(text, V), Mix(*weights)
    shares = np.linspace(0.01, 0.2, V).astype(np.float32)
    pairs = cache.left[before] * cache.unigram
    here = slice(cache.starts[before], cache.starts[before + 1])
    pairs[cache.words[here]] += cache.shares[here]
    slow = (1 - sum(mix)) * shares + mix.unigram * cache.unigram + mix.bigram * pairs
    np.testing.assert_allclose(own.mixed(shares, before, mix), slow, atol=1e-6)
    for word in range(2, V):
        assert own.shares(before, word) == pytest.approx((cache.unigram[word], pairs[word]), abs=1e-6)


@given(
    rows=st.lists(st.tuples(st.floats(1e-4, 1.0), st.floats(0.0, 1.0), st.floats(0.0, 1.0)), min_size=1, max_size=30)
)
@settings(max_examples=100, deadline=None)
def test_no_weights_make_the_past_likelier(rows: list[tuple[float, float, float]]) -> None:
    """Against every point of a grid: EM climbs a concave function."""

    def likelihood(mix: Mix) -> float:
        weights = np.array([1 - sum(mix), *mix])
        return float(np.log(np.maximum(np.array(rows) @ weights, 1e-12)).sum() + PRIOR * np.log(max(weights[0], 1e-12)))

    found = likelihood(fitted(rows))
    for unigram in np.linspace(0, 0.9, 10):
        for bigram in np.linspace(0, 0.9 - unigram, 10):
            assert found >= likelihood(Mix(unigram, bigram)) - 0.02 * len(rows) ** 0.5 - 0.02


def test_nothing_typed_weighs_nothing() -> None:
    assert fitted([]) == ALONE and not OwnText.none(V).helped
    held = HeldReader(UNIFORM, V)
    assert fitted_to(held, np.zeros((0, 4), np.int32)) == ALONE


def test_a_habit_gets_weight_and_words_at_random_get_little() -> None:
    draw = np.random.default_rng(0)
    habit = np.tile(np.array([[BOS, 5, 6, 7, 8, EOS]], np.int32), (60, 1))
    chance = habit.copy()
    chance[:, 1:5] = draw.integers(SPECIALS, V, (60, 4))
    held = HeldReader(UNIFORM, V)
    strong, weak = fitted_to(held, habit), fitted_to(held, chance)
    assert strong.bigram > 0.7 and weak.bigram < 0.3


def test_each_sentence_is_predicted_before_it_is_learnt(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted fault: were a sentence learnt first, words that never come again would be likely by the cache."""
    monkeypatch.setattr(own_text, "PRIOR", 0.5)
    once = np.array([[BOS, 4, 5, 6, 7, 8, EOS]], np.int32)
    assert fitted_to(HeldReader(UNIFORM, V), once) == pytest.approx(Mix(0.0, 0.0), abs=1e-6)
    own = OwnText.none(V).learnt([4, 5, 6, 7, 8])
    cheating = fitted([(0.1, *own.shares(before, word)) for before, word in ((BOS, 4), (4, 5), (5, 6), (6, 7), (7, 8))])
    assert cheating.bigram > 0.05


def test_only_the_latest_words_are_fitted_to() -> None:
    class Counting(HeldReader):
        asked = 0

        def scores(self, batch):  # type: ignore[no-untyped-def]
            type(self).asked += len(batch.sentences)
            yield from super().scores(batch)

    text = np.tile(np.array([[BOS, 5, 6, 7, 8, EOS]], np.int32), (PAST, 1))
    fitted_to(Counting(UNIFORM, V), text)
    assert Counting.asked == PAST // 4
    own = OwnText.none(V)
    own = own.learnt([5], [Predicted((0.1, 0.2, 0.3))] * (PAST + 7))
    assert len(own.predicted) == PAST


# -- while somebody types ------------------------------------------------------------------------------------------


def sessions() -> Iterator[tuple[TypingSession, LearningSession]]:
    yield TypingSession(UNIFORM, VOCABULARY), LearningSession(UNIFORM, VOCABULARY)


def test_until_it_helped_nothing_is_different() -> None:
    plain, learning = next(sessions())
    for text in (f"{FIRST[1]} {FIRST[2]}\n", f"{FIRST[0]} {FIRST[0]}\n"):
        plain.commit(text)
        learning.commit(text)
        assert np.array_equal(plain.log_probabilities, learning.log_probabilities)
    assert learning.own_text.predicted and not learning.own_text.helped


def test_a_habit_is_learnt_used_and_undone() -> None:
    _, session = next(sessions())
    before = session.fork()
    for _ in range(30):
        session.commit(f"{FIRST[3]} {FIRST[4]} {FIRST[3]} {FIRST[4]}\n")
    assert session.own_text.helped and session.own_text.mix.bigram > 0.1
    assert session.next_words(1)[0].word == FIRST[3]
    ahead = session.after(FIRST[3])
    assert ahead.next_words(1)[0].word == FIRST[4] == session.compose(threshold=0.3).words[-1]  # type: ignore[union-attr]
    session.commit(FIRST[3])
    assert np.array_equal(ahead.log_probabilities, session.log_probabilities)
    assert np.exp(session.log_probabilities.astype(np.float64)).sum() == pytest.approx(1, abs=1e-5)
    assert not before.own_text.predicted and before.next_words(1)[0].word == FIRST[0]


def test_where_the_model_was_right_the_gate_stays_shut() -> None:
    """Somebody who types the model's favourite among others: the cache takes more away than it gives."""
    _, session = next(sessions())
    for at in range(40):
        session.commit(f"{FIRST[0]} {FIRST[1 + at % 4]} {FIRST[0]} {FIRST[1 + (at + 1) % 4]}\n")
    assert not session.own_text.helped or session.own_text.mix != ALONE
    plain = TypingSession(UNIFORM, VOCABULARY)
    shut = LearningSession(UNIFORM, VOCABULARY)
    shut._learnt = OwnText.none(VOCABULARY.size).learnt([7, 8] * 9, [Predicted((0.1, 0.5, 0.9), gained=-1)] * 90)
    shut.commit(FIRST[3])
    plain.commit(FIRST[3])
    assert shut.own_text.mix.bigram > 0.1
    assert np.array_equal(plain.log_probabilities, shut.log_probabilities)


def test_a_phone_model_learns_where_it_is_asked() -> None:
    model = PhoneModel(name="made up", reader=UNIFORM, vocabulary=VOCABULARY, digest="")
    assert type(model.typing()) is TypingSession and isinstance(model.learning(), LearningSession)
    learning = model.learning()
    learning.end()
    assert learning.own_text.counts.sum() == 0, "no sentence had begun"
    learning.commit(FIRST[1])
    learning.end()
    assert learning.own_text.counts.sum() == 2, "the word, and the end"
