"""Does personalization help: the global model and its personalised ones, side by side on every client.

Federated Personalization Evaluation [paper 5, section 2]: each device cuts its text in time, counts how well the
global model does on the later part, fine-tunes on the earlier one by every strategy of a grid, and counts again.
A `ClientOutcome` is all that would leave a device; the text and the models stay.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.data.splits import TemporalSplit, Unsplit
from tacit.evaluation.personalize.fine_tuning import FineTuning, fine_tune, steps_of
from tacit.keyboard.own_text import fitted_to
from tacit.keyboard.ranking import rank
from tacit.keyboard.user_cache import ALONE, Mix, UserCache
from tacit.networks.metrics import KNOWN, METRICS, Counts, Words, counts_of
from tacit.networks.on_device import HeldModel, SgdStep
from tacit.text.vocabulary import PAD

if TYPE_CHECKING:
    from tacit.data import Cache

__all__ = [
    "ClientOutcome",
    "FineTuning",
    "Paired",
    "PartComparison",
    "SkippedClient",
    "TemporalSplit",
    "personalize_client",
]

WORDS = 64  # predicted words of a sentence; what follows in a longer one is neither trained nor tested on
TOGETHER = 32  # sentences that are tested together; changes nothing else

Ids = NDArray[np.int32]


class Paired(NamedTuple):
    """The same words before two models, by whose first suggestion was right; they add up to `Counts.predicted`."""

    both: int = 0
    only_baseline: int = 0
    only_personalised: int = 0
    neither: int = 0


@dataclass(frozen=True, kw_only=True)
class PartComparison:
    """One part of one client's text under the global model and under each strategy's model, in the grid's order.

    Where fine-tuning diverged, nothing is right: every sum is the metric's `worst`.
    """

    baseline: Counts
    personalised: tuple[Counts, ...]
    paired: tuple[Paired, ...]


@dataclass(frozen=True, kw_only=True)
class ClientOutcome:
    """What one device reports. Tuples have one entry per strategy, in the grid's order."""

    client: int
    train_tokens: int  # words and ends of sentences in the train part, whatever a strategy used of them
    test: PartComparison
    gate: PartComparison | None  # None without a gate part
    tokens_seen: tuple[int, ...]  # words and ends that the fine-tuning went through, repeats counted
    training_loss: tuple[float, ...]  # nats per token, each batch before its own step; inf where it diverged
    diverged: tuple[bool, ...]  # a parameter, or a loss on the way or afterwards, was not finite: never deployed
    undated: int = 0  # sentences in no part because their time is unknown


@dataclass(frozen=True, kw_only=True)
class SkippedClient:
    """A client that could not be evaluated, and why; counted, never dropped silently."""

    client: int
    reason: str


def personalize_client(
    start: HeldModel,
    cache: "Cache",
    client: int,
    grid: Sequence[tuple[FineTuning, SgdStep]],
    split: TemporalSplit,
    words: int,
) -> ClientOutcome | SkippedClient:
    """What one device does.

    It trains on its sentences in an order drawn once from its number, the same for all strategies and epochs: in the
    order of time a batch would be one post about one thing, and a strategy that stops after some tokens would have seen
    the oldest text only.
    """
    parts = split.parts(cache.timestamps(client))
    if isinstance(parts, Unsplit):
        return SkippedClient(client=client, reason=parts.value)
    tests = [
        start.batches(_longest_first(cache.padded(client, rows, words + 1)), TOGETHER)
        for rows in (parts.test, parts.gate)
        if len(rows)
    ]
    order = np.random.default_rng(client).permutation(parts.train)
    sentences = cache.padded(client, order, words + 1)
    own = UserCache.from_sentences(sentences, start.vocabulary)
    baselines = [rank(start, text, own, [ALONE])[0] for text in tests]
    if not all((ranked.kind == KNOWN).any() for ranked in baselines):
        return SkippedClient(client=client, reason=NOTHING_KNOWN)
    past = cache.padded(client, parts.train, words + 1)  # as it was typed
    fitted = fitted_to(start, past) if any(how.fitted for how, _ in grid) else ALONE
    tuned = _tuned(start, sentences, grid, tests, own, fitted)
    comparisons = [_compare(baseline, [each.ranked[at] for each in tuned]) for at, baseline in enumerate(baselines)]
    return ClientOutcome(
        client=client,
        train_tokens=int((sentences[:, 1:] != PAD).sum()),
        test=comparisons[0],
        gate=comparisons[1] if len(comparisons) > 1 else None,
        tokens_seen=tuple(each.tokens for each in tuned),
        training_loss=tuple(each.loss for each in tuned),
        diverged=tuple(each.diverged for each in tuned),
        undated=parts.undated,
    )


