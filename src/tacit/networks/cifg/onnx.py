"""The CIFG in ONNX's operators, word by word: the lines of `cifg_reader`, and its twin."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.networks.cifg.parameters import CifgParameters
from tacit.networks.onnx.graph import Graph


@dataclass(frozen=True)
class CifgOnnx:
    """See `onnx_step.OnnxCell`. Weights are called `parameters.kernel` and so on, after `CifgParameters`; a tied
    network has no `parameters.output`."""

    parameters: CifgParameters

    @property
    def states(self) -> Mapping[str, int]:
        """See OnnxCell: the cell (H) and the projection that is fed back (E)."""
        units, width = self.parameters.projection.shape
        return {"cell": units, "output": width}

    @property
    def features(self) -> int:
        """See OnnxCell: the projection."""
        return int(self.parameters.projection.shape[1])

    def step(self, graph: Graph, word: str, states: Mapping[str, str], after: Mapping[str, str]) -> str:
        """See OnnxCell."""
        row = graph.op("Gather", self._weight(graph, "embedding"), word, axis=0)
        both = graph.op("Concat", row, states["output"], axis=-1)
        z = graph.op("MatMul", both, self._weight(graph, "kernel"))
        z = graph.op("Add", z, self._weight(graph, "bias"))
        update, candidate, emit = graph.ops("Split", z, names=3, axis=-1, num_outputs=3)
        change = graph.op("Sub", graph.op("Tanh", candidate), states["cell"])  # f = 1 - i
        moved = graph.op("Mul", graph.op("Sigmoid", update), change)
        cell = graph.op("Add", states["cell"], moved, name=after["cell"])
        shown = graph.op("Mul", graph.op("Sigmoid", emit), graph.op("Tanh", cell))
        return graph.op("MatMul", shown, self._weight(graph, "projection"), name=after["output"])

    def scores(self, graph: Graph, features: str) -> str:
        """See OnnxCell."""
        bias = self._weight(graph, "output_bias")
        if self.parameters.output.shape[1]:
            return graph.op("Add", graph.op("MatMul", features, self._weight(graph, "output")), bias)
        return graph.op("Gemm", features, self._weight(graph, "embedding"), bias, transB=1)  # tied

    def _weight(self, graph: Graph, name: str) -> str:
        value: Any = getattr(self.parameters, name)
        return graph.weight(f"parameters.{name}", np.asarray(value, np.float32))
