"""Would a model of one's own help: the global model and its personalised ones, side by side on every client.

Federated Personalization Evaluation [paper 5, section 2]: each device cuts its text in time, counts how well the
global model does on the later part, fine-tunes on the earlier one by every strategy of a grid, and counts again.
A `ClientOutcome` is all that would leave a device; the text and the models stay.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from tacit.evaluation.fine_tuning import Strategy
from tacit.evaluation.splits import TemporalSplit
from tacit.keyboard.metrics import Counts

__all__ = [
    "ClientOutcome",
    "Comparison",
    "Paired",
    "PersonalizationOutcome",
    "SkippedClient",
    "Strategy",
    "TemporalSplit",
]


class Paired(NamedTuple):
    """The same words before two models, by whose first suggestion was right; they add up to `Counts.predicted`."""

    both: int = 0
    only_baseline: int = 0
    only_personalised: int = 0
    neither: int = 0


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """One part of one client's text under the global model and under each strategy's model, in the grid's order.

    Where fine-tuning diverged, nothing is right: top1 and top3 are 0 and nats is inf.
    """

    baseline: Counts
    personalised: tuple[Counts, ...]
    paired: tuple[Paired, ...]

    def as_row(self) -> dict[str, Any]:
        """For JSON; `from_row` undoes it."""
        return {
            "baseline": _numbers(self.baseline),
            "personalised": [_numbers(counts) for counts in self.personalised],
            "paired": [list(paired) for paired in self.paired],
        }

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Self:
        """What `as_row` gave."""
        return cls(
            baseline=_counts(row["baseline"]),
            personalised=tuple(_counts(each) for each in row["personalised"]),
            paired=tuple(Paired(*each) for each in row["paired"]),
        )


@dataclass(frozen=True, kw_only=True)
class ClientOutcome:
    """What one device reports. Tuples have one entry per strategy, in the grid's order."""

    client: int
    train_tokens: int  # words and ends of sentences in the train part, whatever a strategy used of them
    test: Comparison
    gate: Comparison | None  # None without a gate part
    tokens_seen: tuple[int, ...]  # words and ends that the fine-tuning went through, repeats counted
    training_loss: tuple[float, ...]  # nats per token, each batch before its own step; inf where it diverged
    diverged: tuple[bool, ...]  # a parameter, or a loss on the way or afterwards, was not finite: never deployed
    undated: int = 0  # sentences in no part because their time is unknown

    def as_row(self) -> dict[str, Any]:
        """One line of JSON; `from_row` undoes it."""
        return {
            "client": self.client,
            "train_tokens": self.train_tokens,
            "test": self.test.as_row(),
            "gate": self.gate and self.gate.as_row(),
            "tokens_seen": list(self.tokens_seen),
            "training_loss": [_finite(loss) for loss in self.training_loss],
            "diverged": list(self.diverged),
            "undated": self.undated,
        }

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Self:
        """What `as_row` gave."""
        return cls(
            client=row["client"],
            train_tokens=row["train_tokens"],
            test=Comparison.from_row(row["test"]),
            gate=row["gate"] and Comparison.from_row(row["gate"]),
            tokens_seen=tuple(row["tokens_seen"]),
            training_loss=tuple(_number(loss) for loss in row["training_loss"]),
            diverged=tuple(row["diverged"]),
            undated=row["undated"],
        )


@dataclass(frozen=True, kw_only=True)
class SkippedClient:
    """A client that could not be evaluated, and why; counted, never dropped silently."""

    client: int
    reason: str

    def as_row(self) -> dict[str, Any]:
        """One line of JSON; `from_row` undoes it."""
        return {"client": self.client, "skipped": self.reason}

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Self:
        """What `as_row` gave."""
        return cls(client=row["client"], reason=row["skipped"])


@dataclass(frozen=True, kw_only=True)
class PersonalizationOutcome:
    """What the server would have of a population, in the order of the clients that were asked for."""

    strategies: tuple[Strategy, ...]
    split: TemporalSplit
    outcomes: tuple[ClientOutcome, ...]
    skipped: tuple[SkippedClient, ...]

    def skipped_by_reason(self) -> dict[str, int]:
        """How many clients were left out, by why."""
        return dict(Counter(client.reason for client in self.skipped))


def _numbers(counts: Counts) -> list[float | None]:
    return [*(int(number) for number in counts[:-1]), _finite(float(counts.nats))]


def _counts(numbers: list[Any]) -> Counts:
    return Counts(*numbers[:-1], nats=_number(numbers[-1]))


def _finite(number: float) -> float | None:
    """JSON has no infinity."""
    return number if number < float("inf") else None


def _number(kept: float | None) -> float:
    return float("inf") if kept is None else kept
