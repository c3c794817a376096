"""One step of SGD of any cell in ONNX's operators: forward, backward and update, each node an ordinary operation.

The cell's own lines are written into the graph, and derived from their end to their beginning (reverse accumulation).
The reference is the generic `language_model.sgd_step`, whose derivatives are JAX's.

What needs no state is computed outside of the two loops over words, forwards and backwards: a word's part of a product,
the derivatives of sigmoid and tanh, and the gradient of every parameter. Of the padding only what stands before the
longest sentence's end is computed, and only on the way forwards: all other products run over the real words alone.

Shapes, once for the whole file: B sentences, T words of the longest one, R = T*B rows (time-major), of which W are
words; V words in the vocabulary. A slope is the derivative of the loss by a value, of the value's shape.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tacit.networks.onnx.graph import Graph
from tacit.networks.recurrent.cell import Cell
from tacit.networks.recurrent.onnx import Factor, Made, OnnxArrays, Product, Value, Weight, multiplied, side_by_side
from tacit.text.vocabulary import PAD


class _Words(NamedTuple):
    """The words of a batch."""

    sentences: str  # (1,) B
    longest: str  # (1,) T
    inputs: str  # (R,) ids
    rows: str  # (W,) the rows that are words
    targets: str  # (W, 1) ids
    divisor: str  # () float32: W, 1 where there is none


@dataclass(frozen=True)
class RecurrentOnnxTraining:
    """See `onnx.training.OnnxTraining`."""

    cell: Cell

    def step(self, graph: Graph, sentences: str, rate: str, after: Mapping[str, str]) -> str:
        """See OnnxTraining."""
        words, shapes, widths = _words(graph, sentences), self.cell.shapes(), self.cell.states()
        p = {name: Weight(name, shapes[name]) for name in after}
        forward = _Forward(graph, words)
        before = {name: forward.state(name, width) for name, width in widths.items()}
        read = self.cell.read(forward, p, Value(forward, words.inputs, 0))
        done, features = self.cell.step(forward, p, before, read)
        forward.run([done[name] for name in before], features)

        ends = _Remembered(graph)
        shown = Value(ends, forward.of_words(features), features.width)
        loss, residual = _softmax(graph, words, self.cell.scores(ends, p, shown).name)
        # Everything below is linear in the derivative of the loss, so that -rate, put in here, comes out as the step.
        down = graph.op("Div", graph.op("Neg", rate), words.divisor)
        steps = _Steps(graph)
        back = _Backward(graph, steps, lambda value: value.name)
        back.give(ends.made[-1], _Slope(residual, down))
        back.derive(ends.made)
        of_rows = _Backward(graph, steps, forward.of_words)
        loop = _BackwardInLoop(forward, steps, of_rows)
        carried = {name: loop.carry(value) for name, value in before.items()}
        loop.give(features, _Slope(loop.placed(back.settled(back.slopes[shown]), features.width)))
        for name, value in done.items():
            loop.give(value, _Slope(carried[name]))
        loop.derive([value for value in forward.made if value.inside])
        loop.run()
        of_rows.derive([value for value in forward.made if not value.inside])
        steps.take(after)
        return loss


# -- forward -------------------------------------------------------------------------------------------------------


class _Remembered(OnnxArrays):
    """The cell's operations, in their order."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self.made: list[Value] = []

    def kept(self, name: str, width: int, made: Made | Product, *, inside: bool = False) -> Value:
        """See OnnxArrays."""
        self.made.append(super().kept(name, width, made, inside=inside))
        return self.made[-1]


