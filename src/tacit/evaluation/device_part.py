"""What a device computes for a question about models: its own text and the models in, one cell of each histogram out.

This is the whole of the device's part and it is pure. A simulation computes the same for many clients at once, and
keeps what it saw; of a device nothing leaves but the cells, and of local reports a randomised one of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from tacit.errors import InputError
from tacit.evaluation.counts.cells import HistogramCells, HistogramQuery
from tacit.evaluation.counts.model_queries import histograms_about, queries_about
from tacit.evaluation.held_out import HeldOut, counts_of_client
from tacit.evaluation.personalize.deltas import Deltas
from tacit.evaluation.personalize.gate import GatePolicy
from tacit.evaluation.personalize.outcomes import WORDS, SkippedClient, personalize_client
from tacit.evaluation.settings import PersonalizationSettings
from tacit.federation.report_layout import ReportLayout
from tacit.networks.language_model import LanguageModel, Parameters
from tacit.networks.on_device import held

IntArray = NDArray[np.int64]

__all__ = ["ModelsQuestion", "NetworkWithParameters", "ReportLayout", "StrategiesQuestion", "no_report"]


class NetworkWithParameters(NamedTuple):
    """A network with its parameters."""

    network: LanguageModel
    parameters: Parameters


@dataclass(frozen=True, kw_only=True)
class ModelsQuestion:
    """How well each of these models predicts the device's text."""

    kind: ClassVar[str] = "evaluate"
    models: tuple[NetworkWithParameters | None, ...]  # None: a counted one, whose tables only a simulation has
    sentences: int  # at most, evenly spread over the text
    words: int  # of a sentence

    @property
    def networks(self) -> tuple[NetworkWithParameters, ...]:
        """The models, in the order in which a round's content has them. Raises: InputError for a counted one."""
        return tuple(map(_of_a_device, self.models))

    @cached_property
    def histograms(self) -> dict[str, HistogramCells]:
        """What is made of the answers, in their order."""
        return histograms_about(len(self.models))

    def cells_of(self, text: Any, client: int) -> IntArray:
        """The cell (H,) of one client of a `Cache`, or of anything with its `sentence_count` and `padded`."""
        held_out = HeldOut.read(text, np.array([client]), sentences=self.sentences, words=self.words)
        return _cells(queries_about([[counts_of_client(*model, held_out)] for model in self.networks]))


@dataclass(frozen=True, kw_only=True)
class StrategiesQuestion:
    """What each way to fine-tune this model on the device's own text would change for it."""

    kind: ClassVar[str] = "personalize"
    model: NetworkWithParameters | None  # None: as in ModelsQuestion
    settings: PersonalizationSettings
    policies: tuple[GatePolicy, ...] | None = None  # that are judged; None: they are designed by these answers

    @property
    def networks(self) -> tuple[NetworkWithParameters, ...]:
        """See ModelsQuestion."""
        return (_of_a_device(self.model),)

    @cached_property
    def histograms(self) -> dict[str, HistogramCells]:
        """What is made of the answers, in their order."""
        return self.settings.queries.of_step(self.policies)

    def cells_of(self, text: Any, client: int) -> IntArray:
        """The cell (H,) of one client of a `Cache`, or of anything with its `timestamps` and `padded`.

        Who could not be evaluated has "no report" in each.
        """
        (model,) = self.networks
        grid = [(how, how.step(model.network)) for how in self.settings.strategies]
        start = held(*model)
        with threadpool_limits(1, user_api="blas"):  # as in a simulation, where a client is one thread's
            outcome = personalize_client(start, text, client, grid, self.settings.split, WORDS)
        if isinstance(outcome, SkippedClient) or not outcome.test.baseline.predicted:
            return no_report(self.histograms)
        deltas, queries = Deltas.from_outcomes([outcome]), self.settings.queries
        answers = queries.about_strategies(deltas, 0)
        if self.policies is None:
            answers += queries.about_rules(deltas, 0)
        else:
            answers += queries.about_policies(self.policies, deltas, 0)
        return _cells(answers)


def _of_a_device(model: NetworkWithParameters | None) -> NetworkWithParameters:
    if model is None:
        raise InputError(
            "a counted model is judged in a simulation alone: a device gets parameters of networks, and no tables; ask "
            "devices about a network, or clients of a cache (--data) about this one."
        )
    return model


def no_report(histograms: Mapping[str, HistogramCells]) -> IntArray:
    """The cell (H,) of each histogram of whoever has nothing to say."""
    return np.array([each.size - 1 for each in histograms.values()], np.int64)


def _cells(answers: Sequence[HistogramQuery]) -> IntArray:
    return np.array([each.chosen[0] for each in answers], np.int64)
