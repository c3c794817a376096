"""The report of a training run: its figures, its page, and its record.

Only the folder is read, so a report can be written again anywhere and at any time, while the run trains too.
"""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.keyboard.metrics import METRICS
from tacit.privacy import gaussian
from tacit.privacy.rounding import rounded_up
from tacit.records import to_plain
from tacit.reports.figure import BLUE, HUES, ORANGE, Above, Axis, Bars, Figure, Line, Mark, Panel, Points, Steps
from tacit.reports.page import (
    Block,
    FigureOf,
    Heading,
    Labels,
    Page,
    Paragraph,
    ReportFiles,
    StatementOf,
    Table,
    Tiles,
    write,
)
from tacit.reports.summary import RunSummary
from tacit.statements.accounts import figures_of

QUALITY = {
    **{name: metric.title for name, metric in METRICS.items()},
    "words": "words typed",
    "clients": "clients",
    "client_accuracy_q25": "top-1 accuracy, lower quartile of clients",
    "client_accuracy_q50": "top-1 accuracy, median client",
    "client_accuracy_q75": "top-1 accuracy, upper quartile of clients",
}
FIGURES = {
    "rounds": "rounds",
    "rounds_between": "MinS: rounds between two participations of a client, at least",
    "min_separation": "min separation (MinS + 1)",
    "max_participations": "MaxP: participations of a client, at most",
    "sensitivity_squared": "squared sensitivity, in squared clip norms",
    "noise_multiplier": "noise multiplier",
    "clip_norm": "clip norm (planned: the first; realised: the last)",
    "zcdp": "zCDP",
    "epsilon": "epsilon",
    "delta": "delta",
}
ACCURACIES = tuple(  # name, what it is called, its hue
    (name, metric.title.removesuffix(" accuracy"), number % HUES)
    for number, (name, metric) in enumerate(METRICS.items())
    if metric.unit == "share" and metric.better > 0
)
ACCURACY = Axis("accuracy, validation clients", percent=True, low=0)
NOTHING_STATED = (Heading("Privacy statement"), Paragraph("Nothing was released, so there is nothing to state."))
SMOOTH_FROM = 40  # rounds, from twice so many on a curve is smoothed


def write_report(summary: RunSummary, out: Path | None = None) -> ReportFiles:
    """Write the report of a run, whatever state it is in, into `out` (left out: RUN/report), and say where."""
    stated = summary.statement  # in a file of its own, because `tacit verify` reads nothing else
    files = {} if stated is None else {"statement.json": stated.to_json().encode()}
    return write(summary.path / "report" if out is None else out, page(summary), files=files)


def page(summary: RunSummary) -> Page:
    """What the report shows of a run, whatever state it is in."""
    shown = figures(summary)
    return Page(
        kind="report of a training run",
        title=summary.name,
        when=f"begun {summary.created}{', finished' if summary.finished else ''}",
        blocks=(
            *([Labels(summary.labels)] if summary.labels else []),
            Tiles(tuple(tiles(summary).items())),
            *map(FigureOf, shown),
            *_quality(summary),
            *_rounds(summary),
            *_privacy(summary),
            *([StatementOf(summary.statement)] if summary.statement else NOTHING_STATED),
            Heading("What was asked"),
            Table(tuple((key, setting_text(value)) for key, value in summary.settings.items()), ("setting", "value")),
            Heading("Where it comes from"),
            Table(_origin(summary)),
        ),
        record=_record(summary, shown),
        headline=headline(summary),
    )


def headline(summary: RunSummary) -> dict[str, Any]:
    """What one wants to know first, as plain values; realised figures are None while nothing is released."""
    accounts = summary.accounts
    return {
        "run": str(summary.path),
        "name": summary.name,
        "finished": summary.finished,
        "private": summary.private,
        "rounds": summary.released,
        "rounds_planned": summary.planned_rounds,
        "labels": [label.name for label in summary.labels],
        "test": dict(summary.test),
        "validation": summary.last_validation,
        "planned": figures_of(accounts.planned, accounts.delta),
        "realised": figures_of(accounts.realised, accounts.delta),
        "extrapolated": summary.statement.figures.get("extrapolated") if summary.statement else None,
        **summary.rounds.totals,
    }


