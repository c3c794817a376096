"""ONNX graphs written by hand: an operation is a call, and what it gives is the name of its result.

Every graph is of opset OPSET and carries its own weights, so that it is one file. Operators: onnx.ai/onnx/operators.
"""

from typing import Any

import numpy as np
import onnx
from numpy.typing import DTypeLike, NDArray
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from tacit.errors import InputError

# The oldest that has all that is used (Split in equal parts, sums over axes that are an input), so that old runtimes
# read it too: ONNX Runtime from 1.14 (2023) on.
OPSET = 18
IR = 8  # of the file format, of the same release of ONNX
Shape = tuple[int | str, ...]  # a size that is text is anything, everywhere the same where the text is


class Graph:
    """A graph that grows: inputs, weights, operations in order, outputs."""

    def __init__(self, name: str, around: "Graph | None" = None) -> None:
        """around: the graph whose operation runs this one, whose weights and results it may use."""
        self.name = name
        self._around = around
        self._nodes: list[NodeProto] = []
        self._inputs: list[ValueInfoProto] = []
        self._outputs: list[ValueInfoProto] = []
        self._weights: dict[str, TensorProto] = {}

    def input(self, name: str, dtype: DTypeLike, shape: Shape) -> str:
        """A value that is given to the graph."""
        self._inputs.append(_said(name, dtype, shape))
        return name

    def output(self, name: str, dtype: DTypeLike, shape: Shape) -> str:
        """A result that the graph gives back; an operation must have named its result so."""
        self._outputs.append(_said(name, dtype, shape))
        return name

    def weight(self, name: str, value: NDArray[Any]) -> str:
        """An array that never changes, by a name that says what it is; the same one may be asked for again.

        Raises: InputError where the name is that of another array, or of an input: ONNX would take it for its default.
        """
        if self._around is not None:
            return self._around.weight(name, value)
        made = numpy_helper.from_array(np.asarray(value, order="C"), name)
        if self._weights.setdefault(name, made) != made or name in (each.name for each in self._inputs):
            raise InputError(f"the graph {self.name} has two things called {name!r}; call the weight otherwise.")
        return name

    def number(self, value: float | list[int], dtype: DTypeLike = np.int64) -> str:
        """A small constant: a number (), or a list of them (n,)."""
        array = np.array(value, dtype)
        return self.weight(f"{array.dtype.name}_{'_'.join(map(str, array.ravel().tolist()))}_{array.ndim}", array)

    def op(self, kind: str, *inputs: str, name: str = "", **attributes: Any) -> str:
        """The one result of an operation; `name` is what it is called."""
        return self.ops(kind, *inputs, names=(name or self._fresh(kind),), **attributes)[0]

    def ops(self, kind: str, *inputs: str, names: tuple[str, ...] | int, **attributes: Any) -> tuple[str, ...]:
        """All results of an operation. names: what they are called, or how many there are."""
        if isinstance(names, int):
            first = self._fresh(kind)
            names = tuple(f"{first}_{each}" for each in range(names))
        given = {key: value.proto() if isinstance(value, Graph) else value for key, value in attributes.items()}
        self._nodes.append(helper.make_node(kind, inputs, names, name=names[0], **given))
        return names

    def proto(self) -> GraphProto:
        """The graph as it is written."""
        return helper.make_graph(self._nodes, self.name, self._inputs, self._outputs, list(self._weights.values()))

    def model(self) -> ModelProto:
        """The graph as a file of its own, checked by ONNX's own rules for types and shapes."""
        opsets = [helper.make_opsetid("", OPSET)]
        model = helper.make_model(self.proto(), opset_imports=opsets, ir_version=IR, producer_name="tacit")
        onnx.checker.check_model(model, full_check=True)
        return model

    def _fresh(self, kind: str) -> str:
        return f"{self.name}.{kind}_{len(self._nodes)}"


def _said(name: str, dtype: DTypeLike, shape: Shape) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape)
