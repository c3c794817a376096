"""The figures of a personalization report: paper 5's Figures 2 and 3 from our run, and what each policy does to users.

Exact or released alike; the error bars of what was released hold the noise.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tacit.evaluation.fine_tuning import in_full
from tacit.evaluation.gate import PolicyOutcome
from tacit.evaluation.histograms import UNCHANGED, Histogram, representatives
from tacit.evaluation.intervals import NORMAL
from tacit.evaluation.personalization import Strategy
from tacit.evaluation.queries import Answers
from tacit.reports.figure import BLUE, ORANGE, SIZE, Drawing, drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.ticker import PercentFormatter

HUES = (BLUE, ORANGE, "#1a7f37", "#8250df", "#8c959f", "#cf222e")
MARKS = "os^Dv*"
WIDEST = 0.3  # of an interval that is drawn: as wide as the changes that histograms hold by default


def draw_personalization(
    answers: Answers, strategies: Sequence[Strategy], by_slice: Mapping[str, Any], *, source: str
) -> tuple[Drawing, ...]:
    """Figures 2 and 3; `by_slice` is the report's. `source` (released, simulation) is in names and titles."""
    drawings = [
        drawing(
            f"figure-2-{source}",
            f"Change of accuracy over users ({source})",
            "Histograms of the users' changes of top-1 accuracy, one panel per batch size, one line per learning rate.",
            lambda figure: _figure_2(figure, answers, strategies),
            (SIZE[0], 2.1 * len(_batches(strategies)) + 0.6),
        )
    ]
    for panel, which, label in (("a", "tokens", "train tokens of the user"), ("b", "baseline", "accuracy before")):
        if which in by_slice:
            drawings.append(
                drawing(
                    f"figure-3{panel}-{source}",
                    f"Mean change of accuracy by {label} ({source})",
                    f"Mean change of top-1 accuracy with 95% intervals, by {label}, one line per strategy.",
                    partial(_figure_3, strategies=strategies, table=by_slice[which], label=label),
                    (SIZE[0], SIZE[1] + 0.9),
                )
            )
    return tuple(drawings)


def draw_policies(policies: Sequence[PolicyOutcome]) -> Drawing:
    """Gain against harm, exact."""
    return drawing(
        "gate-simulation",
        "What each policy does to users that did not design it (simulation)",
        "Mean gain over the share of users harmed, one point per policy, with 95% intervals.",
        lambda figure: _policies(figure, policies),
    )


def _figure_2(figure: "Figure", answers: Answers, strategies: Sequence[Strategy]) -> None:
    """Share of users per bin as in the paper's Figure 2; open bins are drawn at the ends."""
    rates = sorted({each.learning_rate for each in strategies})
    batches = _batches(strategies)
    panels = figure.subplots(len(batches), 1, sharex=True, squeeze=False)[:, 0]
    for axes, batch in zip(panels, batches, strict=True):
        for strategy in (each for each in strategies if each.batch_size == batch):
            histogram = answers.change_of_all("top1", str(strategy))
            clients = histogram.asked  # known; of a released histogram, how many reported is not
            counts, variance, centres = _even(histogram)
            shares = counts / clients
            hue = HUES[rates.index(strategy.learning_rate) % len(HUES)]
            axes.step(
                centres, shares, where="mid", color=hue, linewidth=1.4, label=f"L={in_full(strategy.learning_rate)}"
            )
            noise = NORMAL * np.sqrt(variance) / clients
            if noise.any():
                axes.errorbar(centres, shares, noise, fmt="none", ecolor=hue, elinewidth=0.8, alpha=0.5)
        axes.axvline(0.0, color="#57606a", linewidth=0.8)
        axes.axvline(0.02, color="#57606a", linewidth=0.8, linestyle=":")
        axes.set_title(f"B={batch}", fontsize=10, loc="left")
        axes.set_ylabel("users asked")
        axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
        axes.yaxis.set_major_formatter(percents())
    panels[0].legend(fontsize=9)
    panels[-1].set_xlabel("change of top-1 accuracy (dotted: 0.02)")


def _even(histogram: Histogram) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Counts, variances and middles of bins of one width: who is unchanged drawn with the smallest gains."""
    even = histogram.coarser([cut for cut in histogram.cells.bins.cuts if cut != UNCHANGED])
    return even.counts[0], even.variance[0], representatives(even.cells.bins)


def _figure_3(figure: "Figure", strategies: Sequence[Strategy], table: Mapping[str, Any], label: str) -> None:
    """Mean change in each slice with its interval; no point where that is so wide that it says nothing."""
    axes = figure.subplots()
    labels = table["slices"]
    rates = sorted({each.learning_rate for each in strategies})
    batches = _batches(strategies)
    width = 0.7 / max(len(strategies), 1)
    for number, strategy in enumerate(strategies):
        means = [part["mean"] for part in table["strategies"][str(strategy)]]
        shown = [at for at, each in enumerate(means) if each.high - each.low < WIDEST]  # not nan, not infinite
        values = [means[at].value for at in shown]
        bars = [[means[at].value - means[at].low for at in shown], [means[at].high - means[at].value for at in shown]]
        axes.errorbar(
            [at + (number - (len(strategies) - 1) / 2) * width for at in shown],
            values,
            bars,
            fmt=MARKS[batches.index(strategy.batch_size) % len(MARKS)] + "-",
            color=HUES[rates.index(strategy.learning_rate) % len(HUES)],
            markersize=4,
            linewidth=0.9,
            elinewidth=0.8,
            label=str(strategy),
        )
    _zero(axes)
    axes.set_xticks(range(len(labels)), [label.replace(" to ", "\nto ").replace(" and", "\nand") for label in labels])
    axes.tick_params(axis="x", labelsize=9)
    axes.set_xlabel(label)
    axes.set_ylabel("mean change of accuracy")
    figure.legend(fontsize=8, ncols=3, loc="outside lower center")


def _policies(figure: "Figure", policies: Sequence[PolicyOutcome]) -> None:
    axes = figure.subplots()
    for number, each in enumerate(policies):
        gain, harmed = each.gain, each.harmed
        axes.errorbar(
            harmed.value,
            gain.value,
            xerr=[[harmed.value - harmed.low], [harmed.high - harmed.value]],
            yerr=[[gain.value - gain.low], [gain.high - gain.value]],
            fmt=MARKS[number % len(MARKS)],
            color=HUES[number % len(HUES)],
            markersize=6,
            elinewidth=0.8,
            label=each.name,
        )
    _zero(axes)
    axes.set_xlim(left=0)
    axes.set_xlabel("users whose accuracy fell")
    axes.xaxis.set_major_formatter(percents())
    axes.set_ylabel("mean change of accuracy")
    axes.legend(fontsize=8)


def _batches(strategies: Sequence[Strategy]) -> list[int]:
    return sorted({each.batch_size for each in strategies})


def _zero(axes: "Axes") -> None:
    axes.axhline(0.0, color="#57606a", linewidth=0.8)


def percents() -> "PercentFormatter":
    """Shares of one as percentages."""
    from matplotlib.ticker import PercentFormatter

    return PercentFormatter(xmax=1, decimals=None)
