"""Fresh parameters of the CIFG, by JAX."""

from functools import partial

import jax
import jax.numpy as jnp
from jax import Array

from tacit.networks.cifg.parameters import CifgParameters


# One program, where each step would be compiled by itself.
@partial(jax.jit, static_argnames=("vocabulary", "embedding", "units", "tied"))
def initial(key: Array, *, vocabulary: int, embedding: int, units: int, tied: bool) -> CifgParameters:
    """Drawn so that plain SGD moves from the first round.

    Input embeddings uniform in +-1: smaller ones (+-0.1, as recipes for adaptive optimizers have them) leave the gates
    at rest and cost tens of rounds. Output embeddings +-0.1, so that all words begin about equal; tied ones too. Glorot
    kernels. The input gate begins at sigmoid(-1), so the cell keeps 73% of what it knew (f = 1 - i).
    """
    keys = jax.random.split(key, 4)
    v, e, h = vocabulary, embedding, units

    def uniform(key: Array, shape: tuple[int, int], limit: float) -> Array:
        return jax.random.uniform(key, shape, jnp.float32, -limit, limit)

    return CifgParameters(
        embedding=uniform(keys[0], (v, e), 0.1 if tied else 1.0),
        kernel=uniform(keys[1], (2 * e, 3 * h), (6.0 / (2 * e + h)) ** 0.5),
        bias=jnp.zeros(3 * h, jnp.float32).at[:h].set(-1.0),
        projection=uniform(keys[2], (h, e), (6.0 / (h + e)) ** 0.5),
        output=uniform(keys[3], (e, 0 if tied else v), 0.1),
        output_bias=jnp.zeros(v, jnp.float32),
    )
