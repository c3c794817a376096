"""One strategy's changes over clients, in a few exact numbers with their intervals: simulation only."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.evaluation.intervals import UNKNOWN, Estimate, mean_of, quantile_of, ratio_of_means, share_of

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Summary:
    """One strategy's changes of one metric over clients; shares are of clients."""

    clients: int
    diverged: int
    mean: Estimate
    relative: Estimate  # mean change over mean baseline; unknown where that is 0
    quantiles: dict[float, Estimate]
    gaining: dict[float, Estimate]  # x -> share that gains at least x
    losing: dict[float, Estimate]  # x -> share that loses more than x; x = 0: anything

    def as_row(self) -> dict[str, Any]:
        """For JSON."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


def summarise(change: FloatArray, baseline: FloatArray, *, thresholds: Sequence[float] = (0.0, 0.02)) -> Summary:
    """Mean, relative mean, deciles and shares of one strategy's changes (n,), with 95% intervals (`intervals`).

    A gain is a positive change. Infinite changes (diverged fine-tuning) are losses in every share and quantile; no mean
    can hold them, so it is over the others, unknown of fewer than two, and `diverged` says how many those lack.
    """
    finite = np.isfinite(change)
    told, comparable = finite.sum() > 1, finite.sum() > 1 and baseline[finite].mean() > 0
    return Summary(
        clients=change.size,
        diverged=int(np.sum(~finite)),
        mean=mean_of(change[finite]) if told else UNKNOWN,
        relative=ratio_of_means(change[finite], baseline[finite]) if comparable else UNKNOWN,
        quantiles={q: quantile_of(change, q) for q in (0.1, 0.25, 0.5, 0.75, 0.9)},
        gaining={x: share_of(int(np.sum(change >= x if x else change > 0)), change.size) for x in thresholds},
        losing={x: share_of(int(np.sum(change < -x)), change.size) for x in thresholds},
    )
