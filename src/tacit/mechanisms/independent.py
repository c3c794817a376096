"""Independent noise: the strategy is the identity, each round pays for itself (DP-SGD without sampling)."""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax import Array

from tacit.mechanisms.stream import NoiseState, check_seeds, new_state
from tacit.privacy.strategy import Independent


@dataclass(frozen=True)
class IndependentStream:
    """One seed a round, used as it is; nothing is carried."""

    strategy: Independent

    def seeds_in(self, round: int) -> int:
        """One, always."""
        return 1

    def init(self, dimension: int) -> NoiseState:
        """No buffers: (0, d)."""
        return new_state(0, dimension)

    def next(self, state: NoiseState, seeds: npt.NDArray[np.float32] | Array) -> tuple[Array, NoiseState]:
        """The seed itself, copied: a NumPy array that the caller reuses must not change noise already given
        out."""
        check_seeds(self, state, seeds)
        return jnp.array(seeds[0], jnp.float32, copy=True), NoiseState(state.round + 1, state.buffers)

    def dense(self, rounds: int) -> npt.NDArray[np.float64]:
        """The identity (rounds, rounds)."""
        return np.eye(rounds)
