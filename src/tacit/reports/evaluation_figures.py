"""The figures of `tacit evaluate`: how accuracy is spread over users, and what each model changes for them."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from tacit.evaluation.fairness import accuracy_question, change_question
from tacit.evaluation.histograms import Histogram, representatives
from tacit.evaluation.intervals import NORMAL
from tacit.reports.figure import Drawing, drawing
from tacit.reports.personalization_figures import HUES, percents

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ACCURACY_CUTS = tuple(step / 100 for step in range(2, 61, 2))
CHANGE_CUTS = tuple(step / 100 for step in range(-20, 21))


def draw_models(names: Sequence[str], histograms: Mapping[str, Histogram], *, source: str) -> tuple[Drawing, ...]:
    """Accuracy of every model, and the change by each against the first; `source` is in names and titles."""
    accuracy = {name: histograms[accuracy_question(at)].coarser(ACCURACY_CUTS) for at, name in enumerate(names)}
    change = {name: histograms[change_question(at)].coarser(CHANGE_CUTS) for at, name in enumerate(names) if at}
    drawings = [
        drawing(
            f"accuracy-{source}",
            f"Accuracy over users ({source})",
            "Share of users by top-1 accuracy, one line per model, with 95% intervals.",
            partial(_distribution, histograms=accuracy, label="top-1 accuracy of the user"),
        )
    ]
    if change:
        drawings.append(
            drawing(
                f"change-{source}",
                f"Change of accuracy against {names[0]} ({source})",
                "Share of users by change of top-1 accuracy against the first model, with 95% intervals.",
                partial(_distribution, histograms=change, label=f"change of top-1 accuracy against {names[0]}"),
            )
        )
    return tuple(drawings)


def _distribution(figure: "Figure", *, histograms: Mapping[str, Histogram], label: str) -> None:
    """Shares of the asked by bin; the bars cover sampling and noise. Open bins are drawn at the ends."""
    axes = figure.subplots()
    for number, (name, histogram) in enumerate(histograms.items()):
        centres, hue = representatives(histogram.cells.bins), HUES[number % len(HUES)]
        shares = histogram.counts[0] / histogram.asked
        typical = np.clip(shares, 0, 1)
        variance = typical * (1 - typical) / histogram.asked + histogram.variance[0] / histogram.asked**2
        axes.step(centres, shares, where="mid", color=hue, linewidth=1.4, label=name)
        axes.errorbar(centres, shares, NORMAL * np.sqrt(variance), fmt="none", ecolor=hue, elinewidth=0.8, alpha=0.5)
    axes.set_xlabel(label)
    axes.set_ylabel("users asked")
    axes.yaxis.set_major_formatter(percents())
    axes.legend(fontsize=8)
