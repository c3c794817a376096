"""A network as two graphs: one word of a sentence (`step.onnx`), and what whole sentences score (`score.onnx`).

Both are built from the network's `OnnxCell`, which says in ONNX's operators what it does with one word. Their slow
references are the network itself in JAX: `suggest.Rereader` for the step, `language_model.count` and `NextWordLoss` for
sentences.

N sentences at once, V words in the vocabulary, L predicted words of each sentence.
"""

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np
from onnx import ModelProto

from tacit.errors import InputError
from tacit.networks.language_model import LanguageModel, Parameters, kind_of
from tacit.networks.metrics import SHOWN
from tacit.networks.models import DEFAULT
from tacit.networks.onnx.graph import Graph
from tacit.text.vocabulary import EOS, OOV, PAD, SPECIALS

AFTER = "_after"  # behind the name of a state, as the step gives it back


class OnnxCell(Protocol):
    """What a network does with one word of each of N sentences, in ONNX's operators."""

    @property
    def states(self) -> Mapping[str, int]:
        """What is carried from word to word: the width of each by name, (N, width) float32, zero before the first."""
        ...

    def step(self, graph: Graph, word: str, states: Mapping[str, str], after: Mapping[str, str]) -> str:
        """Add the operations for `word` (N,) int64 to a graph; what the scores are read from, (N, features).

        states: the names of the values that are carried. after: the names that their successors are to have.
        """
        ...

    def scores(self, graph: Graph, features: str) -> str:
        """Add the operations from features (W, features) to the scores (W, V) of the next word."""
        ...

    @property
    def features(self) -> int:
        """How many features there are."""
        ...


@runtime_checkable
class HasOnnxCell(Protocol):
    """A network that can be written as ONNX."""

    def onnx_cell(self, parameters: Parameters) -> OnnxCell:
        """What it does with one word; equal to `logits` but for rounding."""
        ...


def cell_of(network: LanguageModel, parameters: Parameters) -> OnnxCell:
    """The network's cell. Raises: InputError where it has none, with the way out."""
    if not isinstance(network, HasOnnxCell):
        raise InputError(
            f"a network of the kind {kind_of(network)} says nowhere what it does in ONNX's operators, so it cannot be "
            f"exported; give it a method `onnx_cell` (docs/extending.md), or export a model of the kind {DEFAULT}."
        )
    return network.onnx_cell(parameters)


# -- one word ------------------------------------------------------------------------------------------------------


def step_graph(network: LanguageModel, parameters: Parameters) -> ModelProto:
    """One word read, and the likeliest that come next.

    Inputs: `word` (N,) int64, `k` (1,) int64, and each state of the cell (N, width) float32. Outputs: each state with
    AFTER behind its name; `log_probabilities` (N, V) float32, natural, of the softmax over all V; `ids` (N, k) int64
    and `probabilities` (N, k) float32 of the k likeliest words, the likeliest first, of equally likely ones the smaller
    id first, and never a special token.
    """
    cell, graph = cell_of(network, parameters), Graph("step")
    word, k = graph.input("word", np.int64, ("N",)), graph.input("k", np.int64, (1,))
    states = {name: graph.input(name, np.float32, ("N", width)) for name, width in cell.states.items()}
    after = {name: name + AFTER for name in states}
    scores = cell.scores(graph, cell.step(graph, word, states, after))
    logs = graph.op("LogSoftmax", scores, axis=-1, name="log_probabilities")
    start, end = graph.number([SPECIALS]), graph.number([network.vocabulary])
    words = graph.op("Slice", logs, start, end, graph.number([1]))
    best, places = graph.ops("TopK", words, k, names=2, axis=-1)
    graph.op("Exp", best, name="probabilities")
    graph.op("Add", places, graph.number(SPECIALS), name="ids")
    graph.output("ids", np.int64, ("N", "k"))
    graph.output("probabilities", np.float32, ("N", "k"))
    graph.output("log_probabilities", np.float32, ("N", network.vocabulary))
    for name, width in cell.states.items():
        graph.output(after[name], np.float32, ("N", width))
    return graph.model()


# -- sentences -----------------------------------------------------------------------------------------------------


