"""Which place a model would give the word that was typed next: `keyboard.metrics.count`, sentence by sentence.

The counts are those of `keyboard.metrics` without ends of sentences, with the same exclusions; here the place of every
single word is kept as well, so that two models can be compared on the same words.
"""

from typing import NamedTuple

import numpy as np

from tacit.evaluation.ragged import BLOCK, Batches, Ids, Reals, Weights, compiled, exp, exponentiate, forward, score
from tacit.keyboard.metrics import SHOWN, Counts
from tacit.keyboard.vocabulary import BOS, EOS, OOV, PAD, SPECIALS

AT_ONCE = 128  # words whose scores are computed together: bounds memory and changes nothing else


class Ranked(NamedTuple):
    """The words of a text in the order of its batches; specials have rank -1 and 0 nats."""

    ranks: Ids  # (N,) how many suggestions come before the word that was typed
    nats: Reals  # (N,) -log of its probability, from the softmax over all V

    @property
    def finite(self) -> bool:
        """Whether every cross-entropy is a number; the ranks of a model that gives others mean nothing."""
        return bool(np.isfinite(self.nats).all())

    def counts(self, batches: Batches) -> Counts:
        """As `keyboard.metrics.count` adds them up."""
        targets = batches.targets
        known = self.ranks >= 0
        word = (targets != PAD) & (targets != BOS) & (targets != EOS)
        return Counts(
            words=int(word.sum()),
            oov=int((targets == OOV).sum()),
            ends=int((targets == EOS).sum()),
            predicted=int(known.sum()),
            top1=int((known & (self.ranks < 1)).sum()),
            top3=int((known & (self.ranks < SHOWN)).sum()),
            nats=float(self.nats.sum(dtype=np.float64)),
        )


def rank(weights: Weights, batches: Batches) -> Ranked:
    """The rank of each word under a model.

    Of equal scores the smaller id comes first; "equal" is within rounding, since BLAS adds up in an order of its own.
    """
    return Ranked(*rank_batches(weights, batches))


@compiled
def rank_batches(weights: Weights, batches: Batches) -> tuple[Ids, Reals]:
    ranks = np.full(len(batches.ids), -1, np.int32)
    nats = np.zeros(len(batches.ids), np.float32)
    for batch in range(len(batches.words) - 1):
        begin, end = batches.words[batch], batches.words[batch + 1]
        active = batches.active[batches.places[batch] : batches.places[batch + 1]]
        outputs = forward(weights, batches.ids[begin:end], active).outputs
        targets = batches.targets[begin:end]
        known = np.flatnonzero(targets >= SPECIALS)
        for at in range(0, len(known), AT_ONCE):
            chosen = known[at : at + AT_ONCE]
            ranks[begin + chosen], nats[begin + chosen] = rank_words(outputs[chosen], targets[chosen], weights)
    return ranks, nats


@compiled
def rank_words(outputs: Reals, targets: Ids, weights: Weights) -> tuple[Ids, Reals]:
    """(ranks, nats) of N words from their projected outputs (N, E), in one pass over the vocabulary."""
    words, vocabulary = len(targets), weights.table.shape[0]
    picked, ranks = np.empty(words, np.float32), np.zeros(words, np.int32)
    for n in range(words):
        picked[n] = np.dot(outputs[n], weights.table[targets[n]]) + weights.output_bias[targets[n]]
    scores = np.empty((BLOCK, words), np.float32)
    top, total = np.full(words, -np.inf, np.float32), np.zeros(words, np.float32)
    tops, sums = np.empty(words, np.float32), np.empty(words, np.float32)
    for begin in range(0, vocabulary, BLOCK):
        end = min(begin + BLOCK, vocabulary)
        here = scores[: end - begin]
        score(outputs, weights.table[begin:end], weights.output_bias[begin:end], here, tops)
        for v in range(max(begin, SPECIALS), end):
            count_better(here[v - begin], picked, v, targets, ranks)
        exponentiate(here, tops, sums)
        for n in range(words):
            highest = max(top[n], tops[n])
            total[n] = total[n] * exp(top[n] - highest) + sums[n] * exp(tops[n] - highest)
            top[n] = highest
    return ranks, np.log(total) + top - picked


@compiled
def count_better(scores: Reals, picked: Reals, word: int, targets: Ids, ranks: Ids) -> None:
    """ranks += 1 where `word` is suggested before the target."""
    this = np.int32(word)
    for n in range(scores.size):
        before = scores[n] > picked[n] and this != targets[n]
        before = before or (scores[n] == picked[n] and this < targets[n])
        ranks[n] += np.int32(before)
