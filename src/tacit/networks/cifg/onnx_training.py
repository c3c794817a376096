"""One step of SGD of the CIFG in ONNX's operators: forward, backward and update, each node an ordinary operation.

The lines are those of `cifg_loss`, whose derivatives are written by hand, and its twins are `Cifg.sgd_step` and the
generic `language_model.sgd_step`. Of the padding only what stands before the longest sentence's end is computed, and
only in the recurrence: all other products run over the real words alone, as in `cifg_packed`.

Shapes, once for the whole file: B sentences, T words of the longest one, R = T*B rows (time-major), of which W are
words; V words in the vocabulary, E embedding width, H units.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tacit.networks.cifg.parameters import CifgSize
from tacit.networks.onnx.graph import Graph
from tacit.text.vocabulary import PAD


class _Words(NamedTuple):
    """The words of a batch."""

    sentences: str  # (1,) B
    longest: str  # (1,) T
    inputs: str  # (R,) ids
    rows: str  # (W,) the rows that are words
    targets: str  # (W, 1) ids
    divisor: str  # () float32: W, 1 where there is none


class _Trace(NamedTuple):
    """What the backward pass needs of each word, (T, B, .)."""

    outputs: str  # the projection (E)
    update: str  # i (H)
    candidate: str  # g (H)
    emit: str  # o (H)
    before: str  # the cell before this word (H)
    squashed: str  # tanh of the cell after it (H)
    hidden: str  # emit * squashed (H)


@dataclass(frozen=True)
class CifgOnnxTraining:
    """See `onnx_training.OnnxTraining`."""

    size: CifgSize

    def step(self, graph: Graph, sentences: str, rate: str, after: dict[str, str]) -> str:
        """See OnnxTraining."""
        words = _words(graph, sentences)
        into, feedback = graph.ops("Split", "kernel", names=2, axis=0, num_outputs=2)
        inputs = graph.op("Gather", "embedding", words.inputs, axis=0)  # (R, E)
        hoisted = _timed(graph, words, graph.op("Gemm", inputs, into, "bias"), 3 * self.size.units)
        trace = self._forward(graph, words, hoisted, feedback)
        # Everything below is linear in the derivative of the loss, so that -rate, put in here, comes out as the step.
        down = graph.op("Div", graph.op("Neg", rate), words.divisor)
        loss, d_outputs, table = self._softmax(graph, words, _of_words(graph, words, trace.outputs), down, after)
        dz, d_projected = self._backward(graph, words, trace, d_outputs, feedback)
        dz, d_projected = _of_words(graph, words, dz), _of_words(graph, words, d_projected)
        hidden = _of_words(graph, words, trace.hidden)
        both = graph.op(
            "Concat",
            graph.op("Gather", inputs, words.rows, axis=0),
            _of_words(graph, words, self._fed_back(graph, words, trace.outputs)),
            axis=1,
        )
        graph.op("Gemm", both, dz, "kernel", transA=1, name=after["kernel"])
        graph.op("Add", "bias", _columns(graph, dz), name=after["bias"])
        graph.op("Gemm", hidden, d_projected, "projection", transA=1, name=after["projection"])
        d_inputs = graph.op("Gemm", dz, into, transB=1)  # (W, E)
        read = graph.op("Unsqueeze", graph.op("Gather", words.inputs, words.rows), graph.number([1]))
        every = graph.op("Expand", read, graph.op("Shape", d_inputs))
        graph.op("ScatterElements", table, every, d_inputs, axis=0, reduction="add", name=after["embedding"])
        return loss

    def _softmax(
        self, graph: Graph, words: _Words, outputs: str, down: str, after: dict[str, str]
    ) -> tuple[str, str, str]:
        """The loss (), what is added to the outputs (W, E), and the input embedding as the softmax leaves it (V, E).

        The derivative of a score is its probability, less 1 at the target; that 1 is taken off in place, so that no
        other (W, V) is written. The loss is exact for the least likely word, too: log sum exp is the greatest score
        less the logarithm of its probability.
        """
        tied = self.size.tied
        if tied:
            scores = graph.op("Gemm", outputs, "embedding", "output_bias", transB=1)
        else:
            scores = graph.op("Gemm", outputs, "output", "output_bias")
        last = graph.number([1])
        shares = graph.op("Softmax", scores, axis=1)
        likeliest = graph.op("Log", graph.op("ReduceMax", shares, last))
        total = graph.op("Sub", graph.op("ReduceMax", scores, last), likeliest)
        nats = graph.op("Sub", total, graph.op("GatherElements", scores, words.targets, axis=1))
        loss = graph.op("Div", graph.op("ReduceSum", nats, keepdims=0), words.divisor)
        typed = graph.op("GatherElements", shares, words.targets, axis=1)
        less = graph.op("Sub", typed, graph.number(1.0, np.float32))
        residual = graph.op("ScatterElements", shares, words.targets, less, axis=1)  # (W, V)
        scaled = graph.op("Mul", outputs, down)
        graph.op("Add", "output_bias", graph.op("Mul", _columns(graph, residual), down), name=after["output_bias"])
        if tied:
            table = graph.op("Gemm", residual, scaled, "embedding", transA=1)
            back = graph.op("MatMul", residual, "embedding")
        else:
            graph.op("Gemm", scaled, residual, "output", transA=1, name=after["output"])
            table, back = "embedding", graph.op("Gemm", residual, "output", transB=1)
        return loss, graph.op("Mul", back, down), table

    def _forward(self, graph: Graph, words: _Words, hoisted: str, feedback: str) -> _Trace:
        """The recurrence, from a zero state; hoisted (T, B, 3H) are the gates' parts of inputs and bias."""
        units, width = self.size.units, self.size.embedding
        body = Graph("forward", around=graph)
        cell, fed_back = body.input("cell", np.float32, ("B", units)), body.input("fed_back", np.float32, ("B", width))
        z = body.op("Add", body.input("z", np.float32, ("B", 3 * units)), body.op("MatMul", fed_back, feedback))
        update, candidate, emit = body.ops("Split", z, names=3, axis=1, num_outputs=3)
        update = body.op("Sigmoid", update, name="update")
        candidate = body.op("Tanh", candidate, name="candidate")
        emit = body.op("Sigmoid", emit, name="emit")
        change = body.op("Mul", update, body.op("Sub", candidate, cell))  # f = 1 - i
        after = body.op("Add", cell, change, name="cell_after")
        squashed = body.op("Tanh", after, name="squashed")
        hidden = body.op("Mul", emit, squashed, name="hidden")
        projected = body.op("MatMul", hidden, "projection", name="projected")
        body.op("Identity", projected, name="fed_back_after")
        body.op("Identity", cell, name="cell_before")
        body.output(after, np.float32, ("B", units))
        for name in ("fed_back_after", "projected"):
            body.output(name, np.float32, ("B", width))
        for name in ("update", "candidate", "emit", "cell_before", "squashed", "hidden"):
            body.output(name, np.float32, ("B", units))
        start = (_zeros(graph, words, units), _zeros(graph, words, width))
        _, _, *trace = graph.ops("Scan", *start, hoisted, names=9, body=body, num_scan_inputs=1)
        return _Trace(*trace)

    def _backward(self, graph: Graph, words: _Words, trace: _Trace, d_outputs: str, feedback: str) -> tuple[str, str]:
        """By the gates before squashing (T, B, 3H) and by the projections (T, B, E), fed back included.

        What needs no derivative is computed of all words at once.
        """
        units, width = self.size.units, self.size.embedding
        one = graph.number(1.0, np.float32)

        def rest(share: str) -> str:
            return graph.op("Sub", one, share)

        def product(*factors: str) -> str:
            found = factors[0]
            for factor in factors[1:]:
                found = graph.op("Mul", found, factor)
            return found

        by_update = product(graph.op("Sub", trace.candidate, trace.before), trace.update, rest(trace.update))
        by_candidate = product(trace.update, rest(product(trace.candidate, trace.candidate)))
        by_emit = product(trace.hidden, rest(trace.emit))
        by_cell = product(trace.emit, rest(product(trace.squashed, trace.squashed)))
        kept = rest(trace.update)
        here = _timed(graph, words, _placed(graph, words, d_outputs, width), width)
        back, back_fed = graph.op("Transpose", "projection", perm=[1, 0]), graph.op("Transpose", feedback, perm=[1, 0])

        body = Graph("backward", around=graph)
        d_cell, d_fed = body.input("d_cell", np.float32, ("B", units)), body.input("d_fed", np.float32, ("B", width))
        word = [body.input("d_here", np.float32, ("B", width))]
        word += [body.input(name, np.float32, ("B", units)) for name in ("of_i", "of_g", "of_o", "of_c", "of_before")]
        d_here, of_i, of_g, of_o, of_c, of_before = word
        d_output = body.op("Add", d_here, d_fed, name="d_output")
        d_hidden = body.op("MatMul", d_output, back)
        d_cell = body.op("Add", d_cell, body.op("Mul", d_hidden, of_c))
        parts = [body.op("Mul", *pair) for pair in ((d_cell, of_i), (d_cell, of_g), (d_hidden, of_o))]
        dz = body.op("Concat", *parts, axis=1, name="dz")
        body.op("Mul", d_cell, of_before, name="d_cell_before")
        body.op("MatMul", dz, back_fed, name="d_fed_before")
        body.output("d_cell_before", np.float32, ("B", units))
        body.output("d_fed_before", np.float32, ("B", width))
        body.output("dz", np.float32, ("B", 3 * units))
        body.output("d_output", np.float32, ("B", width))
        end = (_zeros(graph, words, units), _zeros(graph, words, width))
        each = (here, by_update, by_candidate, by_emit, by_cell, kept)
        reverse = dict(scan_input_directions=[1] * 6, scan_output_directions=[1] * 2)
        _, _, dz, d_output = graph.ops("Scan", *end, *each, names=4, body=body, num_scan_inputs=6, **reverse)
        return dz, d_output

    def _fed_back(self, graph: Graph, words: _Words, outputs: str) -> str:
        """The projection that each word was read with, (T, B, E): that of the word before it."""
        start, first = (
            graph.number([0]),
            graph.op("Unsqueeze", _zeros(graph, words, self.size.embedding), graph.number([0])),
        )
        return graph.op("Concat", first, graph.op("Slice", outputs, start, graph.number([-1]), start), axis=0)


