"""Two training runs side by side: how good at equal rounds, at which price, and what they were asked differently."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from tacit.privacy.rounding import rounded_up
from tacit.reports.figure import BLUE, ORANGE, Axis, Figure, Panel
from tacit.reports.page import Block, FigureOf, Heading, Labels, Page, Paragraph, Table, to_html_fragment
from tacit.reports.summary import RunSummary
from tacit.reports.training import curve
from tacit.statements.accounts import figures_of
from tacit.statements.statement import Label

EQUAL_ROUNDS = 6  # rows of the table of accuracies


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of the comparison: plain values of A and B, None for what a run does not have."""

    name: str
    a: Any
    b: Any
    percent: bool = False

    @property
    def cells(self) -> tuple[str, str, str]:
        """As people read it: the name, A, B. Privacy figures are rounded up."""
        return self.name, self._said(self.a), self._said(self.b)

    def _said(self, value: Any) -> str:
        if value is None:
            return "-"
        if self.percent:
            return f"{value:.2%}"
        if self.name == "clients per second":
            return f"{value:.1f}"
        if isinstance(value, float):
            return rounded_up(value) if self.name.startswith(("zCDP", "epsilon")) else f"{value:.6g}"
        return str(value)


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A beside B. Equal settings are left out; `warnings` say what makes the rest incomparable."""

    names: tuple[str, str]
    paths: tuple[str, str]
    warnings: tuple[str, ...]
    accuracy: tuple[Row, ...]
    privacy: tuple[Row, ...]
    speed: tuple[Row, ...]
    settings: tuple[Row, ...]
    figure: Figure
    drawn: Path | None = None  # where the figure is

    def drawn_at(self, path: Path) -> "Comparison":
        """The same, with its figure in a file."""
        return replace(self, drawn=path)

    @property
    def parts(self) -> dict[str, tuple[Row, ...]]:
        """The rows under the title of each part."""
        return {
            "accuracy": self.accuracy,
            "privacy": self.privacy,
            "speed": self.speed,
            "settings that differ": self.settings,
        }

    def to_record(self) -> dict[str, Any]:
        """Plain values for JSON: {part: {row: {"a": ..., "b": ...}}}."""
        rows = {"accuracy": self.accuracy, "privacy": self.privacy, "speed": self.speed, "settings": self.settings}
        named = {part: {row.name: {"a": row.a, "b": row.b} for row in each} for part, each in rows.items()}
        figure = None if self.drawn is None else str(self.drawn)
        both = {"a": self.paths[0], "b": self.paths[1], "warnings": list(self.warnings)}
        return {"schema": "tacit.comparison", "version": 1, **both, **named, "figure": figure}

    def page(self) -> Page:
        """The comparison as people read it."""
        blocks: list[Block] = [Labels(tuple(Label("NOTE", warning) for warning in self.warnings))]
        for title, rows in self.parts.items():
            blocks.append(Heading(title.capitalize()))
            blocks.append(Table(tuple(row.cells for row in rows), ("", *self.names)) if rows else Paragraph("None."))
        return Page(
            kind="comparison of two training runs",
            title=self.figure.title,
            blocks=(*blocks[bool(not self.warnings) :], FigureOf(self.figure)),
            record=self.to_record(),
        )

    def _repr_html_(self) -> str:
        return to_html_fragment(self.page().blocks)


def comparison(a: RunSummary, b: RunSummary) -> Comparison:
    """A and B, row by row."""
    return Comparison(
        names=(label_of(a, (a, b)), label_of(b, (a, b))),
        paths=(str(a.path), str(b.path)),
        warnings=tuple(_warnings(a, b)),
        accuracy=tuple(_accuracy(a, b)),
        privacy=tuple(_privacy(a, b)),
        speed=(
            Row(name="rounds", a=a.released, b=b.released),
            Row(
                name="clients per second",
                a=a.rounds.totals.get("clients_per_second"),
                b=b.rounds.totals.get("clients_per_second"),
            ),
        ),
        settings=tuple(
            Row(name=key, a=a.settings.get(key), b=b.settings.get(key))
            for key in sorted(a.settings.keys() | b.settings.keys())
            if a.settings.get(key) != b.settings.get(key)
        ),
        figure=figure(a, b),
    )


def label_of(summary: RunSummary, both: Sequence[RunSummary]) -> str:
    """The run's name; with its folder where both have the same."""
    same = len({each.name for each in both}) < len(both)
    name = f"{summary.name} ({summary.path.name})" if same else summary.name
    return name if summary.private else f"{name}, NON-PRIVATE"


