"""One client's step of SGD as a graph (`train.onnx`): sentences and parameters in, parameters and loss out.

Forward, backward and update are ordinary operations, so that whatever runs `step.onnx` trains, too; no runtime's own
way of training is asked for (ONNX Runtime's ended with version 1.20, in 2024). Its slow reference is
`language_model.sgd_step`, the step of every simulated client.

The graph holds no parameters: their first values are those of `model.safetensors`, by the same names. A client's work
is this step over its batches, and what it sends is the difference to where it began, clipped by the device.
"""

from collections.abc import Mapping
from math import prod
from typing import Protocol, runtime_checkable

import jax
import numpy as np
from onnx import ModelProto

from tacit.errors import InputError
from tacit.networks.language_model import LanguageModel, kind_of, leaves
from tacit.networks.models import DEFAULT
from tacit.networks.onnx.graph import Graph
from tacit.networks.onnx.step import AFTER

SENTENCES, RATE, LOSS = "sentences", "learning_rate", "loss"


class OnnxTraining(Protocol):
    """A network's step of SGD in ONNX's operators."""

    def step(self, graph: Graph, sentences: str, rate: str, after: Mapping[str, str]) -> str:
        """Add the operations to a graph; the name of the loss (), as `NextWordLoss` has it.

        sentences: (B, L+1) int64. rate: () float32. Parameters are inputs of the graph by their own names; after: the
        names that their successors are to have.
        """
        ...


@runtime_checkable
class HasOnnxTraining(Protocol):
    """A network whose step of SGD can be written as ONNX."""

    def onnx_training(self) -> OnnxTraining:
        """Equal to `language_model.sgd_step` but for rounding."""
        ...


def training_graph(network: LanguageModel) -> ModelProto:
    """One step of SGD on a batch.

    Inputs: SENTENCES (B, L+1) int64, each BOS, words, EOS, then PAD, of any number and length; RATE () float32; and
    every parameter by its name, float32. Outputs: LOSS () before the step, and each parameter with AFTER behind its
    name. A parameter without any number (the output table of a tied network) is left out.
    Raises: InputError where the network does not say how it trains, with the way out.
    """
    if not isinstance(network, HasOnnxTraining):
        raise InputError(
            f"a network of the kind {kind_of(network)} says nowhere how it trains in ONNX's operators; give it a "
            f"method `onnx_training`, or export a model of the kind {DEFAULT}."
        )
    shapes = {name: leaf.shape for name, leaf in leaves(jax.eval_shape(network.init, jax.random.key(0))).items()}
    learned = {name: shape for name, shape in shapes.items() if prod(shape)}
    graph, after = Graph("train"), {name: name + AFTER for name in learned}
    sentences, rate = graph.input(SENTENCES, np.int64, ("N", "L_and_1")), graph.input(RATE, np.float32, ())
    for name, shape in learned.items():
        graph.input(name, np.float32, shape)
    graph.op("Identity", network.onnx_training().step(graph, sentences, rate, after), name=LOSS)
    graph.output(LOSS, np.float32, ())
    for name, shape in learned.items():
        graph.output(after[name], np.float32, shape)
    return graph.model()
