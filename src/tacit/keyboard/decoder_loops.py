"""The loops of `decoder.py`: a beam search over a trie in flat arrays (`lexicon.py`).

`ahead` (N,) is what the likeliest word in the subtrie of each node adds to a score. A hypothesis is a node; its score:
ln of the density of the taps so far for the best way to type the letters up to there, the last of them not left out.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compiled import compiled, compiled_with

# Into whoever calls it, before types are inferred: arrays are passed on without being taken apart, and what is met with
# two types is compiled once. A third less time for a search, and two fifths less to compile it.
inlined = compiled_with(inline="always")

NOTHING = -math.inf
HALVINGS = 16  # of the range of scores, to find where the beam ends; numpy.partition takes five seconds to compile

FloatArray = NDArray[np.float32]
Ids = NDArray[np.int32]


@compiled
def look_ahead(language: FloatArray, weight: float, ids: Ids, ends: Ids, parents: Ids) -> FloatArray:
    """(N,) weight * ln p of the likeliest word in the subtrie of each node; empty where an entry is no ln p.

    One pass: every node comes after its parent. max() without a condition around it compiles to no jump, of which half
    would be foreseen wrongly; that took five times as long on the contexts of a text.
    """
    ahead = np.full(len(parents), NOTHING, np.float32)
    for at in range(len(ids)):
        lnp = language[ids[at]]
        if not lnp <= 0.0:
            return ahead[:0]
        ahead[ends[at]] = max(ahead[ends[at]], np.float32(_weighted(weight, lnp)))
    for node in range(len(parents) - 1, 0, -1):
        ahead[parents[node]] = max(ahead[parents[node]], ahead[node])
    return ahead


@compiled
def _weighted(weight: float, lnp: float) -> float:
    """At weight 0 impossible words too have 0."""
    return weight * lnp if weight else 0.0


@compiled
def best_words(
    densities: FloatArray,
    ahead: FloatArray,
    language: FloatArray,
    weight: float,
    trie: Any,
    moves: Any,
    limits: Any,
    scores: FloatArray,
    reached: Ids,
) -> tuple[NDArray[np.int64], FloatArray]:
    """(ids, spatial scores) of the k best words for the taps, of which (m, K) densities are given.

    limits: the beam, the margin, k, and whether words end with the taps or go on. `scores` (3, >= N) is NOTHING
    everywhere, and is so again afterwards; `reached` is as large.
    """
    beam, margin, k, whole = limits
    counts = _search(densities, ahead, trie, moves, beam, margin, scores, reached)
    last = len(densities) % 3
    found = (np.empty(k, np.int64), np.empty(k, np.float32), np.full(k, NOTHING, np.float32))
    if whole and not len(densities):
        count = 0
    elif whole:
        count = _whole_words(
            scores[last], reached[last, : counts[last]], weight, language, ahead, trie, moves[1], found
        )
    else:
        count = _longer_words(scores[last], reached[last, : counts[last]], weight, language, ahead, trie, found)
    for layer in range(3):
        for node in reached[layer, : counts[layer]]:
            scores[layer, node] = NOTHING
    return found[0][:count], found[1][:count]


@compiled
def _search(
    densities: FloatArray,
    ahead: FloatArray,
    trie: Any,
    moves: Any,
    beam: int,
    margin: float,
    scores: FloatArray,
    reached: Ids,
) -> NDArray[np.int64]:
    """How many nodes were reached in each of three layers: hypotheses by all taps but one or two, and by all.

    The layers take turns: those before the last tap, after it, and after the next; by all m taps: m modulo 3.
    """
    counts = np.zeros(3, np.int64)
    scores[0, 0], reached[0, 0], counts[0] = 0.0, 0, 1
    for tap in range(len(densities)):
        old, here, new = (tap + 2) % 3, tap % 3, (tap + 1) % 3
        density = densities[tap]
        to = (ahead, margin, scores[new], reached[new])
        for node in reached[new, : counts[new]]:
            scores[new, node] = NOTHING
        count, floor = 0, -1e30
        for node in reached[here, : counts[here]]:  # what is likeliest first: the floor then stops most of the rest
            count, floor = _type(node, scores[here, node], density, trie, moves, to, count, floor)
        peak = _highest(density)
        for node in reached[here, : counts[here]]:
            skipped = scores[here, node] + moves[0] + moves[1]
            count, floor = _skip(node, skipped, density, peak, trie, to, count, floor)
        if tap:
            before = densities[tap - 1]
            peak = _highest(before)
            for node in reached[old, : counts[old]]:
                swapped = scores[old, node] + moves[2]
                count, floor = _swap(node, swapped, before, peak, density, trie, to, count, floor)
        counts[new] = _pruned(scores[new], reached[new], count, ahead, beam)
    return counts


@inlined
def _highest(density: FloatArray) -> float:
    """Of all keys; max() minds NaN, and takes half a second to compile."""
    most: float = density[0]
    for each in density[1:]:
        if each > most:
            most = each
    return most


@inlined
def _type(
    node: int, score: float, density: FloatArray, trie: Any, moves: Any, to: Any, count: int, floor: float
) -> tuple[int, float]:
    """By one more tap: each letter that may follow, or none."""
    keys, children, _, _ = trie
    tapped, _, _, doubled, stray = moves
    for child in range(children[node], children[node + 1]):
        count, floor = _reach(child, score + tapped + density[keys[child]], to, count, floor)
    extra = stray if node == 0 else np.logaddexp(doubled + density[keys[node]], stray)
    return _reach(node, score + extra, to, count, floor)


@inlined
def _skip(
    node: int, score: float, density: FloatArray, peak: float, trie: Any, to: Any, count: int, floor: float
) -> tuple[int, float]:
    """By one more tap: the next but one letter. peak: of the density."""
    keys, children, _, _ = trie
    ahead = to[0]
    best = score + peak
    for child in range(children[node], children[node + 1]):
        if best + ahead[child] > floor:
            for after in range(children[child], children[child + 1]):
                count, floor = _reach(after, score + density[keys[after]], to, count, floor)
    return count, floor


@inlined
def _swap(
    node: int,
    score: float,
    before: FloatArray,
    peak: float,
    density: FloatArray,
    trie: Any,
    to: Any,
    count: int,
    floor: float,
) -> tuple[int, float]:
    """By the last two taps: the next but one letter and then the next. peak: of the density of the first."""
    keys, children, _, _ = trie
    ahead = to[0]
    for child in range(children[node], children[node + 1]):
        second = score + density[keys[child]]
        if second + peak + ahead[child] > floor:
            for after in range(children[child], children[child + 1]):
                count, floor = _reach(after, second + before[keys[after]], to, count, floor)
    return count, floor


@inlined
def _reach(node: int, score: float, to: Any, count: int, floor: float) -> tuple[int, float]:
    """A hypothesis of the next layer, if it is good enough; (how many there are, the least that is good enough)."""
    ahead, margin, scores, reached = to
    total = score + ahead[node]
    if total > floor and score > scores[node]:
        if scores[node] == NOTHING:
            reached[count] = node
            count += 1
        scores[node] = score
        if total - margin > floor:
            floor = total - margin
    return count, floor


@inlined
def _pruned(scores: FloatArray, reached: Ids, count: int, ahead: FloatArray, beam: int) -> int:
    """How many stay of the nodes that were reached: the best `beam` and their near equals, moved to the front."""
    if count <= beam:
        return count
    totals = np.empty(count, np.float32)
    for at in range(count):
        totals[at] = scores[reached[at]] + ahead[reached[at]]
    least, most = totals[0], totals[0]
    for total in totals:
        least, most = min(least, total), max(most, total)
    for _ in range(HALVINGS):
        middle = (least + most) / 2
        above = 0
        for total in totals:
            above += total >= middle
        if above >= beam:
            least = middle
        else:
            most = middle
        if above == beam:
            break
    kept = 0
    for at in range(count):
        node = reached[at]
        if totals[at] >= least:
            reached[kept] = node
            kept += 1
        else:
            scores[node] = NOTHING
    return kept


@compiled
def _whole_words(
    scores: FloatArray,
    reached: Ids,
    weight: float,
    language: FloatArray,
    ahead: FloatArray,
    trie: Any,
    omitted: float,
    found: Any,
) -> int:
    """How many words that end where a hypothesis stands, or a letter later, are found; the best of them."""
    _, children, _, _ = trie
    totals, count = found[2], 0
    for node in reached:
        count = _insert_all(node, np.float64(scores[node]), weight, language, trie, found, count)
        for child in range(children[node], children[node + 1]):
            score = scores[node] + omitted
            if score + ahead[child] > totals[-1]:
                count = _insert_all(child, score, weight, language, trie, found, count)
    return count


@compiled
def _longer_words(
    scores: FloatArray, reached: Ids, weight: float, language: FloatArray, ahead: FloatArray, trie: Any, found: Any
) -> int:
    """How many words in the subtries of the hypotheses are found; the best of them, what cannot win left out."""
    keys, children, _, _ = trie
    totals, count = found[2], 0
    nodes = np.empty(len(keys), np.int32)
    for begin in reached:
        nodes[0], waiting = begin, 1
        while waiting:
            waiting -= 1
            node = nodes[waiting]
            if scores[begin] + ahead[node] >= totals[-1]:
                count = _insert_all(node, np.float64(scores[begin]), weight, language, trie, found, count)
                for child in range(children[node], children[node + 1]):
                    nodes[waiting] = child
                    waiting += 1
    return count


@compiled
def _insert_all(node: int, score: float, weight: float, language: FloatArray, trie: Any, found: Any, count: int) -> int:
    """The words of a node take their places among the best (ids, spatial scores, totals); how many of those there are.

    A word that is there already stays where its score is the better one. Of equal totals the smaller id comes first.
    """
    _, _, endings, ids = trie
    best, spatial, totals = found
    for word in range(endings[node], endings[node + 1]):
        id = ids[word]
        total = np.float32(score + _weighted(weight, language[id]))
        if total == NOTHING:
            continue
        at = count
        for place in range(count):
            if best[place] == id:
                at = place
        if at == count and count < len(best):
            count += 1
        elif at == count:
            at -= 1
            if total < totals[at] or (total == totals[at] and id > best[at]):
                continue
        elif total <= totals[at]:
            continue
        while at and (total > totals[at - 1] or (total == totals[at - 1] and id < best[at - 1])):
            best[at], spatial[at], totals[at] = best[at - 1], spatial[at - 1], totals[at - 1]
            at -= 1
        best[at], spatial[at], totals[at] = id, score, total
    return count
