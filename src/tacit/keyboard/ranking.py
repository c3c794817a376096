"""Where each word of a text stands among all that a model could have suggested, alone or mixed with a user's cache.

A mix costs one pass over the vocabulary for each word, little beside the product that makes the scores: ten mixes of
one model cost far less than ten models.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.compiled import compiled_with
from tacit.keyboard.user_cache import ALONE, Mix, UserCache
from tacit.networks.language_model import kinds_of
from tacit.networks.metrics import Words
from tacit.networks.on_device import HeldModel, Scored
from tacit.text.vocabulary import EOS, SPECIALS

Ids = NDArray[np.int32]
FloatArray = NDArray[np.float32]

# A product and a sum may become one instruction; nothing else may be reordered or assumed.
compiled = compiled_with(fastmath={"contract"}, error_model="numpy")


class Places(NamedTuple):
    """Of N targets: how many words come before each, whether no token does, and -log of its probability."""

    ranks: Ids
    firsts: NDArray[np.bool_]
    nats: NDArray[np.float64]


def rank(model: HeldModel, batches: Sequence[Any], cache: UserCache, mixes: Sequence[Mix]) -> list[Words]:
    """Every word and end of sentence of the batches, one or more, as `language_model.ranked` has them, by each mix.

    `ALONE` ranks by the scores, so that rounding makes no two words equal; any other mix by probabilities. Scores
    beyond all bounds give nats that are not finite.
    """
    targets: list[Ids] = []
    found: list[list[Places]] = [[] for _ in mixes]
    with np.errstate(over="ignore", invalid="ignore"):
        for scored in (scored for batch in batches for scored in model.scores(batch)):
            targets.append(scored.targets)
            for places, more in zip(found, _places(scored, cache, mixes), strict=True):
                places.append(more)
    kinds = kinds_of(np.concatenate(targets), np).astype(np.int32)
    merged = [Places(*map(np.concatenate, zip(*places, strict=True))) for places in found]
    return [Words(rank=each.ranks, nats=each.nats, kind=kinds, first=each.firsts) for each in merged]


def _places(scored: Scored, cache: UserCache, mixes: Sequence[Mix]) -> list[Places]:
    scores, before, targets = scored
    tops = scores.max(axis=1, keepdims=True)
    shares = np.exp(scores - tops)
    totals = shares.sum(axis=1, keepdims=True)
    shares /= totals
    picked = np.take_along_axis(scores, targets[:, None].astype(np.int64), axis=1)
    logs = (picked - tops - np.log(totals))[:, 0].astype(np.float64)
    return [
        Places(*places_by(scores, targets), -logs)
        if mix == ALONE
        else Places(
            *places_mixed(shares, logs, before, targets, cache, np.float32(mix.unigram), np.float32(mix.bigram))
        )
        for mix in mixes
    ]


@compiled
def places_by(values: FloatArray, targets: Ids) -> tuple[Ids, NDArray[np.bool_]]:
    """(how many words come before each target (N,), whether no token does) by values (N, V)."""
    ranks, firsts = np.empty(len(targets), np.int32), np.empty(len(targets), np.bool_)
    for n in range(len(targets)):
        ranks[n], firsts[n] = place(values[n], targets[n])
    return ranks, firsts


@compiled
def places_mixed(
    shares: FloatArray,
    logs: NDArray[np.float64],
    before: Ids,
    targets: Ids,
    cache: UserCache,
    unigram: np.float32,
    bigram: np.float32,
) -> tuple[Ids, NDArray[np.bool_], NDArray[np.float64]]:
    """`Places` by the mix of the network's shares (N, V) with both caches; logs (N,): of the targets' shares."""
    ranks, firsts = np.empty(len(targets), np.int32), np.empty(len(targets), np.bool_)
    nats, mixed = np.empty(len(targets)), np.empty(shares.shape[1], np.float32)
    keep = np.float32(1.0) - unigram - bigram
    for n in range(len(targets)):
        row, target, after = shares[n], targets[n], before[n]
        to_unigram = unigram + bigram * cache.left[after]
        for v in range(mixed.size):
            mixed[v] = keep * row[v] + to_unigram * cache.unigram[v]
        own = to_unigram * cache.unigram[target]
        for at in range(cache.starts[after], cache.starts[after + 1]):
            more = bigram * cache.shares[at]
            mixed[cache.words[at]] += more
            own += more if cache.words[at] == target else np.float32(0.0)
        ranks[n], firsts[n] = place(mixed, target)
        nats[n] = -np.log(keep * np.exp(logs[n]) + own)
    return ranks, firsts, nats


@compiled
def place(values: FloatArray, target: int) -> tuple[int, bool]:
    """(how many words come before `target`, whether no token that may come next does); of equals the smaller id."""
    mine, before = values[target], 0
    for v in range(SPECIALS, target):
        before += values[v] >= mine
    for v in range(max(target + 1, SPECIALS), values.size):
        before += values[v] > mine
    first = before == 0
    for v in range(EOS, SPECIALS):
        first = first and not (values[v] > mine or (values[v] == mine and v < target))
    return before, bool(first)
