"""A run of `count` by sums: who is asked for which whole numbers, cell by cell, and the record of what came back.

RUN/report/sums.npz     the released cells, for `numpy.load`: a million numbers do not belong in a record
"""

import hashlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from tacit.compute import Hardware
from tacit.evaluation.counts.cell_list import CellSum, ListedSum
from tacit.evaluation.counts.device_part import StatisticSum, SumsQuestion
from tacit.evaluation.counts.sums import ClientsSummed, ReleasedSums, SimulatedSums, SumQuestion
from tacit.federation.collector import Collector
from tacit.jobs.clients_or_devices import Simulated
from tacit.jobs.count.run import EXACT, CountRun, failing_on, texts_of
from tacit.progress import Progress
from tacit.runs import Run
from tacit.text.vocabulary import Vocabulary

FILE = "sums.npz"
LARGEST_SAID = 20  # cells of a sum that its record names
CLEAR = 4.0  # standard deviations of the noise: of cells without a count one in 31,600 is above


@dataclass(frozen=True, kw_only=True)
class Summing(CountRun[ClientsSummed, ReleasedSums]):
    """Sums of whole numbers, cell by cell."""

    computation: SumsQuestion
    words: Vocabulary | None  # of the text; None where a run of real devices is resumed from its folder alone

    def about_clients(self) -> dict[str, Any]:
        """See AnalyticsRun."""
        return {
            **self.participants.recorded,
            "vocabulary_kind": None if self.words is None else self.words.provenance.kind,
        }

    @property
    def question(self) -> SumQuestion:
        """Of the one step."""
        return SumQuestion(computation=self.computation, devices=self.participants.count, vocabulary=self._named)

    def every_client(self, run: Run, hardware: Hardware, progress: Progress) -> ClientsSummed:
        """See AnalyticsRun. Raises: InputError naming the client whose text a statistic fails on."""
        assert isinstance(self.participants, Simulated)  # real devices count by themselves
        known, names = ClientsSummed(self.computation), " and ".join(map(str, self.computation.statistics))
        for client, text in texts_of(self.participants, progress):
            with failing_on(names, client, "let it count nothing there. A device sends zeros"):
                known.add(text)
        return known

    def simulated(self, run: Run, known: ClientsSummed) -> Collector:
        """See AnalyticsRun."""
        assert self.release is not None and isinstance(self.participants, Simulated)  # or nobody would be asked
        return SimulatedSums(
            clients=self.participants.clients, known=known, text=self.participants.cache, secure=self.release.secure_sum
        )

    def answers(self, ask: Callable[[SumQuestion], ReleasedSums]) -> ReleasedSums:
        """See AnalyticsRun."""
        return ask(self.question)

    def record(
        self, promise: Mapping[str, Any], known: ClientsSummed | None, released: ReleasedSums | None
    ) -> dict[str, Any]:
        """See AnalyticsRun."""
        return {
            **self.participants.about(self.settings.split_name),
            "asked": self.participants.count,
            "promise": promise,
            "released": None if released is None else self._released(released),
            "simulation_only": None if known is None else self._exact(known),
        }

    def files(self, released: ReleasedSums) -> dict[str, bytes]:
        """See AnalyticsRun."""
        return {FILE: released.content}

    @property
    def _named(self) -> tuple[str, ...]:
        """The words that cells stand for."""
        most = max((each.words for each in self.settings.sums), default=0)
        return () if self.words is None else self.words.words[:most]

    def _released(self, found: ReleasedSums) -> dict[str, Any]:
        """All that is read from the released cells alone."""
        sums = {}
        for each in self.computation.statistics:
            values = found.sums[str(each)]
            sums[str(each)] = {
                **_about(each),
                "reports": found.reports,
                "clear": {
                    "cells": int((values >= CLEAR * found.stddev).sum()),
                    "by_noise_alone": each.cells * float(ndtr(-CLEAR)),
                },
            }
            if isinstance(each, StatisticSum):
                sums[str(each)]["stddev"] = found.stddev / each.unit
                sums[str(each)]["clear"]["above"] = math.ceil(CLEAR * found.stddev / each.unit)
                sums[str(each)]["largest"] = _largest(each, values, found.vocabulary)
            else:  # each cell has a unit, and so a noise, of its own
                sums[str(each)]["stddev"] = found.stddev / int(found.units.max())
                sums[str(each)]["most_stddev"] = found.stddev / int(found.units.min())
                sums[str(each)]["largest"] = _largest_listed(values, found.ngrams, found.units, found.stddev)
        return {"sums": sums, "file": {"name": FILE, "sha256": hashlib.sha256(found.content).hexdigest()}}

    def _exact(self, known: ClientsSummed) -> dict[str, Any]:
        """What only a simulation knows: before clipping, and after it."""
        typed, sent = (self.computation.sums.apart(each) for each in (known.typed, known.sent))
        sums = {
            str(each): {
                **_about(each),
                "typed": _occurrences(each, typed[at]),
                "sent": _occurrences(each, sent[at]),
                "clients_scaled_down": known.shortened[at],
                "largest": _largest_listed(sent[at], each.names, each.units, 0.0)
                if isinstance(each, ListedSum)
                else _largest(each, sent[at], self._named)
                if isinstance(each, StatisticSum)
                else [],
            }
            for at, each in enumerate(self.computation.statistics)
        }
        return {"what": EXACT, "sums": sums}


def _about(statistic: StatisticSum | CellSum) -> dict[str, Any]:
    if isinstance(statistic, CellSum):
        return {"list": statistic.sha256, "source": statistic.source, "cells": statistic.cells, "norm": statistic.norm}
    return {"words": statistic.words, "cells": statistic.cells, "norm": statistic.norm, "unit": statistic.unit}


def _occurrences(statistic: StatisticSum | CellSum, values: NDArray[np.int64]) -> int:
    """Of all cells together; a list's one by one, for each has a unit of its own."""
    if isinstance(statistic, ListedSum):
        return int((values // statistic.units).sum())
    return int(values.sum()) // statistic.unit


def _largest(statistic: StatisticSum, values: NDArray[np.int64], vocabulary: tuple[str, ...]) -> list[dict[str, Any]]:
    """The largest cells, by the words that they stand for; of equal ones the first."""
    places = np.argsort(-values, kind="stable")[:LARGEST_SAID]
    words = zip(*np.unravel_index(places, statistic.axes), strict=True)
    return [
        {"cell": " ".join(vocabulary[at] for at in cell), "count": round(int(values[place]) / statistic.unit)}
        for place, cell in zip(places, words, strict=True)
    ]


def _largest_listed(
    values: NDArray[np.int64], ngrams: tuple[str, ...], units: NDArray[np.int64], stddev: float
) -> list[dict[str, Any]]:
    """The same of a list, each cell by its own unit. stddev: in units; 0 where there is no noise."""
    counts = values / units
    return [
        {
            "cell": ngrams[place],
            "count": round(float(counts[place])),
            **({"stddev": stddev / int(units[place])} if stddev else {}),
        }
        for place in np.argsort(-counts, kind="stable")[:LARGEST_SAID]
    ]
