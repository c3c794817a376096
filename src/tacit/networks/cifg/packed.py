"""The gradient, and one step of SGD, over the real words of a batch, for processors: those of the CIFG's padded loss
without the cost of the padding.

Sentences are sorted by length and their words stored time-major without gaps: at time t only the first active[t]
sentences still go on, and their words are the rows starts[t] .. starts[t] + active[t]. The recurrence reads and writes
B rows from starts[t] on; those of ended sentences are overwritten by the words of the next time (backwards: left
alone). All other products run over the first R rows, R the smallest of a few compiled sizes that holds every word.

Products are computed from operands of the asked precision; their sums, the parameters and the step are float32. The
slow references are `language_model.sgd_step` and the gradient that JAX makes of the loss.

Shapes, once for the whole file: B sentences, L words, W = L*B rows, of which R are computed, V words in the
vocabulary, E embedding width, H units.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from tacit.networks.cifg.parameters import CifgParameters
from tacit.text.vocabulary import PAD

SIZES = 6  # compiled numbers of rows, W/6, 2W/6 .. W: fewer waste more rows, more cost compile time
SMALLEST = 32  # rows; below, a product is no cheaper
LEAST = 1e-37  # of exp(score - maximum), where float32 ends: 85 nats


class _Batch(NamedTuple):
    """A batch, packed; rows behind the last word have weight 0."""

    inputs: Array  # (W,) ids
    targets: Array  # (W,) ids
    weights: Array  # (W,) float32: 1/words
    before: Array  # (W,) the row of the sentence's word before; W where there is none
    starts: Array  # (L,) the first row of each time
    active: Array  # (L,) how many sentences have a word then
    longest: Array  # () how many times there are
    size: Array  # () the index of R in `_sizes`


class _PackedTrace(NamedTuple):
    """What the backward pass needs of each word."""

    update: Array  # i (W, H)
    candidate: Array  # g (W, H)
    emit: Array  # o (W, H)
    cell: Array  # before this word (W, H)
    squashed: Array  # tanh of the cell after it (W, H)


class _Slopes(NamedTuple):
    """The derivatives of the loss. Those by the tables are in parts: one for every id, and one at each word's own."""

    inputs: Array  # (W, E) by the input embedding, at the ids of `inputs`
    kernel: Array  # (2E, 3H)
    bias: Array  # (3H,)
    projection: Array  # (H, E)
    output: Array  # (E, V) by the output embedding, but for
    typed: Array  # (W, E) what is taken from it at the ids of `targets`
    output_bias: Array  # (V,), but for the weights at the ids of `targets`


def descend(
    model: CifgParameters, sentences: Array, learning_rate: float, *, precision: str = "float32"
) -> tuple[CifgParameters, Array]:
    """(model - learning_rate * gradient, loss ()) for padded sentences (B, L+1), as `loss` has them.

    precision: "float32" or "bfloat16", of the products' operands. Exact but for rounding: rows of the input embedding
    that no word of the batch touches have gradient zero and are not rewritten.
    """
    batch = _pack(sentences)
    value, slopes = _slopes(model, batch, len(sentences), jnp.dtype(precision))

    def less(parameter: Array, gradient: Array) -> Array:
        return parameter - learning_rate * gradient

    typed = learning_rate * slopes.typed
    if model.output.shape[1]:
        embedding, output = model.embedding, less(model.output, slopes.output).at[:, batch.targets].add(typed.T)
    else:
        embedding, output = less(model.embedding, slopes.output.T).at[batch.targets].add(typed), model.output
    return CifgParameters(
        embedding=embedding.at[batch.inputs].add(-learning_rate * slopes.inputs),
        kernel=less(model.kernel, slopes.kernel),
        bias=less(model.bias, slopes.bias),
        projection=less(model.projection, slopes.projection),
        output=output,
        output_bias=less(model.output_bias, slopes.output_bias).at[batch.targets].add(learning_rate * batch.weights),
    ), value


