"""A client's step of SGD as a graph: the local update of a simulated client, by ONNX Runtime."""

from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import onnxruntime
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.networks import numpy_model
from tests.support.networks.gru import Gru
from tests.support.networks.small import SMALL
from tests.support.networks.strange import Strange

from tacit.errors import InputError
from tacit.keyboard.onnx_trainer import OnnxTrainer
from tacit.networks.cifg.network import Cifg, CifgParameters
from tacit.networks.language_model import HasSgdStep, LanguageModel, leaves, model_of, sgd_step
from tacit.networks.models import MODELS
from tacit.networks.onnx.graph import OPSET
from tacit.networks.onnx.step import AFTER
from tacit.networks.onnx.training import training_graph
from tacit.text.vocabulary import BOS, EOS, OOV, PAD

CIFGS = [network for network in SMALL if isinstance(network, Cifg)]  # whose twin is written word by word
NETWORKS = [*SMALL, Strange(), Strange(forgetful=True)]
LENGTH = 6
RESOLUTION = 2.0**-24  # of float32, in relation to the number that is rounded


@cache
def begun(network: LanguageModel) -> Any:
    """Larger than a training begins, so that what comes next depends on what was read."""
    return jax.tree.map(lambda leaf: 3.0 * leaf, network.init(jax.random.key(7)))


@cache
def trainer(network: LanguageModel, threads: int = 1) -> OnnxTrainer:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    return OnnxTrainer(onnxruntime.InferenceSession(training_graph(network).SerializeToString(), options))


def named(parameters: Any) -> dict[str, Any]:
    return {name: np.asarray(leaf) for name, leaf in leaves(parameters).items() if leaf.size}


def flat(parameters: Any) -> Any:
    return np.concatenate([np.ravel(np.asarray(leaf, np.float64)) for leaf in parameters])


ids = st.integers(OOV, 59)
sentences = st.lists(ids, max_size=LENGTH - 1).map(lambda words: [BOS, *words, EOS])
batches = st.lists(st.one_of(sentences, st.just([])), min_size=1, max_size=4).map(
    lambda rows: np.array([[*row, *[PAD] * (LENGTH + 1 - len(row))] for row in rows], np.int64)
)


@cache
def generic(network: LanguageModel) -> Any:
    return jax.jit(partial(sgd_step, network))


@pytest.mark.parametrize("network", NETWORKS, ids=str)
class TestOneStepOfEveryNetwork:
    @given(batch=batches, rate=st.sampled_from([0.1, 1.0]))
    def test_is_that_of_jax(self, network: LanguageModel, batch: Any, rate: float) -> None:
        padded = np.concatenate([batch, np.zeros((4 - len(batch), LENGTH + 1), np.int64)])  # compiled once
        wanted, before = generic(network)(begun(network), jnp.asarray(padded, jnp.int32), rate)
        moved, loss = trainer(network).descend(named(begun(network)), batch, rate)
        assert loss == pytest.approx(float(before), rel=1e-5)
        for name, leaf in named(wanted).items():
            np.testing.assert_allclose(moved[name], leaf, rtol=1e-4, atol=1e-5, err_msg=name)

    def test_of_nothing_but_padding_is_none(self, network: LanguageModel) -> None:
        moved, loss = trainer(network).descend(named(begun(network)), np.zeros((3, LENGTH + 1), np.int64), 0.5)
        assert loss == 0.0
        for name, before in named(begun(network)).items():
            np.testing.assert_array_equal(moved[name], before)


@pytest.mark.parametrize("network", CIFGS, ids=str)
class TestOneStep:
    @given(batch=batches, rate=st.sampled_from([0.1, 1.0]))
    def test_goes_down_the_slope_that_is_computed_word_by_word(self, network: Cifg, batch: Any, rate: float) -> None:
        slow = numpy_model.of(begun(network))
        slopes = leaves(CifgParameters(*numpy_model.gradient(slow, batch)))
        moved, loss = trainer(network).descend(named(begun(network)), batch, rate)
        assert loss == pytest.approx(numpy_model.loss(slow, batch), rel=1e-5)
        for name, before in named(begun(network)).items():
            np.testing.assert_allclose((before - moved[name]) / rate, slopes[name], rtol=1e-4, atol=1e-5, err_msg=name)

    def test_adds_up_a_word_that_many_sentences_have_whatever_the_threads(self, network: Cifg) -> None:
        batch = np.tile([BOS, 9, 9, 9, 9, EOS, PAD], (64, 1))
        alone, loss = trainer(network).descend(named(begun(network)), batch[:1], 0.5)
        for threads in (1, 2):
            moved, same = trainer(network, threads).descend(named(begun(network)), batch, 0.5)
            assert same == pytest.approx(loss, rel=1e-5)
            for name in alone:
                np.testing.assert_allclose(moved[name], alone[name], atol=1e-5, err_msg=name)

    def test_is_exact_for_a_word_that_is_next_to_impossible(self, network: Cifg) -> None:
        """Its probability is no number of float32 any more; its surprise is one."""
        bias = np.zeros(60, np.float32)
        bias[9] = -200.0
        parameters = {**named(begun(network)), "output_bias": bias}
        batch = np.array([[BOS, 9, EOS]])
        moved, loss = trainer(network).descend(parameters, batch, 0.5)
        slow = numpy_model.of(begun(network))._replace(output_bias=bias.astype(np.float64))
        assert loss == pytest.approx(numpy_model.loss(slow, batch), rel=1e-6)
        assert moved["output_bias"][9] == pytest.approx(-200.0 + 0.5 * 0.5, rel=1e-6)