class _Loop:
    """An operation Scan: a body that is run word by word, forwards or backwards; each value in it is (B, width)."""

    def __init__(self, graph: Graph, words: _Words, name: str, *, backwards: bool = False) -> None:
        self.body = Graph(name, around=graph)
        self._graph, self._words, self._backwards = graph, words, backwards
        self._states: list[int] = []  # their widths
        self._given: dict[str, str] = {}  # by the name of what there is of all words: its name in the body
        self._out: dict[str, tuple[str, int]] = {}  # by a name in the body: its name of all words, its width
        self._inputs: set[str] = set()

    def state(self, name: str, width: int) -> str:
        """A value that is carried from word to word; zero before the first."""
        self._states.append(width)
        return self._input(name, width)

    def given(self, every: str, width: int) -> str:
        """One word's part of what there is of all words, (T, B, width)."""
        if every not in self._given:
            self._given[every] = self._input(every, width)
        return self._given[every]

    def out(self, each: str, width: int) -> str:
        """What a value of the body is called for all words, (T, B, width), once the loop was run."""
        return self._out.setdefault(each, (f"{each}.of_all", width))[0]

    def run(self, after: Sequence[str]) -> None:
        """Write the operation. after: the states after a word."""
        seen = set(self._inputs)  # an output is the result of an operation, and of one name
        for each, width in [
            *zip(after, self._states, strict=True),
            *((each, self._out[each][1]) for each in self._out),
        ]:
            seen.add(
                self.body.output(self.body.op("Identity", each) if each in seen else each, np.float32, ("B", width))
            )
        names = (f"{self.body.name}.end_{at}" for at in range(len(self._states)))
        ways = {"scan_input_directions": [1] * len(self._given), "scan_output_directions": [1] * len(self._out)}
        self._graph.ops(
            "Scan",
            *(_zeros(self._graph, self._words, width) for width in self._states),
            *self._given,
            names=(*names, *(every for every, _ in self._out.values())),
            body=self.body,
            num_scan_inputs=len(self._given),
            **(ways if self._backwards else {}),
        )

    def _input(self, name: str, width: int) -> str:
        name = self.body.input(f"{self.body.name}.{name}", np.float32, ("B", width))
        self._inputs.add(name)
        return name


class _Forward(_Remembered):
    """The cell's operations: on all rows (R, .) at once where no state is needed, else on one word's in a loop."""

    def __init__(self, graph: Graph, words: _Words) -> None:
        super().__init__(graph)
        self.words, self.loop = words, _Loop(graph, words, "forward")
        self._rows: dict[Value, str] = {}

    def state(self, name: str, width: int) -> Value:
        """A state before a word."""
        return Value(self, self.loop.state(name, width), width, inside=True)

    def home(self, *values: Value) -> Graph:
        """See OnnxArrays."""
        return self.loop.body if any(value.inside for value in values) else self.graph

    def at_hand(self, factor: Factor, *, inside: bool) -> str:
        """See OnnxArrays."""
        if inside and isinstance(factor, Value) and not factor.inside:
            return self.loop.given(self.timed(factor), factor.width)
        return super().at_hand(factor, inside=inside)

    def product(self, made: Product, width: int) -> Value:
        """See OnnxArrays: of rows side by side, what needs no state is multiplied outside of the loop."""
        if not any(part.inside for part in made.parts):
            return super().product(made, width)
        total, bias = "", made.bias
        for part in sorted(made.parts, key=lambda part: part.inside):
            home, block = self.home(part), block_of(self.graph, made, part)
            row = multiplied(home, part.name, block, bias, turned=made.turned)
            if not part.inside:
                row = self.loop.given(_timed(self.graph, self.words, row, width), width)
            total, bias = self.loop.body.op("Add", total, row) if total else row, None
        return self.kept(total, width, made, inside=True)

    def run(self, after: Sequence[Value], features: Value) -> None:
        """Write the loop. after: the states after a word."""
        for value in [features, *(each for made in self.made if made.inside for each in _looked_at(made))]:
            if value.inside:
                self.loop.out(value.name, value.width)
        self.loop.run([self.at_hand(value, inside=True) for value in after])

    def timed(self, value: Value) -> str:
        """A value of all words, (T, B, width)."""
        if value.inside:
            return self.loop.out(value.name, value.width)
        return _timed(self.graph, self.words, value.name, value.width)

    def of_words(self, value: Value) -> str:
        """Its rows that are words, (W, width)."""
        if value not in self._rows:
            name = _of_words(self.graph, self.words, self.timed(value)) if value.inside else value.name
            self._rows[value] = name if value.inside else self.graph.op("Gather", name, self.words.rows, axis=0)
        return self._rows[value]


