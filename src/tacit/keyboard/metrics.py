"""How well the next word is predicted, with the exclusions named.

Accuracy is top-1 and top-3 IN-VOCABULARY accuracy (papers 1 and 5): of the words that were really typed next
and stand in the vocabulary, the share that was the first, or one of the first three, suggestions. Padding,
the beginning of a sentence and out-of-vocabulary words never count as targets; the end of a sentence only
with `ends=True`. A phone cannot show a special token, so none of them is ever a suggestion, except the end
with `ends=True`.

Cross-entropy is over the same targets, but from the full softmax: the probability that the model gives to
special tokens is lost to it, so it compares with the training loss, not with a renormalised distribution.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jax.scipy.special import logsumexp

from tacit.keyboard.language_model import LanguageModel, Parameters
from tacit.keyboard.vocabulary import BOS, EOS, OOV, PAD, SPECIALS

Number = Array | int | float
SHOWN = 3  # suggestions on a keyboard's strip


class Counts(NamedTuple):
    """Sums over sentences; they add up over batches and clients, and the ratios are taken at the end.

    One batch's counts are int32 and its nats float32; take `.host()` before adding up many.
    """

    words: Number = 0  # typed words, OOV included; no padding, beginning or end
    oov: Number = 0  # of these, out of the vocabulary
    ends: Number = 0  # ends of sentences
    predicted: Number = 0  # counted targets: words - oov, and the ends if asked for
    top1: Number = 0  # of these, the first suggestion
    top3: Number = 0  # of these, among the first three
    nats: Number = 0.0  # cross-entropy summed over the counted targets

    def __add__(self, other: "Counts") -> "Counts":  # type: ignore[override]  # sums, not concatenation
        return Counts(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))

    def host(self) -> "Counts":
        """The same as Python numbers, whose sums neither overflow nor lose digits."""
        words, oov, ends, predicted, top1, top3, nats = self
        return Counts(int(words), int(oov), int(ends), int(predicted), int(top1), int(top3), float(nats))

    @property
    def top1_accuracy(self) -> float:
        """Share of the counted targets; nan if there were none."""
        return _ratio(self.top1, self.predicted)

    @property
    def top3_accuracy(self) -> float:
        """Share of the counted targets; nan if there were none."""
        return _ratio(self.top3, self.predicted)

    @property
    def cross_entropy(self) -> float:
        """Nats per counted target; nan if there were none."""
        return _ratio(self.nats, self.predicted)

    @property
    def oov_rate(self) -> float:
        """Share of the typed words; nan if there were none."""
        return _ratio(self.oov, self.words)


def count(network: LanguageModel, parameters: Parameters, sentences: Array, *, ends: bool = False) -> Counts:
    """Counts of a padded batch (B, L+1) as the loss takes it: BOS, words, EOS, PAD. `ends` is static under jit.

    A target's rank is the number of suggestible words with a greater logit; of equal logits the smaller id
    comes first. Counting needs one pass over the (B*L, V) logits, where finding the three best would need a
    sort.
    """
    targets = sentences[:, 1:].T.reshape(-1)  # (W,) time-major
    scores = network.logits(parameters, sentences[:, :-1]).transpose(1, 0, 2).reshape(len(targets), -1)  # (W, V)
    picked = jnp.take_along_axis(scores, targets[:, None], axis=1)
    ids = jnp.arange(scores.shape[1], dtype=targets.dtype)[None, :]
    before = (scores > picked) | ((scores == picked) & (ids < targets[:, None]))
    suggestible = (ids >= SPECIALS) | (ids == EOS) if ends else ids >= SPECIALS
    rank = jnp.sum(before & suggestible, axis=1, dtype=jnp.int32)

    end = targets == EOS
    word = (targets != PAD) & (targets != BOS) & ~end
    known = word & (targets != OOV)
    counted = known | end if ends else known
    surprise = logsumexp(scores, axis=1) - picked[:, 0]
    return Counts(
        words=_number(word),
        oov=_number(word & ~known),
        ends=_number(end),
        predicted=_number(counted),
        top1=_number(counted & (rank < 1)),
        top3=_number(counted & (rank < SHOWN)),
        nats=jnp.sum(jnp.where(counted, surprise, 0.0)),
    )


def _number(which: Array) -> Array:
    return jnp.sum(which, dtype=jnp.int32)


def _ratio(part: Number, whole: Number) -> float:
    return float(part) / float(whole) if whole else float("nan")
