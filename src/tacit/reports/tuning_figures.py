"""The figure of a tuning: how accuracy depends on what was tried, and the clip norm estimates over the rounds."""

from collections.abc import Sequence

import numpy as np

from tacit.jobs.tune import METRIC, TrialOutcome
from tacit.planning.tuning import Choice, Measured
from tacit.reports.figure import HUES, RED, Axis, Figure, Line, Mark, Panel, Points, Rule

ROOM = 10  # labels of an axis at most
SHOWN: dict[Measured, str] = {"accuracy": "top-1 accuracy", "cross-entropy": "cross-entropy, nats"}


def figure(outcomes: Sequence[TrialOutcome], choice: Choice | None, by: Measured) -> Figure:
    """Above, the score of each trial against its server learning rate; below, its clip norm estimates."""
    quantiles = sorted({each.name.setting.quantile for each in outcomes})
    hues = {quantile: at % HUES for at, quantile in enumerate(quantiles)}
    return Figure(
        name="tuning",
        title="What the trials say",
        alt=f"The {by} of validation clients against the server learning rate, a line per quantile, and the estimates "
        "of the clip norm over the rounds of each trial.",
        panels=(_scores(outcomes, choice, by, hues), _estimates(outcomes, choice, hues)),
    )


def _scores(outcomes: Sequence[TrialOutcome], choice: Choice | None, by: Measured, hues: dict[float, int]) -> Panel:
    """Every trial a point, the mean of equal ones a line; failed ones are crosses at the foot."""
    marks: list[Mark] = []
    for quantile, hue in hues.items():
        of: dict[float, list[float]] = {}
        for each in outcomes:
            if each.name.setting.quantile == quantile and each.metrics and each.failure is None:
                of.setdefault(each.name.setting.server_learning_rate, []).append(each.metrics[METRIC[by]])
        rates = sorted(of)
        means = [float(np.mean(of[rate])) for rate in rates]
        marks.append(Line(x=rates, y=means, hue=hue, label=f"quantile {quantile:g}", dots=False))
        each_rate = [rate for rate in rates for _ in of[rate]]
        marks.append(Points(x=each_rate, y=[score for rate in rates for score in of[rate]], hue=hue))
    failed = [each.name.setting.server_learning_rate for each in outcomes if each.failure is not None]
    if failed:
        marks.append(Points(x=failed, y=[0.0] * len(failed), mark="x", hue=RED, label="failed", at_foot=True))
    if choice is not None:
        at, hue = choice.setting.server_learning_rate, hues[choice.setting.quantile]
        marks.append(Points(x=[at], y=[choice.score], size=13, hollow=True, hue=hue, label="chosen"))
    tried = sorted({each.name.setting.server_learning_rate for each in outcomes})
    return Panel(
        marks=tuple(marks),
        x=Axis("server learning rate", log=True, ticks=_ticks(tried), margin=0.08),
        y=Axis(f"{SHOWN[by]}, validation", percent=by == "accuracy", margin=0.15),
    )


def _ticks(rates: Sequence[float]) -> tuple[tuple[float, str], ...]:
    """What was tried, where there is room for each; else as any logarithmic axis."""
    if len(rates) == 1 or np.diff(np.log(rates)).min() > np.log(rates[-1] / rates[0]) / ROOM:
        return tuple((rate, f"{rate:g}") for rate in rates)
    return ()


def _estimates(outcomes: Sequence[TrialOutcome], choice: Choice | None, hues: dict[float, int]) -> Panel:
    """The chosen setting's trials in full colour, the others lightly; and what becomes of them."""
    chosen = None if choice is None else choice.setting
    marks: list[Mark] = []
    for each in sorted(outcomes, key=lambda outcome: outcome.name.setting == chosen):
        marked, failed = each.name.setting == chosen, each.failure is not None
        marks.append(
            Line(
                x=range(1, len(each.clip_estimates) + 1),
                y=each.clip_estimates,
                hue=RED if failed else hues[each.name.setting.quantile],
                faint=not marked,
                width=1.6 if marked else 1.0,
                label="failed" if failed else "chosen" if marked else "other trials",
                dots=False,
            )
        )
    low = high = None
    if choice is not None:
        marks.append(Rule(at=choice.clip_norm, stroke=1, width=1.2, label=f"fixed at {choice.clip_norm:g}"))
        held = [value for each in outcomes if each.failure is None for value in each.clip_estimates]
        low, high = min(held) / 2, max(held) * 4  # what exploded leaves the picture: the rest is to be read
    return Panel(
        marks=tuple(marks),
        x=Axis("round", whole=True),
        y=Axis("clip norm estimate", log=True, low=low, high=high),
    )