def block_of(graph: Graph, made: Product, part: Value) -> str:
    """The rows of the matrix of a product that one of its parts is multiplied with; turned: its columns."""
    if len(made.parts) == 1:
        return made.matrix.name
    start = sum(each.width for each in made.parts[: made.parts.index(part)])
    ends = (graph.number([start]), graph.number([start + part.width]), graph.number([int(made.turned)]))
    return graph.op("Slice", made.matrix.name, *ends)


def _looked_at(value: Value) -> list[Value]:
    """The values whose numbers its derivatives need."""
    made = value.made
    if isinstance(made, Product):
        return list(made.parts)
    if made is None or made.kind in ("Add", "Sub", "Split"):
        return []
    return [value] if made.kind in ("Tanh", "Sigmoid") else [each for each in made.of if isinstance(each, Value)]


# -- backward ------------------------------------------------------------------------------------------------------


class _Slope(NamedTuple):
    """A slope; scale (): what its numbers are still to be multiplied with, so that it is done where they are fewest."""

    name: str
    scale: str | None = None


class _Steps:
    """What is added to each parameter, in parts: products of two matrices, sums of rows, rows by id."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._parts: dict[str, list[Callable[[str, str], str]]] = defaultdict(list)  # (before, name) -> after

    def product(self, to: Weight, left: str, slope: str, *, turned: bool) -> None:
        """left.T @ slope, of (W, n) and (W, m)."""
        pair = (slope, left) if turned else (left, slope)
        self._parts[to.name].append(lambda before, name: self._graph.op("Gemm", *pair, before, transA=1, name=name))

    def sum(self, to: Weight, rows: str, scale: str | None) -> None:
        """The sum of rows (W, m)."""
        total = self._graph.op("ReduceSum", rows, self._graph.number([0]), keepdims=0)
        total = self._graph.op("Mul", total, scale) if scale else total
        self._parts[to.name].append(lambda before, name: self._graph.op("Add", before, total, name=name))

    def rows(self, to: Weight, ids: str, rows: str) -> None:
        """Rows (W, m), each to that with its id (W,)."""
        graph = self._graph
        every = graph.op("Expand", graph.op("Unsqueeze", ids, graph.number([1])), graph.op("Shape", rows))
        self._parts[to.name].append(
            lambda before, name: graph.op("ScatterElements", before, every, rows, axis=0, reduction="add", name=name)
        )

    def take(self, after: Mapping[str, str]) -> None:
        """Write them. after: the names of the parameters then."""
        for weight, name in after.items():
            *parts, last = self._parts[weight] or [lambda before, name: self._graph.op("Identity", before, name=name)]
            before = weight
            for part in parts:
                before = part(before, "")
            last(before, name)


class _Backward:
    """From the slopes of what was computed to those of what it was computed from, over all words (W, .) at once."""

    def __init__(self, graph: Graph, steps: _Steps, rows: Callable[[Value], str]) -> None:
        """graph: where slopes are computed. rows: what a value is called there."""
        self.graph, self.steps, self.rows = graph, steps, rows
        self.slopes: dict[Value, _Slope] = {}
        self._pieces: dict[Value, list[_Slope | None]] = {}  # of values that were split, by part

    def derive(self, made: Sequence[Value]) -> None:
        """Of these values, which are in the order in which they were computed."""
        for value in reversed(made):
            self._join(value)
            if value in self.slopes:
                slope = self.slopes.pop(value)
                if isinstance(value.made, Product):
                    self.product(value.made, slope, value.width)
                elif value.made is not None:
                    self._derive(value, value.made, slope)
        for value in list(self._pieces):
            self._join(value)

    def give(self, factor: Factor, slope: _Slope) -> None:
        """One part of the slope of a value or a parameter; a number has none."""
        if isinstance(factor, Weight):
            self.steps.sum(factor, slope.name, slope.scale)
        elif isinstance(factor, Value):
            known = self.slopes.get(factor)
            both = _Slope(self.graph.op("Add", self.settled(known), self.settled(slope))) if known else slope
            self.slopes[factor] = both

    def settled(self, slope: _Slope) -> str:
        """The slope in its own numbers."""
        return self.graph.op("Mul", slope.name, slope.scale) if slope.scale else slope.name

    def hand(self, factor: Factor) -> str:
        """The numbers of a factor, beside slopes."""
        if isinstance(factor, Value):
            return self.rows(factor)
        return factor.name if isinstance(factor, Weight) else self.graph.number(factor, np.float32)

    def local(self, value: Value, kind: str) -> str:
        """The derivative of a Tanh or Sigmoid, beside slopes."""
        return _local(self.graph, kind, self.rows(value))

    def product(self, made: Product, slope: _Slope, width: int) -> None:
        """The slopes of what was multiplied, and the steps of the matrix and the bias."""
        left = side_by_side(self.graph, [self.rows(part) for part in made.parts])  # (W, .)
        left = self.graph.op("Mul", left, slope.scale) if slope.scale else left
        self.steps.product(made.matrix, left, slope.name, turned=made.turned)
        if made.bias is not None:
            self.steps.sum(made.bias, slope.name, slope.scale)
        for part in made.parts:
            if not part.inside:  # of what is, the loop knows the slope
                block = block_of(self.graph, made, part)
                back = self.graph.op("Gemm", slope.name, block, transB=int(not made.turned))
                self.give(part, _Slope(back, slope.scale))

    def _derive(self, value: Value, made: Made, slope: _Slope) -> None:
        match made.kind, made.of:
            case "Add", (left, right):
                self.give(left, slope)
                self.give(right, slope)
            case "Sub", (left, right):
                self.give(left, slope)
                if not isinstance(right, float | int):
                    self.give(right, _Slope(self.graph.op("Neg", slope.name), slope.scale))
            case "Mul", (left, right):
                for factor, other in ((left, right), (right, left)):
                    if not isinstance(factor, float | int):
                        self.give(factor, self._times(slope, self.hand(other)))
            case "Tanh" | "Sigmoid", (before,):
                self.give(before, self._times(slope, self.local(value, made.kind)))
            case "Split", (Value() as whole,):
                self._pieces.setdefault(whole, [None] * made.parts)[made.at] = slope
            case "Gather", (Weight() as table, Value() as ids):
                self.steps.rows(table, self.rows(ids), self.settled(slope))
            case _:
                raise AssertionError(f"{made.kind} has no derivative here")

    def _times(self, slope: _Slope, factor: str) -> _Slope:
        return _Slope(self.graph.op("Mul", slope.name, factor), slope.scale)

    def _join(self, value: Value) -> None:
        """The slope of a value that was split, from those of its parts; a part that nobody used has zeros."""
        found = self._pieces.pop(value, None)
        if found is not None:
            names = [self.settled(slope) if slope else "" for slope in found]
            some = next(name for name in names if name)
            nothing = "" if all(names) else self.graph.op("Mul", some, self.graph.number(0.0, np.float32))
            self.give(value, _Slope(self.graph.op("Concat", *(name or nothing for name in names), axis=1)))


class _BackwardInLoop(_Backward):
    """The same word by word (B, .), in a loop from the last to the first.

    What needs no slope is computed before it, of all words, and so is, after it, what only slopes need: `later`.
    """

    def __init__(self, forward: _Forward, steps: _Steps, outside: _Backward) -> None:
        """outside: where the slopes go of what was computed of all words at once."""
        self.loop = _Loop(forward.graph, forward.words, "backward", backwards=True)
        super().__init__(self.loop.body, steps, lambda value: self.loop.given(forward.timed(value), value.width))
        self._forward, self._outside = forward, outside
        self._later: list[Callable[[], None]] = []
        self._carried: dict[Value, str] = {}

    def carry(self, before: Value) -> str:
        """The slope of a state before a word, as it comes from the word after it."""
        self._carried[before] = self.loop.state(before.name, before.width)
        return self._carried[before]

    def placed(self, slope: str, width: int) -> str:
        """One word's part of a slope of all words (W, width)."""
        outer, words = self._forward.graph, self._forward.words
        return self.loop.given(_timed(outer, words, _placed(outer, words, slope, width), width), width)

    def run(self) -> None:
        """Write the loop, and what comes after it."""
        outer, words = self._forward.graph, self._forward.words
        after = [
            self.settled(self.slopes[value])
            if value in self.slopes
            else self.graph.op("Identity", _zeros(outer, words, value.width))
            for value in self._carried
        ]
        self.loop.run(after)
        for each in self._later:
            each()

    def give(self, factor: Factor, slope: _Slope) -> None:
        """See _Backward."""
        if isinstance(factor, Value) and factor.inside:
            super().give(factor, slope)
        elif not isinstance(factor, float | int):
            width = factor.width if isinstance(factor, Value) else factor.shape[-1]
            every = self.loop.out(slope.name, width)
            self._later.append(lambda: self._outside.give(factor, _Slope(self._of_words(every))))

    def local(self, value: Value, kind: str) -> str:
        """See _Backward."""
        return self.loop.given(_local(self._forward.graph, kind, self._forward.timed(value)), value.width)

    def product(self, made: Product, slope: _Slope, width: int) -> None:
        """See _Backward."""
        every, outer = self.loop.out(slope.name, width), self._forward.graph
        for part in made.parts:
            if part.inside:
                block = block_of(outer, made, part)
                back = block if made.turned else outer.op("Transpose", block, perm=[1, 0])
                self.give(part, _Slope(self.graph.op("MatMul", slope.name, back)))
        self._later.append(lambda: self._outside.product(made, _Slope(self._of_words(every)), width))

    def _of_words(self, every: str) -> str:
        return _of_words(self._forward.graph, self._forward.words, every)


