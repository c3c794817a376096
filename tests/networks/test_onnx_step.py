"""A network as ONNX graphs: the same answers as the network, by ONNX Runtime and by ONNX's own reference."""

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx.reference import ReferenceEvaluator
from tests.support.networks.gru import Gru, GruWithCell
from tests.support.networks.small import SMALL

from tacit.errors import InputError
from tacit.keyboard.onnx_reader import OnnxReader, OnnxScorer
from tacit.keyboard.suggest import Rereader
from tacit.networks.cifg.network import Cifg
from tacit.networks.language_model import LanguageModel, count, next_word_loss
from tacit.networks.metrics import METRICS
from tacit.networks.onnx.graph import OPSET, Graph
from tacit.networks.onnx.step import AFTER, score_graph, step_graph
from tacit.text.vocabulary import BOS, EOS, OOV, PAD, SPECIALS

NETWORKS: list[LanguageModel] = [*SMALL, GruWithCell()]
LENGTH = 6


@cache
def begun(network: LanguageModel) -> Any:
    """Larger than a training begins, so that what comes next depends on what was read."""
    return jax.tree.map(lambda leaf: 4.0 * leaf, network.init(jax.random.key(7)))


@cache
def session(network: LanguageModel, graph: str) -> Any:
    model = {"step": step_graph, "score": score_graph}[graph](network, begun(network))
    return onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


@cache
def compiled(network: LanguageModel) -> Any:
    """(parameters, sentences) -> counts and loss, by JAX."""
    loss = next_word_loss(network)
    return jax.jit(lambda parameters, batch: (count(network, parameters, batch), loss(parameters, batch)))


ids = st.integers(OOV, 59)
sentences = st.lists(ids, max_size=LENGTH - 1).map(lambda words: [BOS, *words, EOS])
batches = st.lists(st.one_of(sentences, st.just([])), min_size=4, max_size=4).map(
    lambda rows: np.array([[*row, *[PAD] * (LENGTH + 1 - len(row))] for row in rows], np.int64)
)


@pytest.mark.parametrize("network", NETWORKS, ids=str)
class TestEveryNetworkWithACell:
    @given(tokens=st.lists(ids, min_size=1, max_size=6), k=st.integers(1, 56))
    def test_a_step_reads_as_the_network_does(self, network: LanguageModel, tokens: list[int], k: int) -> None:
        reader, slow = OnnxReader(session(network, "step")), Rereader(network, begun(network))
        state, reread = reader.begin(), slow.begin()
        for token in [BOS, *tokens]:
            before = state
            state, logs = reader.step(state, token)
            reread, scores = slow.step(reread, token)
        wanted = np.asarray(jax.nn.log_softmax(scores))
        np.testing.assert_allclose(logs, wanted, rtol=1e-5, atol=1e-5)
        _, (likeliest, probabilities) = reader.likeliest(before, tokens[-1], k)
        order = np.argsort(-logs[SPECIALS:], kind="stable")[:k] + SPECIALS
        np.testing.assert_array_equal(likeliest, order)  # equal ones by their id, too
        np.testing.assert_allclose(probabilities, np.exp(wanted[order]), atol=1e-5)

    @given(batch=batches)
    def test_sentences_score_what_the_metrics_count(self, network: LanguageModel, batch: Any) -> None:
        found = OnnxScorer(session(network, "score"))(batch)
        counts, loss = compiled(network)(begun(network), batch.astype(np.int32))
        counts = counts.host()
        assert found.pop("loss") == pytest.approx(float(loss), rel=1e-5)
        assert found.pop("cross_entropy") == pytest.approx(counts.sums["cross_entropy"], rel=1e-5)
        whole = {name: value for name, value in counts.sums.items() if name != "cross_entropy"}
        assert found == {"words": counts.words, "ends": counts.ends, "predicted": counts.predicted, **whole}

    def test_several_sentences_take_a_step_at_once(self, network: LanguageModel) -> None:
        reader = OnnxReader(session(network, "step"))
        states = [reader.step(reader.begin(), token)[0] for token in (BOS, 9)]
        together = {
            name: np.concatenate(rows) for name, rows in zip(reader.widths, zip(*states, strict=True), strict=True)
        }
        given_ = {"word": np.array([5, 6]), "k": np.array([2]), **together}
        (logs,) = session(network, "step").run(["log_probabilities"], given_)
        for row, state, token in zip(logs, states, (5, 6), strict=True):
            np.testing.assert_allclose(row, reader.step(state, token)[1], rtol=1e-5, atol=1e-6)

    def test_the_graphs_are_what_the_standard_says(self, network: LanguageModel) -> None:
        """ONNX's reference, which is written for clarity, runs them too; they name their opset and carry everything."""
        parameters, batch = begun(network), np.array([[BOS, 5, OOV, 59, EOS, PAD, PAD]])
        step, score = step_graph(network, parameters), score_graph(network, parameters)
        for model in (step, score):
            assert [(each.domain, each.version) for each in model.opset_import] == [("", OPSET)]
            assert not any(weight.external_data for weight in model.graph.initializer)
        found = dict(
            zip(
                (each.name for each in score.graph.output),
                ReferenceEvaluator(score).run(None, {"sentences": batch}),
                strict=True,
            )
        )
        assert set(METRICS) <= set(found)
        by_runtime = OnnxScorer(session(network, "score"))(batch)
        assert {name: float(value) for name, value in found.items()} == pytest.approx(by_runtime, rel=1e-4)
        reader = OnnxReader(session(network, "step"))
        state = dict(zip(reader.widths, reader.begin(), strict=True))
        names = ["ids", *(name + AFTER for name in state)]
        ids_, *after = ReferenceEvaluator(step).run(names, {"word": np.array([7]), "k": np.array([3]), **state})
        told, (likeliest, _) = reader.likeliest(reader.begin(), 7, 3)
        np.testing.assert_array_equal(ids_[0], likeliest)
        for mine, theirs in zip(told, after, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-6)


