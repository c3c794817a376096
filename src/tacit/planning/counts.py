"""Which cells of clients' text are worth counting, and within which norms: from public text and the population alone.

A client's vector v is scaled down to a norm C, and the noise of a cell grows with C. So a cell's signal over its noise
is proportional to the sum over clients of v min(1/C, 1/|v|). For no cell it grows with C, and it stays the same below
every client's own norm. What a smaller norm takes is the weight of those who type much. So the norm is that of a short
text. Public text stands in for it: passages of LENGTH words, of consecutive sentences of one text, which repeat the
words of their subject as a person does.

A cell is believed where its count is expected above BELIEVED standard deviations of its noise. Pairs with words after
those of the believed ones are left out: they cost no privacy, but bytes of every report. Single words cost few, and
the bend weighs what noise leaves of each, so that all of them are counted.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError
from tacit.evaluation.counts.device_part import StatisticSum
from tacit.evaluation.counts.statistics import TypedText
from tacit.federation.report_layout import WORDS
from tacit.text.vocabulary import SPECIALS

if TYPE_CHECKING:
    from tacit.data import Cache

FloatArray = NDArray[np.float64]
# Words of a made-up client. Settled with the training clients of two corpora in view (docs/counts.md says what was
# seen): one in seven of a chat typed less, and nobody of a blog.
LENGTH = 128
PASSAGES = 8_000  # a million words: enough to see each pair that noise does not hide of PAIRED_WORDS
PAIRED_WORDS = 1_000  # at most: a million cells are 4 MB of a report
FINENESS = 4_096  # units of a norm: what was typed once survives rounding in a text hundreds of times as long as LENGTH
BELIEVED = 0.5  # standard deviations: below, `tacit mix` believes a fifth of a cell's deviation, or less
COVERED = 0.99  # of what is typed in believed cells


@dataclass(frozen=True, kw_only=True)
class ProposedSums:
    """Sums that suit a population, and why."""

    sums: tuple[StatisticSum, ...]  # empty: noise would hide every word
    believed: Mapping[str, int]  # by statistic, cells of it that are expected above BELIEVED standard deviations
    stddev: Mapping[str, float]  # by statistic, of the noise of a cell, in occurrences
    clients: int
    rho: float


def sums_for(public: "Cache", *, clients: int, rho: float) -> tuple[StatisticSum, ...]:
    """The sums that suit so many clients at rho of zCDP: word_counts and word_pairs; see `proposed_sums`.

    Without word_pairs where noise would hide every pair, and empty where it would hide every word. Raises: InputError.
    """
    return proposed_sums(public, clients=clients, rho=rho).sums


def proposed_sums(public: "Cache", *, clients: int, rho: float) -> ProposedSums:
    """Sums for one release of so many clients' counts at rho of zCDP.

    public: a cache of public text over the clients' vocabulary. A norm is the median L2 norm of the passages' own
    vectors, in occurrences. Units are such that both sums have an equal part of a report's norm. All words are counted;
    of pairs N is the smallest that covers COVERED of what is typed in believed cells. A cell's expected count is the
    mean of the passages' vectors, within the norm, times the clients. Raises: InputError where the text is not public
    or has no passage, for fewer clients than two, or more than a cell can count, and for a rho that is none.
    """
    check_population(public, clients, rho)
    passages = list(islice(passages_of(public), PASSAGES))
    known, multiplier = public.manifest.vocabulary.size - SPECIALS, 1 / math.sqrt(2 * rho)
    words = _Expected.of(StatisticSum(statistic="word_counts", words=known, norm=1.0), passages)
    pairs = _Expected.of(StatisticSum(statistic="word_pairs", words=min(known, PAIRED_WORDS), norm=1.0), passages)
    both = [each.believed(clients, multiplier * math.sqrt(2)) for each in (words, pairs)]
    chosen = both if all(both) else [words.believed(clients, multiplier)]
    kept = [each for each in chosen if each is not None]
    return ProposedSums(
        sums=tuple(each.sum for each in kept),
        believed={str(each.sum): each.cells for each in kept},
        stddev={str(each.sum): each.stddev for each in kept},
        clients=clients,
        rho=rho,
    )


def check_population(public: "Cache", clients: int, rho: float) -> None:
    """Raises: InputError as `proposed_sums`."""
    if not public.manifest.public:
        raise InputError(
            f"the text in '{public.path}' is clients', and what is chosen by it would tell of it; give public text."
        )
    if clients < 2:
        raise InputError(f"clients={clients} says nothing about many; give 2 or more.")
    if not (rho > 0 and math.isfinite(rho)):
        raise InputError(f"rho={rho:g} releases nothing or promises nothing; give a number above 0.")
    if next(passages_of(public), None) is None:
        raise InputError(
            f"the public text in '{public.path}' has no {LENGTH} words of one piece to stand in for a client; give "
            "more."
        )


class _Believed(NamedTuple):
    sum: StatisticSum
    cells: int
    stddev: float  # in occurrences


@dataclass(frozen=True)
class _Expected:
    """What made-up clients have of a sum, over as many words as it may have."""

    of_all: StatisticSum
    norm: float  # the median of their own
    rates: FloatArray  # (cells,) of one of them within the norm

    @classmethod
    def of(cls, of_all: StatisticSum, passages: Sequence[TypedText]) -> Self:
        """of_all: its norm is not looked at."""
        counted = [of_all.counted(each) for each in passages]
        norms = np.array([math.sqrt(int(np.dot(counts, counts))) for _, counts in counted])
        norm = max(1.0, round(float(np.median(norms)), 1))
        rates = np.zeros(of_all.cells)
        for (cells, counts), own in zip(counted, norms, strict=True):
            rates[cells] += counts * min(1.0, norm / max(own, 1.0))
        return cls(of_all, norm, rates / len(passages))

    def believed(self, clients: int, multiplier: float) -> _Believed | None:
        """The sum over the words that suffice; None where no cell is above the noise.

        multiplier: times the norm, the standard deviation of the noise. Raises: InputError for more clients than a cell
        can count.
        """
        counts, stddev = self.rates * clients, multiplier * self.norm
        cells = np.flatnonzero(counts >= BELIEVED * stddev)
        if not cells.size:
            return None
        last = np.max(np.unravel_index(cells, self.of_all.axes), axis=0)  # of a cell's words, the one furthest down
        words = self.of_all.words
        if len(self.of_all.axes) > 1:
            order = np.argsort(last, kind="stable")
            covered = np.cumsum(counts[cells[order]])
            words = max(2, 1 + int(last[order[np.searchsorted(covered, COVERED * covered[-1])]]))
        finest = min(FINENESS, (WORDS - 1) // clients)  # a cell holds that many clients of that many units
        found = replace(self.of_all, words=words, norm=self.norm, unit=max(1, math.floor(finest / self.norm)))
        found.layout.check_reports(clients)
        return _Believed(found, int((last < words).sum()), stddev)


def passages_of(public: "Cache") -> Iterator[TypedText]:
    """Made-up clients: consecutive sentences of about LENGTH words of one text, from texts in an order that does not
    depend on them.
    """
    for text in np.random.default_rng(LENGTH).permutation(public.manifest.clients):
        whole = TypedText.from_cache(public, int(text))
        passage = np.cumsum(whole.lengths) // LENGTH  # of each sentence, by where it ends; the last is cut short
        of_word = np.repeat(passage, whole.lengths)
        for number in np.unique(passage)[:-1]:
            yield TypedText(whole.words[of_word == number], whole.lengths[passage == number])
