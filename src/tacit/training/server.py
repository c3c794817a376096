"""What the server does with a privatised mean: one step of a first-order optimizer.

Each sees nothing but the noised means, round after round, so it is post-processing: the guarantee is the same to the
last digit whichever is chosen, and however its settings are tuned on released models.
"""

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import jax
import jax.numpy as jnp
import optax
from jax import Array

from tacit.errors import InputError

Method = Literal["sgd", "momentum", "nesterov", "adam", "yogi", "adagrad"]

SECOND_MOMENT = 0.99  # decay of Adam's and Yogi's second moment: Reddi et al. 2021 (arXiv:2003.00295), section 5


@dataclass(frozen=True, kw_only=True)
class ServerOptimizer:
    """A first-order optimizer in the residual form of ALGORITHMS section 1: it sees each round's privatised mean."""

    method: Method = "momentum"
    learning_rate: float = 1.0
    momentum: float = 0.9  # decay of the first moment; "sgd" has none
    adaptivity: float = 1e-5  # tau of Reddi et al. 2021: no coordinate's step is above learning_rate * mean / tau
    cooldown: float = 0.0  # share of the rounds, the last ones, over which the learning rate falls linearly to zero

    def __post_init__(self) -> None:
        if self.method not in get_args(Method):
            raise InputError(f"server.method='{self.method}' is unknown; use one of {', '.join(get_args(Method))}.")
        for name in ("learning_rate", "adaptivity"):
            value = getattr(self, name)
            if not (value > 0 and math.isfinite(value)):
                raise InputError(f"server.{name}={value} must be a positive number.")
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
        match self.method:
            case "sgd":
                return optax.sgd(rate)
            case "momentum" | "nesterov":
                return optax.sgd(rate, momentum=self.momentum, nesterov=self.method == "nesterov")
            case "adam":
                return optax.adam(rate, b1=self.momentum, b2=SECOND_MOMENT, eps=self.adaptivity)
            case "yogi" | "adagrad":
                return optax.chain(
                    _adaptive(self.method, self.momentum, self.adaptivity), optax.scale_by_learning_rate(rate)
                )


class Moments(NamedTuple):
    """What the adaptive optimizers carry, each (d,)."""

    first: Array
    second: Array


def _adaptive(method: Literal["yogi", "adagrad"], decay: float, tau: float) -> optax.GradientTransformation:
    """FedYogi and FedAdagrad as Algorithm 2 of Reddi et al. 2021 has them: m/(sqrt(v) + tau), v from tau^2.

    m_t = b1 m_{t-1} + (1 - b1) g;  Yogi: v_t = v_{t-1} - (1 - b2) g^2 sign(v_{t-1} - g^2);  Adagrad:
    v_t = v_{t-1} + g^2. optax.yogi is another: it corrects moments for a start at 0, and starts both elsewhere.
    """

    def init(model: Array) -> Moments:
        return Moments(jnp.zeros_like(model), jnp.full_like(model, tau**2))

    def update(gradient: Array, state: Moments, _: Array | None = None) -> tuple[Array, Moments]:
        square = gradient * gradient
        first = decay * state.first + (1 - decay) * gradient
        grown = square if method == "adagrad" else -(1 - SECOND_MOMENT) * square * jnp.sign(state.second - square)
        second = state.second + grown
        return first / (jnp.sqrt(second) + tau), Moments(first, second)

    return optax.GradientTransformation(init, update)


def server_step(
    transformation: optax.GradientTransformation, model: Array, state: optax.OptState, mean_update: Array
) -> tuple[Array, optax.OptState]:
    """theta_{t+1} from theta_t and the privatised mean of the updates, (d,): the mean is minus a gradient."""
    step, state = transformation.update(jax.tree.map(lambda u: -u, mean_update), state, model)
    return model + step, state