def an_epoch(network: LanguageModel, batches: int, sentences: int, length: int) -> list[Any]:
    """Batches of sentences of many lengths; the last one is filled up with padding."""
    random = np.random.default_rng(3)
    epoch = []
    for _ in range(batches):
        batch = random.integers(OOV, network.vocabulary, (sentences, length + 1))
        lengths = random.integers(2, length + 1, sentences)
        batch[:, 0] = BOS
        batch[np.arange(sentences), lengths] = EOS
        batch[np.arange(length + 1)[None, :] > lengths[:, None]] = PAD
        epoch.append(batch)
    epoch[-1][sentences // 2 :] = PAD
    return epoch


def check_epoch(network: LanguageModel, epoch: list[Any], rate: float, start: Any = None) -> None:
    """The local update, which is the difference that an epoch makes, to 1e-5 of its length; and so each parameter.

    A difference of float32 numbers is known to their own resolution only, which each step's rounding may cost.
    """
    before = begun(network) if start is None else start
    for step in (partial(sgd_step, network), *([network.sgd_step] if isinstance(network, HasSgdStep) else [])):
        parameters, moved = before, named(before)
        compiled = jax.jit(step)
        for batch in epoch:
            parameters, wanted = compiled(parameters, jnp.asarray(batch, jnp.int32), rate)
            moved, loss = trainer(network).descend(moved, batch, rate)
            assert loss == pytest.approx(float(wanted), rel=1e-5)
        update = flat(named(parameters).values()) - flat(named(before).values())
        found = flat(moved.values()) - flat(named(before).values())
        rounding = len(epoch) ** 0.5 * RESOLUTION * np.linalg.norm(flat(named(before).values()))
        assert np.linalg.norm(found - update) <= 1e-5 * np.linalg.norm(update) + rounding
        for name, leaf in named(parameters).items():
            assert np.linalg.norm(moved[name] - leaf) <= 1e-5 * np.linalg.norm(leaf), name


@pytest.mark.parametrize("network", SMALL, ids=str)
def test_an_epoch_is_the_local_update(network: LanguageModel) -> None:
    check_epoch(network, an_epoch(network, 6, 8, LENGTH), 0.5)


@pytest.mark.long
@pytest.mark.parametrize("tied", [pytest.param(False, marks=pytest.mark.nightly), True])
@pytest.mark.parametrize("kind", MODELS)
def test_an_epoch_is_the_local_update_of_the_default_size(kind: str, tied: bool) -> None:
    network = model_of(kind, {"tied": tied})
    start = network.init(jax.random.key(7))  # from three times that a large GRU is chaotic: each step doubles rounding
    check_epoch(network, an_epoch(network, 12, 16, 20), 0.5, start)


def test_the_graph_has_operators_of_the_standard_alone_and_holds_no_parameters() -> None:
    model = training_graph(CIFGS[0])
    assert [(each.domain, each.version) for each in model.opset_import] == [("", OPSET)]
    assert sum(np.prod(weight.dims, dtype=int) for weight in model.graph.initializer) < 64
    learned = named(begun(CIFGS[0]))
    assert [each.name for each in model.graph.input] == ["sentences", "learning_rate", *learned]
    assert [each.name for each in model.graph.output] == ["loss", *(name + AFTER for name in learned)]


def test_a_network_that_does_not_say_how_it_trains_is_refused_with_the_way_out() -> None:
    with pytest.raises(
        InputError, match=r"tests\.support\.networks\.gru:Gru .*`onnx_training`.*a model of the kind cifg"
    ):
        training_graph(Gru())


BATCH = np.array([[BOS, 9, EOS]])


@pytest.mark.parametrize(
    ("changed", "batch", "says"),
    [
        ({}, np.array([[BOS, 60, EOS]]), r"ids are 1 to 60, and the model's vocabulary has not all"),
        ({}, np.array([[BOS, -1, EOS]]), r"ids are -1 to 2, and the model's vocabulary has not all"),
        ({}, np.array([BOS, 9, EOS]), r"shape \(3,\) are no batch"),
        ({}, np.array([[BOS]]), r"shape \(1, 1\) are no batch"),
        ({"bias": np.zeros(3, np.float32)}, BATCH, r"'bias' has the shape \(3,\) where the graph has \(18,\)"),
        ({"extra": np.zeros(3, np.float32)}, BATCH, r"'extra' has the shape \(3,\) where the graph has None"),
    ],
    ids=["an id too large", "a negative id", "one sentence", "no words", "another shape", "another name"],
)
def test_what_no_step_can_be_taken_with_is_refused(changed: dict[str, Any], batch: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        trainer(CIFGS[0]).descend({**named(begun(CIFGS[0])), **changed}, batch, 0.5)
