"""The keyboard's network on one CPU core, for sentences as long as they are: what fine-tuning costs a device.

Small batches of sentences of different lengths are what compilers of fixed shapes do worst. Here no padding is
computed: sentences are laid out by place, and only those that still go on take part in a step. The vocabulary is
visited in blocks that fit the second-level cache, and a gradient is taken from its block where it was made: none of a
table is kept, and of an input embedding only rows that occur are touched. Products are BLAS's, where it is fast.

The derivatives are those of `loss`; tests compare them with it and with the NumPy reference of both. float32; the order
of additions depends on nothing but the text. All that is compiled is in this one file, because the kept machine code of
a function is renewed when its own file changes, not when that of a function it calls does.

N words of a batch (by place, then by sentence), V vocabulary, E embedding width, H units. Gates stand in the order
input, candidate, output along 3H.
"""

from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from tacit.compiled import compiled_with
from tacit.networks.cifg.parameters import CifgParameters

FloatArray: TypeAlias = npt.NDArray[np.float32]
Ids: TypeAlias = npt.NDArray[np.int32]
Places: TypeAlias = npt.NDArray[np.int64]


class Weights(NamedTuple):
    """`CifgParameters` as NumPy arrays, float32. Tied: `table` is `embedding`, the same memory."""

    embedding: FloatArray  # (V, E)
    kernel: FloatArray  # (2E, 3H)
    bias: FloatArray  # (3H,)
    projection: FloatArray  # (H, E)
    table: FloatArray  # (V, E) the output embedding by word
    output_bias: FloatArray  # (V,)

    @property
    def tied(self) -> bool:
        """Whether one table serves both ends."""
        return self.table is self.embedding

    @classmethod
    def from_parameters(cls, model: CifgParameters) -> "Weights":
        """A copy of a model's parameters."""
        embedding, kernel, bias, projection, output, output_bias = (np.array(leaf, np.float32) for leaf in model)
        table = np.ascontiguousarray(output.T) if output.size else embedding
        return cls(embedding, kernel, bias, projection, table, output_bias)

    def by_name(self) -> dict[str, FloatArray]:
        """As `CifgParameters` names and shapes them."""
        embedding, kernel, bias, projection, table, output_bias = self
        output = np.empty((embedding.shape[1], 0), np.float32) if self.tied else table.T
        named = (embedding, kernel, bias, projection, output, output_bias)
        return dict(zip(CifgParameters._fields, named, strict=True))

    def copy(self) -> "Weights":
        """Parameters of one's own, tied if these are."""
        embedding = self.embedding.copy()
        table = embedding if self.tied else self.table.copy()
        return Weights(
            embedding, self.kernel.copy(), self.bias.copy(), self.projection.copy(), table, self.output_bias.copy()
        )

    def finite(self) -> bool:
        """Whether every parameter is a number."""
        return all(bool(np.isfinite(leaf).all()) for leaf in self)


class Rates(NamedTuple):
    """The learning rate of each parameter, float32; 0 leaves it as it is. A tied table has one rate, given twice."""

    embedding: np.float32
    kernel: np.float32
    bias: np.float32
    projection: np.float32
    table: np.float32
    output_bias: np.float32


class Trace(NamedTuple):
    """What the backward pass needs of each word (N, .)."""

    inputs: FloatArray  # (E)
    gates: FloatArray  # (3H); the backward pass writes their derivatives over them
    cells: FloatArray  # after the word (H)
    squashed: FloatArray  # tanh of it (H)
    hidden: FloatArray  # what is projected (H)
    outputs: FloatArray  # the projection (E)


BLOCK = 512  # words of the vocabulary at once: their embeddings, scores and gradient fit into 1 MB
NARROW = 5  # rows that OpenBLAS multiplies without first copying the other matrix; more go in pieces
WIDE = 40  # rows from which the copy is worth it

# Contraction alone: a product and a sum may become one instruction; nothing else may be reordered or assumed. NumPy's
# rules for division: Python's would test each divisor, and no loop with a test is vectorised.
compiled = compiled_with(fastmath={"contract"}, error_model="numpy")


# -- functions of one number -----------------------------------------------------------------------------------------

_LOG2_E, _HALF, _ONE, _TWO = np.float32(1.44269504), np.float32(0.5), np.float32(1.0), np.float32(2.0)
_LN2_HIGH, _LN2_LOW = np.float32(0.693359375), np.float32(-2.12194440e-4)
_LOWEST, _HIGHEST, _ZERO = np.float32(-32.0), np.float32(40.0), np.float32(0.0)
_SMALLEST_POWER, _NOTHING = np.float32(-126.0), np.float32(1e-30)
_C5, _C4, _C3 = np.float32(1.9875691500e-4), np.float32(1.3981999507e-3), np.float32(8.3334519073e-3)
_C2, _C1, _C0 = np.float32(4.1665795894e-2), np.float32(1.6666665459e-1), np.float32(5.0000001201e-1)


