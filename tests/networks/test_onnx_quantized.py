"""Graphs with weights of 8 and of 4 bits: what the numbers stand for, and the same steps as in NumPy with these."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import jax
import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from onnx import ModelProto, TensorProto
from tests.support.networks import small
from tests.support.networks.gru import GruWithCell

from tacit.errors import InputError
from tacit.keyboard.onnx_reader import OnnxReader, OnnxScorer
from tacit.networks.cifg.network import Cifg, CifgParameters
from tacit.networks.language_model import LanguageModel, leaves
from tacit.networks.onnx.graph import Graph
from tacit.networks.onnx.quantized import BLOCK, Eight, Four, int4, int8
from tacit.networks.onnx.step import score_graph, step_graph
from tacit.networks.recurrent.reader import NumpyArrays
from tacit.text.vocabulary import BOS, EOS, OOV, PAD

# Wider than a block of 4 bits, and of every other kind its examples, which are narrower.
SMALL = [Cifg(vocabulary=60, embedding=40, units=36), Cifg(vocabulary=60, embedding=40, units=36, tied=True)]
NETWORKS: list[LanguageModel] = [*SMALL, *(each for each in small.SMALL if not isinstance(each, Cifg))]
SCHEMES: dict[str, tuple[Callable[[ModelProto], ModelProto], Any]] = {"int8": (int8, Eight), "int4": (int4, Four)}


@cache
def begun(network: LanguageModel) -> Any:
    """Larger than a training begins, so that what comes next depends on what was read."""
    return jax.tree.map(lambda leaf: 1.5 * leaf, network.init(jax.random.key(7)))


@cache
def session(network: LanguageModel, graph: str, scheme: str) -> Any:
    """scheme: one of SCHEMES, "exact int4", whose products are of float32, or nothing."""
    model = {"step": step_graph, "score": score_graph}[graph](network, begun(network))
    if scheme:
        model = SCHEMES[scheme.removeprefix("exact ")][0](model)
    for node in model.graph.node if scheme.startswith("exact") else ():
        for attribute in node.attribute:
            if attribute.name == "accuracy_level":
                attribute.i = 0
    return running(model)


def running(model: ModelProto) -> Any:
    return onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


# -- numbers -------------------------------------------------------------------------------------------------------

matrices = arrays(
    np.float32,
    st.tuples(st.integers(1, 4), st.integers(1, 70)),
    elements=st.floats(-100, 100, width=32) | st.just(0.0),
)


@given(rows=matrices)
def test_eight_bits_are_off_by_half_a_step_at_most(rows: Any) -> None:
    made = Eight.from_rows(rows)
    assert np.all(np.abs(made.rows() - rows) <= made.scales[:, None] * 0.5001)
    np.testing.assert_allclose(
        made.scales[:, None] * 127, np.abs(rows).max(axis=1, keepdims=True), rtol=1e-6, atol=1e-30
    )


@given(rows=matrices)
def test_four_bits_err_no_more_than_by_the_range_of_each_block(rows: Any) -> None:
    """Against the plain scale, the greatest number over 7, but for its own rounding and for what float16 cannot say."""
    made = Four.from_rows(rows)
    found = made.rows()
    for row in range(len(rows)):
        for first in range(0, rows.shape[1], BLOCK):
            part = rows[row, first : first + BLOCK].astype(np.float64)
            plain = max(np.abs(part).max() / 7, 2.0**-14)
            steps = np.clip(np.rint(part / plain), -8, 7) * plain
            allowed = np.linalg.norm(steps - part) * 1.01 + 2e-3 * np.abs(part).max() * len(part) ** 0.5 + 2**-14
            assert np.linalg.norm(found[row, first : first + BLOCK] - part) <= allowed


def test_two_codes_in_a_byte_the_first_in_its_lower_half() -> None:
    rows = np.zeros((1, 33), np.float32)
    rows[0, :4], rows[0, 32] = [7, -7, 3, 0], 1
    made = Four.from_rows(rows)
    codes = [int(made.codes[0, at // 32, at % 32 // 2]) >> 4 * (at % 2) & 15 for at in range(64)]
    slow = [(code - 8) * float(made.scales[0, at // 32]) for at, code in enumerate(codes)]
    np.testing.assert_allclose(made.rows()[0], slow[:33])
    np.testing.assert_allclose(made.rows(), rows, atol=0.2)
    assert slow[33:] == [0.0] * 31 and made.codes.shape == (1, 2, BLOCK // 2)


@pytest.mark.parametrize("kind", [Eight, Four])
def test_rows_of_nothing_and_of_next_to_nothing_stay_so(kind: Any) -> None:
    assert not kind.from_rows(np.zeros((2, 5), np.float32)).rows().any()
    assert np.abs(kind.from_rows(np.full((2, 5), 1e-40, np.float32)).rows()).max() < 1e-38


# -- steps ---------------------------------------------------------------------------------------------------------


def rounded_8(values: Any) -> Any:
    """ONNX's DynamicQuantizeLinear, and back; of nothing but zeros, which a first state is, they stay so."""
    low, high = min(values.min(), 0.0), max(values.max(), 0.0)
    if low == high:
        return values
    scale = np.float32((high - low) / 255)
    zero = np.clip(np.rint(-low / scale), 0, 255)
    return ((np.clip(np.rint(values / scale) + zero, 0, 255) - zero) * scale).astype(np.float32)


