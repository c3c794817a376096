"""Which n-grams are worth counting for a population, and how much each weighs: from public text and the noise alone.

A cell's count is expected to be E, with noise of standard deviation s. What is believed of its relative deviation from
public text is D^2 / (D^2 + (s/E)^2), the posterior of a normal deviation of standard deviation D (`tacit.mix` fits that
to what was released). A deviation that is known saves D^2 / 2 nats, to second order. So a list is worth that product,
summed over what is typed in its cells: of words, of pairs and of three words, since each length says what the shorter
ones leave open. A longer list has a larger norm, and so more noise.

Tried is what differs in public lists: how many n-grams of each length, the most frequent first; the part that each
length has of the squared norm; and weights of frequency^-POWER. By 1/2 the noise takes an equal part of the spread of
each count; by 0 all cells have the same noise. Norms are those of passages; `counts.py` says why of such short ones.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice, product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tacit.errors import InputError
from tacit.evaluation.counts.cell_list import LONGEST, MOST_IDS, CellList, ngram_numbers
from tacit.evaluation.counts.statistics import TypedText
from tacit.federation.report_layout import MOST_NORM, WORDS
from tacit.planning.counts import FINENESS, LENGTH, check_population, passages_of
from tacit.text.vocabulary import OOV, Provenance, Vocabulary

if TYPE_CHECKING:
    from tacit.data import Cache

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
PASSAGES = 32_000  # four million words
SPREADS = (0.5, 0.8, 0.8)  # D by length, assumed: what follows a word differs more than words do
POWERS = (0.0, 0.25, 0.5)
SIZES = (0, 300, 1_000, 3_000, 10_000, 30_000, 100_000)  # n-grams of two words, and of three
PARTS = (  # of the squared norm, for one word, for two and for three
    *((1.0, 0.0, 0.0), (0.7, 0.3, 0.0), (0.5, 0.5, 0.0), (0.3, 0.7, 0.0), (0.2, 0.8, 0.0)),
    *((0.4, 0.4, 0.2), (0.3, 0.4, 0.3), (0.2, 0.5, 0.3), (0.2, 0.4, 0.4)),
)
WORTH = 1e-3  # of what is typed that has to be believed in some cell; below, a list would say nothing


@dataclass(frozen=True, kw_only=True)
class ProposedCells:
    """A list, and what was chosen."""

    cells: CellList
    worth: tuple[float, ...]  # by length: the share of what is typed whose deviation is believed
    power: float  # weights are frequency^-power
    parts: tuple[float, ...]  # of the squared norm, by length


def cells_for(public: "Cache", *, clients: int, rho: float) -> ProposedCells:
    """The list of cells for one release of so many clients' counts at rho of zCDP.

    public: a cache of public text over the clients' vocabulary. Raises: InputError as `counts.proposed_sums`, and where
    noise would hide every cell.
    """
    check_population(public, clients, rho)
    passages = list(islice(passages_of(public), PASSAGES))
    seen = [_seen(passages, length) for length in range(1, LONGEST + 1)]
    noise, rows = 1 / math.sqrt(2 * rho), {}
    for power, (length, each) in product(POWERS, enumerate(seen)):
        for size in SIZES if length else (len(each.ids),):
            rows[power, length, size] = _Weighed.of(each, min(size, len(each.ids)), power)
    tried = [
        _Tried.of(
            [rows[power, 0, len(seen[0].ids)], rows[power, 1, pairs], rows[power, 2, threes]], parts, clients, noise
        )
        for power, parts, pairs, threes in product(POWERS, PARTS, SIZES, SIZES)
        if bool(parts[1]) == bool(pairs) and bool(parts[2]) == bool(threes)
    ]
    best = max(tried, key=lambda each: each.nats)
    if sum(best.worth) < WORTH:
        raise InputError(
            f"the noise of rho={rho:g} hides every count of {clients:,} clients; ask more of them, or spend more."
        )
    finest = min(FINENESS, (WORDS - 1) // clients)
    if finest < 1:
        raise InputError(f"{clients:,} clients are more than a cell of 32 bits can count; ask fewer.")
    vocabulary = Vocabulary.from_json(public.vocabulary_json)
    kept = [each for each, part in zip(best.weighed, best.parts, strict=True) if part]
    weights = np.concatenate([each.weights * factor for each, factor in zip(kept, best.factors, strict=False)])
    units = np.clip(np.rint(finest / best.norm * weights), 1, MOST_NORM).astype(np.int64)
    listed = CellList(
        norm=finest,
        ngrams=tuple(tuple(map(vocabulary.word_of, row)) for each in kept for row in each.ids.tolist()),
        units=tuple(units.tolist()),
        provenance=Provenance(
            kind="public", description=f"{public.manifest.source}, for {clients:,} clients at zCDP {rho:.4g}"
        ),
    )
    return ProposedCells(cells=listed, worth=best.worth, power=best.weighed[0].power, parts=best.parts)


class _Seen(NamedTuple):
    """N-grams of one length in passages, the most frequent first."""

    ids: IntArray  # (n, length)
    counts: sparse.csc_array  # (passages, n)
    frequencies: FloatArray  # (n,) of all words


class _Weighed(NamedTuple):
    """The most frequent of them with their weights, such that the mean squared norm of a passage is 1."""

    power: float
    ids: IntArray  # (n, length)
    frequencies: FloatArray  # (n,)
    weights: FloatArray  # (n,)
    squared: FloatArray  # (passages,) norms

    @classmethod
    def of(cls, seen: _Seen, size: int, power: float) -> "_Weighed":
        frequencies = seen.frequencies[:size]
        weights = frequencies**-power
        squared = seen.counts[:, :size].power(2) @ weights**2
        scale = squared.mean() if size else 1.0
        return cls(power, seen.ids[:size], frequencies, weights / math.sqrt(scale), squared / scale)


class _Tried(NamedTuple):
    weighed: Sequence[_Weighed]  # by length
    parts: tuple[float, ...]
    factors: tuple[float, ...]  # by length, on the weights
    norm: float
    worth: tuple[float, ...]  # by length, see ProposedCells

    @classmethod
    def of(cls, weighed: Sequence[_Weighed], parts: tuple[float, ...], clients: int, noise: float) -> "_Tried":
        squared = sum(part * each.squared for part, each in zip(parts, weighed, strict=True))
        norms = np.sqrt(squared)
        norm = float(np.median(norms))
        sent = clients * float(norms.size and _words_sent(norms, norm))
        factors, worth = [], []
        for part, each, spread in zip(parts, weighed, SPREADS, strict=True):
            factors.append(math.sqrt(part))
            if not part:
                worth.append(0.0)
                continue
            error = noise * norm / (sent * each.frequencies * each.weights * factors[-1])
            worth.append(float((each.frequencies * spread**2 / (spread**2 + error**2)).sum()))
        return cls(weighed, parts, tuple(factors), norm, tuple(worth))

    @property
    def nats(self) -> float:
        """What the list saves a word, to second order."""
        return sum(each * spread**2 / 2 for each, spread in zip(self.worth, SPREADS, strict=True))


def _words_sent(norms: FloatArray, norm: float) -> float:
    """Of a client, after it was scaled down: the mean."""
    return LENGTH * float(np.minimum(1, norm / np.maximum(norms, 1e-12)).mean())


def _seen(passages: Sequence[TypedText], length: int) -> _Seen:
    """What was seen twice at least, of known words alone; what was seen once says nothing of how often it is."""
    numbers, rows = [], []
    for number, text in enumerate(passages):
        begins = len(text.words) - length + 1
        if begins <= 0:
            continue
        sentence = np.repeat(np.arange(len(text.lengths)), text.lengths)
        columns = [text.words[at : at + begins] for at in range(length)]
        inside = (sentence[:begins] == sentence[length - 1 :]) & np.all([each != OOV for each in columns], axis=0)
        numbers.append(ngram_numbers([each[inside] for each in columns]))
        rows.append(np.full(int(inside.sum()), number))
    cells, column, times = np.unique(np.concatenate(numbers), return_inverse=True, return_counts=True)
    order = np.argsort(-times, kind="stable")[: int((times >= 2).sum())][: SIZES[-1]]
    place = np.full(len(cells), -1)
    place[order] = np.arange(len(order))
    at, row = place[column], np.concatenate(rows)
    counts = sparse.coo_array((np.ones(int((at >= 0).sum())), (row[at >= 0], at[at >= 0])), (len(passages), len(order)))
    ids = np.stack([cells[order] // MOST_IDS ** (length - 1 - each) % MOST_IDS for each in range(length)], axis=1)
    return _Seen(ids, counts.tocsc(), times[order] / sum(len(each.words) for each in passages))