# -- the rows ------------------------------------------------------------------------------------------------------


def _words(graph: Graph, sentences: str) -> _Words:
    """Of padded sentences (B, L+1)."""
    zero, one, rest = graph.number([0]), graph.number([1]), graph.number([-1])
    turned = graph.op("Transpose", sentences, perm=[1, 0])  # (L+1, B)
    targets = graph.op("Slice", turned, one, graph.number([2**31]), zero)
    there = graph.op("Not", graph.op("Equal", targets, graph.number(PAD)))
    places = graph.op("NonZero", there)  # (2, W): times, sentences
    times, columns = (graph.op("Gather", places, graph.number(each), axis=0) for each in (0, 1))
    latest = graph.op("ReduceMax", graph.op("Concat", times, zero, axis=0), zero)  # (1,); 0 where there is no word
    longest = graph.op("Add", latest, one)
    count = graph.op("Gather", graph.op("Shape", turned), one)
    rows = graph.op("Add", graph.op("Mul", times, count), columns)
    words = graph.op("Cast", graph.op("Size", times), to=1)
    typed = graph.op("Gather", graph.op("Reshape", targets, rest), rows)
    return _Words(
        sentences=count,
        longest=longest,
        inputs=graph.op("Reshape", graph.op("Slice", turned, zero, longest, zero), rest),
        rows=rows,
        targets=graph.op("Unsqueeze", typed, one),
        divisor=graph.op("Max", words, graph.number(1.0, np.float32)),
    )


