"""Buffered linear Toeplitz noise: a few decaying buffers stand in for the whole history.

Source: arXiv:2408.08868 (paper 4), Equation 3 and Algorithm 3, with C as given: not normalised.
"""

from dataclasses import dataclass
from functools import partial

import jax
import numpy as np
import numpy.typing as npt
from jax import Array
from scipy.linalg import solve_triangular

from tacit.mechanisms.stream import NoiseState, check_seeds, new_state
from tacit.privacy.strategy import Blt


@dataclass(frozen=True)
class BltStream:
    """One seed a round; as many buffers as the strategy has, however many rounds there are.

    The coefficients are rounded to float32 (relative 6e-8); the guarantee is computed from the exact ones.
    """

    strategy: Blt

    def seeds_in(self, round: int) -> int:
        """One, always."""
        return 1

    def init(self, dimension: int) -> NoiseState:
        """Buffers (len(theta), d) of zeros."""
        return new_state(len(self.strategy.theta), dimension)

    def next(self, state: NoiseState, seeds: npt.NDArray[np.float32] | Array) -> tuple[Array, NoiseState]:
        """Row t of C^{-1} Z."""
        check_seeds(self, state, seeds)
        theta = np.asarray(self.strategy.theta, np.float32)
        omega = np.asarray(self.strategy.omega, np.float32)
        noise, buffers = _advance(state.buffers, seeds[0], theta, omega)
        return noise, NoiseState(state.round + 1, buffers)

    def dense(self, rounds: int) -> npt.NDArray[np.float64]:
        """C^{-1} (rounds, rounds)."""
        strategy = self.strategy.dense(rounds)
        inverse: npt.NDArray[np.float64] = solve_triangular(strategy, np.eye(rounds), lower=True, unit_diagonal=True)
        return inverse


@partial(jax.jit, donate_argnums=0)
def _advance(buffers: Array, seed: Array, theta: Array, omega: Array) -> tuple[Array, Array]:
    """Equation 3: Zhat = Z - sum_j omega_j s_j, then s_j <- theta_j s_j + Zhat.

    Elementwise, with the sum over the buffers written out in a fixed order: every coordinate is computed
    alone, so the bits do not depend on threads. The second line keeps the buffers' shape so that it can be
    done in place.
    """
    noise = seed
    for j in range(buffers.shape[0]):
        noise = noise - omega[j] * buffers[j]
    return noise, theta[:, None] * buffers + noise[None, :]
