"""The keyboard's network on one CPU core, for sentences as long as they are: what a phone's fine-tuning costs, no more.

Small batches of sentences of different lengths are what accelerators and compilers of fixed shapes do worst: most of a
padded batch is padding, its products are narrow, and each step copies tables of a million numbers. Here

- no padding is computed: the sentences of a batch are sorted by length and laid out by place, and only those that still
  go on take part in a step;
- the vocabulary is visited in blocks that stay in the second-level cache;
- products are BLAS's, at the widths where its kernels are fast.

The derivatives are those of `keyboard.model`, and tests hold this file against it and against the NumPy twin of both.
float32; the order of additions depends on nothing but the text, so neither do the results.

Shapes: N words of a batch (by place, then by sentence), V vocabulary, E embedding width, H units. Gates stand in the
order input, candidate, output along 3H.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numba
import numpy as np
import numpy.typing as npt

from tacit.keyboard.model import Cifg
from tacit.keyboard.vocabulary import PAD

Function = TypeVar("Function", bound=Callable[..., Any])
Reals: TypeAlias = npt.NDArray[np.float32]
Ids: TypeAlias = npt.NDArray[np.int32]
Places: TypeAlias = npt.NDArray[np.int64]

BLOCK = 512  # words of the vocabulary at once: their embeddings, scores and gradient fit into 1 MB
NARROW = 5  # rows that OpenBLAS multiplies without first copying the other matrix; more go in pieces
WIDE = 40  # rows from which the copy is worth it

# Contraction alone: a product and a sum may become one instruction; nothing else may be reordered or assumed. NumPy's
# rules for division: Python's would test each divisor, and no loop with a test is vectorised.
_compile: Any = numba.njit(nogil=True, cache=True, fastmath={"contract"}, error_model="numpy")


def compiled(function: Function) -> Function:
    """The same function as machine code, made when it is first called and kept between processes."""
    made: Function = _compile(function)
    return made


class Weights(NamedTuple):
    """`Cifg` as NumPy arrays, float32. Tied: `table` is `embedding`, the same memory."""

    embedding: Reals  # (V, E)
    kernel: Reals  # (2E, 3H)
    bias: Reals  # (3H,)
    projection: Reals  # (H, E)
    table: Reals  # (V, E) the output embedding by word
    output_bias: Reals  # (V,)

    @property
    def tied(self) -> bool:
        """Whether one table serves both ends."""
        return self.table is self.embedding

    @classmethod
    def of(cls, model: Cifg) -> "Weights":
        """A copy of a model's parameters."""
        embedding, kernel, bias, projection, output, output_bias = (np.array(leaf, np.float32) for leaf in model)
        table = np.ascontiguousarray(output.T) if output.size else embedding
        return cls(embedding, kernel, bias, projection, table, output_bias)

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


class Batches(NamedTuple):
    """Sentences in batches, without padding: what is predicted from what, place by place."""

    ids: Ids  # (N of all batches,)
    targets: Ids  # likewise: the word after
    active: Places  # (places of all batches,): how many sentences reach that place; never more than at the one before
    words: Places  # (batches + 1,): batch b has the words words[b]..words[b+1]
    places: Places  # (batches + 1,)

    @classmethod
    def of(cls, sentences: Ids, size: int) -> "Batches":
        """The padded sentences (S, L+1), in batches of `size` as they come; sorted by length within each."""
        lengths = (sentences[:, 1:] != PAD).sum(axis=1)
        ids, targets, active = [np.zeros(0, np.int32)], [np.zeros(0, np.int32)], [np.zeros(0, np.int64)]
        for start in range(0, len(sentences), size):
            rows = start + np.argsort(-lengths[start : start + size], kind="stable")
            here = np.arange(lengths[rows].max())[:, None] < lengths[rows]  # (places, sentences)
            ids.append(sentences[rows, :-1].T[: len(here)][here])
            targets.append(sentences[rows, 1:].T[: len(here)][here])
            active.append(here.sum(axis=1))
        return cls(
            np.concatenate(ids).astype(np.int32),
            np.concatenate(targets).astype(np.int32),
            np.concatenate(active),
            np.cumsum([len(each) for each in ids]),
            np.cumsum([len(each) for each in active]),
        )

    @property
    def largest(self) -> int:
        """Words of the largest batch."""
        return int(np.diff(self.words).max(initial=0))


class Trace(NamedTuple):
    """What the backward pass needs of each word (N, .)."""

    inputs: Reals  # (E)
    gates: Reals  # (3H); the backward pass writes their derivatives over them
    cells: Reals  # after the word (H)
    squashed: Reals  # tanh of it (H)
    hidden: Reals  # what is projected (H)
    outputs: Reals  # the projection (E)


# -- functions of one number -----------------------------------------------------------------------------------------

_LOG2_E, _HALF, _ONE, _TWO = np.float32(1.44269504), np.float32(0.5), np.float32(1.0), np.float32(2.0)
_LN2_HIGH, _LN2_LOW = np.float32(0.693359375), np.float32(-2.12194440e-4)
_LOWEST, _HIGHEST = np.float32(-87.0), np.float32(88.0)
_SMALLEST_POWER, _LARGEST_POWER = np.float32(-126.0), np.float32(127.0)
_C5, _C4, _C3 = np.float32(1.9875691500e-4), np.float32(1.3981999507e-3), np.float32(8.3334519073e-3)
_C2, _C1, _C0 = np.float32(4.1665795894e-2), np.float32(1.6666665459e-1), np.float32(5.0000001201e-1)


