"""Clipping: the one bound that the guarantee rests on, applied to each client's update before the sum."""

from typing import Generic, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jax import Array

Update = TypeVar("Update")  # a pytree of float32 arrays, shaped like the model


class Clipped(NamedTuple, Generic[Update]):
    """A client's update as it may be summed, and what to count about it."""

    update: Update
    norm: Array  # () float32: the L2 norm before clipping; 0 where the update was not finite
    finite: Array  # () bool: False if the update was dropped, that is, replaced by zeros


def clip(update: Update, clip_norm: Array | float) -> Clipped[Update]:
    """Scale an update down to L2 norm `clip_norm` over the whole model: update * min(1, clip_norm / norm).

    The result's norm is at most clip_norm to within float32 rounding (relative 1e-6). An update that is not
    finite, or whose norm is above float32's range (1.8e19), contributes zeros, which any clip norm allows,
    and is flagged: the caller counts it. Works under jit and scan; clip_norm may be traced and must be
    positive (inf: no clipping). Source: arXiv:2305.18465 (paper 1), Algorithm 1.
    """
    squares = [jnp.vdot(leaf, leaf) for leaf in jax.tree.leaves(update)]
    norm = jnp.sqrt(sum(squares, start=jnp.zeros((), jnp.float32)))
    finite = jnp.isfinite(norm)
    scale = jnp.minimum(1.0, clip_norm / norm)  # a norm of 0 gives inf, hence 1
    # Chosen by where, not by a factor 0: 0 * inf would be nan.
    clipped: Update = jax.tree.map(lambda leaf: jnp.where(finite, leaf * scale, 0.0), update)
    return Clipped(clipped, jnp.where(finite, norm, 0.0), finite)
