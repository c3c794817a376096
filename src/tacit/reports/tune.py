"""The report of a tuning: what its trials say, what is chosen, and what that costs in privacy."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tacit.planning.tuning import METRIC, Choice, Measured, Setting, Trial
from tacit.privacy.rounding import rounded_up
from tacit.reports.blocks import Block, FigureOf, Heading, Paragraph, Table
from tacit.reports.figure import HUES, RED, Axis, Figure, Line, Mark, Panel, Points, Rule
from tacit.reports.page import Page
from tacit.reports.release import number_from
from tacit.statements.markdown import one_line

HEAD = ("trial", "server rate", "quantile", "accuracy", "cross-entropy", "clip estimate", "zCDP", "status")
ROOM = 10  # labels of an axis at most
SHOWN: dict[Measured, str] = {"accuracy": "top-1 accuracy", "cross-entropy": "cross-entropy, nats"}


def page(record: Mapping[str, Any]) -> Page:
    """What a tuning found; nothing of it may be published.

    record: `tuning` is that of tuning.json; `clip_estimates` are those after each round of its trials, in their order;
    `failures` say why a trial may not be chosen, or None.
    """
    tuning = record["tuning"]
    trials, choice = _trials(record), _choice(tuning["chosen"])
    return Page(
        kind="report of a tuning",
        title="What the trials say",
        blocks=(
            Paragraph(_tried(tuning)),
            FigureOf(figure(trials, choice, tuning["chosen_by"])),
            Table(tuple(map(_row, tuning["trials"])), HEAD),
            *(
                Paragraph(one_line(f"{each['trial']} failed: {each['reason']}"))
                for each in tuning["trials"]
                if each["reason"]
            ),
            *_chosen(tuning),
            Heading("What the tuning cost in privacy"),
            Paragraph(one_line(tuning["privacy_of_tuning"]["words"])),
        ),
        record=tuning,
    )


def _trials(record: Mapping[str, Any]) -> list[Trial]:
    """The trials as a choice sees them."""
    tuning = record["tuning"]
    measure = METRIC[tuning["chosen_by"]]
    return [
        Trial(
            setting=Setting(server_learning_rate=row["server_learning_rate"], quantile=row["quantile"]),
            score=number_from(row[measure]),
            clip_estimates=tuple(map(number_from, estimates)),
            failure=failure,
        )
        for row, estimates, failure in zip(tuning["trials"], record["clip_estimates"], record["failures"], strict=True)
    ]


def _choice(chosen: Mapping[str, Any] | None) -> Choice | None:
    if chosen is None:
        return None
    return Choice(
        setting=Setting(server_learning_rate=chosen["server_learning_rate"], quantile=chosen["quantile"]),
        score=chosen["score"],
        trials=chosen["trials"],
        clip_norm=chosen["clip_norm"],
        drift=chosen["clip_norm_drift"],
    )


def _tried(record: Mapping[str, Any]) -> str:
    noise = record["trial_noise_multiplier"]
    return f"{len(record['trials'])} trials with {record['trial_report_goal']:,} reports a round, " + (
        f"noise multiplier {noise:g}." if noise else "no noise."
    )


def _row(trial: Mapping[str, Any]) -> tuple[str, ...]:
    accuracy, nats, estimate = trial["top1_accuracy"], trial["cross_entropy"], trial["clip_estimate"]
    return (
        trial["trial"],
        f"{trial['server_learning_rate']:g}",
        f"{trial['quantile']:g}",
        "–" if accuracy is None else f"{accuracy:.2%}",
        "–" if nats is None else _nats(number_from(nats)),
        "–" if estimate is None else f"{number_from(estimate):.3g}",
        rounded_up(number_from(trial["zcdp"])),
        trial["status"],
    )


def _nats(value: float) -> str:
    """Three decimals; of a model that was destroyed, its size only."""
    return f"{value:.3f}" if value < 1000 else f"{value:.0e}"


def _chosen(record: Mapping[str, Any]) -> list[Block]:
    """The chosen setting, and production with it."""
    chosen, production = record["chosen"], record["production"]
    if chosen is None:
        return [Heading("Chosen"), Paragraph("Nothing: every trial failed.")]
    said = [
        f"Server learning rate {chosen['server_learning_rate']:g}, clip norm {chosen['clip_norm']:g} (the median of "
        f"its estimates over the last quarter of the rounds, quantile {chosen['quantile']:g})."
    ]
    if not chosen["clip_norm_settled"]:
        said.append(
            f"Its estimates still moved by a factor of {chosen['clip_norm_drift']:.3g} in those rounds: try more "
            "rounds before relying on it."
        )
    said += [
        f"It is {edge} that was tried: a better one may lie beyond; add some to the list."
        for edge in chosen["at_the_edge"]
    ]
    blocks: list[Block] = [Heading("Chosen"), *map(Paragraph, said)]
    if production is not None:
        planned = production["planned"]
        noise = (
            f"noise multiplier {production['noise_multiplier']:.4g}, {production['mechanism']}; planned zCDP "
            f"{rounded_up(planned['zcdp'])}, epsilon {rounded_up(planned['epsilon'])} at delta {planned['delta']:g}"
            if production["mechanism"] != "none"
            else "NON-PRIVATE, no noise"
        )
        blocks.append(
            Paragraph(f"Production (`production.toml`): {production['report_goal']:,} reports a round, {noise}.")
        )
    return blocks


# -- the figure --------------------------------------------------------------------------------------------------------


def figure(trials: Sequence[Trial], choice: Choice | None, by: Measured) -> Figure:
    """Above, the score of each trial against its server learning rate; below, its clip norm estimates."""
    quantiles = sorted({each.setting.quantile for each in trials})
    hues = {quantile: at % HUES for at, quantile in enumerate(quantiles)}
    return Figure(
        name="tuning",
        title="What the trials say",
        alt=f"The {by} of validation clients against the server learning rate, a line per quantile, and the estimates "
        "of the clip norm over the rounds of each trial.",
        panels=(_scores(trials, choice, by, hues), _estimates(trials, choice, hues)),
    )


def _scores(trials: Sequence[Trial], choice: Choice | None, by: Measured, hues: dict[float, int]) -> Panel:
    """Every trial a point, the mean of equal ones a line; failed ones are crosses at the foot."""
    marks: list[Mark] = []
    for quantile, hue in hues.items():
        of: dict[float, list[float]] = {}
        for each in trials:
            if each.setting.quantile == quantile and math.isfinite(each.score) and each.failure is None:
                of.setdefault(each.setting.server_learning_rate, []).append(each.score)
        rates = sorted(of)
        means = [float(np.mean(of[rate])) for rate in rates]
        marks.append(Line(x=rates, y=means, hue=hue, label=f"quantile {quantile:g}", dots=False))
        each_rate = [rate for rate in rates for _ in of[rate]]
        marks.append(Points(x=each_rate, y=[score for rate in rates for score in of[rate]], hue=hue))
    failed = [each.setting.server_learning_rate for each in trials if each.failure is not None]
    if failed:
        marks.append(Points(x=failed, y=[0.0] * len(failed), mark="x", hue=RED, label="failed", at_foot=True))
    if choice is not None:
        at, hue = choice.setting.server_learning_rate, hues[choice.setting.quantile]
        marks.append(Points(x=[at], y=[choice.score], size=13, hollow=True, hue=hue, label="chosen"))
    tried = sorted({each.setting.server_learning_rate for each in trials})
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


def _estimates(trials: Sequence[Trial], choice: Choice | None, hues: dict[float, int]) -> Panel:
    """The chosen setting's trials in full colour, the others lightly; and what becomes of them."""
    chosen = None if choice is None else choice.setting
    marks: list[Mark] = []
    for each in sorted(trials, key=lambda trial: trial.setting == chosen):
        marked, failed = each.setting == chosen, each.failure is not None
        marks.append(
            Line(
                x=range(1, len(each.clip_estimates) + 1),
                y=each.clip_estimates,
                hue=RED if failed else hues[each.setting.quantile],
                faint=not marked,
                width=1.6 if marked else 1.0,
                label="failed" if failed else "chosen" if marked else "other trials",
                dots=False,
            )
        )
    low = high = None
    if choice is not None:
        marks.append(Rule(at=choice.clip_norm, stroke=1, width=1.2, label=f"fixed at {choice.clip_norm:g}"))
        held = [value for each in trials if each.failure is None for value in each.clip_estimates]
        low, high = min(held) / 2, max(held) * 4  # what exploded leaves the picture: the rest is to be read
    return Panel(
        marks=tuple(marks),
        x=Axis("round", whole=True),
        y=Axis("clip norm estimate", log=True, low=low, high=high),
    )