@compiled
def exp(x: np.float32) -> np.float32:
    """e to the x, relative error below 2e-7 between -87 and 88, where it stays beyond; nan of nan.

    Written out because a call for each number cannot be done sixteen at a time. Polynomial: Cephes' expf (S. Moshier).
    """
    x = _LOWEST if x < _LOWEST else x
    x = _HIGHEST if x > _HIGHEST else x
    power = np.floor(x * _LOG2_E + _HALF)
    power = power if power > _SMALLEST_POWER else _SMALLEST_POWER
    power = power if power < _LARGEST_POWER else _LARGEST_POWER
    r = x - power * _LN2_HIGH - power * _LN2_LOW
    y = ((((_C5 * r + _C4) * r + _C3) * r + _C2) * r + _C1) * r + _C0
    y = y * r * r + r + _ONE
    return y * np.int32((np.int32(power) + np.int32(127)) << np.int32(23)).view(np.float32)


@compiled
def sigmoid(values: Reals) -> None:
    """1 / (1 + exp(-x)) of each, in place."""
    for at in range(values.size):
        values[at] = _ONE / (_ONE + exp(-values[at]))


@compiled
def tanh(values: Reals) -> None:
    """2 / (1 + exp(-2x)) - 1 of each, in place."""
    for at in range(values.size):
        values[at] = _TWO / (_ONE + exp(-_TWO * values[at])) - _ONE


# -- products and scores ---------------------------------------------------------------------------------------------


@compiled
def multiply(rows: Reals, matrix: Reals, out: Reals) -> None:
    """out = rows @ matrix for few rows, in pieces that BLAS is fast at."""
    count = rows.shape[0]
    if count >= WIDE:
        np.dot(rows, matrix, out[:count])
        return
    for begin in range(0, count, NARROW):
        end = min(begin + NARROW, count)
        np.dot(rows[begin:end], matrix, out[begin:end])


@compiled
def scale_rows(rows: Reals, factors: Reals, out: Reals) -> None:
    """out = factors[:, None] * rows."""
    for n in range(factors.size):
        row, result, factor = rows[n], out[n], factors[n]
        for at in range(row.size):
            result[at] = factor * row[at]


@compiled
def add_scaled_rows(rows: Reals, factors: Reals, total: Reals) -> None:
    """total += factors[:, None] * rows."""
    for n in range(factors.size):
        row, result, factor = rows[n], total[n], factors[n]
        for at in range(row.size):
            result[at] += factor * row[at]


@compiled
def score(outputs: Reals, table: Reals, bias: Reals, scores: Reals, tops: Reals) -> None:
    """scores (block, N) = table @ outputs.T + bias of a block of the vocabulary; tops (N,): their maxima."""
    np.dot(table, outputs.T, scores)
    tops[:] = -np.inf
    for v in range(scores.shape[0]):
        row, add = scores[v], bias[v]
        for n in range(row.size):
            row[n] += add
            tops[n] = row[n] if row[n] > tops[n] else tops[n]


@compiled
def exponentiate(scores: Reals, tops: Reals, sums: Reals) -> None:
    """scores = exp(scores - tops), in place; sums (N,) of it over the block."""
    sums[:] = 0.0
    for v in range(scores.shape[0]):
        row = scores[v]
        for n in range(row.size):
            row[n] = exp(row[n] - tops[n])
            sums[n] += row[n]


# -- the recurrence --------------------------------------------------------------------------------------------------


@compiled
def open_gates(gates: Reals, feedback: Reals, bias: Reals) -> None:
    """One word's three gates (3H,), in place, from the products with its embedding and with what was fed back."""
    units = gates.size // 3
    for at in range(gates.size):
        gates[at] += feedback[at] + bias[at]
    sigmoid(gates[:units])
    tanh(gates[units : 2 * units])
    sigmoid(gates[2 * units :])


@compiled
def advance(gates: Reals, before: Reals, after: Reals, squashed: Reals, hidden: Reals) -> None:
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
def retrace(gates: Reals, before: Reals, squashed: Reals, d_hidden: Reals, d_cell: Reals) -> None:
    """One word backwards: derivatives of its gates' inputs over `gates`, that of the cell before over `d_cell`.

    d_hidden is overwritten. One loop for each result: only loops over few arrays are vectorised.
    """
    units = before.size
    update, candidate, emit = gates[:units], gates[units : 2 * units], gates[2 * units :]
    for at in range(units):
        d_cell[at] += d_hidden[at] * emit[at] * (_ONE - squashed[at] * squashed[at])
    for at in range(units):
        emit[at] = d_hidden[at] * squashed[at] * emit[at] * (_ONE - emit[at])
    d_hidden[:] = update
    for at in range(units):
        update[at] = d_cell[at] * (candidate[at] - before[at]) * update[at] * (_ONE - update[at])
    for at in range(units):
        candidate[at] = d_cell[at] * d_hidden[at] * (_ONE - candidate[at] * candidate[at])
    for at in range(units):
        d_cell[at] *= _ONE - d_hidden[at]


@compiled
def backward(weights: Weights, trace: Trace, active: Places, d_outputs: Reals) -> Reals:
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
