"""Graphs with smaller weights: the tables and matrices of `step.step_graph` in 8 or 4 bits, all else as it was.

A matrix is quantized where it is multiplied with (`MatMul`, `Gemm`) or read by rows (`Gather`); a tied table, which is
both, is written once. A weight is an integer times a scale, symmetric about zero:

int8: a scale for each row of a table and each column of a matrix. Products are of integers: what is multiplied is
    quantized, too, on the way and by its own range (`DynamicQuantizeLinear`, `MatMulInteger`). Standard operators. The
    codes are written as naturals about 128: x86 processors without VNNI multiply naturals with signed integers in 16
    bits, two products at once, and ONNX Runtime lets these overflow unseen (microsoft/onnxruntime, issue 6004).
int4: a scale for every 32 numbers along what a product sums over, float16. Products are `MatMulNBits` of ONNX Runtime
    (com.microsoft), from version 1.17 on, whose layout tables have, too; their rows are unpacked by standard operators.

The slow reference is a step in NumPy with the weights that `Eight.rows` and `Four.rows` give back.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from tacit.errors import InputError

Matrix = NDArray[np.float32]  # (rows, K): each row is multiplied with, and summed over, by itself
RUNTIME = "com.microsoft"
ZERO = 128  # the code of 8 bits that stands for nothing
BLOCK = 32  # numbers that have one scale of int4; 16 costs a tenth more bytes, 64 pads a row of 96 to 128
# Of a block, the greatest number divided by its scale: which of them errs least is tried for every block.
RANGES = np.linspace(5.5, 8.5, 13, dtype=np.float32)
LARGEST = 2.0**18  # of a weight: its scale of int4 must be a number of float16
# Of MatMulNBits: what is multiplied is rounded to 8 bits for every block of it, too. A word takes a third less time
# than by products in float32 (level 0), and top-1 accuracy is the same (docs/results/quantized.md). A runtime may take
# a finer level, and onnxruntime-web has level 0 alone: its log p are those without that rounding.
ACCURACY_LEVEL = 4


def int8(model: ModelProto) -> ModelProto:
    """A graph of `step.py` with weights of 8 bits. Raises: InputError where one is no number, or too large."""
    return _rewritten(model, _Int8)


def int4(model: ModelProto) -> ModelProto:
    """A graph of `step.py` with weights of 4 bits. Raises: as `int8`."""
    return _rewritten(model, _Int4)


# -- numbers -------------------------------------------------------------------------------------------------------


class Eight(NamedTuple):
    """Rows in 8 bits: (codes - ZERO) * scales."""

    codes: NDArray[np.uint8]  # (rows, K), 1 to 255
    scales: NDArray[np.float32]  # (rows,)

    @classmethod
    def from_rows(cls, rows: Matrix) -> "Eight":
        """The greatest number of each row becomes 127."""
        scales = _positive(np.abs(rows).max(axis=1) / np.float32(127))
        return cls((np.rint(rows / scales[:, None]) + ZERO).astype(np.uint8), scales)

    def rows(self) -> Matrix:
        """What they stand for."""
        return np.asarray((self.codes.astype(np.float32) - ZERO) * self.scales[:, None], np.float32)


class Four(NamedTuple):
    """Rows in 4 bits: (codes - 8) * scales, two codes in a byte, the first in its lower half."""

    codes: NDArray[np.uint8]  # (rows, blocks, BLOCK / 2)
    scales: NDArray[np.float16]  # (rows, blocks)
    width: int  # K; the last block is filled up with zeros

    @classmethod
    def from_rows(cls, rows: Matrix) -> "Four":
        """Of each block, the scale of RANGES that errs least in squares."""
        blocks = _blocks(rows)  # (rows, blocks, BLOCK)
        largest = np.abs(blocks).max(axis=2)
        scales = np.zeros(largest.shape, np.float16)
        errors = np.full(largest.shape, np.inf, np.float32)
        for each in RANGES:
            tried = _positive((largest / each).astype(np.float16))
            wide = tried.astype(np.float32)[..., None]
            found = np.square(_coded(blocks, wide) * wide - blocks).sum(axis=2)
            scales, errors = np.where(found < errors, tried, scales), np.minimum(found, errors)
        codes = (_coded(blocks, scales.astype(np.float32)[..., None]) + 8).astype(np.uint8)
        packed: NDArray[np.uint8] = codes[..., 0::2] | codes[..., 1::2] * np.uint8(16)
        return cls(packed, scales, rows.shape[1])

    def rows(self) -> Matrix:
        """What they stand for."""
        codes = np.stack([self.codes & 15, self.codes >> 4], axis=-1).reshape(*self.scales.shape, BLOCK)
        numbers = (codes.astype(np.float32) - 8) * self.scales.astype(np.float32)[..., None]
        return np.asarray(numbers.reshape(len(numbers), -1)[:, : self.width])


def _blocks(rows: Matrix) -> Matrix:
    filled = np.pad(rows, ((0, 0), (0, -rows.shape[1] % BLOCK)))
    return filled.reshape(len(rows), -1, BLOCK)


def _coded(blocks: Matrix, scales: Matrix) -> Matrix:
    found: Matrix = np.clip(np.rint(blocks / scales), -8, 7)
    return found


def _positive(scales: Any) -> Any:
    """The scale of nothing but zeros, or of what is too small to be one, is any number."""
    least = np.finfo(scales.dtype).tiny
    return np.maximum(scales, least)


# -- graphs --------------------------------------------------------------------------------------------------------


class _Written:
    """What is added to a graph: weights, and operations that are of constants alone."""

    def __init__(self) -> None:
        self.weights: dict[str, TensorProto] = {}
        self.constants: dict[str, NodeProto] = {}

    def weight(self, name: str, value: NDArray[Any]) -> str:
        """An array, by its name."""
        if name not in self.weights:
            self.weights[name] = numpy_helper.from_array(np.ascontiguousarray(value), name)
        return name

    def constant(self, kind: str, *inputs: str, name: str, **attributes: Any) -> str:
        """An operation on weights, which runtimes do once as they load the graph."""
        self.constants.setdefault(name, helper.make_node(kind, inputs, [name], name=name, **attributes))
        return name


class _Scheme(Protocol):
    """How weights are written, read by rows and multiplied with; `name` is the weight's, `rows` as Matrix has it."""

    def __init__(self, written: _Written) -> None: ...

    def gathered(self, name: str, rows: Matrix, ids: str, to: str) -> list[NodeProto]:
        """The rows (N, K) with some ids (N,)."""
        ...

    def product(self, name: str, rows: Matrix, left: str, to: str) -> list[NodeProto]:
        """left (N, K) by each row: (N, rows)."""
        ...