def _timed(graph: Graph, words: _Words, rows: str, width: int) -> str:
    """Rows (R, width) by time, (T, B, width)."""
    return graph.op("Reshape", rows, graph.op("Concat", words.longest, words.sentences, graph.number([width]), axis=0))


def _of_words(graph: Graph, words: _Words, timed: str) -> str:
    """The rows that are words (W, width), of what is there by time (T, B, width)."""
    flat = graph.op("Flatten", timed, axis=2)
    return graph.op("Gather", flat, words.rows, axis=0)


def _placed(graph: Graph, words: _Words, of_words: str, width: int) -> str:
    """(R, width) with those of words (W, width) in their rows, and zeros elsewhere."""
    rows = graph.op("Mul", words.longest, words.sentences)
    blank = graph.op("Expand", graph.number(0.0, np.float32), graph.op("Concat", rows, graph.number([width]), axis=0))
    return graph.op("ScatterND", blank, graph.op("Unsqueeze", words.rows, graph.number([1])), of_words)


def _zeros(graph: Graph, words: _Words, width: int) -> str:
    """(B, width)"""
    shape = graph.op("Concat", words.sentences, graph.number([width]), axis=0)
    return graph.op("Expand", graph.number(0.0, np.float32), shape)


def _columns(graph: Graph, rows: str) -> str:
    """The sum of the rows."""
    return graph.op("ReduceSum", rows, graph.number([0]), keepdims=0)
