"""The slow, obvious twin of `tacit.networks.cifg.network`: one sentence, one word at a time, float64, nothing
hoisted.

Notation of one word: x its embedding, p the projection fed back, c the cell; i, g, o the input gate, the
candidate and the output gate; the forget gate is 1 - i. dX is the derivative of the loss by X.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tacit.networks.cifg.network import CifgParameters
from tacit.text.vocabulary import PAD

Vector = npt.NDArray[np.float64]
Sentences = npt.NDArray[np.integer]


class Model(NamedTuple):
    """`CifgParameters` in float64; an empty `output` means tied embeddings."""

    embedding: Vector
    kernel: Vector
    bias: Vector
    projection: Vector
    output: Vector
    output_bias: Vector


class Word(NamedTuple):
    """What one step of the forward pass computed."""

    id: int
    x: Vector
    p_before: Vector
    c_before: Vector
    i: Vector
    g: Vector
    o: Vector
    c: Vector
    p: Vector


def of(model: CifgParameters) -> Model:
    return Model(*(np.asarray(leaf, np.float64) for leaf in model))


def sigmoid(z: Vector) -> Vector:
    return 1.0 / (1.0 + np.exp(-z))


def out_of(model: Model) -> Vector:
    """The output embedding by word (V, E); the network keeps its transpose."""
    return model.output.T if model.output.size else model.embedding


def forward(model: Model, ids: Sentences) -> list[Word]:
    """One sentence's words in order, from a zero state."""
    embedding, units = model.embedding.shape[1], model.projection.shape[0]
    c, p = np.zeros(units), np.zeros(embedding)
    words = []
    for id in ids:
        x = model.embedding[id]
        z = np.concatenate([x, p]) @ model.kernel + model.bias
        i, g, o = sigmoid(z[:units]), np.tanh(z[units : 2 * units]), sigmoid(z[2 * units :])
        c_after = (1.0 - i) * c + i * g
        p_after = (o * np.tanh(c_after)) @ model.projection
        words.append(Word(int(id), x, p, c, i, g, o, c_after, p_after))
        c, p = c_after, p_after
    return words


def logits(model: Model, sentences: Sentences) -> Vector:
    """(L*B, V), time-major."""
    scores = [[out_of(model) @ word.p + model.output_bias for word in forward(model, ids[:-1])] for ids in sentences]
    return np.array(scores).swapaxes(0, 1).reshape(-1, len(model.output_bias))


def softmax(scores: Vector) -> Vector:
    powers = np.exp(scores - scores.max())
    return np.asarray(powers / powers.sum())


def loss(model: Model, sentences: Sentences) -> float:
    """Mean of -log softmax(logits)[target] over all targets but PAD; 0 if there are none."""
    total, counted = 0.0, 0
    for ids in sentences:
        for word, target in zip(forward(model, ids[:-1]), ids[1:], strict=True):
            if target != PAD:
                total -= np.log(softmax(out_of(model) @ word.p + model.output_bias)[target])
                counted += 1
    return total / max(counted, 1)


def gradient(model: Model, sentences: Sentences) -> Model:
    """The derivative of `loss`, one word after another from the end of each sentence to its beginning."""
    total = Model(*(np.zeros_like(leaf) for leaf in model))
    counted = max(int((sentences[:, 1:] != PAD).sum()), 1)
    for ids in sentences:
        backward(model, total, forward(model, ids[:-1]), ids[1:], 1.0 / counted)
    return total


def backward(model: Model, total: Model, words: list[Word], targets: Sentences, weight: float) -> None:
    """Adds one sentence's share of the gradient to `total`."""
    width = model.embedding.shape[1]
    d_out = out_of(total)  # a view: what is added to it is added to `total`
    dc_next, dp_next = np.zeros_like(words[0].c), np.zeros(width)
    for word, target in reversed(list(zip(words, targets, strict=True))):
        dp = dp_next
        if target != PAD:
            d_scores = softmax(out_of(model) @ word.p + model.output_bias)
            d_scores[target] -= 1.0
            d_scores *= weight
            d_out += np.outer(d_scores, word.p)
            total.output_bias[:] += d_scores
            dp = dp + d_scores @ out_of(model)
        h = word.o * np.tanh(word.c)
        total.projection[:] += np.outer(h, dp)
        dh = model.projection @ dp
        dc = dc_next + dh * word.o * (1.0 - np.tanh(word.c) ** 2)
        d_o = dh * np.tanh(word.c)
        d_i = dc * (word.g - word.c_before)
        d_g = dc * word.i
        dz = np.concatenate([d_i * word.i * (1.0 - word.i), d_g * (1.0 - word.g**2), d_o * word.o * (1.0 - word.o)])
        total.kernel[:] += np.outer(np.concatenate([word.x, word.p_before]), dz)
        total.bias[:] += dz
        dxp = model.kernel @ dz
        total.embedding[word.id] += dxp[:width]
        dc_next, dp_next = dc * (1.0 - word.i), dxp[width:]


def counts(model: Model, sentences: Sentences, *, ends: bool) -> tuple[int, int, int, int, int, int, int, float]:
    """`tacit.networks.metrics.Counts` by sorting all suggestions of each word: (words, oov, ends, predicted,
    ...)."""
    words = oov = ended = predicted = top1 = top3 = first = 0
    nats = 0.0
    for ids in sentences:
        for word, target in zip(forward(model, ids[:-1]), ids[1:], strict=True):
            if target in (0, 1):  # padding, beginning
                continue
            if target == 2:
                ended += 1
            else:
                words += 1
            if target == 3:
                oov += 1
            scores = out_of(model) @ word.p + model.output_bias
            first += target == next(int(id) for id in np.argsort(-scores, kind="stable") if id >= 2)
            if target == 3 or (target == 2 and not ends):
                continue
            suggestions = [int(id) for id in np.argsort(-scores, kind="stable") if id >= 4 or (id == 2 and ends)]
            predicted += 1
            top1 += target in suggestions[:1]
            top3 += target in suggestions[:3]
            nats -= np.log(softmax(scores)[target])
    return words, oov, ended, predicted, top1, top3, first, float(nats)
