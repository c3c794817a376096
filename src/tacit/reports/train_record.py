"""A training run's summary as the plain values of its two record files, and back.

What of it may be published is a list (RELEASED), as the page's own is; a summary that is read from a published record
lacks all else.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import RunError
from tacit.evaluation.comparison_models import ComparisonModels
from tacit.records import from_plain, to_plain
from tacit.reports.record_files import Records, statement_from
from tacit.reports.release import number_from
from tacit.reports.summary import Rounds, RunSummary, Series, summarise
from tacit.reports.train_published import ASKED, DATA_ASKED, may_suggest
from tacit.runs import Run
from tacit.runs.metadata import TrainingMetadata
from tacit.statements.accounts import Spent
from tacit.statements.statement import Label

RELEASED = (
    "path",
    "name",
    "metadata",
    "finished",
    "settings",
    "created",
    "resume",
    "planned",
    "realised",
    "delta",
    "released",
    "private",
    "statement",
    "labels",
    "spent",
    "rounds",
    "suggestions",
)
OF_ROUNDS = ("clip_norm", "clip_estimate", "private_loss")  # computed from noised sums
WITHHELD = {"clients": 0, "cache_digest": ""}  # of the cache: no page to publish shows them
COUNTS = ("participants", "dropped")  # of a round, whole numbers


def records_of_run(run: Run) -> Records:
    """The same of a run folder, in whatever state it is. Raises: RunError; UnknownRelease."""
    return records_of(summarise(run))


def records_of(summary: RunSummary) -> Records:
    """What both pages are made from."""
    everything = {each.name: to_plain(getattr(summary, each.name)) for each in fields(summary)}
    everything["statement"] = None if summary.statement is None else summary.statement.to_record()
    everything["rounds"] = {each.name: to_plain(getattr(summary.rounds, each.name)) for each in fields(summary.rounds)}
    return Records.from_values(summary.metadata.kind, released=_published(summary, everything), exact=everything)


def _published(summary: RunSummary, everything: Mapping[str, Any]) -> dict[str, Any]:
    metadata = everything["metadata"]
    return {
        **{name: everything[name] for name in RELEASED},
        "metadata": {
            **{name: metadata[name] for name in (*ASKED, "deployment")},
            "data": {name: metadata["data"][name] for name in DATA_ASKED},
        },
        "rounds": {name: everything["rounds"][name] for name in OF_ROUNDS},
        "suggestions": everything["suggestions"] if may_suggest(summary) else {},
    }


def summary_from(record: Mapping[str, Any]) -> RunSummary:
    """The summary that one of the two records holds."""
    exact: dict[str, Any] = {}
    if "curves" in record:
        exact = {
            "failed": _labels(record["failed"]),
            "curves": {name: _series(points) for name, points in record["curves"].items()},
            "test": {name: number_from(value) for name, value in record["test"].items()},
            "tested": _comparison_models(record["tested"]),
            "validated": _comparison_models(record["validated"]),
            "trigram": record["trigram"],
            "public_text": record["public_text"],
            "rungs": record.get("rungs", {}),
        }
    metadata = {**record["metadata"], "data": WITHHELD | record["metadata"]["data"]}
    names = ("path", "name", "finished", "settings", "created", "resume", "delta", "released", "private")
    return RunSummary(
        **{name: record[name] for name in names},
        metadata=from_plain(TrainingMetadata, metadata, error=RunError, where="the metadata of the record"),
        planned=_costs(record["planned"]),
        realised=None if record["realised"] is None else _costs(record["realised"]),
        statement=statement_from(record["statement"]),
        labels=_labels(record["labels"]),
        spent=tuple(from_plain(Spent, each, error=RunError, where="what is spent") for each in record["spent"]),
        rounds=_rounds(record["rounds"]),
        suggestions={prompt: tuple(map(tuple, words)) for prompt, words in record["suggestions"].items()},
        **exact,
    )


def _costs(figures: Mapping[str, Any]) -> dict[str, Any]:
    """Figures of a promise, of which some may be infinite; those of its sequences have a name, too."""
    found: dict[str, Any] = {name: math.inf if value == "inf" else value for name, value in figures.items()}
    return found if "sequences" not in found else {**found, "sequences": list(map(_costs, found["sequences"]))}


def _rounds(record: Mapping[str, Any]) -> Rounds:
    """Arrays again; what is not published is empty."""
    found: dict[str, NDArray[Any] | None] = {}
    for each in fields(Rounds):
        values = record.get(each.name, None if each.name in OF_ROUNDS else ())
        kind = np.int64 if each.name in COUNTS else np.float64
        found[each.name] = None if values is None else np.array([number_from(value) for value in values], kind)
    return Rounds(**found)  # type: ignore[arg-type]


def _series(points: Mapping[str, Any]) -> Series:
    return {int(rounds): number_from(value) for rounds, value in points.items()}


def _labels(record: Sequence[Mapping[str, str]]) -> tuple[Label, ...]:
    return tuple(Label(each["name"], each["meaning"]) for each in record)


def _comparison_models(record: Mapping[str, Any] | None) -> ComparisonModels | None:
    return (
        None
        if record is None
        else from_plain(ComparisonModels, record, error=RunError, where="what it is held against")
    )