@compiled
def exp(x: np.float32) -> np.float32:
    """e to the x within 3e-7 of it between -32 and 40; below 0, above e to the 40; nan of nan.

    The bounds keep a saturated network out of the numbers below 1e-38, with which a processor computes a hundred times
    more slowly, and are out of sight: e to the -32 is a millionth of what float32 can add to 1.

    Written out because a call for each number cannot be done eight at a time. Polynomial: Cephes' expf (S. Moshier).
    """
    bounded = _HIGHEST if x > _HIGHEST else x
    bounded = _LOWEST if x < _LOWEST else bounded
    power = np.floor(bounded * _LOG2_E + _HALF)
    power = power if power > _SMALLEST_POWER else _SMALLEST_POWER  # also where it is not a number
    r = bounded - power * _LN2_HIGH - power * _LN2_LOW
    y = ((((_C5 * r + _C4) * r + _C3) * r + _C2) * r + _C1) * r + _C0
    y = y * r * r + r + _ONE
    y *= np.int32((np.int32(power) + np.int32(127)) << np.int32(23)).view(np.float32)
    return _ZERO if x < _LOWEST else y


@compiled
def settled(x: np.float32) -> np.float32:
    """0 for what is next to it: derivatives that fade through a saturated network stay out of the slow numbers."""
    return _ZERO if abs(x) < _NOTHING else x


@compiled
def sigmoid(values: FloatArray) -> None:
    """1 / (1 + exp(-x)) of each, in place."""
    for at in range(values.size):
        values[at] = _ONE / (_ONE + exp(-values[at]))


@compiled
def tanh(values: FloatArray) -> None:
    """2 / (1 + exp(-2x)) - 1 of each, in place."""
    for at in range(values.size):
        values[at] = _TWO / (_ONE + exp(-_TWO * values[at])) - _ONE


# -- products and scores ---------------------------------------------------------------------------------------------


@compiled
def multiply(rows: FloatArray, matrix: FloatArray, out: FloatArray) -> None:
    """out = rows @ matrix for few rows, in pieces that BLAS is fast at."""
    count = rows.shape[0]
    if count >= WIDE:
        np.dot(rows, matrix, out[:count])
        return
    for begin in range(0, count, NARROW):
        end = min(begin + NARROW, count)
        np.dot(rows[begin:end], matrix, out[begin:end])


@compiled
def add_scaled_rows(rows: FloatArray, factors: FloatArray, total: FloatArray) -> None:
    """total += factors[:, None] * rows."""
    for n in range(factors.size):
        row, result, factor = rows[n], total[n], factors[n]
        for at in range(row.size):
            result[at] += factor * row[at]


@compiled
def score(outputs: FloatArray, table: FloatArray, bias: FloatArray, scores: FloatArray, tops: FloatArray) -> None:
    """scores (block, N) = table @ outputs.T + bias of a block of the vocabulary; tops (N,): their maxima."""
    np.dot(table, outputs.T, scores)
    tops[:] = -np.inf
    for v in range(scores.shape[0]):
        row, add = scores[v], bias[v]
        for n in range(row.size):
            row[n] += add
            tops[n] = row[n] if row[n] > tops[n] else tops[n]


@compiled
def exponentiate(scores: FloatArray, tops: FloatArray, sums: FloatArray) -> None:
    """scores = exp(scores - tops), in place; sums (N,) of it over the block."""
    sums[:] = 0.0
    for v in range(scores.shape[0]):
        row = scores[v]
        for n in range(row.size):
            row[n] = exp(row[n] - tops[n])
            sums[n] += row[n]


# -- the recurrence --------------------------------------------------------------------------------------------------


@compiled
def open_gates(gates: FloatArray, feedback: FloatArray, bias: FloatArray) -> None:
    """One word's three gates (3H,), in place, from the products with its embedding and with what was fed back."""
    units = gates.size // 3
    for at in range(gates.size):
        gates[at] += feedback[at] + bias[at]
    sigmoid(gates[:units])
    tanh(gates[units : 2 * units])
    sigmoid(gates[2 * units :])


@compiled
def advance(gates: FloatArray, before: FloatArray, after: FloatArray, squashed: FloatArray, hidden: FloatArray) -> None:
    """One word's cell; the forget gate is 1 - i."""
    units = before.size
    update, candidate, emit = gates[:units], gates[units : 2 * units], gates[2 * units :]
    for at in range(units):
        after[at] = before[at] + update[at] * (candidate[at] - before[at])
    squashed[:] = after
    tanh(squashed)
    for at in range(units):
        hidden[at] = emit[at] * squashed[at]


