"""The report of a pre-training: how held-out public text was predicted on the way, and how well at the end."""

from pathlib import Path
from typing import Any

from tacit.reports.blocks import Block, FigureOf, Heading, Labels, Paragraph, Table, Tiles
from tacit.reports.figure import BLUE, ORANGE, Axis, Figure, Line, Panel, Points
from tacit.reports.page import PUBLISHED, Page, ReportFiles, write
from tacit.reports.summary import settings_of
from tacit.reports.train import QUALITY, metric_text
from tacit.reports.train_published import setting_text
from tacit.runs import Run
from tacit.runs.metadata import PretrainingMetadata
from tacit.statements.accounts import reading
from tacit.statements.run_facts import created, resume_command
from tacit.statements.statement import Label

PUBLIC = "The text is public: nothing is private about this model, and nothing is promised to anybody."


def write_report(run: Run, out: Path | None = None) -> ReportFiles:
    """Write the report of a pre-training, finished or not, into the folder `report` of `out` (left out: of the run).

    Raises: RunError where the folder is damaged, InputError where it is a run of another kind.
    """
    with reading(run):
        return write((run.path if out is None else out) / PUBLISHED, page(run))


def page(run: Run) -> Page:
    """What the report shows of a pre-training, whatever state it is in."""
    metadata = run.of_kind(PretrainingMetadata, "`tacit report {run}` writes its report")
    evaluations = [step.measures for step in run.steps()]
    metrics = {metric.name: metric.value for metric in run.metrics()}
    headline: dict[str, Any] = {
        "run": str(run.path),
        "finished": run.finished,
        "source": metadata.data.source,
        "evaluations": evaluations,
        "held_out": metrics,
    }
    unfinished = Label("UNFINISHED", f"go on with `{resume_command(run)}`.")
    rows = tuple((shown, metric_text(name, metrics[name])) for name, shown in QUALITY.items() if name in metrics)
    blocks: list[Block] = [
        *([] if run.finished else [Labels((unfinished,))]),
        Tiles((("evaluations", f"{len(evaluations):,}"), *_best(evaluations))),
        *([FigureOf(figure(evaluations))] if evaluations else []),
        Paragraph(PUBLIC),
        Heading("How well it predicts"),
        Table(rows, ("", "held-out public text")) if rows else Paragraph("Not evaluated yet."),
        Heading("What was asked"),
        Table(tuple((key, setting_text(value)) for key, value in settings_of(run).items()), ("setting", "value")),
        Heading("Where it comes from"),
        Table(
            (
                ("run folder", str(run.path)),
                ("begun", created(run)),
                ("public text", metadata.data.source),
                ("vocabulary", f"{metadata.data.vocabulary_size:,} words"),
                ("model parameters", f"{metadata.parameters:,}"),
                ("cache digest", metadata.data.cache_digest),
                ("versions", ", ".join(f"{name} {version}" for name, version in metadata.versions.items())),
            )
        ),
    ]
    return Page(
        kind="report of a pre-training",
        title=run.path.resolve().name,
        when=f"begun {created(run)}{', finished' if run.finished else ''}",
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