def tiles(summary: RunSummary) -> dict[str, str]:
    """The headline for people: a name and a figure each. Privacy figures are rounded up."""
    quality, whose = (summary.test, "test") if summary.test else (summary.last_validation, "validation")
    shown = {"rounds": f"{summary.released:,} of {summary.planned_rounds:,}"}
    if quality:
        shown[f"top-1 accuracy, {whose} clients"] = f"{quality['top1_accuracy']:.2%}"
        shown[f"top-3 accuracy, {whose} clients"] = f"{quality['top3_accuracy']:.2%}"
    realised, delta = summary.accounts.realised, summary.accounts.delta
    if realised is not None:
        shown["zCDP, realised"] = rounded_up(realised.zcdp)
        shown[f"epsilon at delta {delta:g}, realised"] = rounded_up(realised.epsilon(delta))
    totals = summary.rounds.totals
    if totals:
        shown["clients per second"] = f"{totals['clients_per_second']:,.1f}"
    return shown


def _record(summary: RunSummary, shown: tuple[Figure, ...]) -> dict[str, Any]:
    """The report as one JSON object: the headline, and everything that the page shows."""
    rounds = summary.rounds
    return {
        **headline(summary),
        "metadata": to_plain(summary.metadata),
        "settings": dict(summary.settings),
        "curves": {
            name: [{"round": at, "value": value} for at, value in sorted(series.items())]
            for name, series in summary.curves.items()
        },
        "spent": [asdict(each) for each in summary.spent],
        "per_round": {  # index 0 is the first round
            "seconds": rounds.seconds.tolist(),
            "participants": rounds.participants.tolist(),
            "dropped": rounds.dropped.tolist(),
            "loss": rounds.loss.tolist(),
            "clipped": rounds.clipped.tolist(),
            "clip_norm": rounds.clip_norm.tolist(),
            **({} if rounds.clip_estimate is None else {"clip_estimate": rounds.clip_estimate.tolist()}),
        },
        "warnings": [{"name": label.name, "meaning": label.meaning} for label in summary.labels],
        "statement": summary.statement.to_record() if summary.statement else None,
        "figures": [f"{figure.name}.png" for figure in shown],
    }


# -- sections ----------------------------------------------------------------------------------------------------------


def _quality(summary: RunSummary) -> list[Block]:
    """How the model does on validation clients at the last evaluation, and on test clients."""
    validation, test = summary.last_validation, summary.test
    rows = tuple(
        (shown, metric_text(name, validation.get(name)), metric_text(name, test.get(name)))
        for name, shown in QUALITY.items()
        if name in validation or name in test
    )
    if not rows:
        return [Heading("How well it predicts"), Paragraph("Not evaluated yet.")]
    whose = "Accuracy is over words that stand in the vocabulary. None of these clients was trained on."
    head = ("", "validation clients, last evaluation", "test clients, at the end")
    return [Heading("How well it predicts"), Table(rows, head), Paragraph(whose, soft=True)]


def metric_text(name: str, value: float | None) -> str:
    """A metric as people read it."""
    if value is None:
        return "–"
    if "accuracy" in name or name == "oov_rate":
        return f"{value:.2%}"
    return f"{value:,.0f}" if name in {"words", "clients"} else f"{value:.3f}"


def _rounds(summary: RunSummary) -> list[Block]:
    totals, rounds = summary.rounds.totals, summary.rounds
    if not totals:
        return [Heading("The rounds"), Paragraph("None is done yet.")]
    rows = [
        ("clients per second", f"{totals['clients_per_second']:,.1f}"),
        ("time in rounds", _duration(totals["training_seconds"])),
        ("participations", f"{totals['participations']:,.0f}"),
        ("clients dropped (no finite update)", f"{totals['dropped_clients']:,.0f}"),
        ("training loss, first round → last", _from_to(totals, "loss", ".3f")),
        ("updates clipped, first round → last", _from_to(totals, "clipped", ".0%")),
    ]
    if rounds.clip_estimate is not None:  # of a run that adapts its clip norm
        rows += [
            ("clip norm in force, first round → last", f"{rounds.clip_norm[0]:.4g} → {rounds.clip_norm[-1]:.4g}"),
            ("estimate of the clip norm, last round", f"{rounds.clip_estimate[-1]:.4g}"),
        ]
    return [Heading("The rounds"), Table(tuple(rows))]


