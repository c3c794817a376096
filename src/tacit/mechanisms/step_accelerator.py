"""A round on an accelerator: the buffers stay in its memory and are updated there; seeds come from the host.

The same sums as in `step_cpu.py`, with the rounding of the device.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax import Array
from jax.typing import ArrayLike

from tacit.mechanisms.step import Decay, Keep, NoiseStep, Weights


def run_step(step: NoiseStep, buffers: Array, seeds: Array, onto: Array | None, scale: float) -> tuple[Array, Array]:
    """onto + scale * noise, (d,), and the buffers (rows, d) after it; those given are donated.

    seeds: (rows, d). Without `onto`, the noise alone.
    """
    with jax.enable_x64(step.cancelling):
        digits = np.float64 if step.cancelling else np.float32
        weights = (_padded(step.seeds, seeds).astype(digits), _padded(step.buffers, buffers).astype(digits))
        noise = _noise(*weights, seeds, buffers)
    match step.then:
        case Decay(rates):
            buffers = _decay(buffers, noise, np.asarray(rates, np.float32))
        case Keep():
            kept = (np.asarray(step.then.noise), _padded(step.then.seeds, seeds), _padded(step.then.buffers, buffers))
            buffers = _keep(buffers, noise, seeds, step.then.slot, *(each.astype(np.float32) for each in kept))
    return _release(noise, np.zeros((), np.float32) if onto is None else onto, np.float32(scale)), buffers


def _padded(weights: Weights, rows: Array) -> npt.NDArray[np.float64]:
    return np.pad(np.asarray(weights, np.float64), (0, len(rows) - len(weights)))


def _dot(weights: Array, rows: Array) -> Array:
    """In full float32: accelerators would multiply in fewer digits."""
    product: Array = jnp.matmul(weights, rows, precision=jax.lax.Precision.HIGHEST)
    return product


@jax.jit
def _noise(of_seeds: Array, of_buffers: Array, seeds: Array, buffers: Array) -> Array:
    rows = (each.astype(of_seeds.dtype) for each in (seeds, buffers))
    total = sum(_dot(weights, each) for weights, each in zip((of_seeds, of_buffers), rows, strict=True))
    return jnp.asarray(total, jnp.float32)


@partial(jax.jit, donate_argnums=0)
def _decay(buffers: Array, noise: Array, rates: Array) -> Array:
    return buffers + (noise[None, :] - rates[:, None] * buffers)


@partial(jax.jit, donate_argnums=0)
def _keep(
    buffers: Array, noise: Array, seeds: Array, slot: int, of_noise: ArrayLike, of_seeds: Array, of_buffers: Array
) -> Array:
    kept = of_noise * noise + _dot(of_seeds, seeds) + _dot(of_buffers, buffers)
    return buffers.at[slot].set(kept)


@jax.jit
def _release(noise: Array, onto: ArrayLike, scale: ArrayLike) -> Array:
    return jnp.add(onto, scale * noise)