def rounded_4(values: Any) -> Any:
    """What `accuracy_level` 4 does to the left of a product: 8 bits for every block."""
    blocks = np.pad(values, (0, -len(values) % BLOCK)).reshape(-1, BLOCK)
    return Eight.from_rows(blocks).rows().reshape(-1)[: len(values)]


@dataclass(frozen=True)
class FewBits(NumpyArrays):
    """The weights that few bits stand for; `rounded`: what is done to what they are multiplied with."""

    kind: Any
    rounded: Callable[[Any], Any]

    def rows(self, table: Any, ids: int) -> Any:
        return self.kind.from_rows(table).rows()[ids]

    def affine(self, rows: Any, matrix: Any, bias: Any = None, *, turned: bool = False) -> Any:
        left = self.rounded(np.concatenate(rows) if isinstance(rows, tuple) else rows)
        product = self.kind.from_rows(matrix if turned else np.ascontiguousarray(matrix.T)).rows() @ left
        return product if bias is None else product + bias


def slow_logs(network: Any, scheme: str, tokens: list[int], rounded: Any) -> Any:
    """The log-probabilities after tokens, by the cell in NumPy."""
    to, p = (
        FewBits(SCHEMES[scheme][1], rounded),
        {name: np.asarray(leaf) for name, leaf in leaves(begun(network)).items()},
    )
    states = {name: np.zeros(width, np.float32) for name, width in network.states().items()}
    for token in tokens:
        states, features = network.step(to, p, states, network.read(to, p, token))
    scores = network.scores(to, p, features).astype(np.float64)
    return scores - np.log(np.exp(scores).sum())


def logs(network: LanguageModel, scheme: str, tokens: list[int]) -> Any:
    reader = OnnxReader(session(network, "step", scheme))
    state = reader.begin()
    for token in tokens:
        state, found = reader.step(state, token)
    return found


ROUNDED = {"int8": rounded_8, "int4": rounded_4}
ids = st.lists(st.integers(OOV, 59), min_size=1, max_size=5)


def small_graph(weight: Any, *nodes: tuple[str, dict[str, Any]]) -> ModelProto:
    """Products of one input with one matrix."""
    graph = Graph("small")
    left, right = graph.input("left", np.float32, ("N", weight.shape[0])), graph.weight("weight", weight)
    for at, (kind, attributes) in enumerate(nodes):
        graph.output(graph.op(kind, left, right, name=f"result_{at}", **attributes), np.float32, ("N", "rows"))
    return graph.model()


