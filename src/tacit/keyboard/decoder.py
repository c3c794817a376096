"""From taps to words: a beam search over the trie of a lexicon, with the moves of `touch.py`.

    score(word) = spatial + language_weight * language
    spatial     = ln of the density of the taps and of the moves, for the best way to type the word so
    language    = ln p(word | what was committed)

Source of the form: Ouyang et al., "Mobile Keyboard Input Decoding with Finite-State Transducers", arXiv:1704.03987; a
trie and an array of log probabilities stand for its transducers. Tap by tap, a hypothesis is a node of the trie. The
best `beam` are kept, by their score so far plus what the likeliest word below the node adds: so the language is part of
the search, and no second opinion. Conditions, as the papers compare them:

- an n-gram in the search: `decode(points, ln p of the n-gram)`;
- a network as its rescorer: the same, then `rescored(candidates, ln p of the network)`;
- the network in the search: `decode(points, ln p of the network)`, as in arXiv:2410.15575.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.compiled import compiled
from tacit.errors import InputError, of_type
from tacit.keyboard.lexicon import LONGEST, Lexicon
from tacit.keyboard.touch import TouchModel

BEAM, MARGIN = 100, 16.0
LANGUAGE_WEIGHT = 1.0
NOTHING = -math.inf

Reals = NDArray[np.float32]
Ids = NDArray[np.int32]


class Candidate(NamedTuple):
    """A word that may have been meant."""

    word: str
    id: int
    spatial: float
    language: float
    score: float


class Decoder:
    """Finds the words of a lexicon that somebody who taps like this may have meant; `decode` is pure."""

    def __init__(
        self,
        lexicon: Lexicon,
        touch: TouchModel,
        *,
        language_weight: float = LANGUAGE_WEIGHT,
        beam: int = BEAM,
        margin: float = MARGIN,
    ) -> None:
        """After each tap at most about `beam` hypotheses stay, none more than `margin` (in ln) below the best.

        Raises: InputError where layouts differ, the weight is negative, or nothing would stay.
        """
        of_type("beam", beam, int)
        for name, number in (("language_weight", language_weight), ("margin", margin)):
            of_type(name, number, float, int)
        if lexicon.layout != touch.layout:
            raise InputError(
                f"the lexicon is for the layout {lexicon.layout.name!r} and the touch model for {touch.layout.name!r}; "
                "make both for the same one."
            )
        if not 0 <= language_weight < math.inf:
            raise InputError(f"language_weight={language_weight} must be 0 or more.")
        if beam < 1 or not margin > 0:
            raise InputError(f"beam={beam} and margin={margin} keep no hypothesis; give 1 or more, and more than 0.")
        self.lexicon, self.touch, self.language_weight = lexicon, touch, float(language_weight)
        self.beam, self.margin = beam, float(margin)
        self._trie = (lexicon.keys, lexicon.parents, lexicon.children, lexicon.endings, lexicon.ids)

    def decode(self, points: ArrayLike, log_probabilities: ArrayLike, k: int = 3) -> tuple[Candidate, ...]:
        """The k best whole words for the taps (m, 2), best first; fewer where fewer are in reach, none for no taps.

        log_probabilities: (V,) ln p of each id as the next word, float32; V is at least the lexicon's size.
        Raises: InputError where there are more than LONGEST taps, or log probabilities are too few or not below 0.
        """
        return self._found(points, log_probabilities, k, whole=True)

    def completions(self, points: ArrayLike, log_probabilities: ArrayLike, k: int = 3) -> tuple[Candidate, ...]:
        """The k best words that begin with these taps (m, 2), whole ones among them; for no taps the likeliest words.

        Raises: as `decode`.
        """
        return self._found(points, log_probabilities, k, whole=False)

    def literal(self, points: ArrayLike) -> str:
        """The letters whose keys were hit: what a keyboard without a decoder writes."""
        keys = self.lexicon.layout.keys
        return "".join([keys[key] for key in self.lexicon.layout.nearest(points).tolist()])

    def rescored(self, candidates: Sequence[Candidate], log_probabilities: Sequence[float]) -> tuple[Candidate, ...]:
        """The same candidates by another model's ln p of each, best first."""
        again = [
            each._replace(language=language, score=each.spatial + self._weighted(language))
            for each, language in zip(candidates, log_probabilities, strict=True)
        ]
        return tuple(sorted(again, key=lambda each: -each.score))

    def _found(self, points: ArrayLike, log_probabilities: ArrayLike, k: int, *, whole: bool) -> tuple[Candidate, ...]:
        taps, language = self._checked(points, log_probabilities, k)
        weight, trie, moves = self.language_weight, self._trie, self.touch.moves
        ahead = _look_ahead(language, weight, trie)
        if np.isnan(ahead[0]):
            raise InputError("log probabilities must be 0 or less; give natural logarithms of probabilities.")
        if whole and not len(taps):
            return ()
        scores, reached = _search(self.touch.log_densities(taps), ahead, trie, moves, self.beam, self.margin)
        best = _whole_words if whole else _longer_words
        ids, spatial = best(scores, reached, weight, language, ahead, trie, moves.omitted, k)
        return tuple(self._candidate(*each, language) for each in zip(ids.tolist(), spatial.tolist(), strict=True))

    def _candidate(self, id: int, spatial: float, language: Reals) -> Candidate:
        lnp = float(language[id])
        return Candidate(self.lexicon.word_of(id), id, spatial, lnp, spatial + self._weighted(lnp))

    def _weighted(self, lnp: float) -> float:
        return self.language_weight * lnp if self.language_weight else 0.0  # impossible words too

    def _checked(self, points: ArrayLike, log_probabilities: ArrayLike, k: int) -> tuple[NDArray[np.float64], Reals]:
        of_type("k", k, int)
        if k < 1:
            raise InputError(f"k={k} candidates cannot be shown; ask for 1 or more.")
        taps = np.asarray(points, np.float64)
        if taps.size == 0:
            taps = taps.reshape(0, 2)
        if taps.ndim != 2 or taps.shape[1] != 2 or not np.isfinite(taps).all():
            raise InputError(f"points of the shape {taps.shape} are no taps; give finite x and y of each, (m, 2).")
        if len(taps) > LONGEST:
            raise InputError(f"{len(taps)} taps are more than a word has; decode at most {LONGEST} at once.")
        language = np.asarray(log_probabilities, np.float32)
        if language.ndim != 1 or len(language) < self.lexicon.size:
            raise InputError(
                f"log probabilities of the shape {language.shape} do not cover the lexicon's ids; give "
                f"({self.lexicon.size},), one for each id."
            )
        return taps, language


