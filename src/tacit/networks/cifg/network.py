"""The network of papers 1 and 5 (Hard et al. 2018): a one-layer CIFG-LSTM that predicts the next word.

Word embeddings (96), one CIFG layer (670 units, forget gate f = 1 - i) whose output is projected back to 96, and that
projection is both fed back and multiplied with the output embedding. Its fast paths: derivatives written by hand
(`cifg_loss`), a step of SGD without padding (`cifg_packed`), fine-tuning and ranking on one core (`cifg_ragged`), and
one word at a time (`cifg_reader`).
The slow, obvious twin is `tests/networks/numpy_model.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
from jax import Array

from tacit.networks.cifg import loss as cifg_loss
from tacit.networks.cifg import packed as cifg_packed
from tacit.networks.cifg.parameters import CifgParameters, CifgSize

if TYPE_CHECKING:
    from tacit.networks.cifg.on_device import CifgOnDevice
    from tacit.networks.cifg.onnx import CifgOnnx
    from tacit.networks.cifg.onnx_training import CifgOnnxTraining
    from tacit.networks.cifg.reader import CifgReader

__all__ = ["Cifg", "CifgParameters"]


@dataclass(frozen=True, kw_only=True)
class Cifg(CifgSize):
    """The network of this size; its parameters are in the layout of `CifgParameters`."""

    @partial(jax.jit, static_argnames="self")  # one program, where each step would be compiled by itself
    def init(self, key: Array) -> CifgParameters:
        """Fresh parameters, drawn so that plain SGD moves from the first round.

        Input embeddings uniform in +-1: smaller ones (+-0.1, as recipes for adaptive optimizers have them) leave the
        gates at rest and cost tens of rounds. Output embeddings +-0.1, so that all words begin about equal; tied ones
        too. Glorot kernels. The input gate begins at sigmoid(-1), so the cell keeps 73% of what it knew (f = 1 - i).
        """
        keys = jax.random.split(key, 4)
        v, e, h = self.vocabulary, self.embedding, self.units

        def uniform(key: Array, shape: tuple[int, int], limit: float) -> Array:
            return jax.random.uniform(key, shape, jnp.float32, -limit, limit)

        return CifgParameters(
            embedding=uniform(keys[0], (v, e), 0.1 if self.tied else 1.0),
            kernel=uniform(keys[1], (2 * e, 3 * h), (6.0 / (2 * e + h)) ** 0.5),
            bias=jnp.zeros(3 * h, jnp.float32).at[:h].set(-1.0),
            projection=uniform(keys[2], (h, e), (6.0 / (h + e)) ** 0.5),
            output=uniform(keys[3], (e, 0 if self.tied else v), 0.1),
            output_bias=jnp.zeros(v, jnp.float32),
        )

    def logits(self, parameters: CifgParameters, tokens: Array) -> Array:
        """Scores of the word after each token, (B, L, V) float32."""
        sentences, words = tokens.shape
        return cifg_loss.scores(parameters, tokens).reshape(words, sentences, -1).transpose(1, 0, 2)

    def groups(self) -> Mapping[str, tuple[str, ...]]:
        """What fine-tuning may change; the output table of a tied network is its input embedding, too."""
        table = "embedding" if self.tied else "output"
        return {
            "all": CifgParameters._fields,
            "output": (table, "output_bias"),
            "biases": ("bias", "output_bias"),
            "recurrent": ("kernel", "bias", "projection"),
            "embeddings": ("embedding", table),
        }

    def loss(self, parameters: CifgParameters, sentences: Array) -> Array:
        """The generic loss with derivatives written by hand; see `language_model.HasLoss`."""
        return cifg_loss.loss(parameters, sentences)

    def sgd_step(
        self, parameters: CifgParameters, sentences: Array, learning_rate: float, *, precision: str = "float32"
    ) -> tuple[CifgParameters, Array]:
        """One step down the loss, fast on processors; see `language_model.HasSgdStep`."""
        return cifg_packed.descend(parameters, sentences, learning_rate, precision=precision)

    def held(self, parameters: CifgParameters) -> "CifgOnDevice":
        """The parameters on a device, without padding; see `on_device.HasOnDeviceTraining`."""
        from tacit.networks.cifg.on_device import CifgOnDevice  # Numba comes with it

        return CifgOnDevice.of(parameters)

    def reader(self, parameters: CifgParameters) -> "CifgReader":
        """The parameters in NumPy, a word at a time; see `suggest.HasReader`."""
        from tacit.networks.cifg.reader import CifgReader

        return CifgReader.of(parameters)

    def onnx_cell(self, parameters: CifgParameters) -> "CifgOnnx":
        """What it does with one word in ONNX's operators; see `onnx_step.HasOnnxCell`."""
        from tacit.networks.cifg.onnx import CifgOnnx

        return CifgOnnx(parameters)

    def onnx_training(self) -> "CifgOnnxTraining":
        """Its step of SGD in ONNX's operators; see `onnx_training.HasOnnxTraining`."""
        from tacit.networks.cifg.onnx_training import CifgOnnxTraining

        return CifgOnnxTraining(self)
