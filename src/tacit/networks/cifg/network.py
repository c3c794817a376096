"""The network of papers 1 and 5 (Hard et al. 2018): a one-layer CIFG-LSTM that predicts the next word.

Word embeddings (96), one CIFG layer (670 units, forget gate f = 1 - i) whose output is projected back to 96, and that
projection is both fed back and multiplied with the output embedding. The slow, obvious reference is
`tests/networks/numpy_model.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from tacit.errors import InputError
from tacit.networks.cifg.parameters import CifgParameters
from tacit.networks.recurrent.cell import Arrays, Named, Rows
from tacit.networks.recurrent.network import Recurrent

if TYPE_CHECKING:
    from jax import Array

    from tacit.networks.cifg.on_device import CifgOnDevice

__all__ = ["Cifg", "CifgParameters"]

WIDEST = 2**16  # a hundred times the papers' networks


@dataclass(frozen=True, kw_only=True)
class Cifg(Recurrent):
    """The network of this size; the defaults are the papers' (10k words: 2.4 M parameters, tied 1.4 M).

    Its parameters are in the layout of `CifgParameters`.
    """

    examples: ClassVar = ({"embedding": 4, "units": 6}, {"embedding": 4, "units": 6, "tied": True})
    noise_curve: ClassVar[str] = "docs/results/noise-forecast.md"  # see `language_model.HasNoiseCurve`

    vocabulary: int = 10_000
    embedding: int = 96  # papers 1 and 5
    units: int = 670  # papers 1 and 5
    tied: bool = False  # paper 1's 2.4 M parameters are those of separate embeddings

    def __post_init__(self) -> None:
        for name in ("embedding", "units"):
            if not 1 <= getattr(self, name) <= WIDEST:
                raise InputError(
                    f"model.{name}={getattr(self, name)} must be 1 to {WIDEST:,}; the papers use 96 and 670."
                )
        if self.vocabulary < 5:
            raise InputError(
                f"model.vocabulary={self.vocabulary} must be at least 5: four special tokens and one word."
            )

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Of each parameter, by the names and in the order of `CifgParameters`."""
        v, e, h = self.vocabulary, self.embedding, self.units
        return dict(
            embedding=(v, e),
            kernel=(2 * e, 3 * h),
            bias=(3 * h,),
            projection=(h, e),
            output=(e, 0 if self.tied else v),
            output_bias=(v,),
        )

    def init(self, key: "Array") -> CifgParameters:
        """Fresh parameters; see `initial`."""
        from tacit.networks.cifg.initial import initial

        drawn: CifgParameters = initial(
            key, vocabulary=self.vocabulary, embedding=self.embedding, units=self.units, tied=self.tied
        )
        return drawn

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

    # -- the cell ------------------------------------------------------------------------------------------------------

    def states(self) -> dict[str, int]:
        """See Cell: the cell, and the projection that is fed back."""
        return {"cell": self.units, "output": self.embedding}

    def read(self, to: Arrays, p: Named, ids: Any) -> Rows:
        """See Cell: the word's embedding."""
        return to.rows(p["embedding"], ids)

    def step(self, to: Arrays, p: Named, states: Named, read: Rows) -> tuple[Named, Rows]:
        """See Cell."""
        update, candidate, emit = to.split(to.affine((read, states["output"]), p["kernel"], p["bias"]), 3)
        cell = states["cell"] + to.sigmoid(update) * (to.tanh(candidate) - states["cell"])  # f = 1 - i
        output = to.affine(to.sigmoid(emit) * to.tanh(cell), p["projection"])
        return {"cell": cell, "output": output}, output

    def scores(self, to: Arrays, p: Named, features: Rows) -> Rows:
        """See Cell."""
        return to.affine(features, p["embedding" if self.tied else "output"], p["output_bias"], turned=self.tied)

    # -- its fast paths ------------------------------------------------------------------------------------------------

    def logits(self, parameters: CifgParameters, tokens: "Array") -> "Array":
        """Scores of the word after each token, (B, L, V) float32."""
        from tacit.networks.cifg.loss import scores

        sentences, words = tokens.shape
        return scores(parameters, tokens).reshape(words, sentences, -1).transpose(1, 0, 2)

    def loss(self, parameters: CifgParameters, sentences: "Array") -> "Array":
        """The generic loss with derivatives written by hand; see `language_model.HasLoss`."""
        from tacit.networks.cifg.loss import loss

        return loss(parameters, sentences)

    def sgd_step(
        self, parameters: CifgParameters, sentences: "Array", learning_rate: float, *, precision: str = "float32"
    ) -> "tuple[CifgParameters, Array]":
        """One step down the loss, fast on processors; see `language_model.HasSgdStep`."""
        from tacit.networks.cifg.packed import descend

        return descend(parameters, sentences, learning_rate, precision=precision)

    def loss_gradient(
        self, parameters: CifgParameters, sentences: "Array", *, precision: str
    ) -> "tuple[Array, CifgParameters]":
        """The loss and its gradient, fast on processors; see `gradients.HasGradient`."""
        from tacit.networks.cifg.packed import gradient

        return gradient(parameters, sentences, precision=precision)

    def held(self, parameters: CifgParameters) -> "CifgOnDevice":
        """The parameters on a device, without padding; see `on_device.HasOnDeviceTraining`."""
        from tacit.networks.cifg.on_device import CifgOnDevice

        return CifgOnDevice.from_parameters(parameters)
