"""The loss of a network with its gradient, for training in one place on processors; no device loads this."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from tacit.networks.language_model import LanguageModel, NextWordLoss, Parameters

if TYPE_CHECKING:
    from jax import Array


@runtime_checkable
class HasGradient(Protocol):
    """A network with a faster gradient of its loss on processors, in float32 and in bfloat16."""

    def loss_gradient(
        self, parameters: Parameters, sentences: "Array", *, precision: str
    ) -> "tuple[Array, Parameters]":
        """(loss, gradient) as `jax.value_and_grad(NextWordLoss(network))`, exact but for the precision's rounding."""
        ...


@dataclass(frozen=True)
class LossWithGradient(NextWordLoss):
    """The same loss, of a network that knows a fast gradient."""

    def with_gradient(
        self, parameters: Parameters, sentences: "Array", *, precision: str
    ) -> "tuple[Array, Parameters]":
        """(loss, gradient) but for rounding; on processors."""
        assert isinstance(self.network, HasGradient)  # `central_loss` made this one for it
        return self.network.loss_gradient(parameters, sentences, precision=precision)


def central_loss(network: LanguageModel) -> NextWordLoss:
    """The loss of a network for training in one place, by its own fast gradient where it has one."""
    return LossWithGradient(network) if isinstance(network, HasGradient) else NextWordLoss(network)