class _Int8:
    """See _Scheme."""

    def __init__(self, written: _Written) -> None:
        self._written = written

    def gathered(self, name: str, rows: Matrix, ids: str, to: str) -> list[NodeProto]:
        codes, scales = self._weights(name, rows)
        last = self._written.weight("last_axis", np.array([-1], np.int64))
        return [
            _node("Gather", codes, ids, to=f"{to}.codes", axis=0),
            _node("Cast", f"{to}.codes", to=f"{to}.naturals", type=TensorProto.FLOAT),
            _node(
                "Sub", f"{to}.naturals", self._written.weight("zero", np.array(ZERO, np.float32)), to=f"{to}.numbers"
            ),
            _node("Gather", scales, ids, to=f"{to}.scales", axis=0),
            _node("Unsqueeze", f"{to}.scales", last, to=f"{to}.scale"),
            _node("Mul", f"{to}.numbers", f"{to}.scale", to=to),
        ]

    def product(self, name: str, rows: Matrix, left: str, to: str) -> list[NodeProto]:
        codes, scales = self._weights(name, rows)
        across = self._written.constant("Transpose", codes, name=f"{codes}.across", perm=[1, 0])
        zero = self._written.weight("zero_code", np.array(ZERO, np.uint8))
        quantized = [f"{to}.codes", f"{to}.left_scale", f"{to}.zero"]
        return [
            helper.make_node("DynamicQuantizeLinear", [left], quantized, name=f"{to}.codes"),
            _node("MatMulInteger", quantized[0], across, quantized[2], zero, to=f"{to}.integers"),
            _node("Cast", f"{to}.integers", to=f"{to}.numbers", type=TensorProto.FLOAT),
            _node("Mul", quantized[1], scales, to=f"{to}.scale"),
            _node("Mul", f"{to}.numbers", f"{to}.scale", to=to),
        ]

    def _weights(self, name: str, rows: Matrix) -> tuple[str, str]:
        if f"{name}.int8" not in self._written.weights:
            made = Eight.from_rows(rows)
            self._written.weight(f"{name}.int8", made.codes)
            self._written.weight(f"{name}.scales", made.scales)
        return f"{name}.int8", f"{name}.scales"


