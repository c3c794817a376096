"""The report of a pre-training: how held-out public text was predicted on the way, and how well at the end."""

from collections.abc import Mapping
from typing import Any

from tacit.reports.blocks import Block, FigureOf, Heading, Labels, Paragraph, Table, Tiles
from tacit.reports.figure import BLUE, ORANGE, Axis, Figure, Line, Panel, Points
from tacit.reports.page import Page
from tacit.reports.record_files import Records
from tacit.reports.release import number_from
from tacit.reports.summary import settings_of
from tacit.reports.train import QUALITY, metric_text
from tacit.reports.train_published import setting_text
from tacit.runs import Run
from tacit.runs.metadata import PretrainingMetadata
from tacit.statements.accounts import reading
from tacit.statements.run_facts import created, resume_command
from tacit.statements.statement import Label

HEADLINE = ("run", "finished", "source", "evaluations", "held_out")
PUBLIC = "The text is public: nothing is private about this model, and nothing is promised to anybody."


def records_of(run: Run) -> Records:
    """What the page of a pre-training is made from, finished or not; all of it may be published.

    Raises: RunError where the folder is damaged, InputError where it is a run of another kind.
    """
    with reading(run):
        return Records.from_values(run.kind, released=_values(run))


def _values(run: Run) -> dict[str, Any]:
    metadata = run.of_kind(PretrainingMetadata, "`tacit report {run}` writes its report")
    return {
        "run": str(run.path),
        "finished": run.finished,
        "source": metadata.data.source,
        "evaluations": [step.measures for step in run.steps()],
        "held_out": {metric.name: metric.value for metric in run.metrics()},
        "title": run.path.resolve().name,
        "created": created(run),
        "resume": resume_command(run),
        "settings": settings_of(run),
        "vocabulary_size": metadata.data.vocabulary_size,
        "parameters": metadata.parameters,
        "cache_digest": metadata.data.cache_digest,
        "versions": metadata.versions,
    }


def released_page(record: Mapping[str, Any]) -> Page:
    """What the report shows of a pre-training, whatever state it is in."""
    headline = {name: record[name] for name in HEADLINE}
    evaluations = [{name: number_from(value) for name, value in each.items()} for each in record["evaluations"]]
    metrics = {name: number_from(value) for name, value in record["held_out"].items()}
    unfinished = Label("UNFINISHED", f"go on with `{record['resume']}`.")
    rows = tuple((shown, metric_text(name, metrics[name])) for name, shown in QUALITY.items() if name in metrics)
    blocks: list[Block] = [
        *([] if record["finished"] else [Labels((unfinished,))]),
        Tiles((("evaluations", f"{len(evaluations):,}"), *_best(evaluations))),
        *([FigureOf(figure(evaluations))] if evaluations else []),
        Paragraph(PUBLIC),
        Heading("How well it predicts"),
        Table(rows, ("", "held-out public text")) if rows else Paragraph("Not evaluated yet."),
        Heading("What was asked"),
        Table(tuple((key, setting_text(value)) for key, value in record["settings"].items()), ("setting", "value")),
        Heading("Where it comes from"),
        Table(
            (
                ("run folder", record["run"]),
                ("begun", record["created"]),
                ("public text", record["source"]),
                ("vocabulary", f"{record['vocabulary_size']:,} words"),
                ("model parameters", f"{record['parameters']:,}"),
                ("cache digest", record["cache_digest"]),
                ("versions", ", ".join(f"{name} {version}" for name, version in record["versions"].items())),
            )
        ),
    ]
    return Page(
        kind="report of a pre-training",
        title=record["title"],
        when=f"begun {record['created']}{', finished' if record['finished'] else ''}",
        blocks=tuple(blocks),
        record=headline,
        headline=headline,
    )


def figure(evaluations: list[Any]) -> Figure:
    """Cross-entropy of held-out text, and of the text trained on, over the sentences trained on."""
    best = min(evaluations, key=lambda measures: measures["held_out"])
    at, worth = [best["sentences"]], [best["held_out"]]
    trained = [measures for measures in evaluations if "loss" in measures]

    def line(of: list[Any], name: str, label: str, hue: int) -> Line:
        return Line(x=[each["sentences"] for each in of], y=[each[name] for each in of], label=label, hue=hue)

    return Figure(
        name="pretraining",
        title="Cross-entropy over sentences",
        alt=f"Cross-entropy of held-out public text over the sentences trained on: {best['held_out']:.3f} nats a word "
        f"at best, after {best['sentences']:,.0f} sentences.",
        panels=(
            Panel(
                marks=(
                    line(evaluations, "held_out", "held-out text", BLUE),
                    line(trained, "loss", "text trained on", ORANGE),
                    Points(x=at, y=worth, label="kept", hue=BLUE, mark="D", size=8, hollow=True),
                ),
                x=Axis("sentences trained on"),
                y=Axis("cross-entropy, nats a word"),
            ),
        ),
    )


def _best(evaluations: list[Any]) -> tuple[tuple[str, str], ...]:
    if not evaluations:
        return ()
    best = min(measures["held_out"] for measures in evaluations)
    return (("best cross-entropy of held-out text, nats a word", f"{best:.3f}"),)
