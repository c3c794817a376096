"""Many predictors in one pass against one reader a token, the slow reference."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.evaluation.trigrams import Sentence, V, sentences

from tacit.errors import InputError
from tacit.evaluation.accuracy import Evaluation
from tacit.evaluation.held_out import HeldOut
from tacit.evaluation.predictors import NetworkRows, Predictor, Weighted, measured, probabilities
from tacit.evaluation.reader_accuracy import evaluate_reader, nats_of
from tacit.keyboard.mixture import MixtureReader
from tacit.keyboard.suggest import Reader, reader_of
from tacit.networks.cifg.network import Cifg
from tacit.networks.ngram.bend import Bend, Observed, ObservedCells
from tacit.networks.ngram.kneser_ney import kneser_ney
from tacit.networks.ngram.reader import NGramReader
from tacit.networks.ngram.rows import NGramRows, taken
from tacit.networks.ngram.tables import NGramTables
from tacit.text.vocabulary import BOS, EOS, OOV, SPECIALS

NETWORK = Cifg(vocabulary=V, embedding=3, units=4)
LENGTH = 7
clients = st.lists(st.lists(sentences, min_size=1, max_size=3), min_size=1, max_size=4)


def held_out_of(people: list[list[Sentence]], cut: int = LENGTH) -> HeldOut:
    padded = np.zeros((len(people), 3, cut + 1), np.int32)
    for row, typed in zip(padded, people, strict=True):
        for place, sentence in zip(row, typed, strict=False):
            place[: len(sentence)] = sentence[: cut + 1]
    return HeldOut(sentences=padded)


def text(seed: int, words: int = 400) -> NDArray[np.int64]:
    random = np.random.default_rng(seed)
    rows = random.choice(np.arange(OOV, V), (words // 4, 4), p=np.array([6, 5, 4, 3, 2, 1]) / 21)
    return np.concatenate([[BOS, *row, EOS] for row in rows])


def tables(seed: int, order: int, pair_weight: float) -> NGramTables:
    found = kneser_ney(text(seed), vocabulary=V, order=order, cutoffs=(1,) * (order - 1))
    return NGramTables.packed(found, pair_weight)


def bend_of(model: NGramTables, seed: int) -> Bend:
    random, words = np.random.default_rng(seed), V - SPECIALS
    counts = random.uniform(10, 1000, words), random.uniform(1, 100, (words, words))
    return Bend.fitted(model, Observed(*(ObservedCells.dense(each, 3.0) for each in counts)))


def same(found: Evaluation, wanted: Evaluation) -> None:
    """Hits to the last one; nats as float32 has them."""
    for one, other in zip((found.total, *found.clients), (wanted.total, *wanted.clients), strict=True):
        assert (one.words, one.ends, one.predicted) == (other.words, other.ends, other.predicted)
        assert one.sums.keys() == other.sums.keys()
        for name, value in other.sums.items():
            assert one.sums[name] == (pytest.approx(value, rel=1e-4, abs=1e-4) if name == "cross_entropy" else value)


@given(people=clients, seed=st.integers(0, 20), order=st.integers(2, 5), pair_weight=st.sampled_from([0.0, 0.3]))
@settings(max_examples=30)
def test_n_grams_bent_or_not_and_mixtures_are_measured_as_one_reader_a_token_does(
    people: list[list[Sentence]], seed: int, order: int, pair_weight: float
) -> None:
    one, other = tables(seed, order, pair_weight), tables(seed + 1, 3, 0.0)
    bend, held_out = bend_of(one, seed), held_out_of(people, cut=4 + seed % 4)
    predictors = {"plain": NGramRows.of_tables(one), "bent": NGramRows.of_tables(one, bend)}
    readers: dict[str, Reader] = {"plain": NGramReader(one), "bent": MixtureReader(one, bend)}
    mixed = {"both": {"plain": 0.75, "other": 0.25}}
    found = measured({**predictors, "other": NGramRows.of_tables(other)}, held_out, mixtures=mixed)
    for name, reader in readers.items():
        same(found[name], evaluate_reader(reader, held_out))
    same(found["both"], evaluate_reader(MixtureReader(one, None, NGramReader(other), weight=0.25), held_out))
    for place in range(len(held_out.sentences)):
        for each in predictors.values():
            whole = taken(each, held_out.sentences[place])
            np.testing.assert_allclose(each.likelihoods(held_out.sentences[place]), whole, rtol=1e-6)
    nats = nats_of(readers["bent"], held_out)
    np.testing.assert_allclose(-np.log(probabilities(predictors, held_out)["bent"]), nats, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("network_bent", [False, True])
def test_a_network_beside_counts_is_read_as_a_mixture_reads_it(network_bent: bool) -> None:
    import jax

    model = tables(1, 3, 0.2)
    bend, parameters = bend_of(model, 1), NETWORK.init(jax.random.key(3))
    people = [
        [[BOS, *row, EOS] for row in np.random.default_rng(at).integers(OOV, V, (3, 5)).tolist()] for at in range(9)
    ]
    held_out = held_out_of(people)
    network = NetworkRows(network=NETWORK, parameters=parameters, bend=bend if network_bent else None)
    parts: tuple[tuple[Predictor, float], ...] = ((NGramRows.of_tables(model, bend), 0.3), (network, 0.7))
    reader = MixtureReader(model, bend, reader_of(NETWORK, parameters), weight=0.7, network_bent=network_bent)
    mixed = Weighted(parts=parts)
    same(measured({"it": mixed}, held_out)["it"], evaluate_reader(reader, held_out))
    sentences = held_out.sentences.reshape(-1, LENGTH + 1)
    np.testing.assert_allclose(mixed.likelihoods(sentences), taken(mixed, sentences), rtol=1e-5)


def test_counts_that_no_byte_rounds_are_as_the_model_says() -> None:
    model = kneser_ney(text(4), vocabulary=V, order=4, cutoffs=(1, 1, 1))
    held_out = held_out_of([[text(5).tolist()[:6], text(6).tolist()[:6]]])
    levels, pairs = model.probabilities(held_out.sentences[held_out.sentences > 0].astype(np.int64))
    found = probabilities({"it": NGramRows.of_model(model, 0.25)}, held_out)["it"]
    np.testing.assert_allclose(found, 0.75 * levels + 0.25 * pairs, rtol=1e-5)


def test_predictors_of_other_words_and_mixtures_of_nothing_are_refused() -> None:
    held_out, one = held_out_of([[[BOS, OOV, EOS]]]), NGramRows.of_tables(tables(1, 2, 0.0))
    larger = NGramRows.of_tables(NGramTables.packed(kneser_ney(text(1), vocabulary=V + 1, order=2, cutoffs=(1,))))
    with pytest.raises(InputError, match="same words"):
        measured({"one": one, "larger": larger}, held_out)
    for weights in ({"two": 1.0}, {"one": 0.9}, {}):
        with pytest.raises(InputError, match="sum is 1"):
            measured({"one": one}, held_out, mixtures={"mixed": weights})