# -- the search ----------------------------------------------------------------------------------------------------


@compiled
def _look_ahead(language: Reals, weight: float, trie: Any) -> Reals:
    """(N,) weight * ln p of the likeliest word in the subtrie of each node; NaN at the root where some ln p is none."""
    keys, parents, _, endings, ids = trie
    ahead = np.full(len(keys), NOTHING, np.float32)
    for node in range(len(keys) - 1, -1, -1):
        for at in range(endings[node], endings[node + 1]):
            lnp = language[ids[at]]
            if not lnp <= 0.0:
                ahead[0] = np.nan
                return ahead
            ahead[node] = max(ahead[node], _weighted(weight, lnp))
        if node:
            ahead[parents[node]] = max(ahead[parents[node]], ahead[node])
    return ahead


@compiled
def _weighted(weight: float, lnp: float) -> float:
    """At weight 0 impossible words too have 0."""
    return weight * lnp if weight else 0.0


@compiled
def _search(densities: Reals, ahead: Reals, trie: Any, moves: Any, beam: int, margin: float) -> tuple[Reals, Ids]:
    """(score of each node after the last tap, the nodes that were reached), from (m, K) densities.

    Three layers in turn: hypotheses before the last tap, after it, and after the next.
    """
    keys, _, children, _, _ = trie
    tapped, omitted, transposed, doubled, stray = moves
    scores = np.full((3, len(keys)), NOTHING, np.float32)
    reached = np.empty((3, len(keys)), np.int32)
    counts = np.zeros(3, np.int64)
    scores[0, 0], reached[0, 0], counts[0] = 0.0, 0, 1
    for tap in range(len(densities)):
        old, here, new = (tap - 1) % 3, tap % 3, (tap + 1) % 3
        for at in range(counts[new]):
            scores[new, reached[new, at]] = NOTHING
        count, floor = 0, -1e30
        density = densities[tap]
        peak = density.max()
        for node in reached[here, : counts[here]]:
            score = scores[here, node]
            extra = stray if node == 0 else np.logaddexp(doubled + density[keys[node]], stray)
            count, floor = _reach(node, score + extra, ahead, margin, scores[new], reached[new], count, floor)
            for child in range(children[node], children[node + 1]):
                typed = score + tapped + density[keys[child]]
                count, floor = _reach(child, typed, ahead, margin, scores[new], reached[new], count, floor)
                skipped = score + omitted + tapped
                if skipped + peak + ahead[child] > floor:
                    for after in range(children[child], children[child + 1]):
                        typed = skipped + density[keys[after]]
                        count, floor = _reach(after, typed, ahead, margin, scores[new], reached[new], count, floor)
        for node in reached[old, : counts[old] if tap else 0]:
            for child in range(children[node], children[node + 1]):
                swapped = scores[old, node] + transposed + density[keys[child]]
                if swapped + densities[tap - 1].max() + ahead[child] > floor:
                    for after in range(children[child], children[child + 1]):
                        typed = swapped + densities[tap - 1, keys[after]]
                        count, floor = _reach(after, typed, ahead, margin, scores[new], reached[new], count, floor)
        counts[new] = _pruned(scores[new], reached[new], count, ahead, beam)
    last = len(densities) % 3
    return scores[last], reached[last, : counts[last]]