def test_equally_likely_words_come_in_the_order_of_the_vocabulary() -> None:
    network = NETWORKS[0]
    flat = jax.tree.map(jnp.zeros_like, begun(network))
    made = onnxruntime.InferenceSession(step_graph(network, flat).SerializeToString())
    _, (likeliest, probabilities) = OnnxReader(made).likeliest(OnnxReader(made).begin(), BOS, 4)
    assert likeliest.tolist() == [4, 5, 6, 7]
    np.testing.assert_allclose(probabilities, 1 / 60, rtol=1e-6)


@pytest.mark.parametrize("k", [0, 57, -1])
def test_more_words_than_there_are_cannot_be_shown(k: int) -> None:
    reader = OnnxReader(session(NETWORKS[0], "step"))
    with pytest.raises(InputError, match=rf"k={k} suggestions cannot be shown; ask for 1 to 56"):
        reader.likeliest(reader.begin(), BOS, k)


def test_a_network_without_a_cell_is_refused_with_the_way_out() -> None:
    with pytest.raises(InputError, match=r"tests\.support\.networks\.gru:Gru .*`onnx_cell`.*a model of the kind cifg"):
        step_graph(Gru(), begun(Gru()))


def test_no_two_things_of_a_graph_have_one_name() -> None:
    graph = Graph("named")
    graph.input("state", np.float32, (2,))
    graph.weight("kernel", np.ones(2, np.float32))
    assert graph.weight("kernel", np.ones(2, np.float32)) == "kernel"
    for name in ("state", "kernel"):
        with pytest.raises(InputError, match=f"the graph named has two things called '{name}'"):
            graph.weight(name, np.zeros(2, np.float32))


def test_a_graph_that_breaks_the_rules_of_onnx_is_not_made() -> None:
    graph = Graph("wrong")
    graph.op("Add", graph.input("a", np.float32, (2,)), graph.number(1, np.int64), name="b")
    graph.output("b", np.float32, (2,))
    with pytest.raises((onnx.checker.ValidationError, onnx.shape_inference.InferenceError)):
        graph.model()


@pytest.mark.parametrize("contexts", [400, pytest.param(10_000, marks=pytest.mark.long)])
def test_the_papers_network_names_the_same_first_word(contexts: int) -> None:
    """Of 10,000 words, after sentences of 20, ties apart; drawn so large that some words are far likelier than most."""
    network, draw = Cifg(), np.random.default_rng(5)
    begun = network.init(jax.random.key(3))
    parameters = begun._replace(output=30.0 * begun.output, projection=4.0 * begun.projection)
    made = onnxruntime.InferenceSession(step_graph(network, parameters).SerializeToString())
    logits = jax.jit(lambda tokens: jax.nn.log_softmax(network.logits(parameters, tokens)))
    same = likely = 0
    for _ in range(contexts // 400):
        tokens = np.minimum(draw.zipf(1.3, (20, 20)) + OOV, network.vocabulary - 1)
        tokens[:, 0] = BOS
        wanted = np.asarray(logits(tokens.astype(np.int32)))
        state = {name: np.zeros((20, width), np.float32) for name, width in OnnxReader(made).widths.items()}
        for place in range(20):
            found, *after = made.run(
                ["log_probabilities", *(name + AFTER for name in state)],
                {"word": tokens[:, place], "k": np.array([1]), **state},
            )
            state = dict(zip(state, after, strict=True))
            np.testing.assert_allclose(np.exp(found), np.exp(wanted[:, place]), atol=1e-5)
            best = wanted[:, place, SPECIALS:].max(axis=1)
            chosen = np.take_along_axis(wanted[:, place], found[:, SPECIALS:].argmax(axis=1)[:, None] + SPECIALS, 1)
            same += int((chosen[:, 0] >= best - 1e-5).sum())
            likely += int((best > np.log(0.01)).sum())
    assert same == contexts and likely > contexts / 2
