"""What is asked of devices about one model or several, as histograms: accuracies, and changes against the first."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tacit.evaluation.counts.cells import Buckets, HistogramCells, HistogramQuery
from tacit.evaluation.counts.queries import ACCURACY
from tacit.networks.metrics import TOP1, Counts

FloatArray = NDArray[np.float64]
CHANGE = Buckets.steps(-20, 20, 100).with_unchanged_apart()  # of accuracy, from one model to another


def queries_about(models: Sequence[Sequence[Counts]]) -> list[HistogramQuery]:
    """What is counted over the same clients by several models: the accuracy of each, and the change by each further
    model against the first.
    """
    accuracies = [accuracies_of(clients) for clients in models]
    values = [(accuracy_query(at), ACCURACY, each) for at, each in enumerate(accuracies)]
    values += [(change_query(at), CHANGE, each - accuracies[0]) for at, each in enumerate(accuracies) if at]
    return [_query(name, bins, of_each) for name, bins, of_each in values]


def histograms_about(models: int) -> dict[str, HistogramCells]:
    """The histograms of `queries_about` so many models, in their order."""
    named = [(accuracy_query(at), ACCURACY) for at in range(models)]
    named += [(change_query(at), CHANGE) for at in range(1, models)]
    return {name: HistogramCells(slices=Buckets(), bins=bins) for name, bins in named}


def accuracy_query(model: int) -> str:
    """The name of the query for the accuracy of the model with this place."""
    return f"{TOP1} of model {model + 1}"


def change_query(model: int) -> str:
    """The name of the query for what it changes against the first."""
    return f"change of {TOP1} by model {model + 1} against model 1"


def _query(name: str, bins: Buckets, values: FloatArray) -> HistogramQuery:
    """Who typed no known word (nan) has no report."""
    cells = HistogramCells(slices=Buckets(), bins=bins)
    chosen, there = np.full(len(values), cells.size - 1, np.int64), ~np.isnan(values)
    chosen[there] = cells.of(np.zeros(int(there.sum())), values[there])
    return HistogramQuery(name=name, cells=cells, chosen=chosen)


def accuracies_of(clients: Sequence[Counts]) -> FloatArray:
    """Top-1 accuracy of each client (n,), nan without a known word."""
    return np.array([each.value(TOP1) for each in clients], np.float64)
