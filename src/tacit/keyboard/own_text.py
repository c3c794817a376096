"""What one user has typed so far, sentence by sentence, and how much of it is mixed into a model.

`user_cache` says what is mixed. Here the same counts grow while somebody types, and the device fits the weights of both
caches itself, to its own past. Each sentence was predicted from what had been typed before it. The weights are those
under which the latest known words were likeliest, with PRIOR more words that the model alone predicted; found by EM,
whose every step makes them likelier (Dempster, Laird & Rubin, J. R. Stat. Soc. B 39(1), 1977). That a text is predicted
before it is learnt makes it held out (Dawid, "The Prequential Approach", J. R. Stat. Soc. A 147(2), 1984).

The gate: the caches are used where, of those words, more were the first suggestion with them alone than without them
alone. Each was judged by weights that were fitted before it was typed.

An `OwnText` is never changed: what was typed can be undone.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from tacit.keyboard.user_cache import ALONE, Mix
from tacit.text.vocabulary import BOS, EOS, PAD, SPECIALS

Floats = NDArray[np.float32]
Shares = tuple[float, float, float]  # of a word: the model's, the word cache's, the pair cache's
PAST = 2_000  # known words, the latest, that weights are fitted to
PRIOR = 40  # words that the model alone is taken to have predicted besides
STEPS = 60  # of EM


class Predicted(NamedTuple):
    """A known word that was typed, as it was predicted before its sentence was learnt."""

    shares: Shares
    gained: int = 0  # 1: it was first with the caches alone; -1: without them alone


class ScoresSentences(Protocol):
    """What is asked of a model: see `networks.on_device.HeldModel`."""

    @property
    def vocabulary(self) -> int: ...

    def batches(self, sentences: NDArray[np.int32], size: int) -> Sequence[Any]: ...

    def scores(self, batch: Any) -> Iterable[Any]: ...


@dataclass(frozen=True, kw_only=True, eq=False)
class OwnText:
    """Counts of all sentences that were learnt, and how their latest words were predicted."""

    counts: NDArray[np.int64]  # (V,) c(w)
    after: Mapping[int, Mapping[int, int]]  # c(v w), by v, then by w
    predicted: tuple[Predicted, ...] = ()  # at most PAST

    @classmethod
    def none(cls, vocabulary: int) -> Self:
        """Before anything is typed."""
        return cls(counts=np.zeros(vocabulary, np.int64), after={})

    def learnt(self, sentence: Sequence[int], predicted: Iterable[Predicted] = ()) -> "OwnText":
        """With one sentence more: its ids, without its beginning and its end."""
        counts, after = self.counts.copy(), dict(self.after)
        changed = {before: dict(after.get(before, {})) for before in (BOS, *sentence)}
        for before, word in zip((BOS, *sentence), (*sentence, EOS), strict=True):
            counts[word] += 1
            changed[before][word] = changed[before].get(word, 0) + 1
        return OwnText(counts=counts, after={**after, **changed}, predicted=(*self.predicted, *predicted)[-PAST:])

    def shares(self, before: int, word: int) -> tuple[float, float]:
        """(P_unigram(w), P_bigram(w | v)) as `user_cache` defines them."""
        unigram = float(self.counts[word]) / max(self._total, 1)
        followers = self.after.get(before)
        if not followers:
            return unigram, unigram
        kinds = len(followers)
        return unigram, (followers.get(word, 0) + kinds * unigram) / (self._typed[before] + kinds)

    def mixed(self, shares: Floats, before: int, mix: Mix) -> Floats:
        """(V,) the model's probabilities mixed with both caches, a new array."""
        followers = self.after.get(before, {})
        kinds = len(followers)
        whole = self._typed[before] + kinds if kinds else 1
        to_unigram = mix.unigram + mix.bigram * (kinds / whole if kinds else 1.0)
        found: Floats = np.float32(1 - mix.unigram - mix.bigram) * shares
        found += np.float32(to_unigram / max(self._total, 1)) * self.counts.astype(np.float32)
        if kinds:
            ids = np.fromiter(followers, np.int64, kinds)
            found[ids] += np.float32(mix.bigram / whole) * np.fromiter(followers.values(), np.float32, kinds)
        return found

    @cached_property
    def mix(self) -> Mix:
        """The fitted weights of both caches."""
        return fitted([each.shares for each in self.predicted])

    @cached_property
    def helped(self) -> bool:
        """The gate: whether the caches made more of the latest words the first suggestion than they took from it."""
        return sum(each.gained for each in self.predicted) > 0

    @cached_property
    def _total(self) -> int:
        return int(self.counts.sum())

    @cached_property
    def _typed(self) -> dict[int, int]:
        """c(v), of each v that something came after."""
        return {before: sum(followers.values()) for before, followers in self.after.items()}


def fitted(shares: Sequence[Shares]) -> Mix:
    """The weights under which words with these shares (n, 3), and PRIOR words of the model alone, are likeliest."""
    if not shares:
        return ALONE
    rows = np.array(shares, np.float64)
    weights = np.array([0.8, 0.1, 0.1])
    prior = np.array([PRIOR, 0.0, 0.0])
    for _ in range(STEPS):
        parts = rows * weights
        parts /= np.maximum(parts.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
        weights = (parts.sum(axis=0) + prior) / (len(rows) + PRIOR)
    return Mix(unigram=float(weights[1]), bigram=float(weights[2]))


def fitted_to(model: ScoresSentences, sentences: NDArray[np.int32]) -> Mix:
    """The weights that a device fits to its own padded sentences (S, L+1), the earliest first."""
    own, from_here = OwnText.none(model.vocabulary), _begins(sentences)
    for at, sentence in enumerate(sentences):
        words = sentence[(sentence != PAD) & (sentence != BOS) & (sentence != EOS)].tolist()
        found = [] if at < from_here else [Predicted(each) for each in _predicted(model, sentence, own)]
        own = own.learnt(words, found)
    return own.mix


def _begins(sentences: NDArray[np.int32]) -> int:
    """The first of the sentences whose known words are the latest PAST."""
    known = (sentences[:, 1:] >= SPECIALS).sum(axis=1)
    return int(np.searchsorted(-np.cumsum(known[::-1])[::-1], -PAST, side="left"))


def _predicted(model: ScoresSentences, sentence: NDArray[np.int32], own: OwnText) -> Iterable[Shares]:
    """Of each known word of a sentence, in any order."""
    for batch in model.batches(sentence[None], 1):
        for scores, before, targets in model.scores(batch):
            tops = scores.max(axis=1, keepdims=True)
            whole = np.exp(scores - tops).sum(axis=1, dtype=np.float64)
            picked = np.take_along_axis(scores - tops, targets[:, None].astype(np.int64), axis=1)[:, 0]
            for share, first, word in zip(np.exp(picked) / whole, before.tolist(), targets.tolist(), strict=True):
                if word >= SPECIALS:
                    yield float(share), *own.shares(first, word)