def gradient(model: CifgParameters, sentences: Array, *, precision: str = "float32") -> tuple[Array, CifgParameters]:
    """(loss (), its gradient) for padded sentences (B, L+1), as `jax.value_and_grad(loss)` but for rounding."""
    batch = _pack(sentences)
    value, slopes = _slopes(model, batch, len(sentences), jnp.dtype(precision))
    embedding, output = jnp.zeros_like(model.embedding), model.output
    if model.output.shape[1]:
        output = slopes.output.at[:, batch.targets].add(-slopes.typed.T)
    else:
        embedding = slopes.output.T.at[batch.targets].add(-slopes.typed)
    return value, CifgParameters(
        embedding=embedding.at[batch.inputs].add(slopes.inputs),
        kernel=slopes.kernel,
        bias=slopes.bias,
        projection=slopes.projection,
        output=output,
        output_bias=slopes.output_bias.at[batch.targets].add(-batch.weights),
    )


def _slopes(model: CifgParameters, batch: _Batch, count: int, operand: Any) -> tuple[Array, _Slopes]:
    """The loss () of `count` packed sentences, and its derivatives."""
    width = model.embedding.shape[1]
    kernel, projection = model.kernel.astype(operand), model.projection.astype(operand)
    matrix = model.output if model.output.shape[1] else model.embedding.T
    inputs = model.embedding[batch.inputs]

    hoisted = _sized(batch, _hoist, inputs, kernel[:width], model.bias)
    outputs, trace = _forward(batch, hoisted, kernel[width:], projection, count)
    value, d_outputs, d_matrix = _softmax(batch, outputs, matrix, model.output_bias, operand)
    dz, d_fed = _backward(batch, trace, d_outputs, kernel[width:], projection, count)
    fed_back = outputs.at[batch.before].get(mode="fill", fill_value=0.0)
    both = jnp.concatenate([inputs, fed_back], axis=1).T.astype(operand)  # (2E, W)
    hidden = trace.emit * trace.squashed
    d_kernel, d_bias, d_projection, d_inputs = _sized(
        batch, _weight_gradients, both, hidden, dz, d_fed.T.astype(operand), kernel[:width].T
    )
    return value, _Slopes(
        inputs=d_inputs,
        kernel=d_kernel,
        bias=d_bias,
        projection=d_projection.T,
        output=d_matrix[:-1],
        typed=batch.weights[:, None] * outputs,
        output_bias=d_matrix[-1],
    )


# -- the rows ------------------------------------------------------------------------------------------------------