@compiled
def _reach(
    node: int, score: float, ahead: Reals, margin: float, scores: Reals, reached: Ids, count: int, floor: float
) -> tuple[int, float]:
    """A hypothesis of this layer, if it is good enough; (how many there are, the least that is good enough)."""
    total = score + ahead[node]
    if total > floor and score > scores[node]:
        if scores[node] == NOTHING:
            reached[count] = node
            count += 1
        scores[node] = score
        floor = max(floor, total - margin)
    return count, floor


@compiled
def _pruned(scores: Reals, reached: Ids, count: int, ahead: Reals, beam: int) -> int:
    """How many stay of the nodes that were reached: the best `beam` and their equals, moved to the front."""
    if count <= beam:
        return count
    totals = np.empty(count, np.float32)
    for at in range(count):
        totals[at] = scores[reached[at]] + ahead[reached[at]]
    least = np.partition(totals, count - beam)[count - beam]
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
    scores: Reals, reached: Ids, weight: float, language: Reals, ahead: Reals, trie: Any, omitted: float, k: int
) -> tuple[NDArray[np.int64], Reals]:
    """(ids, spatial scores) of the k best words that end where a hypothesis stands, or a letter later."""
    _, _, children, endings, ids = trie
    best, spatial, totals = np.empty(k, np.int64), np.empty(k, np.float32), np.full(k, NOTHING, np.float32)
    found = 0
    for node in reached:
        found = _insert_all(node, scores[node], weight, language, endings, ids, best, spatial, totals, found)
        for child in range(children[node], children[node + 1]):
            score = scores[node] + omitted
            if score + ahead[child] > totals[k - 1]:
                found = _insert_all(child, score, weight, language, endings, ids, best, spatial, totals, found)
    return best[:found], spatial[:found]


@compiled
def _longer_words(
    scores: Reals, reached: Ids, weight: float, language: Reals, ahead: Reals, trie: Any, omitted: float, k: int
) -> tuple[NDArray[np.int64], Reals]:
    """(ids, spatial scores) of the k best words in the subtries of the hypotheses, those that cannot win left out."""
    keys, _, children, endings, ids = trie
    best, spatial, totals = np.empty(k, np.int64), np.empty(k, np.float32), np.full(k, NOTHING, np.float32)
    found = 0
    nodes = np.empty(len(keys), np.int32)
    for begin in reached:
        nodes[0], waiting = begin, 1
        while waiting:
            waiting -= 1
            node = nodes[waiting]
            if scores[begin] + ahead[node] >= totals[k - 1]:
                found = _insert_all(node, scores[begin], weight, language, endings, ids, best, spatial, totals, found)
                for child in range(children[node], children[node + 1]):
                    nodes[waiting] = child
                    waiting += 1
    return best[:found], spatial[:found]


@compiled
def _insert_all(
    node: int,
    score: float,
    weight: float,
    language: Reals,
    endings: Ids,
    ids: Ids,
    best: NDArray[np.int64],
    spatial: Reals,
    totals: Reals,
    found: int,
) -> int:
    """The words of a node take their places among the best; how many of those there are then.

    A word that is there already stays where its score is the better one. Of equal totals the smaller id comes first.
    """
    for word in range(endings[node], endings[node + 1]):
        id = ids[word]
        total = score + _weighted(weight, language[id])
        if total == NOTHING:
            continue
        at = found
        for place in range(found):
            if best[place] == id:
                at = place
        if at == found and found < len(best):
            found += 1
        elif at == found:
            at -= 1
            if total < totals[at] or (total == totals[at] and id > best[at]):
                continue
        elif total <= totals[at]:
            continue
        while at and (total > totals[at - 1] or (total == totals[at - 1] and id < best[at - 1])):
            best[at], spatial[at], totals[at] = best[at - 1], spatial[at - 1], totals[at - 1]
            at -= 1
        best[at], spatial[at], totals[at] = id, score, total
    return found