def _local(graph: Graph, kind: str, value: str) -> str:
    """The derivative of tanh or sigmoid where it has this value."""
    one = graph.number(1.0, np.float32)
    if kind == "Tanh":
        return graph.op("Sub", one, graph.op("Mul", value, value))
    return graph.op("Mul", value, graph.op("Sub", one, value))


# -- the softmax ---------------------------------------------------------------------------------------------------


def _softmax(graph: Graph, words: _Words, scores: str) -> tuple[str, str]:
    """The loss (), and W times its slopes by the scores (W, V).

    The derivative of a score is its probability, less 1 at the target; that 1 is taken off in place, so that no other
    (W, V) is written. The loss is exact for the least likely word, too: log sum exp is the greatest score less the
    logarithm of its probability.
    """
    last = graph.number([1])
    shares = graph.op("Softmax", scores, axis=1)
    likeliest = graph.op("Log", graph.op("ReduceMax", shares, last))
    total = graph.op("Sub", graph.op("ReduceMax", scores, last), likeliest)
    nats = graph.op("Sub", total, graph.op("GatherElements", scores, words.targets, axis=1))
    loss = graph.op("Div", graph.op("ReduceSum", nats, keepdims=0), words.divisor)
    typed = graph.op("GatherElements", shares, words.targets, axis=1)
    less = graph.op("Sub", typed, graph.number(1.0, np.float32))
    return loss, graph.op("ScatterElements", shares, words.targets, less, axis=1)


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
