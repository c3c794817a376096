"""A cell in ONNX's operators, word by word: its lines as they stand, each operation a node.

What is computed is remembered (`Value.made`), so that `onnx_training` can derive it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Union

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError
from tacit.networks.onnx.graph import Graph
from tacit.networks.recurrent.cell import Cell

Factor = Union["Value", "Weight", float]  # what is added and multiplied


class Weight(NamedTuple):
    """A parameter, by its name in the graph."""

    name: str
    shape: tuple[int, ...]


class Made(NamedTuple):
    """How a value was made, but by a product."""

    kind: str  # an operator of ONNX
    of: tuple[Factor, ...]
    at: int = 0  # of a Split: which part
    parts: int = 1  # and of how many


class Product(NamedTuple):
    """How a product was made: rows side by side @ matrix + bias."""

    parts: "tuple[Value, ...]"
    matrix: Weight
    bias: Weight | None
    turned: bool  # the matrix


@dataclass(frozen=True, eq=False)
class Value:
    """A result in a graph (N, width), to be computed with."""

    arrays: "OnnxArrays"
    name: str
    width: int
    inside: bool = False  # of the loop over words
    made: Made | Product | None = None

    def __add__(self, other: Factor) -> "Value":
        return self.arrays.elementwise("Add", self, other)

    def __radd__(self, other: Factor) -> "Value":
        return self.arrays.elementwise("Add", other, self)

    def __sub__(self, other: Factor) -> "Value":
        return self.arrays.elementwise("Sub", self, other)

    def __rsub__(self, other: Factor) -> "Value":
        return self.arrays.elementwise("Sub", other, self)

    def __mul__(self, other: Factor) -> "Value":
        return self.arrays.elementwise("Mul", self, other)

    def __rmul__(self, other: Factor) -> "Value":
        return self.arrays.elementwise("Mul", other, self)


class OnnxArrays:
    """See `Arrays`; every operation is written into one graph."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def rows(self, table: Weight, ids: Value) -> Value:
        """See Arrays."""
        name = self.graph.op("Gather", table.name, ids.name, axis=0)
        return self.kept(name, table.shape[1], Made("Gather", (table, ids)))

    def affine(
        self, rows: Value | tuple[Value, ...], matrix: Weight, bias: Weight | None = None, *, turned: bool = False
    ) -> Value:
        """See Arrays. Raises: InputError where the rows are not as wide as the matrix is."""
        parts = rows if isinstance(rows, tuple) else (rows,)
        given, (takes, width) = sum(part.width for part in parts), matrix.shape[::-1] if turned else matrix.shape
        if given != takes:
            raise InputError(f"rows of {given} numbers are multiplied with {matrix.name}, which takes {takes}.")
        return self.product(Product(parts, matrix, bias, turned), width)

    def product(self, made: Product, width: int) -> Value:
        """Its rows (N, width)."""
        left = side_by_side(self.graph, [part.name for part in made.parts])
        return self.kept(multiplied(self.graph, left, made.matrix.name, made.bias, turned=made.turned), width, made)

    def split(self, rows: Value, parts: int) -> tuple[Value, ...]:
        """See Arrays."""
        names = self.home(rows).ops("Split", rows.name, names=parts, axis=-1, num_outputs=parts)
        made = (Made("Split", (rows,), at=at, parts=parts) for at in range(parts))
        return tuple(
            self.kept(name, rows.width // parts, each, inside=rows.inside)
            for name, each in zip(names, made, strict=True)
        )

    def sigmoid(self, rows: Value) -> Value:
        """See Arrays."""
        return self._of_each("Sigmoid", rows)

    def tanh(self, rows: Value) -> Value:
        """See Arrays."""
        return self._of_each("Tanh", rows)

    def elementwise(self, kind: str, left: Factor, right: Factor) -> Value:
        """`+`, `-` and `*`."""
        values = [each for each in (left, right) if isinstance(each, Value)]
        inside = any(each.inside for each in values)
        names = [self.at_hand(each, inside=inside) for each in (left, right)]
        home = self.home(*values)
        return self.kept(home.op(kind, *names), values[0].width, Made(kind, (left, right)), inside=inside)

    def home(self, *values: Value) -> Graph:
        """The graph that computes with these."""
        return self.graph

    def at_hand(self, factor: Factor, *, inside: bool) -> str:
        """What a factor is called where it is computed with: inside of the loop over words or not."""
        return factor.name if isinstance(factor, Value | Weight) else self.graph.number(factor, np.float32)

    def kept(self, name: str, width: int, made: Made | Product, *, inside: bool = False) -> Value:
        """A new value."""
        return Value(self, name, width, inside, made)

    def _of_each(self, kind: str, rows: Value) -> Value:
        return self.kept(self.home(rows).op(kind, rows.name), rows.width, Made(kind, (rows,)), inside=rows.inside)


def side_by_side(graph: Graph, rows: Sequence[str]) -> str:
    """Rows with what is beside them in one."""
    return rows[0] if len(rows) == 1 else graph.op("Concat", *rows, axis=-1)


def multiplied(graph: Graph, left: str, matrix: str, bias: Weight | None, *, turned: bool) -> str:
    """The name of left @ matrix + bias."""
    if turned:
        return graph.op("Gemm", left, matrix, *([] if bias is None else [bias.name]), transB=1)
    product = graph.op("MatMul", left, matrix)
    return product if bias is None else graph.op("Add", product, bias.name)


@dataclass(frozen=True)
class RecurrentOnnx:
    """See `onnx.step.OnnxCell`. Weights are called `parameters.kernel` and so on; one without a number is left out."""

    cell: Cell
    weights: Mapping[str, NDArray[np.float32]]

    @classmethod
    def from_network(cls, cell: Cell, parameters: Any) -> "RecurrentOnnx":
        """With the parameters of a network."""
        from tacit.networks.language_model import leaves

        return cls(cell, {name: np.asarray(leaf, np.float32) for name, leaf in leaves(parameters).items()})

    @property
    def states(self) -> Mapping[str, int]:
        """See OnnxCell."""
        return self.cell.states()

    @property
    def features(self) -> int:
        """See OnnxCell."""
        to = OnnxArrays(Graph("looked_at"))
        states = {name: Value(to, name, width) for name, width in self.states.items()}
        p = {name: Weight(name, shape) for name, shape in self.cell.shapes().items()}
        width: int = self.cell.step(to, p, states, self.cell.read(to, p, Value(to, "word", 0)))[1].width
        return width

    def step(self, graph: Graph, word: str, states: Mapping[str, str], after: Mapping[str, str]) -> str:
        """See OnnxCell."""
        to, p = OnnxArrays(graph), self._weights(graph)
        before = {name: Value(to, states[name], width) for name, width in self.states.items()}
        done, features = self.cell.step(to, p, before, self.cell.read(to, p, Value(to, word, 0)))
        for name, value in done.items():
            graph.op("Identity", value.name, name=after[name])
        found: str = features.name
        return found

    def scores(self, graph: Graph, features: str) -> str:
        """See OnnxCell."""
        to = OnnxArrays(graph)
        found: str = self.cell.scores(to, self._weights(graph), Value(to, features, self.features)).name
        return found

    def _weights(self, graph: Graph) -> dict[str, Weight]:
        return {
            name: Weight(graph.weight(f"parameters.{name}", value), value.shape)
            for name, value in self.weights.items()
            if value.size
        }
