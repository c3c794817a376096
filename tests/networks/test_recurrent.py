"""Cells: the GRU against its twin, and every cell's slope against differences of a loss that NumPy computes."""

from functools import cache
from itertools import pairwise
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.networks import numpy_gru
from tests.support.networks.small import SMALL, examples
from tests.support.networks.strange import Strange

from tacit.errors import InputError
from tacit.keyboard.suggest import reader_of
from tacit.networks.gru import Gru
from tacit.networks.language_model import leaves, next_word_loss, parameter_count
from tacit.networks.onnx.training import training_graph
from tacit.networks.recurrent.network import Recurrent
from tacit.networks.recurrent.reader import NUMPY
from tacit.text.vocabulary import BOS, EOS, OOV, PAD

CELLS = [*(network for network in SMALL if isinstance(network, Recurrent)), Strange(), Strange(forgetful=True)]
STEP = 1e-5  # of the differences; they err by its square

ids = st.integers(OOV, 59)
sentences = st.lists(ids, min_size=1, max_size=5).map(lambda words: [BOS, *words, EOS])
batches = st.lists(sentences, min_size=1, max_size=3).map(
    lambda rows: np.array([[*row, *[PAD] * (7 - len(row))] for row in [*rows, *[[]] * (3 - len(rows))]], np.int32)
)


@cache
def begun(network: Any) -> Any:
    return jax.tree.map(lambda leaf: 2.0 * leaf, network.init(jax.random.key(5)))


@cache
def slope(network: Any) -> Any:
    return jax.jit(jax.grad(next_word_loss(network)))


def loss(network: Recurrent, p: dict[str, Any], batch: Any) -> float:
    """Mean nats a target, float64, word by word."""
    nats = []
    for row in batch:
        states = {name: np.zeros(width) for name, width in network.states().items()}
        for word, target in pairwise(row):
            if target == PAD:
                break
            states, features = network.step(NUMPY, p, states, network.read(NUMPY, p, word))
            scores = network.scores(NUMPY, p, features)
            nats.append(np.log(np.exp(scores - scores.max()).sum()) + scores.max() - scores[target])
    return float(np.mean(nats))


@pytest.mark.parametrize("network", CELLS, ids=str)
@given(batch=batches, seed=st.integers(0, 1000), data=st.data())
def test_the_slope_is_that_of_differences(network: Any, batch: Any, seed: int, data: st.DataObject) -> None:
    """Of one parameter at a time, in a direction drawn at random."""
    p = {name: np.asarray(leaf, np.float64) for name, leaf in leaves(begun(network)).items()}
    name = data.draw(st.sampled_from([each for each in p if p[each].size]))
    way = np.random.default_rng(seed).normal(size=p[name].shape)
    there, back = (loss(network, {**p, name: p[name] + sign * STEP * way}, batch) for sign in (1, -1))
    found = np.vdot(np.asarray(leaves(slope(network)(begun(network), batch))[name], np.float64), way)
    assert found == pytest.approx((there - back) / (2 * STEP), rel=1e-3, abs=1e-4)


@pytest.mark.parametrize("network", examples("gru"), ids=str)
@given(words=st.lists(ids, min_size=1, max_size=6))
def test_the_gru_scores_as_its_twin(network: Gru, words: list[int]) -> None:
    parameters = begun(network)
    wanted = numpy_gru.logits(parameters, [BOS, *words])
    reader = reader_of(network, parameters)
    state = reader.begin()
    for token, scores in zip([BOS, *words], wanted, strict=True):
        state, found = reader.step(state, token)
        np.testing.assert_allclose(found, scores, rtol=1e-4, atol=1e-5)


def test_the_gru_is_about_as_large_as_the_papers_network() -> None:
    assert (parameter_count(Gru()), parameter_count(Gru(tied=True))) == (2_384_260, 1_424_260)


@pytest.mark.parametrize(
    ("changed", "says"),
    [({"units": 0}, r"model\.units=0 must be 1 to"), ({"vocabulary": 4}, r"model\.vocabulary=4 must be at least 5")],
)
def test_a_size_that_is_none_is_refused(changed: dict[str, int], says: str) -> None:
    with pytest.raises(InputError, match=says):
        Gru(**changed)


class TooWide(Strange):
    """Its states do not fit its matrix."""

    def states(self) -> dict[str, int]:
        return {"long": 4, "short": 4}


def test_a_product_that_does_not_fit_is_refused() -> None:
    with pytest.raises(InputError, match="rows of 12 numbers are multiplied with both, which takes 11"):
        training_graph(TooWide())
