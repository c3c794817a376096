"""The figure of a tuning: how accuracy depends on what was tried, and the clip norm estimates over the rounds."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from tacit.cli.plan_figures import _logarithmic
from tacit.jobs.tune import METRIC, TrialOutcome
from tacit.planning.tuning import Choice, Measured, Setting
from tacit.reports.figure import BLUE, INK, ORANGE, SIZE, Drawing, _percent, _whole_numbers, drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HUES = (BLUE, ORANGE, "#1a7f37", "#8250df", "#bf3989", "#57606a")  # a quantile each
FAILED = "#cf222e"
ROOM = 10  # labels of an axis at most
SHOWN: dict[Measured, str] = {"accuracy": "top-1 accuracy", "cross-entropy": "cross-entropy, nats"}


def draw_tuning(outcomes: Sequence[TrialOutcome], choice: Choice | None, by: Measured) -> Drawing:
    """Above, the score of each trial against its server learning rate; below, its clip norm estimates."""
    return drawing(
        "tuning",
        "What the trials say",
        f"The {by} of validation clients against the server learning rate, a line per quantile, and the estimates of "
        "the clip norm over the rounds of each trial.",
        partial(_both, outcomes=outcomes, choice=choice, by=by),
        (SIZE[0], 2 * SIZE[1]),
    )


def _both(figure: "Figure", outcomes: Sequence[TrialOutcome], choice: Choice | None, by: Measured) -> None:
    above, below = figure.subplots(2, 1)
    quantiles = sorted({each.name.setting.quantile for each in outcomes})
    hues = {quantile: HUES[at % len(HUES)] for at, quantile in enumerate(quantiles)}
    _scores(above, outcomes, choice, by, hues)
    _estimates(below, outcomes, choice, hues)


def _scores(
    axes: "Axes", outcomes: Sequence[TrialOutcome], choice: Choice | None, by: Measured, hues: dict[float, str]
) -> None:
    """Every trial a point, the mean of equal ones a line; failed ones are crosses at the foot."""
    for quantile, hue in hues.items():
        of: dict[float, list[float]] = {}
        for each in outcomes:
            if each.name.setting.quantile == quantile and each.metrics and each.failure is None:
                of.setdefault(each.name.setting.server_learning_rate, []).append(each.metrics[METRIC[by]])
        rates = sorted(of)
        axes.plot(rates, [np.mean(of[rate]) for rate in rates], color=hue, label=f"quantile {quantile:g}")
        axes.plot([rate for rate in rates for _ in of[rate]], [s for rate in rates for s in of[rate]], "o", color=hue)
    failed = [each.name.setting.server_learning_rate for each in outcomes if each.failure is not None]
    if failed:
        foot = axes.get_xaxis_transform()
        axes.plot(failed, [0.04] * len(failed), "x", color=FAILED, transform=foot, label="failed", clip_on=False)
    if choice is not None:
        axes.plot(
            choice.setting.server_learning_rate,
            choice.score,
            "o",
            markersize=13,
            markerfacecolor="none",
            markeredgecolor=hues[choice.setting.quantile],
            label="chosen",
        )
    _rates_axis(axes, sorted({each.name.setting.server_learning_rate for each in outcomes}))
    axes.set_ylabel(f"{SHOWN[by]}, validation")
    if by == "accuracy":
        axes.yaxis.set_major_formatter(_percent())
    axes.margins(x=0.08, y=0.15)
    axes.legend(fontsize=9)


def _rates_axis(axes: "Axes", rates: Sequence[float]) -> None:
    """Logarithmic, with a tick at what was tried where there is room for each."""
    from matplotlib.ticker import NullLocator

    axes.set_xlabel("server learning rate")
    _logarithmic(axes.xaxis)
    if len(rates) == 1 or np.diff(np.log(rates)).min() > np.log(rates[-1] / rates[0]) / ROOM:
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_xticks(rates, [f"{rate:g}" for rate in rates])


def _estimates(axes: "Axes", outcomes: Sequence[TrialOutcome], choice: Choice | None, hues: dict[float, str]) -> None:
    """The chosen setting's trials in full colour, the others lightly; and what becomes of them."""
    chosen: Setting | None = None if choice is None else choice.setting
    labels = set()
    for each in sorted(outcomes, key=lambda outcome: outcome.name.setting == chosen):
        marked, failed = each.name.setting == chosen, each.failure is not None
        label = "failed" if failed else "chosen" if marked else "other trials"
        at = np.arange(1, len(each.clip_estimates) + 1)
        axes.plot(
            at,
            each.clip_estimates,
            color=FAILED if failed else hues[each.name.setting.quantile],
            alpha=1.0 if marked else 0.35,
            linewidth=1.6 if marked else 1.0,
            label=None if label in labels else label,
        )
        labels.add(label)
    if choice is not None:
        axes.axhline(choice.clip_norm, color=INK, linestyle="--", linewidth=1.2, label=f"fixed at {choice.clip_norm:g}")
        held = [value for each in outcomes if each.failure is None for value in each.clip_estimates]
        axes.set_ylim(min(held) / 2, max(held) * 4)  # what exploded leaves the picture: the rest is to be read
    _logarithmic(axes.yaxis)
    axes.set_ylabel("clip norm estimate")
    if labels:
        axes.legend(fontsize=9, loc="upper left")
    axes.set_xlabel("round")
    _whole_numbers(axes.xaxis)
