"""Would a model of one's own help: the global model and its personalised ones, side by side on every client.

Federated Personalization Evaluation [paper 5, section 2]: each device cuts its text in time, counts how well the
global model does on the later part, fine-tunes on the earlier one by every strategy of a grid, and counts again.
A `ClientOutcome` is all that would leave a device; the text and the models stay.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from tacit.compute.cores import Cores
from tacit.data import Cache
from tacit.errors import InputError
from tacit.evaluation.fine_tuning import FineTuned, Strategy, fine_tune
from tacit.evaluation.ranking import Ranked, rank
from tacit.evaluation.splits import TemporalSplit, Unsplit
from tacit.keyboard.cifg_parameters import CifgParameters
from tacit.keyboard.cifg_ragged import Batch, Weights, batches_of, tokens_of
from tacit.keyboard.metrics import Counts
from tacit.keyboard.vocabulary import PAD

__all__ = [
    "ClientOutcome",
    "Comparison",
    "Paired",
    "PersonalizationOutcome",
    "SkippedClient",
    "Strategy",
    "TemporalSplit",
    "personalize_clients",
]

WORDS = 64  # predicted words of a sentence; what follows in a longer one is neither trained nor tested on
TOGETHER = 32  # sentences that are tested together; changes nothing else

Report = Callable[["ClientOutcome | SkippedClient"], None]


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


def personalize_clients(
    model: CifgParameters,
    cache: Cache,
    clients: Sequence[int] | NDArray[np.int64],
    strategies: Sequence[Strategy],
    split: TemporalSplit,
    *,
    cores: Cores,
    words: int = WORDS,
    progress: Report | None = None,
) -> PersonalizationOutcome:
    """Every strategy on every client, side by side with the global model.

    A client is one worker's, all strategies of it, so an outcome depends on the client alone, to the bit. `progress`
    gets each as it is done (in no certain order, one at a time), so that a run can be kept and gone on with.
    Memory: per worker the model twice and the scores of one batch (batch size x words x V floats at most).

    Raises: InputError when model and cache have vocabularies of different sizes, the model is not finite, or there is
    nothing to do.
    """
    start = Weights.of(model)
    if len(start.table) != cache.manifest.vocabulary.size:
        raise InputError(
            f"the model knows {len(start.table)} words and the cache {cache.manifest.vocabulary.size}: import the text "
            "with the model's own vocabulary."
        )
    if not start.finite():
        raise InputError("the global model has parameters that are not finite numbers; nothing can be made of it.")
    if not strategies or words < 1:
        raise InputError(f"{len(strategies)} strategies on {words} words a sentence: give at least one of each.")
    reporting = Lock()

    def one(_: Any, client: int) -> ClientOutcome | SkippedClient:
        outcome = personalize_client(start, cache, client, strategies, split, words)
        if progress is not None:
            with reporting:
                progress(outcome)
        return outcome

    import scipy.linalg.cython_blas  # noqa: F401  the library behind compiled products: loaded, so that the limit holds
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1, user_api="blas"):  # a worker is one thread
        found = cores.map(one, [int(client) for client in clients])
    return PersonalizationOutcome(
        strategies=tuple(strategies),
        split=split,
        outcomes=tuple(each for each in found if isinstance(each, ClientOutcome)),
        skipped=tuple(each for each in found if isinstance(each, SkippedClient)),
    )


def personalize_client(
    start: Weights, cache: Cache, client: int, strategies: Sequence[Strategy], split: TemporalSplit, words: int
) -> ClientOutcome | SkippedClient:
    """What one device does.

    It trains on its sentences in an order drawn once from its number, the same for all strategies and epochs: in the
    order of time a batch would be one post about one thing, and a strategy that stops after some tokens would have seen
    the oldest text only.
    """
    parts = split.parts(cache.timestamps(client))
    if isinstance(parts, Unsplit):
        return SkippedClient(client=client, reason=parts.value)
    tests = [_longest_first(cache.padded(client, rows, words + 1)) for rows in (parts.test, parts.gate) if len(rows)]
    baselines = [rank(start, text) for text in tests]
    if not all((ranked.ranks >= 0).any() for ranked in baselines):
        return SkippedClient(client=client, reason=NOTHING_KNOWN)
    order = np.random.default_rng(client).permutation(parts.train)
    sentences = cache.padded(client, order, words + 1)
    batches = {size: batches_of(sentences, size) for size in {strategy.batch_size for strategy in strategies}}
    largest = max(len(batch.ids) for of_size in batches.values() for batch in of_size)
    memory = np.empty(len(start.table) * largest, np.float32)

    tuned: list[FineTuned] = []
    ranked: list[list[Ranked | None]] = []  # by strategy, by text; None for a model that is never deployed
    for strategy in strategies:
        made = fine_tune(start, batches[strategy.batch_size], strategy, memory)
        found = [] if made.diverged else [rank(made.weights, text) for text in tests]
        sound = bool(found) and all(each.finite for each in found)
        tuned.append(made._replace(weights=start, diverged=not sound))
        ranked.append([*found] if sound else [None] * len(tests))
    comparisons = [
        _compare(text, baseline, [of_strategy[at] for of_strategy in ranked])
        for at, (text, baseline) in enumerate(zip(tests, baselines, strict=True))
    ]
    return ClientOutcome(
        client=client,
        train_tokens=tokens_of(batches[strategies[0].batch_size]),
        test=comparisons[0],
        gate=comparisons[1] if len(comparisons) > 1 else None,
        tokens_seen=tuple(made.tokens for made in tuned),
        training_loss=tuple(made.loss for made in tuned),
        diverged=tuple(made.diverged for made in tuned),
        undated=parts.undated,
    )


NOTHING_KNOWN = "no word of a part it is tested on is in the vocabulary"


def _longest_first(sentences: NDArray[np.int32]) -> list[Batch]:
    """For testing, where the order is free: sentences of about one length together."""
    lengths = (sentences != PAD).sum(axis=1)
    return batches_of(sentences[np.argsort(-lengths, kind="stable")], TOGETHER)


def _compare(text: Sequence[Batch], baseline: Ranked, personalised: Sequence[Ranked | None]) -> Comparison:
    known = baseline.ranks >= 0
    right = baseline.ranks[known] == 0
    nothing = baseline.counts(text)._replace(top1=0, top3=0, nats=float("inf"))
    paired = []
    for each in personalised:
        right_too = np.zeros_like(right) if each is None else each.ranks[known] == 0
        pairs = ((right & right_too), (right & ~right_too), (~right & right_too), (~right & ~right_too))
        paired.append(Paired(*(int(which.sum()) for which in pairs)))
    return Comparison(
        baseline=baseline.counts(text),
        personalised=tuple(nothing if each is None else each.counts(text) for each in personalised),
        paired=tuple(paired),
    )


def _numbers(counts: Counts) -> list[float | None]:
    return [*(int(number) for number in counts[:-1]), _finite(float(counts.nats))]


def _counts(numbers: list[Any]) -> Counts:
    *whole, nats = numbers
    return Counts(*whole)._replace(nats=_number(nats))


def _finite(number: float) -> float | None:
    """JSON has no infinity."""
    return number if number < float("inf") else None


def _number(kept: float | None) -> float:
    return float("inf") if kept is None else kept