def _sizes(rows: int) -> list[int]:
    """The numbers of rows that are compiled, ascending; the last is `rows`."""
    step = max(SMALLEST, -(-rows // SIZES))
    return [*range(step, rows, step), rows]


def _pack(sentences: Array) -> _Batch:
    count, length = sentences.shape[0], sentences.shape[1] - 1
    rows = count * length
    lengths = (sentences[:, 1:] != PAD).sum(axis=1)
    ids = sentences[jnp.argsort(-lengths)]
    active = (lengths[:, None] > jnp.arange(length)[None, :]).sum(axis=0)
    starts = jnp.cumsum(active) - active
    words = lengths.sum()
    row = jnp.arange(rows)
    time = jnp.maximum((starts[None, :] <= row[:, None]).sum(axis=1) - 1, 0)  # ended times begin at `words`
    sentence = jnp.minimum(row - starts[time], count - 1)
    real = row < words
    return _Batch(
        inputs=jnp.where(real, ids[sentence, time], PAD),
        targets=jnp.where(real, ids[sentence, jnp.minimum(time + 1, length)], PAD),
        weights=jnp.where(real, 1.0 / jnp.maximum(words, 1), 0.0).astype(jnp.float32),
        before=jnp.where(real & (time > 0), starts[time - 1] + sentence, rows),
        starts=starts,
        active=active,
        longest=lengths.max(),
        size=(words > jnp.array(_sizes(rows)[:-1], jnp.int32)).sum(),
    )


def _sized(batch: _Batch, compute: Callable[..., Any], *operands: Array) -> Any:
    """compute(*operands, rows=R) for the batch's R."""
    return lax.switch(batch.size, [partial(compute, rows=rows) for rows in _sizes(len(batch.inputs))], *operands)


def _filled(part: Array, rows: int) -> Array:
    """(R, .) with rows of zeros below, (rows, .)."""
    return jnp.pad(part, ((0, rows - len(part)), (0, 0)))


# -- products ------------------------------------------------------------------------------------------------------


def _product(left: Array, right: Array) -> Array:
    """left @ right, summed in float32, from operands of right's type."""
    return jnp.matmul(left.astype(right.dtype), right, preferred_element_type=jnp.float32)


def _kept(values: Array) -> Array:
    """The same, computed once and written to memory before anybody uses it."""
    written: Array = lax.optimization_barrier(values)  # type: ignore[no-untyped-call]
    return written


# -- the softmax ---------------------------------------------------------------------------------------------------


def _softmax(batch: _Batch, outputs: Array, matrix: Array, bias: Array, operand: Any) -> tuple[Array, Array, Array]:
    """The loss (), its derivative by the outputs (W, E), and that by matrix and bias (E+1, V) but for the targets."""
    picked = matrix[:, batch.targets].T  # (W, E)
    matrix = _kept(matrix.astype(operand))
    value, d_outputs, d_matrix = _sized(
        batch, _exponentials, outputs, outputs.T, matrix, matrix.T, bias, batch.targets, batch.weights
    )
    return value, d_outputs - batch.weights[:, None] * picked, d_matrix


def _exponentials(
    outputs: Array,
    columns: Array,
    matrix: Array,
    transposed: Array,
    bias: Array,
    targets: Array,
    weights: Array,
    *,
    rows: int,
) -> tuple[Array, Array, Array]:
    """The loss (), and the derivatives of its log sum exp by outputs (W, E) and by matrix and bias (E+1, V).

    The exponentials are not normalised in memory: weight/sum is folded into the small matrices of both products, and
    the bias is one more row of the second. XLA makes one pass of first product, maximum and exponential (in bfloat16
    4.5 ms instead of 8 at 320 x 10,000), but only if nobody else looks at the scores: so the loss is read off the
    exponentials, and no word's surprise counts as more than LEAST's.
    """
    total = len(outputs)
    scores = _product(outputs[:rows], matrix) + bias[None, :]  # (R, V)
    exponentials = _kept(jnp.exp(scores - scores.max(axis=1, keepdims=True)).astype(matrix.dtype))
    sums = exponentials.astype(jnp.float32).sum(axis=1)
    typed = _picked(exponentials, targets[:rows])
    value = jnp.dot(weights[:rows], jnp.log(sums) - jnp.log(jnp.maximum(typed, LEAST)))
    scale = weights[:rows] / sums
    d_outputs = _product(exponentials, transposed) * scale[:, None]
    weighted = jnp.concatenate([columns[:, :rows], jnp.ones((1, rows), jnp.float32)]) * scale[None, :]  # (E + 1, R)
    return value, _filled(d_outputs, total), _product(weighted, exponentials)


def _picked(values: Array, columns: Array) -> Array:
    """values[w, columns[w]] as float32 (R,), by their bits: XLA would convert all of a bfloat16 array for a few."""
    bits = lax.bitcast_convert_type(values, jnp.uint32 if values.dtype == jnp.float32 else jnp.uint16)
    return lax.bitcast_convert_type(bits[jnp.arange(len(columns)), columns], values.dtype).astype(jnp.float32)


# -- the recurrence ------------------------------------------------------------------------------------------------


def _hoist(inputs: Array, kernel: Array, bias: Array, *, rows: int) -> Array:
    """The inputs' part of the gates (W, 3H)."""
    return _filled(_product(inputs[:rows], kernel) + bias[None, :], len(inputs))


def _forward(
    batch: _Batch, hoisted: Array, feedback: Array, projection: Array, count: int
) -> tuple[Array, _PackedTrace]:
    """The projected outputs (W, E) and the trace, from a zero state."""
    rows, units, width = len(hoisted), projection.shape[0], projection.shape[1]

    def step(time: Array, carry: tuple[Array, Array, Array, _PackedTrace]) -> tuple[Array, Array, Array, _PackedTrace]:
        cell, output, outputs, trace = carry
        start = batch.starts[time]
        z = lax.dynamic_slice_in_dim(hoisted, start, count) + _product(output, feedback)
        update = jax.nn.sigmoid(z[:, :units])
        candidate = jnp.tanh(z[:, units : 2 * units])
        emit = jax.nn.sigmoid(z[:, 2 * units :])
        after = cell + update * (candidate - cell)  # f = 1 - i
        squashed = jnp.tanh(after)
        output = _product(emit * squashed, projection)
        word = _PackedTrace(update, candidate, emit, cell, squashed)
        trace = _PackedTrace(*(_written(all, part, start) for all, part in zip(trace, word, strict=True)))
        return after, output, _written(outputs, output, start), trace

    blank = jnp.zeros((rows, units), jnp.float32)
    start = (
        jnp.zeros((count, units), jnp.float32),
        jnp.zeros((count, width), jnp.float32),
        jnp.zeros((rows, width), jnp.float32),
        _PackedTrace(blank, blank, blank, blank, blank),
    )
    _, _, outputs, trace = lax.fori_loop(0, batch.longest, step, start)
    return outputs, trace


def _backward(
    batch: _Batch, trace: _PackedTrace, d_outputs: Array, feedback: Array, projection: Array, count: int
) -> tuple[Array, Array]:
    """The derivatives by the gates before squashing (W, 3H) and by the projected outputs (W, E), fed back included."""
    rows, units, width = len(d_outputs), projection.shape[0], projection.shape[1]
    feedback, projection = feedback.T, projection.T

    def step(i: Array, carry: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
        d_cell, d_fed_back, dz_all, d_output_all = carry
        time = batch.longest - 1 - i
        start = batch.starts[time]
        goes_on = (jnp.arange(count) < batch.active[time])[:, None]
        t = _PackedTrace(*(lax.dynamic_slice_in_dim(part, start, count) for part in trace))
        d_here = lax.dynamic_slice_in_dim(d_outputs, start, count)
        d_output = jnp.where(goes_on, d_here + d_fed_back, 0.0)
        d_hidden = _product(d_output, projection)
        d_cell = d_cell + d_hidden * t.emit * (1.0 - t.squashed * t.squashed)
        dz = jnp.concatenate(
            [
                d_cell * (t.candidate - t.cell) * t.update * (1.0 - t.update),
                d_cell * t.update * (1.0 - t.candidate * t.candidate),
                d_hidden * t.squashed * t.emit * (1.0 - t.emit),
            ],
            axis=1,
        )
        dz_all = _written(dz_all, jnp.where(goes_on, dz, lax.dynamic_slice_in_dim(dz_all, start, count)), start)
        kept = jnp.where(goes_on, d_output, lax.dynamic_slice_in_dim(d_output_all, start, count))
        return d_cell * (1.0 - t.update), _product(dz, feedback), dz_all, _written(d_output_all, kept, start)

    end = (
        jnp.zeros((count, units), jnp.float32),
        jnp.zeros((count, width), jnp.float32),
        jnp.zeros((rows, 3 * units), jnp.float32),
        jnp.zeros((rows, width), jnp.float32),
    )
    _, _, dz, d_output = lax.fori_loop(0, batch.longest, step, end)
    return dz, d_output


def _written(all: Array, part: Array, start: Array) -> Array:
    return lax.dynamic_update_slice_in_dim(all, part, start, axis=0)


def _weight_gradients(
    both: Array, hidden: Array, dz: Array, d_fed: Array, back: Array, *, rows: int
) -> tuple[Array, Array, Array, Array]:
    """By kernel (2E, 3H), bias (3H,), projection transposed (E, H) and inputs (W, E).

    both (2E, W) and d_fed (E, W) arrive transposed: a transposition in here would be folded into the products, which
    XLA then computes in float32, six times slower than in bfloat16.
    """
    narrow = dz[:rows].astype(back.dtype)
    return (
        _product(both[:, :rows], narrow),
        dz[:rows].sum(axis=0),
        _product(d_fed[:, :rows], hidden[:rows].astype(back.dtype)),
        _filled(_product(narrow, back), len(dz)),
    )