@pytest.mark.parametrize("scheme", SCHEMES)
@given(seed=st.integers(0, 1000), inner=st.integers(1, 100), outer=st.integers(1, 40))
def test_a_product_is_that_of_what_the_numbers_stand_for(scheme: str, seed: int, inner: int, outer: int) -> None:
    random = np.random.default_rng(seed)
    left, weight = (random.normal(size=size).astype(np.float32) for size in ((1, inner), (inner, outer)))
    (found,) = running(SCHEMES[scheme][0](small_graph(weight, ("MatMul", {})))).run(None, {"left": left})
    numbers = SCHEMES[scheme][1].from_rows(np.ascontiguousarray(weight.T)).rows().T
    np.testing.assert_allclose(found[0], ROUNDED[scheme](left[0]) @ numbers, atol=1e-4)


@pytest.mark.parametrize("network", NETWORKS, ids=str)
@given(words=ids)
def test_a_step_of_int4_is_that_of_numpy_where_only_weights_are_rounded(
    network: LanguageModel, words: list[int]
) -> None:
    """The other rounding left out (level 0): a number just between two of 8 bits makes any two ways differ."""
    tokens = [BOS, *words]
    wanted = slow_logs(network, "int4", tokens, lambda values: values)
    np.testing.assert_allclose(logs(network, "exact int4", tokens), wanted, atol=1e-4)


@pytest.mark.parametrize("network", NETWORKS, ids=str)
@pytest.mark.parametrize("scheme", ROUNDED)
def test_a_step_is_that_of_numpy_with_the_same_numbers(network: LanguageModel, scheme: str) -> None:
    """But for numbers just between two of 8 bits, as half of a block's greatest in a row of 4 bits is; what rounding
    does at all is far more."""
    random = np.random.default_rng(5)
    texts = [[BOS, *random.integers(OOV, 60, 4).tolist()] for _ in range(40)]
    apart, rounding = [], []
    for text in texts:
        found = logs(network, scheme, text)
        apart.append(np.abs(found - slow_logs(network, scheme, text, ROUNDED[scheme])).max())
        rounding.append(np.abs(found - logs(network, "", text)).max())
    assert np.median(apart) < 0.15 * np.median(rounding)


@pytest.mark.parametrize("network", [*NETWORKS, GruWithCell()], ids=str)
@pytest.mark.parametrize(("scheme", "bound"), [("int8", 0.02), ("int4", 0.3)])
def test_few_bits_score_about_what_all_do(network: LanguageModel, scheme: str, bound: float) -> None:
    """Sentences by `score.onnx` as by the step, and both near float32."""
    batch = np.array([[BOS, 7, 30, 9, EOS], [BOS, 50, OOV, EOS, PAD]])
    found, plain = (OnnxScorer(session(network, "score", each))(batch) for each in (scheme, ""))
    assert abs(found["loss"] - plain["loss"]) < bound
    assert {name: found[name] for name in ("words", "ends", "predicted", "oov_rate")} == {
        name: plain[name] for name in ("words", "ends", "predicted", "oov_rate")
    }
    by_step = [
        -logs(network, scheme, row[:at].tolist())[row[at]] for row in batch for at in range(1, 5) if row[at] != PAD
    ]
    assert found["loss"] == pytest.approx(np.mean(by_step), abs=0.2 * bound)


