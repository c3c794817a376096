"""Outcomes of simulated clients as lines of JSON, which a run folder keeps; of a real device nothing of it leaves."""

from collections.abc import Mapping
from typing import Any

from tacit.evaluation.personalize.outcomes import ClientOutcome, Paired, PartComparison, SkippedClient
from tacit.networks.metrics import Counts


def row_of(outcome: ClientOutcome | SkippedClient) -> dict[str, Any]:
    """One line of JSON; `outcome_of` and `skipped_of` undo it."""
    if isinstance(outcome, SkippedClient):
        return {"client": outcome.client, "skipped": outcome.reason}
    return {
        "client": outcome.client,
        "train_tokens": outcome.train_tokens,
        "test": _part_row(outcome.test),
        "gate": outcome.gate and _part_row(outcome.gate),
        "tokens_seen": list(outcome.tokens_seen),
        "training_loss": [_finite(loss) for loss in outcome.training_loss],
        "diverged": list(outcome.diverged),
        "undated": outcome.undated,
    }


def outcome_of(row: Mapping[str, Any]) -> ClientOutcome:
    """What `row_of` an outcome gave."""
    return ClientOutcome(
        client=row["client"],
        train_tokens=row["train_tokens"],
        test=_part_of(row["test"]),
        gate=row["gate"] and _part_of(row["gate"]),
        tokens_seen=tuple(row["tokens_seen"]),
        training_loss=tuple(_number(loss) for loss in row["training_loss"]),
        diverged=tuple(row["diverged"]),
        undated=row["undated"],
    )


def skipped_of(row: Mapping[str, Any]) -> SkippedClient:
    """What `row_of` a skipped client gave."""
    return SkippedClient(client=row["client"], reason=row["skipped"])


def _part_row(part: PartComparison) -> dict[str, Any]:
    return {
        "baseline": part.baseline.to_row(),
        "personalised": [counts.to_row() for counts in part.personalised],
        "paired": [list(paired) for paired in part.paired],
    }


def _part_of(row: Mapping[str, Any]) -> PartComparison:
    return PartComparison(
        baseline=Counts.from_row(row["baseline"]),
        personalised=tuple(Counts.from_row(each) for each in row["personalised"]),
        paired=tuple(Paired(*each) for each in row["paired"]),
    )


def _finite(number: float) -> float | None:
    """JSON has no infinity."""
    return number if number < float("inf") else None


def _number(kept: float | None) -> float:
    return float("inf") if kept is None else kept
