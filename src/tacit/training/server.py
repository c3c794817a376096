"""What the server does with a privatised mean: one step of a first-order optimizer, which is post-processing."""

import math
from dataclasses import dataclass
from typing import Literal, get_args

import jax
import optax
from jax import Array

from tacit.errors import InputError

Method = Literal["momentum", "nesterov", "adam"]

# Adam's second moment and its epsilon, for means of updates whose coordinates are around 1e-4: Reddi et al. 2021
# (arXiv:2003.00295, section 5) use 0.99 and an epsilon that bounds the step of a coordinate that hardly moves.
ADAM_SECOND_MOMENT, ADAM_EPSILON = 0.99, 1e-5


@dataclass(frozen=True, kw_only=True)
class ServerOptimizer:
    """A first-order optimizer in the residual form of ALGORITHMS section 1: it sees each round's privatised mean."""

    method: Method = "momentum"
    learning_rate: float = 1.0
    momentum: float = 0.9
    cooldown: float = 0.0  # share of the rounds, the last ones, over which the learning rate falls linearly to zero

    def __post_init__(self) -> None:
        if self.method not in get_args(Method):
            raise InputError(f"server.method='{self.method}' is unknown; use one of {', '.join(get_args(Method))}.")
        if not (self.learning_rate > 0 and math.isfinite(self.learning_rate)):
            raise InputError(f"server.learning_rate={self.learning_rate} must be a positive number.")
        if not 0 <= self.momentum < 1:
            raise InputError(f"server.momentum={self.momentum} must be in [0, 1); the papers use 0.9.")
        if not 0 <= self.cooldown <= 1:
            raise InputError(f"server.cooldown={self.cooldown} must be a share of the rounds, from 0 to 1.")

    def transformation(self, rounds: int) -> optax.GradientTransformation:
        """The optimizer of a run of so many rounds."""
        rate: float | optax.Schedule = self.learning_rate
        if self.cooldown:
            last = max(round(self.cooldown * rounds), 1)
            # The round after the last of the cooldown would have rate 0: every round of it moves the model.
            rate = optax.linear_schedule(self.learning_rate, 0.0, last, transition_begin=rounds - last)
        if self.method == "adam":
            return optax.adam(rate, b1=self.momentum, b2=ADAM_SECOND_MOMENT, eps=ADAM_EPSILON)
        return optax.sgd(rate, momentum=self.momentum, nesterov=self.method == "nesterov")


def server_step(
    transformation: optax.GradientTransformation, model: Array, state: optax.OptState, mean_update: Array
) -> tuple[Array, optax.OptState]:
    """theta_{t+1} from theta_t and the privatised mean of the updates, (d,): the mean is minus a gradient."""
    step, state = transformation.update(jax.tree.map(lambda u: -u, mean_update), state, model)
    return model + step, state
