"""Which place a model would give the word that was typed next: `keyboard.metrics.count`, sentence by sentence.

The counts are those of `keyboard.metrics` without ends of sentences, with the same exclusions; here the place of every
single word is kept as well, so that two models can be compared on the same words.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tacit.keyboard.cifg_ragged import Batch, Ids, Reals, Weights
from tacit.keyboard.cifg_ragged_loops import rank_batch
from tacit.keyboard.metrics import SHOWN, Counts
from tacit.keyboard.vocabulary import BOS, EOS, OOV, PAD


class Ranked(NamedTuple):
    """The words of a text in the order of its batches; specials have rank -1 and 0 nats."""

    ranks: Ids  # (N,) how many suggestions come before the word that was typed
    nats: Reals  # (N,) -log of its probability, from the softmax over all V

    @property
    def finite(self) -> bool:
        """Whether every cross-entropy is a number; the ranks of a model that gives others mean nothing."""
        return bool(np.isfinite(self.nats).all())

    def counts(self, batches: Sequence[Batch]) -> Counts:
        """As `keyboard.metrics.count` adds them up."""
        targets = np.concatenate([batch.targets for batch in batches])
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


def rank(weights: Weights, batches: Sequence[Batch]) -> Ranked:
    """The rank of each word under a model.

    Of equal scores the smaller id comes first; "equal" is within rounding, since BLAS adds up in an order of its own.
    """
    ranks, nats = [np.zeros(0, np.int32)], [np.zeros(0, np.float32)]
    for ids, targets, active in batches:
        of_batch, surprises = rank_batch(weights, ids, targets, active)
        ranks.append(of_batch)
        nats.append(surprises)
    return Ranked(np.concatenate(ranks), np.concatenate(nats))
