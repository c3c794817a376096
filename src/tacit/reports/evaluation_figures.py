"""The figures of `tacit evaluate`: how accuracy is spread over users, and what each model changes for them."""

from collections.abc import Mapping, Sequence

import numpy as np

from tacit.evaluation.fairness import accuracy_question, change_question
from tacit.evaluation.histograms import Histogram, representatives
from tacit.evaluation.intervals import NORMAL
from tacit.reports.figure import HUES, Axis, ErrorBars, Figure, Mark, Panel, Steps

ACCURACY_CUTS = tuple(step / 100 for step in range(2, 61, 2))
CHANGE_CUTS = tuple(step / 100 for step in range(-20, 21))


def figures(names: Sequence[str], histograms: Mapping[str, Histogram], *, source: str) -> tuple[Figure, ...]:
    """Accuracy of every model, and the change by each against the first; `source` is in names and titles."""
    accuracy = {name: histograms[accuracy_question(at)].coarser(ACCURACY_CUTS) for at, name in enumerate(names)}
    change = {name: histograms[change_question(at)].coarser(CHANGE_CUTS) for at, name in enumerate(names) if at}
    drawn = [
        Figure(
            name=f"accuracy-{source}",
            title=f"Accuracy over users ({source})",
            alt="Share of users by top-1 accuracy, one line per model, with 95% intervals.",
            panels=(_distribution(accuracy, "top-1 accuracy of the user"),),
            legend="below",
        )
    ]
    if change:
        drawn.append(
            Figure(
                name=f"change-{source}",
                title=f"Change of accuracy against {names[0]} ({source})",
                alt="Share of users by change of top-1 accuracy against the first model, with 95% intervals.",
                panels=(_distribution(change, f"change of top-1 accuracy against {names[0]}"),),
                legend="below",
            )
        )
    return tuple(drawn)


def _distribution(histograms: Mapping[str, Histogram], label: str) -> Panel:
    """Shares of the asked by bin; the bars cover sampling and noise. Open bins are drawn at the ends."""
    marks: list[Mark] = []
    for number, (name, histogram) in enumerate(histograms.items()):
        centres, hue = representatives(histogram.cells.bins), number % HUES
        shares = histogram.counts[0] / histogram.asked
        typical = np.clip(shares, 0, 1)
        variance = typical * (1 - typical) / histogram.asked + histogram.variance[0] / histogram.asked**2
        margin = NORMAL * np.sqrt(variance)
        marks.append(Steps(x=centres, y=shares, hue=hue, label=name))
        marks.append(ErrorBars(x=centres, y=shares, low=shares - margin, high=shares + margin, hue=hue, faint=True))
    return Panel(marks=tuple(marks), x=Axis(label), y=Axis("users asked", percent=True))