class _Tuned(NamedTuple):
    """What is kept of a fine-tuned model; the model itself is not."""

    tokens: int
    loss: float
    diverged: bool
    ranked: tuple[Words | None, ...]  # by text; None for a model that is never deployed


def _tuned(
    start: HeldModel,
    sentences: Ids,
    grid: Sequence[tuple[FineTuning, SgdStep]],
    tests: Sequence[Any],
    own: UserCache,
    fitted: Mix,
) -> list[_Tuned]:
    """Each strategy's model on the texts, in the grid's order. fitted: the weights that the device fitted itself.

    Strategies that differ only in when they stop and in their caches are one training, looked at where each stops.
    """
    batches = {size: start.batches(sentences, size) for size in {how.batch_size for how, _ in grid}}
    memory = start.memory([batch for of_size in batches.values() for batch in of_size])
    together: dict[tuple[int, SgdStep], dict[int, list[int]]] = {}  # places in the grid, by training, then by its steps
    for at, (how, step) in enumerate(grid):
        stop = steps_of(how, batches[how.batch_size])
        together.setdefault((how.batch_size, step), {}).setdefault(stop, []).append(at)
    found: dict[int, _Tuned] = {}
    for (size, step), by_stop in together.items():
        stops = sorted(by_stop)
        for stop, made in zip(stops, fine_tune(start, batches[size], stops, step, memory), strict=True):
            ways = [grid[at][0] for at in by_stop[stop]]
            mixes = [fitted if how.fitted else how.mix for how in ways]
            ranked = [] if made.diverged else [rank(made.model, text, own, mixes) for text in tests]
            for number, at in enumerate(by_stop[stop]):
                words = [text[number] for text in ranked]
                sound = bool(words) and all(bool(np.isfinite(each.nats).all()) for each in words)
                found[at] = _Tuned(made.tokens, made.loss, not sound, tuple(words) if sound else (None,) * len(tests))
    return [found[at] for at in range(len(grid))]


NOTHING_KNOWN = "no word of a part it is tested on is in the vocabulary"


def _longest_first(sentences: Ids) -> Ids:
    """For testing, where the order is free: sentences of about one length together."""
    lengths = (sentences != PAD).sum(axis=1)
    return sentences[np.argsort(-lengths, kind="stable")]


def _compare(baseline: Words, personalised: Sequence[Words | None]) -> PartComparison:
    known = baseline.kind == KNOWN
    right, counts = baseline.rank[known] == 0, counts_of(baseline, np).host()
    nothing = counts._replace(
        sums={name: metric.worst if metric.better else counts.sums[name] for name, metric in METRICS.items()}
    )
    paired = []
    for each in personalised:
        right_too = np.zeros_like(right) if each is None else each.rank[known] == 0
        pairs = ((right & right_too), (right & ~right_too), (~right & right_too), (~right & ~right_too))
        paired.append(Paired(*(int(which.sum()) for which in pairs)))
    return PartComparison(
        baseline=counts,
        personalised=tuple(nothing if each is None else counts_of(each, np).host() for each in personalised),
        paired=tuple(paired),
    )