def figure(a: RunSummary, b: RunSummary) -> Figure:
    """Top-1 accuracy of both on validation clients over rounds, and over zCDP where both are private."""
    runs = [(each, label_of(each, (a, b)), hue) for each, hue in ((a, BLUE), (b, ORANGE))]
    accuracy = Axis("top-1 accuracy, validation", percent=True, low=0)
    over_rounds = tuple(curve(run.by_rounds("top1_accuracy"), label, hue) for run, label, hue in runs)
    panels = [Panel(marks=over_rounds, x=Axis("rounds", whole=True), y=accuracy)]
    if a.private and b.private:
        over_zcdp = tuple(curve(run.by_zcdp("top1_accuracy"), label, hue) for run, label, hue in runs)
        panels.append(Panel(marks=over_zcdp, x=Axis("zCDP spent, realised"), y=accuracy))
    return Figure(
        name="compare",
        title=f"{a.name} and {b.name}",
        alt=f"Top-1 accuracy of {a.name} and {b.name} on validation clients.",
        panels=tuple(panels),
    )


def _warnings(a: RunSummary, b: RunSummary) -> list[str]:
    found = []
    for summary in (a, b):
        weak = [label.name for label in (*summary.labels, *summary.failed)]
        if weak:
            found.append(f"{summary.name} ({summary.path.name}): {', '.join(weak)}")
    if a.metadata.data.cache_digest != b.metadata.data.cache_digest:
        found.append("the two runs read different caches, so their accuracies are on different text")
    if a.metadata.data.vocabulary_sha256 != b.metadata.data.vocabulary_sha256:
        found.append("the two runs have different vocabularies, so their accuracies count different words")
    if a.metadata.evaluation != b.metadata.evaluation:
        found.append("the two runs were evaluated on different numbers of clients or sentences")
    if a.accounts.delta != b.accounts.delta:
        found.append(f"epsilon is at delta {a.accounts.delta:g} in A and {b.accounts.delta:g} in B")
    return found


def _accuracy(a: RunSummary, b: RunSummary) -> list[Row]:
    rows = [
        Row(name=f"{shown}, test clients", a=a.test.get(name), b=b.test.get(name), percent=True)
        for name, shown in (("top1_accuracy", "top-1"), ("top3_accuracy", "top-3"))
    ]
    mine, theirs = a.curves.get("top1_accuracy", {}), b.curves.get("top1_accuracy", {})
    common = sorted(mine.keys() & theirs.keys())
    chosen = np.unique(np.linspace(0, len(common) - 1, min(EQUAL_ROUNDS, len(common))).round().astype(int))
    for rounds in [common[at] for at in chosen]:
        name = f"top-1, validation, after {rounds:,} rounds"
        rows.append(Row(name=name, a=mine[rounds], b=theirs[rounds], percent=True))
    return rows


def _privacy(a: RunSummary, b: RunSummary) -> list[Row]:
    rows = []
    for which in ("planned", "realised"):
        left, right = (figures_of(getattr(each.accounts, which), each.accounts.delta) or {} for each in (a, b))
        for name in ("zcdp", "epsilon", "rounds_between", "max_participations"):
            rows.append(Row(name=f"{_SHOWN[name]}, {which}", a=left.get(name), b=right.get(name)))
    return rows


_SHOWN = {"zcdp": "zCDP", "epsilon": "epsilon", "rounds_between": "MinS", "max_participations": "MaxP"}
