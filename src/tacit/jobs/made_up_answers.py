"""Answers of no device, for a rehearsal: what follows from them follows from the question alone."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.discovery.collect import DiscoverQuestion
from tacit.discovery.question import PrefixQuestion
from tacit.evaluation.counts.collect import CountQuestion
from tacit.evaluation.counts.histograms import HistogramQuery
from tacit.evaluation.counts.release import summed, votes_of
from tacit.evaluation.counts.sums import SumQuestion
from tacit.federation.collector import Answered
from tacit.randomizers import SubsetSelection

MOST = 10_000  # devices that are made up; the others did not come


@dataclass(frozen=True, kw_only=True)
class MadeUpAnswers:
    """A `Collector` of devices that are in each cell of a histogram as often as in any other, have zeros for sums, and
    type one letter again and again.

    of_devices: they have no identities, as real ones.
    """

    of_devices: bool

    def init(self) -> Any:
        """See Collector: nothing is carried."""
        return ()

    def collect(
        self, state: Any, question: CountQuestion | SumQuestion | DiscoverQuestion, *, seed: bytes = b""
    ) -> tuple[Answered, Any]:
        """See Collector."""
        if isinstance(question, DiscoverQuestion):
            return Answered(_votes(question), question.users, question.users), state
        came = min(question.devices, MOST)
        clients: NDArray[np.int64] | int = came if self.of_devices else np.arange(came) + question.step * came
        if isinstance(question, SumQuestion):
            return Answered(np.zeros(question.layout.length, np.int64), came, clients), state
        queries = [
            HistogramQuery(name=name, cells=cells, chosen=np.arange(came) % cells.size)
            for name, cells in question.histograms.items()
        ]
        if (epsilon := question.local_epsilon) is None:
            return Answered(summed(queries), came, clients), state
        draws = np.random.default_rng(question.step)
        votes, came_to = votes_of(queries, lambda size: SubsetSelection(domain=size, epsilon=epsilon), generator=draws)
        return Answered(np.concatenate([votes, came_to]), came, clients), state


def _votes(question: DiscoverQuestion) -> NDArray[np.int64]:
    """All reports say that a word goes on with the first letter, and ends; or is the first of those asked for."""
    votes, asked = np.zeros(question.question.domain, np.int64), question.question
    votes[[0, asked.alphabet.size - 1] if isinstance(asked, PrefixQuestion) else [0]] = question.reports
    return votes
