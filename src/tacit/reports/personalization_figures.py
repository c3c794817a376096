"""The figures of a personalization report: paper 5's Figures 2 and 3 from our run, and what each policy does to users.

Exact or released alike; the error bars of what was released hold the noise.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.evaluation.fine_tuning import in_full
from tacit.evaluation.gate import PolicyOutcome
from tacit.evaluation.histograms import UNCHANGED, Histogram, representatives
from tacit.evaluation.intervals import NORMAL
from tacit.evaluation.personalization import Strategy
from tacit.evaluation.queries import Answers
from tacit.reports.figure import HUES, MARKS, Axis, ErrorBars, Figure, Mark, Panel, Rule, Steps

WIDEST = 0.3  # of an interval that is drawn: as wide as the changes that histograms hold by default


def figures(
    answers: Answers, strategies: Sequence[Strategy], by_slice: Mapping[str, Any], *, source: str
) -> tuple[Figure, ...]:
    """Figures 2 and 3; `by_slice` is the report's. `source` (released, simulation) is in names and titles."""
    drawn = [
        Figure(
            name=f"figure-2-{source}",
            title=f"Change of accuracy over users ({source})",
            alt="Histograms of the users' changes of top-1 accuracy, one panel per batch size, one line per learning "
            "rate.",
            panels=tuple(_figure_2(batch, answers, strategies) for batch in _batches(strategies)),
            same_x=True,
            height=2.2,
        )
    ]
    for panel, which, label in (("a", "tokens", "train tokens of the user"), ("b", "baseline", "accuracy before")):
        if which in by_slice:
            drawn.append(
                Figure(
                    name=f"figure-3{panel}-{source}",
                    title=f"Mean change of accuracy by {label} ({source})",
                    alt=f"Mean change of top-1 accuracy with 95% intervals, by {label}, one line per strategy.",
                    panels=(_figure_3(strategies, by_slice[which], label),),
                    legend="below",
                )
            )
    return tuple(drawn)


def policies(outcomes: Sequence[PolicyOutcome]) -> Figure:
    """Gain against harm, exact."""
    return Figure(
        name="gate-simulation",
        title="What each policy does to users that did not design it (simulation)",
        alt="Mean gain over the share of users harmed, one point per policy, with 95% intervals.",
        panels=(
            Panel(
                marks=(*(_policy(number, each) for number, each in enumerate(outcomes)), Rule(at=0.0)),
                x=Axis("users whose accuracy fell", percent=True, low=0),
                y=Axis("mean change of accuracy"),
            ),
        ),
    )


def _figure_2(batch: int, answers: Answers, strategies: Sequence[Strategy]) -> Panel:
    """Share of users per bin as in the paper's Figure 2; open bins are drawn at the ends."""
    rates = sorted({each.learning_rate for each in strategies})
    marks: list[Mark] = []
    lowest = 0.0
    for strategy in (each for each in strategies if each.batch_size == batch):
        histogram = answers.change_of_all("top1", str(strategy))
        clients = histogram.asked  # known; of a released histogram, how many reported is not
        counts, variance, centres = _even(histogram)
        shares, hue = counts / clients, rates.index(strategy.learning_rate) % HUES
        marks.append(Steps(x=centres, y=shares, hue=hue, label=f"L={in_full(strategy.learning_rate)}"))
        noise = NORMAL * np.sqrt(variance) / clients
        lowest = min(lowest, float(shares.min()))
        if noise.any():
            marks.append(ErrorBars(x=centres, y=shares, low=shares - noise, high=shares + noise, hue=hue, faint=True))
            lowest = min(lowest, float((shares - noise).min()))
    marks += [Rule(at=0.0, along="x"), Rule(at=0.02, along="x", stroke=2)]
    return Panel(
        title=f"B={batch}",
        marks=tuple(marks),
        x=Axis("change of top-1 accuracy (dotted: 0.02)"),
        y=Axis("users asked", percent=True, low=1.05 * lowest),
    )


def _even(histogram: Histogram) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Counts, variances and middles of bins of one width: who is unchanged drawn with the smallest gains."""
    even = histogram.coarser([cut for cut in histogram.cells.bins.cuts if cut != UNCHANGED])
    return even.counts[0], even.variance[0], representatives(even.cells.bins)


def _figure_3(strategies: Sequence[Strategy], table: Mapping[str, Any], label: str) -> Panel:
    """Mean change in each slice with its interval; no point where that is so wide that it says nothing."""
    rates = sorted({each.learning_rate for each in strategies})
    batches = _batches(strategies)
    width = 0.7 / max(len(strategies), 1)
    marks: list[Mark] = [Rule(at=0.0)]
    for number, strategy in enumerate(strategies):
        means = [part["mean"] for part in table["strategies"][str(strategy)]]
        shown = [at for at, each in enumerate(means) if each.high - each.low < WIDEST]  # not nan, not infinite
        marks.append(
            ErrorBars(
                x=[at + (number - (len(strategies) - 1) / 2) * width for at in shown],
                y=[means[at].value for at in shown],
                low=[means[at].low for at in shown],
                high=[means[at].high for at in shown],
                mark=MARKS[batches.index(strategy.batch_size) % len(MARKS)],
                joined=True,
                hue=rates.index(strategy.learning_rate) % HUES,
                label=str(strategy),
            )
        )
    slices = [name.replace(" to ", "\nto ").replace(" and", "\nand") for name in table["slices"]]
    return Panel(
        marks=tuple(marks),
        x=Axis(label, ticks=tuple((float(at), name) for at, name in enumerate(slices))),
        y=Axis("mean change of accuracy"),
    )


def _policy(number: int, outcome: PolicyOutcome) -> ErrorBars:
    gain, harmed = outcome.gain, outcome.harmed
    return ErrorBars(
        x=[harmed.value],
        y=[gain.value],
        low=[gain.low],
        high=[gain.high],
        x_low=[harmed.low],
        x_high=[harmed.high],
        mark=MARKS[number % len(MARKS)],
        hue=number % HUES,
        size=6,
        label=outcome.name,
    )


def _batches(strategies: Sequence[Strategy]) -> list[int]:
    return sorted({each.batch_size for each in strategies})