@compiled
def forward(weights: Weights, ids: Ids, active: Places) -> Trace:
    """The recurrence over one batch, each sentence from a zero state."""
    words, width, units = len(ids), weights.embedding.shape[1], weights.projection.shape[0]
    inputs = weights.embedding[ids]
    gates = np.dot(inputs, weights.kernel[:width])
    cells, squashed = np.empty((words, units), np.float32), np.empty((words, units), np.float32)
    hidden, outputs = np.empty((words, units), np.float32), np.empty((words, width), np.float32)
    feedback = np.zeros((active[0], 3 * units), np.float32)
    empty = np.zeros(units, np.float32)
    begin = before = 0
    for place in range(len(active)):
        count = active[place]
        if place:
            multiply(outputs[before : before + count], weights.kernel[width:], feedback)
        for s in range(count):
            open_gates(gates[begin + s], feedback[s], weights.bias)
            cell = cells[before + s] if place else empty
            advance(gates[begin + s], cell, cells[begin + s], squashed[begin + s], hidden[begin + s])
        multiply(hidden[begin : begin + count], weights.projection, outputs[begin : begin + count])
        before, begin = begin, begin + count
    return Trace(inputs, gates, cells, squashed, hidden, outputs)


@compiled
def outputs_of(weights: Weights, ids: Ids, active: Places) -> FloatArray:
    """What the scores of a batch's next words are products of (N, E)."""
    return forward(weights, ids, active).outputs


@compiled
def retrace(
    gates: FloatArray, before: FloatArray, squashed: FloatArray, d_hidden: FloatArray, d_cell: FloatArray
) -> None:
    """One word backwards: derivatives of its gates' inputs over `gates`, that of the cell before over `d_cell`."""
    units = before.size
    update, candidate, emit = gates[:units], gates[units : 2 * units], gates[2 * units :]
    for at in range(units):
        d_cell[at] += d_hidden[at] * emit[at] * (_ONE - squashed[at] * squashed[at])
    for at in range(units):
        emit[at] = settled(d_hidden[at] * squashed[at] * emit[at] * (_ONE - emit[at]))
    d_hidden[:] = update  # kept here while it is overwritten; one loop for each result, or they are not vectorised
    for at in range(units):
        update[at] = settled(d_cell[at] * (candidate[at] - before[at]) * update[at] * (_ONE - update[at]))
    for at in range(units):
        candidate[at] = settled(d_cell[at] * d_hidden[at] * (_ONE - candidate[at] * candidate[at]))
    for at in range(units):
        d_cell[at] = settled(d_cell[at] * (_ONE - d_hidden[at]))


@compiled
def backward(weights: Weights, trace: Trace, active: Places, d_outputs: FloatArray) -> FloatArray:
    """From derivatives by the outputs to those by the gates' inputs, written over `trace.gates`.

    d_outputs gains what flows back through the feedback. Returns what was fed back to each word (N, E).
    """
    width, units = d_outputs.shape[1], weights.projection.shape[0]
    projection = np.ascontiguousarray(weights.projection.T)
    fed_back = np.zeros_like(d_outputs)
    sentences = active[0]
    d_cell, d_hidden = np.zeros((sentences, units), np.float32), np.empty((sentences, units), np.float32)
    d_fed_back = np.zeros((sentences, width), np.float32)
    empty = np.zeros(units, np.float32)
    begin = len(d_outputs)
    for place in range(len(active) - 1, -1, -1):
        count = active[place]
        begin -= count
        before = begin - active[place - 1] if place else 0
        d_here = d_outputs[begin : begin + count]
        d_here += d_fed_back[:count]
        multiply(d_here, projection, d_hidden)
        for s in range(count):
            cell = trace.cells[before + s] if place else empty
            retrace(trace.gates[begin + s], cell, trace.squashed[begin + s], d_hidden[s], d_cell[s])
        if place:
            multiply(trace.gates[begin : begin + count], weights.kernel[width:].T, d_fed_back)
            fed_back[begin : begin + count] = trace.outputs[before : before + count]
    return fed_back


# -- fine-tuning ------------------------------------------------------------------------------------------------------