# -- graphs --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tied", [False, True])
def test_no_table_is_written_twice_or_in_float32(tied: bool) -> None:
    network = SMALL[tied]
    model = step_graph(network, begun(network))
    for scheme, (quantize, kind) in SCHEMES.items():
        made = quantize(model)
        sizes = {each.name: np.prod(each.dims, dtype=int) for each in made.graph.initializer}
        real = [each.name for each in made.graph.initializer if each.data_type == TensorProto.FLOAT]
        assert all(sizes[name] <= 3 * network.units for name in real)  # biases and scales
        tables = [each for each in made.graph.initializer if each.name.endswith(f".{scheme}")]
        assert len(tables) == (3 if tied else 4)
        codes = kind.from_rows(np.asarray(begun(network).embedding)).codes
        assert codes.tobytes() in [each.raw_data for each in tables]
        assert {each.domain for each in made.opset_import} == ({"", "com.microsoft"} if scheme == "int4" else {""})
        assert [each.name for each in made.graph.output] == [each.name for each in model.graph.output]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_matrix_that_is_multiplied_with_both_ways_is_written_both_ways(scheme: str) -> None:
    weight = np.random.default_rng(2).normal(size=(4, 4)).astype(np.float32)
    made = running(SCHEMES[scheme][0](small_graph(weight, ("MatMul", {}), ("Gemm", {"transB": 1}))))
    forth, back = made.run(None, {"left": np.array([[0, 0, 1, 0]], np.float32)})
    rows = SCHEMES[scheme][1].from_rows
    np.testing.assert_allclose(forth[0], rows(np.ascontiguousarray(weight.T)).rows()[:, 2], atol=1e-5)
    np.testing.assert_allclose(back[0], rows(weight).rows()[:, 2], atol=1e-5)


@given(seed=st.integers(0, 1000))
def test_the_largest_codes_do_not_overflow(seed: int) -> None:
    """Codes of 255 by weights of ±127, which in 16 bits, two products at once, would be clipped."""
    weight = np.where(np.random.default_rng(seed).random((8, 6)) < 0.5, np.float32(-1), np.float32(1))
    (found,) = running(int8(small_graph(weight, ("MatMul", {})))).run(None, {"left": np.ones((1, 8), np.float32)})
    np.testing.assert_allclose(found[0], weight.sum(axis=0), atol=1e-5)


def test_no_product_is_of_naturals_with_signed_integers() -> None:
    """Some processors clip these (ONNX Runtime's issue 6004); on the others no number shows it."""
    graph = int8(step_graph(SMALL[1], begun(SMALL[1]))).graph
    weights = {each.name: each for each in graph.initializer}
    turned = {node.output[0]: node.input[0] for node in graph.node if node.op_type == "Transpose"}
    products = [node for node in graph.node if node.op_type == "MatMulInteger"]
    assert len(products) == 3
    for node in products:
        codes, zero = weights[turned[node.input[1]]], weights[node.input[3]]
        assert {codes.data_type, zero.data_type} == {TensorProto.UINT8}


def test_a_product_that_is_written_otherwise_is_refused() -> None:
    model = small_graph(np.ones((4, 4), np.float32), ("Gemm", {"alpha": 2.0}))
    for quantize, _ in SCHEMES.values():
        with pytest.raises(InputError, match=r"result_0 is a Gemm with alpha, which is not quantized"):
            quantize(model)


@pytest.mark.parametrize("odd", [np.nan, np.inf, 1e6])
def test_weights_that_few_bits_cannot_stand_for_are_refused(odd: float) -> None:
    weights: CifgParameters = begun(SMALL[0])
    broken = weights._replace(kernel=weights.kernel.at[3, 4].set(odd))
    model = step_graph(SMALL[0], broken)
    for quantize, _ in SCHEMES.values():
        with pytest.raises(InputError, match=r"weights parameters\.kernel reach .* export it without quantization"):
            quantize(model)


@pytest.mark.long
@pytest.mark.parametrize(("scheme", "most"), [("int8", 2.6e6), pytest.param("int4", 1.5e6, marks=pytest.mark.nightly)])
def test_the_papers_network_is_small_and_scores_as_numpy_does(scheme: str, most: float) -> None:
    network = Cifg()
    model = SCHEMES[scheme][0](step_graph(network, begun(network)))
    assert model.ByteSize() <= most
    text = [BOS, 77, 1234, 9999]
    reader, wanted = OnnxReader(running(model)), slow_logs(network, scheme, text, ROUNDED[scheme])
    state = reader.begin()
    for token in text:
        state, found = reader.step(state, token)
    np.testing.assert_allclose(found, wanted, atol=0.1)
    assert onnx.checker.check_model(model) is None
