"""The report of a training run in two folders: `report/`, which may be published, and `simulation/`, with everything.

The page in `simulation/` is the one to look at: accuracies, losses, times, and all that `report/` says besides. What
may be published is `train_published.py`. Only the run's folder is read, so both can be written again anywhere and at
any time, while the run trains too.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tacit.evaluation.comparison_models import FIRST_WORDS, FREE, MODEL, START, TRIGRAM
from tacit.networks.metrics import METRICS
from tacit.plurals import quantity
from tacit.privacy import gaussian
from tacit.records import to_plain
from tacit.reports import train_published, train_record
from tacit.reports.blocks import Block, FigureOf, Heading, Labels, Paragraph, Table, Tiles
from tacit.reports.figure import (
    BLUE,
    HUES,
    ORANGE,
    Above,
    Axis,
    Bars,
    ErrorBars,
    Figure,
    Line,
    Mark,
    Panel,
    Points,
    Rule,
)
from tacit.reports.judgement import beside, beside_record, counted_how, failures, opening
from tacit.reports.page import Page, ReportFiles
from tacit.reports.record_files import write_run
from tacit.reports.summary import RunSummary
from tacit.runs import Run
from tacit.statements.statement import Label

QUALITY = {
    **{name: metric.title for name, metric in METRICS.items()},
    "words": "words typed",
    "clients": "clients",
    "client_accuracy_q25": "top-1 accuracy, lower quartile of clients",
    "client_accuracy_q50": "top-1 accuracy, median client",
    "client_accuracy_q75": "top-1 accuracy, upper quartile of clients",
}
ACCURACIES = tuple(  # name, what it is called, its hue
    (name, metric.title.removesuffix(" accuracy"), number % HUES)
    for number, (name, metric) in enumerate(METRICS.items())
    if metric.unit == "share" and metric.better > 0
)
# By name, how a figure calls it and its stroke; TRIGRAM is of older runs, FREE of those since.
BESIDE = {
    START: ("its start", 1),
    TRIGRAM: ("trigram on public text", 2),
    FREE: ("best free model", 2),
    FIRST_WORDS: ("first words, always", 3),
}
EPSILONS, ROOM = 6, 12  # ticks of an axis, about, and how many of their labels have room
ACCURACY = Axis("accuracy, validation clients", percent=True)
EXACT = Label(
    "SIMULATION ONLY",
    "exact numbers of clients' text, which nothing here protects: keep this folder. What may be published is in the "
    "folder `report` beside it.",
)
EXACT_OF_DEVICES = Label(
    "EXACT NUMBERS",
    "accuracies on the server's own clients, counts and times of rounds, which nothing here protects: keep this "
    "folder. What may be published is in the folder `report` beside it.",
)


def write_report(run: Run, out: Path | None = None) -> ReportFiles:
    """Write the records and reports of a run, whatever state it is in, into the folders `report` and `simulation` of
    `out`.

    out: left out, the run's folder. Raises: RunError where the folder is damaged; UnknownRelease.
    """
    return write_run(run.path if out is None else out, run.kind, train_record.records_of_run(run))


def released_page(record: Mapping[str, Any]) -> Page:
    """What may be published, by the record of `report/` alone."""
    return train_published.page(train_record.summary_from(record))


def page(record: Mapping[str, Any]) -> Page:
    """Everything that the simulation knows of a run, whatever state it is in."""
    summary = train_record.summary_from(record)
    shown = figures(summary)
    return Page(
        kind=f"{train_published.KIND}, {'exact numbers' if summary.deployed else 'simulation only'}",
        title=summary.name,
        when=train_published.when(summary),
        blocks=(
            Labels(labels(summary)),
            Paragraph(opening(summary)),
            *train_published.noise_forecast(summary),
            Tiles(tuple(tiles(summary).items())),
            *map(FigureOf, shown),
            *beside(summary),
            *train_published.suggested(summary),
            *_quality(summary),
            *_rounds(summary),
            *train_published.promised(summary),
            *train_published.settings_blocks(summary, ("cache digest", summary.metadata.data.cache_digest)),
        ),
        record=_record(summary, shown),
        headline=headline(summary),
    )


def labels(summary: RunSummary) -> tuple[Label, ...]:
    """What stands before everything else: that nothing here is to be published, and whatever went wrong."""
    return (EXACT_OF_DEVICES if summary.deployed else EXACT, *failures(summary), *summary.labels)


def headline(summary: RunSummary) -> dict[str, Any]:
    """What one wants to know first, as plain values: what may be published of it, and what may not."""
    return {
        **train_published.headline(summary),
        "labels": [label.name for label in labels(summary)],
        "test": dict(summary.test),
        "validation": summary.last_validation,
        **summary.rounds.totals,
    }


def tiles(summary: RunSummary) -> dict[str, str]:
    """The headline for people: a name and a figure each."""
    quality, whose = (summary.test, "test") if summary.test else (summary.last_validation, "validation")
    (rounds, done), *privacy = train_published.tiles(summary).items()
    shown = {rounds: done}
    if quality:
        shown[f"top-1 accuracy, {whose} clients"] = f"{quality['top1_accuracy']:.2%}"
        shown[f"top-3 accuracy, {whose} clients"] = f"{quality['top3_accuracy']:.2%}"
    totals = summary.rounds.totals
    speed = {"clients per second": f"{totals['clients_per_second']:,.1f}"} if totals else {}
    return {**shown, **dict(privacy), **speed}


def _record(summary: RunSummary, shown: tuple[Figure, ...]) -> dict[str, Any]:
    """The page as one JSON object: the headline, and everything that it shows."""
    rounds, record = summary.rounds, train_published.record(summary, shown)
    return {
        **record,
        **headline(summary),
        "metadata": to_plain(summary.metadata),
        "curves": {
            name: [{"round": at, "value": value} for at, value in sorted(series.items())]
            for name, series in summary.curves.items()
        },
        "per_round": {  # index 0 is the first round
            **record["per_round"],
            "seconds": rounds.seconds.tolist(),
            "participants": rounds.participants.tolist(),
            "dropped": rounds.dropped.tolist(),
            "loss": rounds.loss.tolist(),
            "clipped": rounds.clipped.tolist(),
        },
        "warnings": [{"name": label.name, "meaning": label.meaning} for label in labels(summary)],
        "opening": opening(summary),
        "beside": beside_record(summary),
        "suggestions": train_published.suggestions_record(summary),
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
    if "clients" in test:
        whose += f" The last column is {counted_how(summary, test['clients'])}."
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
    totals = summary.rounds.totals
    if not totals:
        return [Heading("The rounds"), Paragraph("None is done yet.")]
    rows: tuple[tuple[str, str], ...] = (
        ("clients per second", f"{totals['clients_per_second']:,.1f}"),
        ("time in rounds", _duration(totals["training_seconds"])),
        ("participations", f"{totals['participations']:,.0f}"),
        ("clients dropped (no finite update, or vanished)", f"{totals['dropped_clients']:,.0f}"),
    )
    seen = (
        ("training loss, first round → last", "loss", ".3f"),
        ("updates clipped, first round → last", "clipped", ".0%"),
    )
    if summary.rounds.simulated:
        rows += tuple((shown, _from_to(totals, what, form)) for shown, what, form in seen)
    return [Heading("The rounds"), Table((*rows, *train_published.released_rows(summary)))]


def _from_to(totals: dict[str, float], what: str, form: str) -> str:
    return f"{totals[f'{what}_first_round']:{form}} → {totals[f'{what}_last_round']:{form}}"


def _duration(seconds: float) -> str:
    minutes, hours = int(seconds // 60), int(seconds // 3600)
    if minutes < 1:
        return f"{seconds:.1f} s"
    return f"{minutes} min {int(seconds % 60)} s" if hours < 1 else f"{hours} h {minutes % 60} min"


# -- figures -----------------------------------------------------------------------------------------------------------


def figures(summary: RunSummary) -> tuple[Figure, ...]:
    """The figures that a run has data for; none of an empty run."""
    shown: list[Figure] = []
    if summary.curves.get("top1_accuracy"):
        shown.append(_learning_curve(summary))
        if summary.private and summary.released:
            shown.append(_accuracy_privacy(summary))
    if summary.released:
        if summary.rounds.simulated:
            shown.append(_loss_clipped(summary))
        if summary.rounds.clip_estimate is not None:
            shown.append(train_published.clip_norm(summary, summary.rounds.clip_estimate))
        if summary.rounds.private_loss is not None:
            shown.append(train_published.private_loss(summary.rounds.private_loss))
        shown.append(_speed_dropped(summary))
    return tuple(shown)


def _learning_curve(summary: RunSummary) -> Figure:
    called = " and ".join(shown for _, shown, _ in ACCURACIES)
    rounds = Axis("rounds", whole=True, low=0)
    return Figure(
        name="learning_curve",
        title="Accuracy over rounds",
        alt=f"{called.capitalize()} accuracy on validation clients over {quantity(summary.released, 'round')}, beside "
        "what needs no training.",
        same_x=True,
        height=2.5,
        legend="below",
        panels=tuple(
            Panel(marks=_beside_curve(summary, name, hue), x=rounds, y=Axis(f"{shown}, validation", percent=True))
            for name, shown, hue in ACCURACIES
        ),
    )


def _beside_curve(summary: RunSummary, metric: str, hue: int) -> tuple[Mark, ...]:
    """The curve, the model on test clients at its end, and across the panel what it is held against."""
    marks: list[Mark] = [curve(summary.by_rounds(metric), "the model", hue)]
    if metric in summary.test:
        at, value = [summary.released], [summary.test[metric]]
        marks.append(Points(x=at, y=value, label="on test clients", hue=hue, mark="D", size=7, hollow=True))
        found = None if summary.tested is None else summary.tested.estimate(MODEL, metric)
        if found is not None:  # over those clients
            marks.append(ErrorBars(x=at, y=value, low=[found.low], high=[found.high], label="on test clients", hue=hue))
    for name, (label, stroke) in BESIDE.items():
        level = None if summary.validated is None else summary.validated.value(name, metric)
        if name == START and summary.metadata.first_model is not None:  # a random one is at the foot of the panel
            level = summary.curves[metric].get(0)
        if level is not None:
            marks.append(Rule(at=level, along="y", label=label, stroke=stroke, width=1.2))
    return tuple(marks)


def _accuracy_privacy(summary: RunSummary) -> Figure:
    delta = summary.delta
    return Figure(
        name="accuracy_privacy",
        title="Accuracy against privacy spent",
        alt="The same accuracies against the zCDP and the epsilon spent by then, as realised.",
        panels=(
            Panel(
                marks=tuple(curve(summary.by_zcdp(name), shown, hue) for name, shown, hue in ACCURACIES),
                x=Axis("zCDP spent, realised", low=0),
                y=ACCURACY,
                above=Above(f"epsilon at delta = {delta:g}", _round_epsilons(summary.spent[-1].zcdp, delta)),
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
            Panel(marks=train_published.per_round(rounds.loss, BLUE), x=across, y=Axis("loss, nats")),
            Panel(
                marks=train_published.per_round(rounds.clipped, ORANGE),
                x=across,
                y=Axis("clipped", percent=True, low=-0.04, high=1.04),
            ),
        ),
    )


def _speed_dropped(summary: RunSummary) -> Figure:
    rounds = summary.rounds
    across = Axis("round", whole=True, low=0, high=summary.released + 1)
    dropped = Panel(
        marks=(Bars(x=range(1, summary.released + 1), y=rounds.dropped, hue=ORANGE),),
        x=across,
        y=Axis("dropped", whole=True, low=0, high=max(1, int(rounds.dropped.max()) * 1.1)),
    )
    return Figure(
        name="speed_dropped",
        title="Speed and dropped clients" if rounds.dropped.any() else "Speed; no client was dropped",
        alt="Clients trained a second and dropped clients of each round.",
        same_x=True,
        height=2,
        panels=(
            Panel(
                marks=train_published.per_round(rounds.clients_per_second, BLUE), x=across, y=Axis("clients/s", low=0)
            ),
            *([dropped] if rounds.dropped.any() else []),
        ),
    )


def curve(points: Sequence[tuple[float, float]], label: str, hue: int) -> Line:
    """A line through points."""
    return Line(x=[x for x, _ in points], y=[y for _, y in points], label=label, hue=hue)


def _round_epsilons(most: float, delta: float) -> tuple[tuple[float, str], ...]:
    """Round epsilons up to that of the zCDP `most`, and the zCDP of each: (zCDP, epsilon) from 0 on."""
    highest = gaussian.epsilon(most, delta)
    if not highest:
        return ((0.0, "0"),)
    below = 10.0 ** math.floor(math.log10(highest / EPSILONS))
    step = next(step for step in (below, 2 * below, 5 * below, 10 * below) if highest / step <= EPSILONS)
    found = [(0.0, "0")]
    for multiple in range(1, int(highest / step) + 1):
        zcdp = gaussian.zcdp_for_epsilon(multiple * step, delta)
        if zcdp - found[-1][0] >= most / ROOM:
            found.append((zcdp, f"{multiple * step:,.6g}"))
    return tuple(found)
