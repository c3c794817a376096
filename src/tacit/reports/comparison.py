"""Two runs side by side: how good at equal rounds, at which price, and what they were asked differently."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.reports.figure import label_of
from tacit.reports.training import RunSummary
from tacit.statements.accounts import figures_of

EQUAL_ROUNDS = 6  # rows of the table of accuracies


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of the comparison: plain values of A and B, and how people read them."""

    name: str
    a: Any
    b: Any
    percent: bool = False


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Equal settings are left out; `warnings` say what makes the rest incomparable."""

    names: tuple[str, str]
    warnings: tuple[str, ...]
    accuracy: tuple[Row, ...]
    privacy: tuple[Row, ...]
    speed: tuple[Row, ...]
    settings: tuple[Row, ...]


def comparison(a: RunSummary, b: RunSummary) -> Comparison:
    """A and B, row by row; None stands for what a run does not have."""
    return Comparison(
        names=(label_of(a, (a, b)), label_of(b, (a, b))),
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
    )


def _warnings(a: RunSummary, b: RunSummary) -> list[str]:
    found = []
    for summary in (a, b):
        weak = [label.name for label in summary.labels]
        if weak:
            found.append(f"{summary.name} ({summary.path.name}): {', '.join(weak)}")
    if a.facts["data"]["cache_digest"] != b.facts["data"]["cache_digest"]:
        found.append("the two runs read different caches, so their accuracies are on different text")
    if a.facts["data"]["vocabulary_sha256"] != b.facts["data"]["vocabulary_sha256"]:
        found.append("the two runs have different vocabularies, so their accuracies count different words")
    if a.facts["evaluation"] != b.facts["evaluation"]:
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


def rows_record(rows: Sequence[Row]) -> dict[str, dict[str, Any]]:
    """{row: {"a": ..., "b": ...}}"""
    return {row.name: {"a": row.a, "b": row.b} for row in rows}
