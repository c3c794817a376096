"""The loss of `cifg` with derivatives written by hand: for accelerators, where sentences stay padded.

The input projection and the softmax are hoisted out of the recurrence, each weight gradient is one product over all
words, and the softmax is never normalised word by word in memory. The slow reference is the derivative that JAX makes
of `language_model.cross_entropy`, and the slow, obvious one `tests/networks/numpy_model.py`.

Shapes, once for the whole file: B sentences, L words, W = L*B words (time-major), V words in the vocabulary,
E embedding width, H units.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from tacit.networks.cifg.parameters import CifgParameters
from tacit.text.vocabulary import PAD


def loss(model: CifgParameters, sentences: Array) -> Array:
    """Mean cross-entropy of padded sentences (B, L+1), () float32; see `language_model.NextWordLoss`."""
    targets = sentences[:, 1:].T.reshape(-1)
    mask = (targets != PAD).astype(jnp.float32)
    weights = mask / jnp.maximum(mask.sum(), 1.0)
    outputs = predictions(model, sentences[:, :-1])
    return _cross_entropy(outputs, _output(model), model.output_bias, targets, weights)


def predictions(model: CifgParameters, tokens: Array) -> Array:
    """The projected outputs (W, E) after tokens (B, L), time-major: their products with the output embedding are
    the scores."""
    inputs = model.embedding[tokens.T]  # (L, B, E)
    return _recurrence(model.kernel, model.bias, model.projection, inputs).reshape(-1, inputs.shape[-1])


def scores(model: CifgParameters, tokens: Array) -> Array:
    """Scores of the next word, (W, V) float32, time-major: row t*B + s is word t of sentence s."""
    return predictions(model, tokens) @ _output(model) + model.output_bias[None, :]


def _output(model: CifgParameters) -> Array:
    return model.output if model.output.shape[1] else model.embedding.T


# -- the softmax ---------------------------------------------------------------------------------------------------


@jax.custom_vjp
def _cross_entropy(outputs: Array, matrix: Array, bias: Array, targets: Array, weights: Array) -> Array:
    """sum_w weights[w] * (log sum_v exp(logit[w, v]) - logit[w, target[w]]); logits are outputs @ matrix + bias.

    outputs (W, E), matrix (E, V), bias (V,), targets (W,) integers, weights (W,).
    """
    return _cross_entropy_forward(outputs, matrix, bias, targets, weights)[0]


def _cross_entropy_forward(
    outputs: Array, matrix: Array, bias: Array, targets: Array, weights: Array
) -> tuple[Array, tuple[Array, Array, Array]]:
    """The loss and, since its derivative needs the same exponentials, the derivative with it.

    With e = exp(logit - max) and s = sum e, the derivative of a logit is weight/s * (e - s * onehot). The bracket is
    written once, into the memory of e, and used in both backward products; weight/s is folded into the small matrices,
    and the bias is one more row of the second product.
    """
    scores = outputs @ matrix + bias[None, :]  # (W, V)
    top = scores.max(axis=1)
    picked = jnp.take_along_axis(scores, targets[:, None], axis=1)[:, 0]
    exponentials = jnp.exp(scores - top[:, None])
    sums = exponentials.sum(axis=1)
    value = jnp.dot(weights, jnp.log(sums) + top - picked)
    residual = exponentials.at[jnp.arange(len(targets)), targets].add(-sums, unique_indices=True)
    scale = (weights / sums)[:, None]  # (W, 1)
    d_outputs = (residual @ matrix.T) * scale
    weighted = jnp.concatenate([outputs * scale, scale], axis=1)  # (W, E + 1)
    d_matrix = weighted.T @ residual  # (E + 1, V)
    return value, (d_outputs, d_matrix[:-1], d_matrix[-1])


def _cross_entropy_backward(kept: tuple[Array, Array, Array], d_value: Array) -> tuple[Array, Array, Array, None, None]:
    d_outputs, d_matrix, d_bias = kept
    return d_outputs * d_value, d_matrix * d_value, d_bias * d_value, None, None


_cross_entropy.defvjp(_cross_entropy_forward, _cross_entropy_backward)


# -- the recurrence ------------------------------------------------------------------------------------------------


@jax.custom_vjp
def _recurrence(kernel: Array, bias: Array, projection: Array, inputs: Array) -> Array:
    """Projected outputs (L, B, E) of the CIFG for inputs (L, B, E), from a zero state."""
    return _recurrence_forward(kernel, bias, projection, inputs)[0]


class _Trace(NamedTuple):
    """What the backward pass needs of each word: time-major, (L, B, .)."""

    update: Array  # i (H)
    candidate: Array  # g (H)
    emit: Array  # o (H)
    before: Array  # the cell before this word (H)
    squashed: Array  # tanh of the cell after it (H)


def _recurrence_forward(
    kernel: Array, bias: Array, projection: Array, inputs: Array
) -> tuple[Array, tuple[Array, Array, Array, Array, _Trace]]:
    length, batch, width = inputs.shape
    units = projection.shape[0]
    feedback = kernel[width:]
    hoisted = (inputs.reshape(-1, width) @ kernel[:width] + bias[None, :]).reshape(length, batch, 3 * units)

    def step(carry: tuple[Array, Array], z: Array) -> tuple[tuple[Array, Array], tuple[Array, _Trace]]:
        cell, output = carry
        z = z + output @ feedback
        update = jax.nn.sigmoid(z[:, :units])
        candidate = jnp.tanh(z[:, units : 2 * units])
        emit = jax.nn.sigmoid(z[:, 2 * units :])
        after = cell + update * (candidate - cell)  # f = 1 - i
        squashed = jnp.tanh(after)
        output = (emit * squashed) @ projection
        return (after, output), (output, _Trace(update, candidate, emit, cell, squashed))

    start = (jnp.zeros((batch, units), inputs.dtype), jnp.zeros((batch, width), inputs.dtype))
    _, (outputs, trace) = lax.scan(step, start, hoisted)
    return outputs, (kernel, projection, inputs, outputs, trace)


def _recurrence_backward(
    kept: tuple[Array, Array, Array, Array, _Trace], d_outputs: Array
) -> tuple[Array, Array, Array, Array]:
    kernel, projection, inputs, outputs, trace = kept
    length, batch, width = inputs.shape
    units = projection.shape[0]
    back_feedback, back_projection = kernel[width:].T, projection.T

    def step(carry: tuple[Array, Array], word: tuple[Array, _Trace]) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        d_cell, d_fed_back = carry
        d_here, t = word
        d_output = d_here + d_fed_back
        d_hidden = d_output @ back_projection
        d_cell = d_cell + d_hidden * t.emit * (1.0 - t.squashed * t.squashed)
        dz = jnp.concatenate(
            [
                d_cell * (t.candidate - t.before) * t.update * (1.0 - t.update),
                d_cell * t.update * (1.0 - t.candidate * t.candidate),
                d_hidden * t.squashed * t.emit * (1.0 - t.emit),
            ],
            axis=1,
        )
        return (d_cell * (1.0 - t.update), dz @ back_feedback), (dz, d_output)

    end = (jnp.zeros((batch, units), inputs.dtype), jnp.zeros((batch, width), inputs.dtype))
    _, (dz, d_output) = lax.scan(step, end, (d_outputs, trace), reverse=True)
    dz = dz.reshape(length * batch, 3 * units)
    fed_back = jnp.concatenate([jnp.zeros((1, batch, width), inputs.dtype), outputs[:-1]])
    both = jnp.concatenate([inputs, fed_back], axis=2).reshape(-1, 2 * width)
    hidden = (trace.emit * trace.squashed).reshape(-1, units)
    return (
        both.T @ dz,  # the one product of the kernel's gradient
        dz.sum(axis=0),
        hidden.T @ d_output.reshape(-1, width),
        (dz @ kernel[:width].T).reshape(inputs.shape),
    )


_recurrence.defvjp(_recurrence_forward, _recurrence_backward)
