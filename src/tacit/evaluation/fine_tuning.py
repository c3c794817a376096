"""How one person's model is made of everybody's: a few steps of SGD on the phone [paper 5, section 3.3].

Each gradient is taken from its block of parameters where it was made, so no gradient of a table is ever kept; of an
input embedding only the rows that occur are touched.
"""

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from tacit.errors import InputError
from tacit.evaluation.ragged import (
    BLOCK,
    Batches,
    Ids,
    Places,
    Reals,
    Weights,
    add_scaled_rows,
    backward,
    compiled,
    exp,
    exponentiate,
    forward,
    scale_rows,
    score,
)

Layers = Literal["all", "output", "biases"]


@dataclass(frozen=True, kw_only=True)
class Strategy:
    """A personalization strategy: batch size B, learning rate L, and when to stop, whichever comes first."""

    batch_size: int = 5  # sentences
    learning_rate: float = 0.1
    max_tokens: int = 5000  # stop before the batch that follows once so many words and ends were seen
    epochs: int = 1
    layers: Layers = "all"  # "output": the output embedding and its bias; "biases": of gates and output
    proximal: float = 0.0  # mu: the loss gains mu/2 * |theta - global|^2

    def __post_init__(self) -> None:
        for name in ("batch_size", "max_tokens", "epochs"):
            if getattr(self, name) < 1:
                raise InputError(f"strategy {name}={getattr(self, name)} must be at least 1.")
        if not (self.learning_rate > 0 and math.isfinite(self.learning_rate)):
            raise InputError(f"strategy learning_rate={self.learning_rate} must be a positive number, such as 0.1.")
        if not (self.proximal >= 0 and math.isfinite(self.proximal)):
            raise InputError(f"strategy proximal={self.proximal} must be 0 (none) or a positive number.")
        if self.layers not in ("all", "output", "biases"):
            raise InputError(f"strategy layers={self.layers!r} is unknown; it is one of all, output, biases.")

    def __str__(self) -> str:
        """As tables and figures name it: `B=5, L=0.1`, and what differs from the whole model and no proximal term."""
        layers = "" if self.layers == "all" else f", {self.layers} only"
        proximal = f", mu={self.proximal:g}" if self.proximal else ""
        return f"B={self.batch_size}, L={self.learning_rate:g}{layers}{proximal}"

    def rates(self, *, tied: bool) -> "Rates":
        """The learning rate of each parameter of the network."""
        rate, zero = np.float32(self.learning_rate), np.float32(0.0)
        everywhere = rate if self.layers == "all" else zero
        output = zero if self.layers == "biases" else rate
        biases = zero if self.layers == "output" else rate
        return Rates(output if tied else everywhere, everywhere, biases, everywhere, output, rate)


class Rates(NamedTuple):
    """The learning rate of each parameter, float32; 0 leaves it as it is. A tied table has one rate, given twice."""

    embedding: np.float32
    kernel: np.float32
    bias: np.float32
    projection: np.float32
    table: np.float32
    output_bias: np.float32


class FineTuned(NamedTuple):
    """One person's model, and how it came about."""

    weights: Weights
    tokens: int  # words and ends that it was trained on, repeats counted
    loss: float  # nats per token, of each batch before its own step; inf if it diverged
    diverged: bool  # a loss or a parameter is not finite; training ended there


def fine_tune(start: Weights, batches: Batches, strategy: Strategy, memory: Reals) -> FineTuned:
    """SGD from the global model `start`, which is left as it is, over the batches in their order.

    memory: at least V times `batches.largest` numbers, overwritten.
    """
    weights = start.copy()
    nats, tokens = descend_batches(
        weights,
        start,
        start.tied,
        batches,
        strategy.rates(tied=start.tied),
        np.float32(strategy.proximal),
        strategy.epochs,
        strategy.max_tokens,
        memory,
    )
    diverged = not (math.isfinite(nats) and weights.finite())
    return FineTuned(weights, tokens, math.inf if diverged else nats / max(tokens, 1), diverged)


@compiled
def descend_batches(
    weights: Weights,
    start: Weights,
    tied: bool,
    batches: Batches,
    rates: Rates,
    proximal: np.float32,
    epochs: int,
    max_tokens: int,
    memory: Reals,
) -> tuple[float, int]:
    """(nats, tokens) of all batches until `epochs`, or `max_tokens` before the next batch, or a loss not finite."""
    total, tokens = 0.0, 0
    for _ in range(epochs):
        for batch in range(len(batches.words) - 1):
            if tokens >= max_tokens:
                return total, tokens
            words = slice(batches.words[batch], batches.words[batch + 1])
            active = batches.active[batches.places[batch] : batches.places[batch + 1]]
            ids, targets = batches.ids[words], batches.targets[words]
            total += len(ids) * descend_batch(weights, start, tied, ids, targets, active, rates, proximal, memory)
            tokens += len(ids)
            if not np.isfinite(total):
                return total, tokens
    return total, tokens


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
    memory: Reals,
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
        descend(weights.bias, column_sums(d_gates), start.bias, rates.bias, proximal)
    if rates.projection > 0.0:
        slope = np.dot(trace.hidden.T, d_outputs)
        descend(weights.projection, slope, start.projection, rates.projection, proximal)
    return loss


@compiled
def descend_output(
    outputs: Reals,
    targets: Ids,
    weights: Weights,
    start: Weights,
    rates: Rates,
    proximal: np.float32,
    memory: Reals,
    d_outputs: Reals,
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
            scale_rows(outputs, factor, scaled)
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
def descend(parameters: Reals, gradient: Reals, start: Reals, rate: np.float32, proximal: np.float32) -> None:
    """parameters -= rate * (gradient + proximal * (parameters - start)), in place."""
    mine, slope, origin = parameters.reshape(-1), gradient.reshape(-1), start.reshape(-1)
    if proximal == 0.0:
        for at in range(mine.size):
            mine[at] -= rate * slope[at]
    else:
        for at in range(mine.size):
            mine[at] -= rate * (slope[at] + proximal * (mine[at] - origin[at]))


@compiled
def column_sums(rows: Reals) -> Reals:
    """The sum of the rows (N, D): (D,)."""
    total = np.zeros(rows.shape[1], np.float32)
    for n in range(len(rows)):
        total += rows[n]
    return total