def _from_to(totals: dict[str, float], what: str, form: str) -> str:
    return f"{totals[f'{what}_first_round']:{form}} → {totals[f'{what}_last_round']:{form}}"


def _duration(seconds: float) -> str:
    minutes, hours = int(seconds // 60), int(seconds // 3600)
    if minutes < 1:
        return f"{seconds:.1f} s"
    return f"{minutes} min {int(seconds % 60)} s" if hours < 1 else f"{hours} h {minutes % 60} min"


def _privacy(summary: RunSummary) -> list[Block]:
    accounts = summary.accounts
    planned = figures_of(accounts.planned, accounts.delta) or {}
    realised = figures_of(accounts.realised, accounts.delta) or {}
    rows = [
        (shown, _figure(name, planned.get(name)), _figure(name, realised.get(name))) for name, shown in FIGURES.items()
    ]
    for at, share in enumerate(planned.get("sequences", ())):  # what the zCDP of everything together is made of
        happened = realised["sequences"][at] if realised else {}
        for name in ("noise_multiplier", "zcdp"):
            title = f"{FIGURES[name]}, {share['what']} alone"
            rows.append((title, _figure(name, share[name]), _figure(name, happened.get(name))))
    return [Heading("Planned and realised"), Table(tuple(rows), ("", "planned", "realised"))]


def _figure(name: str, value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, int):
        return f"{value:,}"
    return rounded_up(value, 6) if name in {"zcdp", "epsilon"} else f"{value:.6g}"


def setting_text(value: Any) -> str:
    """A value of settings.toml as people read it."""
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def _origin(summary: RunSummary) -> tuple[tuple[str, str], ...]:
    """Where model, words and numbers come from."""
    training = summary.metadata
    data, versions = training.data, training.versions
    return (
        ("run folder", str(summary.path)),
        ("begun", summary.created),
        ("clients' text", data.source),
        ("training clients", f"{training.population:,}"),
        ("vocabulary", f"{data.vocabulary_size:,} words ({training.vocabulary['kind']})"),
        ("vocabulary from", training.vocabulary["description"]),
        ("model parameters", f"{training.parameters:,}"),
        ("keys from", training.key_source),
        ("cache digest", data.cache_digest),
        ("vocabulary digest", data.vocabulary_sha256),
        ("versions", ", ".join(f"{name} {version}" for name, version in versions.items())),
    )


# -- figures -----------------------------------------------------------------------------------------------------------


def figures(summary: RunSummary) -> tuple[Figure, ...]:
    """The figures that a run has data for; none of an empty run."""
    shown: list[Figure] = []
    if summary.curves.get("top1_accuracy"):
        shown.append(_learning_curve(summary))
        if summary.private and summary.released:
            shown.append(_accuracy_privacy(summary))
    if summary.released:
        shown.append(_loss_clipped(summary))
        if summary.rounds.clip_estimate is not None:
            shown.append(_clip_norm(summary, summary.rounds.clip_estimate))
        shown.append(_speed_dropped(summary))
    return tuple(shown)


def _learning_curve(summary: RunSummary) -> Figure:
    marks: list[Mark] = []
    called = " and ".join(shown for _, shown, _ in ACCURACIES)
    for name, shown, hue in ACCURACIES:
        marks.append(curve(summary.by_rounds(name), shown, hue))
        if name in summary.test:
            at, value = [summary.released], [summary.test[name]]
            marks.append(Points(x=at, y=value, label=f"{shown}, test clients", hue=hue, mark="D", size=7, hollow=True))
    return Figure(
        name="learning_curve",
        title="Accuracy over rounds",
        alt=f"{called.capitalize()} accuracy on validation clients over {summary.released} rounds.",
        panels=(Panel(marks=tuple(marks), x=Axis("rounds", whole=True), y=ACCURACY),),
    )


def _accuracy_privacy(summary: RunSummary) -> Figure:
    delta = summary.accounts.delta
    return Figure(
        name="accuracy_privacy",
        title="Accuracy against privacy spent",
        alt="The same accuracies against the zCDP and the epsilon spent by then, as realised.",
        panels=(
            Panel(
                marks=tuple(curve(summary.by_zcdp(name), shown, hue) for name, shown, hue in ACCURACIES),
                x=Axis("zCDP spent, realised", low=0),
                y=ACCURACY,
                above=Above(f"epsilon at delta = {delta:g}", lambda zcdp: _three_digits(gaussian.epsilon(zcdp, delta))),
            ),
        ),
    )


def _loss_clipped(summary: RunSummary) -> Figure:
    rounds = summary.rounds
    across = Axis("round", whole=True, low=0, high=summary.released + 1)
    return Figure(
        name="loss_clipped",
        title="Training loss and clipped updates",
        alt="Mean training loss and share of clipped updates of each round.",
        same_x=True,
        height=2,
        panels=(
            Panel(marks=_per_round(rounds.loss, BLUE), x=across, y=Axis("loss, nats")),
            Panel(
                marks=_per_round(rounds.clipped, ORANGE),
                x=across,
                y=Axis("clipped", percent=True, low=-0.04, high=1.04),
            ),
        ),
    )


def _clip_norm(summary: RunSummary, estimate: NDArray[np.float64]) -> Figure:
    at = range(1, len(estimate) + 1)
    in_force = summary.rounds.clip_norm
    return Figure(
        name="clip_norm",
        title="Clip norm that follows the updates",
        alt="The clip norm in force in each round, and its estimate after the round.",
        panels=(
            Panel(
                marks=(
                    Steps(x=at, y=in_force, label="in force", hue=BLUE),
                    Line(x=at, y=estimate, label="estimate", hue=ORANGE, width=1, dots=False),
                ),
                x=Axis("round", whole=True),
                y=Axis("clip norm", log=True),
            ),
        ),
    )


def _speed_dropped(summary: RunSummary) -> Figure:
    rounds = summary.rounds
    across = Axis("round", whole=True, low=0, high=summary.released + 1)
    at = range(1, summary.released + 1)
    return Figure(
        name="speed_dropped",
        title="Speed and dropped clients",
        alt="Clients trained a second and dropped clients of each round.",
        same_x=True,
        height=2,
        panels=(
            Panel(marks=_per_round(rounds.clients_per_second, BLUE), x=across, y=Axis("clients/s", low=0)),
            Panel(
                marks=(Bars(x=at, y=rounds.dropped, hue=ORANGE),),
                x=across,
                y=Axis("dropped", whole=True, low=0, high=max(1, int(rounds.dropped.max()) * 1.1)),
            ),
        ),
    )


def curve(points: Sequence[tuple[float, float]], label: str, hue: int) -> Line:
    """A line through points."""
    return Line(x=[x for x, _ in points], y=[y for _, y in points], label=label, hue=hue)


def _per_round(values: NDArray[np.float64], hue: int) -> tuple[Mark, ...]:
    """Each round lightly, and the mean of its neighbours where there are many rounds."""
    at = np.arange(1, values.size + 1)
    window = max(values.size // SMOOTH_FROM, 1)
    each = Line(x=at, y=values, hue=hue, width=1, faint=window > 1)
    if window == 1:
        return (each,)
    smooth = np.convolve(values, np.ones(window) / window, mode="valid")
    return each, Line(x=at[window // 2 : window // 2 + smooth.size], y=smooth, hue=hue, width=1.8, dots=False)


def _three_digits(figure: float) -> str:
    """Three digits, and thousands without an exponent."""
    return f"{figure:,.3g}" if figure < 1000 else f"{figure:,.0f}"
