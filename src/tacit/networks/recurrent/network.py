"""The class of recurrent networks: who writes a cell has a network that is trained, exported and typed with.

JAX and ONNX are loaded by what computes with them: a phone reads a network of this class without either.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tacit.networks.recurrent.cell import Arrays, Named, Rows

if TYPE_CHECKING:
    from jax import Array
    from numpy.typing import NDArray

    from tacit.networks.recurrent.onnx import RecurrentOnnx
    from tacit.networks.recurrent.onnx_training import RecurrentOnnxTraining
    from tacit.networks.recurrent.reader import RecurrentReader


class Recurrent(ABC):
    """A `LanguageModel` by its cell. A subclass is a frozen dataclass with `init`, `groups` and what is abstract here.

    `init` gives the parameters of `shapes` as a tree whose leaves have these names: a dictionary, or a NamedTuple.
    """

    vocabulary: int

    @abstractmethod
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """See `Cell`."""

    @abstractmethod
    def states(self) -> dict[str, int]:
        """See `Cell`."""

    @abstractmethod
    def read(self, to: Arrays, p: Named, ids: Any) -> Rows:
        """See `Cell`."""

    @abstractmethod
    def step(self, to: Arrays, p: Named, states: Named, read: Rows) -> tuple[Named, Rows]:
        """See `Cell`."""

    @abstractmethod
    def scores(self, to: Arrays, p: Named, features: Rows) -> Rows:
        """See `Cell`."""

    def logits(self, parameters: Any, tokens: "Array") -> "Array":
        """Scores of the word after each token, (B, L, V) float32; see `language_model.LanguageModel`."""
        from tacit.networks.recurrent.scan import logits

        return logits(self, parameters, tokens)

    def reader(self, weights: "Mapping[str, NDArray[Any]]") -> "RecurrentReader":
        """One word at a time in NumPy; see `suggest.HasReader`."""
        from tacit.networks.recurrent.reader import RecurrentReader

        return RecurrentReader(self, weights)

    def onnx_cell(self, parameters: Any) -> "RecurrentOnnx":
        """One word in ONNX's operators; see `onnx.step.HasOnnxCell`."""
        from tacit.networks.recurrent.onnx import RecurrentOnnx

        return RecurrentOnnx.from_network(self, parameters)

    def onnx_training(self) -> "RecurrentOnnxTraining":
        """A step of SGD in ONNX's operators; see `onnx.training.HasOnnxTraining`."""
        from tacit.networks.recurrent.onnx_training import RecurrentOnnxTraining

        return RecurrentOnnxTraining(self)