@compiled
def descend_batch(
    weights: Weights,
    start: Weights,
    tied: bool,
    ids: Ids,
    targets: Ids,
    active: Places,
    rates: Rates,
    proximal: np.float32,
    memory: FloatArray,
) -> float:
    """One step of SGD; the mean loss before it."""
    trace = forward(weights, ids, active)
    d_outputs = np.empty_like(trace.outputs)
    loss = descend_output(trace.outputs, targets, weights, start, rates, proximal, memory, d_outputs)
    if max(rates.embedding, rates.kernel, rates.bias, rates.projection) == 0.0:
        return loss
    fed_back = backward(weights, trace, active, d_outputs)
    d_gates, width = trace.gates, d_outputs.shape[1]
    if rates.embedding > 0.0:
        d_inputs = np.dot(d_gates, weights.kernel[:width].T)
        if proximal > 0.0 and not tied:  # rows that were touched before are pulled back, too
            slope = np.zeros_like(weights.embedding)
            for n in range(len(ids)):
                slope[ids[n]] += d_inputs[n]
            descend(weights.embedding, slope, start.embedding, rates.embedding, proximal)
        else:  # a tied table was pulled back with the output
            for n in range(len(ids)):
                weights.embedding[ids[n]] -= rates.embedding * d_inputs[n]
    if rates.kernel > 0.0:
        from_words, from_feedback = np.dot(trace.inputs.T, d_gates), np.dot(fed_back.T, d_gates)
        descend(weights.kernel[:width], from_words, start.kernel[:width], rates.kernel, proximal)
        descend(weights.kernel[width:], from_feedback, start.kernel[width:], rates.kernel, proximal)
    if rates.bias > 0.0:
        descend(weights.bias, d_gates.sum(axis=0), start.bias, rates.bias, proximal)
    if rates.projection > 0.0:
        slope = np.dot(trace.hidden.T, d_outputs)
        descend(weights.projection, slope, start.projection, rates.projection, proximal)
    return loss


@compiled
def descend_output(
    outputs: FloatArray,
    targets: Ids,
    weights: Weights,
    start: Weights,
    rates: Rates,
    proximal: np.float32,
    memory: FloatArray,
    d_outputs: FloatArray,
) -> float:
    """The mean cross-entropy of N words; d_outputs (N, E) is set, table and output bias descend.

    Softmax without a pass of its own: a block keeps exp(score - block's maximum), and what it lacks to a probability,
    one factor for each word and block, is folded into the narrow matrices of the two products.
    """
    words, vocabulary = len(targets), weights.table.shape[0]
    blocks = -(-vocabulary // BLOCK)
    scores = memory[: vocabulary * words].reshape(vocabulary, words)
    tops, sums = np.empty((blocks, words), np.float32), np.empty((blocks, words), np.float32)
    for block in range(blocks):
        here = slice(block * BLOCK, min((block + 1) * BLOCK, vocabulary))
        score(outputs, weights.table[here], weights.output_bias[here], scores[here], tops[block])
        exponentiate(scores[here], tops[block], sums[block])

    share = np.float32(1.0 / words)
    picked = weights.table[targets]
    nats = 0.0
    for n in range(words):
        top = tops[:, n].max()
        total = np.float32(0.0)
        for block in range(blocks):
            tops[block, n] = exp(tops[block, n] - top)
            total += sums[block, n] * tops[block, n]
        tops[:, n] *= share / total  # from here on the factor of each block and word
        nats += np.log(total) + top - np.dot(outputs[n], picked[n]) - weights.output_bias[targets[n]]
        d_outputs[n] = -share * picked[n]

    scaled, part = np.empty_like(outputs), np.empty_like(outputs)
    gradient = np.empty((BLOCK, outputs.shape[1]), np.float32)
    for block in range(blocks - 1, -1, -1):  # backwards: the last blocks are still in the cache
        here = slice(block * BLOCK, min((block + 1) * BLOCK, vocabulary))
        factor, size = tops[block], here.stop - here.start
        np.dot(scores[here].T, weights.table[here], part)
        add_scaled_rows(part, factor, d_outputs)
        if rates.table > 0.0:
            scaled[:] = 0.0
            add_scaled_rows(outputs, factor, scaled)
            np.dot(scores[here], scaled, gradient[:size])
            descend(weights.table[here], gradient[:size], start.table[here], rates.table, proximal)
        if rates.output_bias > 0.0:
            slope = np.dot(scores[here], factor)
            descend(weights.output_bias[here], slope, start.output_bias[here], rates.output_bias, proximal)
    for n in range(words):
        weights.table[targets[n]] += rates.table * share * outputs[n]
        weights.output_bias[targets[n]] += rates.output_bias * share
    return nats / words


@compiled
def descend(
    parameters: FloatArray, gradient: FloatArray, start: FloatArray, rate: np.float32, proximal: np.float32
) -> None:
    """parameters -= rate * (gradient + proximal * (parameters - start)), in place."""
    mine, slope, origin = parameters.reshape(-1), gradient.reshape(-1), start.reshape(-1)
    if proximal == 0.0:
        for at in range(mine.size):
            mine[at] -= rate * slope[at]
    else:
        for at in range(mine.size):
            mine[at] -= rate * (slope[at] + proximal * (mine[at] - origin[at]))
