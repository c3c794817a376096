"""The server's side of one layer: votes are summed as they come, and the longest-standing prefixes grow by a symbol.

Source: paper 2, Algorithm 2, lines 20 to 25. The same code serves a simulation and real devices.
"""

from collections.abc import Container
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.aggregation import CountSum
from tacit.discovery.question import PrefixQuestion
from tacit.randomizers import Randomizer
from tacit.text.alphabet import END


class SummedReports(NamedTuple):
    """What comes back of a question: how many reports support each answer, (domain,), and how many there were."""

    votes: NDArray[np.int64]
    reports: int


@dataclass(frozen=True)
class VoteSum:
    """An `Aggregation` of a randomizer's reports. They are counted and forgotten: only the sum can be looked at."""

    randomizer: Randomizer

    @property
    def _votes(self) -> CountSum:
        return CountSum(self.randomizer.domain)

    def zero(self) -> SummedReports:
        """See Aggregation."""
        return SummedReports(self._votes.zero(), 0)

    def add(self, state: SummedReports, report: NDArray[np.generic]) -> SummedReports:
        """See Aggregation; here some reports, one a row."""
        return self.merge(state, SummedReports(self.randomizer.votes(report), len(report)))

    def merge(self, state: SummedReports, other: SummedReports) -> SummedReports:
        """See Aggregation."""
        return SummedReports(self._votes.merge(state.votes, other.votes), state.reports + other.reports)

    def finish(self, state: SummedReports) -> SummedReports:
        """See Aggregation."""
        return state


@dataclass(frozen=True, kw_only=True)
class Grown:
    """What a layer leaves: the prefixes to go on with, and the words that ended; both by falling votes."""

    prefixes: tuple[str, ...]
    prefix_votes: tuple[int, ...]
    words: tuple[str, ...]
    word_votes: tuple[int, ...]


def grow(
    question: PrefixQuestion,
    votes: NDArray[np.int64],
    *,
    limit: int,
    least_votes: int = 1,
    known: Container[str] = frozenset(),
) -> Grown:
    """The `limit` answers with most votes, of those with at least `least_votes`: words where they end, else prefixes.

    Null takes its place among the `limit` (as in Lemma 1) and is dropped. Algorithm 2 keeps every answer as good as the
    `limit`-th; here ties beyond `limit` go, in the order of the question, so that a broadcast never grows without bound
    and Lemma 1 holds all the more. The empty word and words that are `known` or found already are noise, and go too.
    """
    ranked = np.argsort(-votes, kind="stable")[:limit]
    kept = [int(answer) for answer in ranked if votes[answer] >= max(1, least_votes) and answer < question.domain - 1]
    texts = [(question.text_of(answer), int(votes[answer])) for answer in kept]
    prefixes = [(text, count) for text, count in texts if not text.endswith(END)]
    ended = [(text.removesuffix(END), count) for text, count in texts if text.endswith(END)]
    words = [(word, count) for word, count in ended if word and word not in known and word not in question.found]
    return Grown(
        prefixes=tuple(text for text, _ in prefixes),
        prefix_votes=tuple(count for _, count in prefixes),
        words=tuple(word for word, _ in words),
        word_votes=tuple(count for _, count in words),
    )
