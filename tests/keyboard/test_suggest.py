"""Next words for what was typed: those of the model's full softmax, by whatever way its network reads."""

from functools import cache
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.networks import numpy_model
from tests.support.networks.gru import Gru

from tacit.errors import InputError
from tacit.keyboard.model_folder import TrainedModel, load_model, write_model
from tacit.keyboard.suggest import Suggestion, TypingSession
from tacit.networks.cifg.network import Cifg
from tacit.networks.language_model import LanguageModel
from tacit.text.tokens import Tokenizer
from tacit.text.vocabulary import BOS, PAD, SPECIALS, Provenance, Vocabulary

WORDS = tuple(f"w{number}" for number in range(56))
PUBLIC = Provenance(kind="public", description="for tests")
VOCABULARY = Vocabulary(words=WORDS, provenance=PUBLIC, lowercase=True)
NETWORKS: list[LanguageModel] = [
    Cifg(vocabulary=60, embedding=4, units=6),
    Cifg(vocabulary=60, embedding=4, units=6, tied=True),
    Gru(),
]


def model_of(network: LanguageModel, seed: int = 0, vocabulary: Vocabulary = VOCABULARY) -> TrainedModel:
    parameters = jax.tree.map(lambda leaf: 4.0 * leaf, network.init(jax.random.key(seed)))
    return TrainedModel(
        network=network, parameters=parameters, vocabulary=vocabulary, path=Path("m"), digest="", public_text=None
    )


PLACES = 16  # more than a sentence of a test has words: one program for each network


@cache
def made(network: LanguageModel) -> TrainedModel:
    """A model with this network, once; not when tests are collected, for that every process does."""
    return model_of(network)


@cache
def scores_of(network: LanguageModel) -> Any:
    return jax.jit(network.logits)


def slowly(model: TrainedModel, prompt: str, k: int) -> list[tuple[str, float]]:
    """By the scores of the last sentence at once, the softmax over all ids, and all words in order."""
    encoded = Tokenizer(model.vocabulary).encode([prompt + " W0"])  # so that an ended sentence has a next one
    last = encoded.ids[len(encoded.ids) - encoded.lengths[-1] : -2]  # without that word and the end
    padded = np.full((1, PLACES), PAD, np.int32)  # no word's scores depend on what comes behind it
    padded[0, : len(last)] = last
    scores = np.asarray(scores_of(model.network)(model.parameters, padded)[0, len(last) - 1], np.float64)
    shares = numpy_model.softmax(scores)
    order = sorted(range(SPECIALS, 60), key=lambda id: (-scores[id], id))
    return [(model.vocabulary.word_of(id), shares[id]) for id in order[:k]]


PIECES = st.sampled_from([*WORDS[:8], "W3", "unheard", "don't", "12:30", "<url>", ".", "!", "…", ",", "\n", "é"])


@pytest.mark.parametrize("network", NETWORKS, ids=str)
@given(typed=st.lists(PIECES, max_size=7), k=st.integers(1, 56))
def test_suggestions_are_the_best_of_the_full_softmax(network: LanguageModel, typed: list[str], k: int) -> None:
    prompt, model = " ".join(typed), made(network)
    found, wanted = model.next_words(prompt, k), slowly(model, prompt, k)
    assert [each.word for each in found] == [word for word, _ in wanted]
    assert [each.probability for each in found] == pytest.approx([share for _, share in wanted], rel=1e-4)


@given(st.lists(PIECES.filter(lambda piece: piece != "…"), max_size=6))  # it ends a sentence by what follows it
def test_committed_word_by_word_it_is_the_same(typed: list[str]) -> None:
    """One session for all words, and another beside it, which moves nothing in the first."""
    model = made(NETWORKS[0])
    session, other = model.typing(), model.typing()
    for word in typed:
        session.commit(f"{word} ")
        other.commit("w5")
    assert session.next_words(5) == model.next_words(" ".join(typed), 5)


def test_each_word_is_one_step_and_a_sentence_end_begins_anew() -> None:
    steps: list[int] = []

    class Counting:
        def begin(self) -> tuple[int, ...]:
            return ()

        def step(self, state: tuple[int, ...], token: int) -> tuple[tuple[int, ...], Any]:
            steps.append(token)
            return (*state, token), np.arange(60, dtype=np.float32)

    session = TypingSession(Counting(), VOCABULARY)
    session.commit("w1 w2. w3")
    session.commit("Nobody")
    assert steps == [BOS, 5, 6, BOS, 7, 3]
    session.next_words()
    assert len(steps) == 6, "asking is no step"


def test_specials_are_never_suggested_and_ties_go_by_rank() -> None:
    """A model that would end every sentence, and finds all words alike."""
    network = NETWORKS[0]
    parameters = jax.tree.map(np.zeros_like, network.init(jax.random.key(0)))
    parameters = parameters._replace(output_bias=np.where(np.arange(60) < SPECIALS, 9.0, 0.0).astype(np.float32))
    model = TrainedModel(
        network=network, parameters=parameters, vocabulary=VOCABULARY, path=Path("m"), digest="", public_text=None
    )
    found = model.next_words("w7", 56)
    assert tuple(each.word for each in found) == WORDS
    share = 1 / (56 + 4 * np.exp(9))
    assert [each.probability for each in found] == pytest.approx([share] * 56)


def test_from_a_folder(tmp_path: Path) -> None:
    model = made(NETWORKS[1])
    write_model(tmp_path / "model", model.network, model.parameters, VOCABULARY.to_json().encode())
    found = load_model(tmp_path).next_words("w1 w2")
    assert found == model.next_words("w1 w2", 3) and isinstance(found[0], Suggestion)


@pytest.mark.parametrize(
    ("prompt", "k", "sentence"),
    [
        ("w1", 0, "k=0 suggestions cannot be shown; ask for 1 to 56"),
        ("w1", 57, "k=57"),
        ("w1", "3", "k='3' is of the type str"),
        (3, 3, "text=3 is of the type int"),
        ("\udcff", 3, "is not UTF-8"),
    ],
)
def test_what_cannot_be_asked_is_refused(prompt: Any, k: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        made(NETWORKS[0]).next_words(prompt, k)


@pytest.mark.parametrize("least", [0, -1, 1.5, float("nan"), "x"])
def test_words_above_no_probability_are_refused(least: Any) -> None:
    with pytest.raises(InputError, match="least"):
        made(NETWORKS[0]).typing().words_above(least)


def test_a_model_of_no_numbers_suggests_nothing() -> None:
    network = NETWORKS[0]
    parameters = jax.tree.map(lambda leaf: np.full_like(leaf, np.nan), network.init(jax.random.key(0)))
    model = TrainedModel(
        network=network, parameters=parameters, vocabulary=VOCABULARY, path=Path("m"), digest="", public_text=None
    )
    with pytest.raises(InputError, match="scores are no finite numbers"):
        model.next_words("w1")
