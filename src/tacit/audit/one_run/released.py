"""What an auditor keeps of all that a run released: a weighted sum of its rounds' noised means, for each place.

`WatchedOptimizer` is the recipe's server optimizer, which also adds up what it was given. The sums are part of its
state, so they are in each checkpoint, and a run that was killed goes on with them to the bit. Only noised means are
looked at, which is what the guarantee is of. Of sgd, momentum and nesterov they follow from the released models
(`means_from_models`); adaptive optimizers may hide something of them.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
import optax
from jax import Array
from numpy.typing import NDArray

from tacit.training.server import ServerOptimizer


class Watched(NamedTuple):
    """The state of a `WatchedOptimizer`."""

    round: Array  # () int32: the next one
    sums: Array  # (places, d) float32
    inner: optax.OptState


class WatchedOptimizer:
    """An OwnOptimizer: it steps as the server's does, and adds up weight times report goal times noised mean."""

    def __init__(self, server: ServerOptimizer, weights: NDArray[np.float64], *, report_goal: int) -> None:
        """weights: (places, rounds) of noised sums."""
        self._server = server
        self._weights = jnp.asarray(weights * report_goal, jnp.float32)

    def __call__(self, rounds: int) -> optax.GradientTransformation:
        """The optimizer of a run of so many rounds."""
        inner = self._server.transformation(rounds)

        def init(model: Array) -> Watched:
            return Watched(jnp.int32(0), jnp.zeros((len(self._weights), len(model)), jnp.float32), inner.init(model))

        def update(gradient: Array, state: Watched, model: Array | None = None) -> tuple[Array, Watched]:
            sums = state.sums - self._weights[:, state.round, None] * gradient  # the mean is minus a gradient
            step, after = inner.update(gradient, state.inner, model)
            return step, Watched(state.round + 1, sums, after)

        return optax.GradientTransformation(init, update)


def means_from_models(models: Sequence[NDArray[np.float32]], server: ServerOptimizer) -> NDArray[np.float64]:
    """The noised means (rounds, d) between released models, the first one before round 0.

    Of sgd a step is rate * mean. Of momentum m it is rate * trace, with trace_t = m trace_(t-1) + mean_t; of nesterov
    rate * (m trace_t + mean_t). Solved in float64 for the mean, round after round. For optimizers without adaptivity.
    """
    steps = np.diff(np.asarray(models, np.float64), axis=0)
    momentum = 0.0 if server.method == "sgd" else server.momentum
    trace, found = np.zeros_like(steps[0]), []
    for step in steps:
        moved = step / server.learning_rate
        if server.method == "nesterov":
            mean = (moved - momentum**2 * trace) / (1 + momentum)
        else:
            mean = moved - momentum * trace
        trace = momentum * trace + mean
        found.append(mean)
    return np.array(found)