class _Int4:
    """See _Scheme."""

    def __init__(self, written: _Written) -> None:
        self._written = written

    def gathered(self, name: str, rows: Matrix, ids: str, to: str) -> list[NodeProto]:
        codes, scales, width = self._weights(name, rows)
        weight = self._written.weight
        blocks = -(-width // BLOCK)
        last, by_block = weight("last_axis", np.array([-1], np.int64)), np.array([-1, blocks, BLOCK], np.int64)
        flat, start, end = (
            np.array([-1, blocks * BLOCK], np.int64),
            np.array([0], np.int64),
            np.array([width], np.int64),
        )
        return [
            _node("Gather", codes, ids, to=f"{to}.bytes", axis=0),  # (N, blocks, BLOCK / 2)
            _node("BitwiseAnd", f"{to}.bytes", weight("lower_half", np.array(15, np.uint8)), to=f"{to}.lower"),
            _node(
                "BitShift", f"{to}.bytes", weight("half", np.array(4, np.uint8)), to=f"{to}.upper", direction="RIGHT"
            ),
            _node("Unsqueeze", f"{to}.lower", last, to=f"{to}.first"),
            _node("Unsqueeze", f"{to}.upper", last, to=f"{to}.second"),
            _node("Concat", f"{to}.first", f"{to}.second", to=f"{to}.pairs", axis=-1),
            _node("Reshape", f"{to}.pairs", weight(f"{name}.blocks", by_block), to=f"{to}.codes"),
            _node("Cast", f"{to}.codes", to=f"{to}.naturals", type=TensorProto.FLOAT),
            _node("Sub", f"{to}.naturals", weight("eight", np.array(8, np.float32)), to=f"{to}.integers"),
            _node("Gather", scales, ids, to=f"{to}.scales", axis=0),  # (N, blocks)
            _node("Unsqueeze", f"{to}.scales", last, to=f"{to}.scale"),
            _node("Mul", f"{to}.integers", f"{to}.scale", to=f"{to}.numbers"),
            _node("Reshape", f"{to}.numbers", weight(f"{name}.flat", flat), to=f"{to}.filled"),
            _node("Slice", f"{to}.filled", weight("start", start), weight(f"{name}.width", end), last, to=to),
        ]

    def product(self, name: str, rows: Matrix, left: str, to: str) -> list[NodeProto]:
        codes, scales, width = self._weights(name, rows)
        row = self._written.constant(
            "Reshape", scales, self._written.weight("flat", np.array([-1], np.int64)), name=f"{scales}.flat"
        )
        given = dict(K=width, N=len(rows), bits=4, block_size=BLOCK, accuracy_level=ACCURACY_LEVEL)
        return [_node("MatMulNBits", left, codes, row, to=to, domain=RUNTIME, **given)]

    def _weights(self, name: str, rows: Matrix) -> tuple[str, str, int]:
        written = self._written
        if f"{name}.int4" not in written.weights:
            made = Four.from_rows(rows)
            written.weight(f"{name}.int4", made.codes)
            written.weight(f"{name}.half_scales", made.scales)
        scales = written.constant("Cast", f"{name}.half_scales", name=f"{name}.scales", to=TensorProto.FLOAT)
        return f"{name}.int4", scales, rows.shape[1]


def _node(kind: str, *inputs: str, to: str, type: int | None = None, **attributes: Any) -> NodeProto:
    """An operation whose one result is called `to`; type: of a Cast."""
    given = attributes if type is None else {"to": type}
    return helper.make_node(kind, inputs, [to], name=to, **given)


def _rewritten(model: ModelProto, scheme: Callable[[_Written], _Scheme]) -> ModelProto:
    found = {each.name: numpy_helper.to_array(each) for each in model.graph.initializer}
    matrices = {name: each for name, each in found.items() if each.ndim == 2 and each.dtype == np.float32}
    for name, matrix in matrices.items():
        largest = float(np.abs(matrix).max(initial=0.0))
        if not largest <= LARGEST:  # NaN is not, either
            raise InputError(
                f"the weights {name} reach {largest:,g}, and no integer of few bits stands for that (at most "
                f"{LARGEST:,g}); train the model again, or export it without quantization."
            )
    made, written = ModelProto(), _Written()
    made.CopyFrom(model)
    _rewrite(made.graph, matrices, scheme(written))
    _put(made.graph, written)
    if any(node.domain == RUNTIME for node in _nodes(made.graph)):
        made.opset_import.append(helper.make_opsetid(RUNTIME, 1))
    onnx.checker.check_model(made, full_check=True)
    return made


def _rewrite(graph: GraphProto, matrices: Mapping[str, Matrix], scheme: _Scheme) -> None:
    """The operations of a graph, and of those inside it."""
    nodes: list[NodeProto] = []
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                _rewrite(attribute.g, matrices, scheme)
        nodes.extend(_replaced(node, matrices, scheme))
    del graph.node[:]
    graph.node.extend(nodes)


def _replaced(node: NodeProto, matrices: Mapping[str, Matrix], scheme: _Scheme) -> list[NodeProto]:
    """What stands for an operation: itself, unless it reads or multiplies with a matrix.

    Raises: InputError where it does so in a way that is not written in few bits.
    """
    inputs, to = list(node.input), node.output[0]
    given = {each.name: helper.get_attribute_value(each) for each in node.attribute if not each.HasField("g")}
    if node.op_type == "Gather" and inputs[0] in matrices and not given.get("axis"):
        return scheme.gathered(inputs[0], matrices[inputs[0]], inputs[1], to)
    if node.op_type not in ("MatMul", "Gemm") or inputs[1] not in matrices:
        return [node]
    if given.keys() - {"transB"}:
        raise InputError(
            f"the operation {node.name} is a Gemm with {', '.join(given)}, which is not quantized; write it with no "
            "attribute but transB."
        )
    name, matrix, bias = inputs[1], matrices[inputs[1]], inputs[2:3]
    product = f"{to}.product" if bias else to
    if given.get("transB"):
        nodes = scheme.product(name, matrix, inputs[0], product)
    else:  # by another name: the same matrix may be a table, too
        nodes = scheme.product(f"{name}.columns", np.ascontiguousarray(matrix.T), inputs[0], product)
    return [*nodes, *([_node("Add", product, bias[0], to=to)] if bias else [])]


def _nodes(graph: GraphProto) -> Iterator[NodeProto]:
    """All operations of a graph, and of those inside it."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _nodes(attribute.g)


def _put(graph: GraphProto, written: _Written) -> None:
    """Constants come first, and weights that nobody uses any more go."""
    nodes = [*written.constants.values(), *graph.node]
    del graph.node[:]
    graph.node.extend(nodes)
    used = {name for node in _nodes(graph) for name in node.input}
    weights = [each for each in graph.initializer if each.name in used] + list(written.weights.values())
    del graph.initializer[:]
    graph.initializer.extend(weights)