def score_graph(network: LanguageModel, parameters: Parameters) -> ModelProto:
    """What sentences score: the loss that training lowers, and the sums of `metrics.METRICS` without ends.

    Input: `sentences` (N, L+1) int64, each BOS, words, EOS, then PAD. Outputs, all (): `loss`, mean nats a target as
    `NextWordLoss`; the numbers of `metrics.Counts`: `words`, `ends`, `predicted` int64, and the sum of each metric,
    int64 where it counts and float32 where it adds up nats.
    """
    cell, graph = cell_of(network, parameters), Graph("score")
    sentences = graph.input("sentences", np.int64, ("N", "L_and_1"))
    turned = graph.op("Transpose", sentences, perm=[1, 0])  # (L+1, N)
    first, last, most, rows = graph.number([0]), graph.number([-1]), graph.number([2**31]), graph.number([0])
    tokens = graph.op("Slice", turned, first, last, rows)  # (L, N)
    targets = graph.op("Slice", turned, graph.number([1]), most, rows)
    targets = graph.op("Reshape", targets, graph.number([-1]))  # (W,) time-major
    features = graph.op("Reshape", _features(graph, cell, tokens), graph.number([-1, cell.features]))
    scores = cell.scores(graph, features)  # (W, V)
    column = graph.op("Unsqueeze", targets, graph.number([1]))  # (W, 1)
    picked = graph.op("GatherElements", scores, column, axis=1)  # (W, 1)
    nats = graph.op("Sub", graph.op("ReduceLogSumExp", scores, graph.number([1]), keepdims=1), picked)
    nats = graph.op("Squeeze", nats, graph.number([1]))
    ranks = _before(graph, slice(SPECIALS, network.vocabulary), scores, picked, column)
    likelier = _before(graph, slice(EOS, SPECIALS), scores, picked, column)
    _count(graph, targets, ranks, likelier, nats)
    return graph.model()


def _features(graph: Graph, cell: OnnxCell, tokens: str) -> str:
    """The features (L, N, features) after tokens (L, N), from a zero state."""
    body = Graph("word_by_word", around=graph)
    states = {name: body.input(f"{name}_before", np.float32, ("N", width)) for name, width in cell.states.items()}
    word = body.input("token", np.int64, ("N",))
    after = {name: name + AFTER for name in states}
    features = cell.step(body, word, states, after)
    for name, width in cell.states.items():
        body.output(after[name], np.float32, ("N", width))
    body.op("Identity", features, name="features")
    body.output("features", np.float32, ("N", cell.features))
    sentences = graph.op("Gather", graph.op("Shape", tokens), graph.number([1]))
    zero = graph.number(0.0, np.float32)
    begin = [
        graph.op("Expand", zero, graph.op("Concat", sentences, graph.number([width]), axis=0))
        for width in cell.states.values()
    ]
    *_, found = graph.ops("Scan", *begin, tokens, names=len(begin) + 1, body=body, num_scan_inputs=1)
    return found


def _before(graph: Graph, which: slice, scores: str, picked: str, targets: str) -> str:
    """How many of these ids come before each target, (W,) int64, as `language_model.ranked` has it; targets (W, 1)."""
    those = graph.op("Slice", scores, graph.number([which.start]), graph.number([which.stop]), graph.number([1]))
    ids = graph.weight(f"ids_from_{which.start}", np.arange(which.start, which.stop, dtype=np.int64)[None, :])
    tied = graph.op("And", graph.op("Equal", those, picked), graph.op("Less", ids, targets))
    before = graph.op("Or", graph.op("Greater", those, picked), tied)
    return _total(graph, before, axis=1)


def _count(graph: Graph, targets: str, ranks: str, likelier: str, nats: str) -> None:
    """The outputs of `score_graph` from targets, how many words and how many specials come before each, and nats, all
    (W,).
    """
    known = graph.op("GreaterOrEqual", targets, graph.number(SPECIALS))
    unknown = graph.op("Equal", targets, graph.number(OOV))
    there = graph.op("Not", graph.op("Equal", targets, graph.number(PAD)))
    summed = graph.op("ReduceSum", graph.op("Where", there, nats, graph.number(0.0, np.float32)), keepdims=0)
    many = graph.op("Max", graph.op("Cast", _total(graph, there), to=1), graph.number(1.0, np.float32))
    graph.op("Div", summed, many, name="loss")
    graph.output("loss", np.float32, ())
    ends = graph.op("Equal", targets, graph.number(EOS))
    first = graph.op("Less", graph.op("Add", ranks, likelier), graph.number(1))
    typed = graph.op("Or", known, unknown)
    counted = {
        "words": typed,
        "ends": ends,
        "predicted": known,
        "top1_accuracy": graph.op("And", known, graph.op("Less", ranks, graph.number(1))),
        "top3_accuracy": graph.op("And", known, graph.op("Less", ranks, graph.number(SHOWN))),
        "all_token_accuracy": graph.op("And", graph.op("Or", typed, ends), first),
        "oov_rate": unknown,
    }
    for name, which in counted.items():
        _total(graph, which, name=name)
        graph.output(name, np.int64, ())
    graph.op(
        "ReduceSum",
        graph.op("Where", known, nats, graph.number(0.0, np.float32)),
        keepdims=0,
        name="cross_entropy",
    )
    graph.output("cross_entropy", np.float32, ())


def _total(graph: Graph, which: str, *, axis: int | None = None, name: str = "") -> str:
    """How many are true, int64, along an axis or of all."""
    over: tuple[Any, ...] = () if axis is None else (graph.number([axis]),)
    return graph.op("ReduceSum", graph.op("Cast", which, to=7), *over, keepdims=0, name=name)
