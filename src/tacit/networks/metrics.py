"""How well the next word is predicted: METRICS, each a sum over words, with the exclusions named.

Accuracy is top-1 and top-3 IN-VOCABULARY accuracy (paper 1): of the words that were really typed next
and stand in the vocabulary, the share that was the first, or one of the first three, suggestions. Padding,
the beginning of a sentence and out-of-vocabulary words never count as targets; the end of a sentence only
with `ends=True`. A device cannot show a special token, so none of them is ever a suggestion, except the end
with `ends=True`.

ALL-TOKEN accuracy is paper 5's (section 4: "the number of correct predictions to the total number of tokens"): ends and
unknown words count like any word, and are what a model may predict. It says how well a model knows the text; nobody is
shown an end or "some unknown word", so it is not what a keyboard's user gains.

Cross-entropy is over the same targets, but from the full softmax: the probability that the model gives to
special tokens is lost to it, so it compares with the training loss, not with a renormalised distribution.

Everything that counts, records, compares, releases or draws goes through METRICS, so that a metric is a line there. No
JAX here: `language_model.count` ranks words with it, `on_device` without.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

Number = Any  # an array () on its way, or a Python number
SHOWN = 3  # suggestions on a keyboard's strip

NO_TARGET, KNOWN, UNKNOWN, END = 0, 1, 2, 3  # kinds of targets: padding, a word of the vocabulary, another, the end


class Words(NamedTuple):
    """The targets of some sentences in any order, as arrays (W,) of NumPy or JAX."""

    rank: Any  # integers: how many suggestions come before the target; of specials it means nothing
    nats: Any  # -log of its probability, from the softmax over all V
    kind: Any  # integers: NO_TARGET, KNOWN, UNKNOWN or END
    first: Any  # whether none of all tokens but padding and the beginning comes before the target


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A mean over targets: what each adds, divided by how many there are."""

    title: str  # as pages and figures name it
    of: Callable[[Words], Any]  # what each target adds, (W,)
    over: Literal["predicted", "words", "tokens"] = "predicted"  # the targets that count; typed words; these and ends
    unit: Literal["share", "nats"] = "share"
    better: Literal[1, -1, 0] = 1  # which direction is a gain; 0: it says something of the text, not of the model
    # Cuts of the histograms of its change for a client: from first/per_unit to last/per_unit in steps of 1/per_unit.
    changes: tuple[int, int, int] = (-10, 20, 100)

    def gain(self, before: float, after: float) -> float:
        """The change from one sum to another, positive where it is for the better."""
        return self.better * (after - before)

    @property
    def worst(self) -> float:
        """The sum of a model that predicts nothing."""
        return float("inf") if self.better < 0 else 0


METRICS: dict[str, Metric] = {
    "top1_accuracy": Metric(title="top-1 accuracy", of=lambda words: words.rank < 1),
    "top3_accuracy": Metric(title="top-3 accuracy", of=lambda words: words.rank < SHOWN),
    "all_token_accuracy": Metric(title="all-token accuracy", of=lambda words: words.first, over="tokens"),
    "cross_entropy": Metric(
        title="cross-entropy, nats a word", of=lambda words: words.nats, unit="nats", better=-1, changes=(-20, 20, 20)
    ),
    "oov_rate": Metric(title="words out of vocabulary", of=lambda words: words.kind == UNKNOWN, over="words", better=0),
}
# Of which words a share is, beside every figure: in `predicted`, in `words`, or client by client, each counting alike.
OF_KNOWN, OF_ALL, OVER_CLIENTS = "of known words", "of all words typed", "mean over clients"
TOP1 = "top1_accuracy"  # what clients are compared by, and policies chosen by
ALL_TOKENS = "all_token_accuracy"


def changing() -> tuple[str, ...]:
    """The metrics that a model can change: all but those of the text."""
    return tuple(name for name, metric in METRICS.items() if metric.better)


class Counts(NamedTuple):
    """Sums over sentences; they add up over batches and clients, and the ratios are taken at the end.

    One batch's counts are int32 and its nats float32; take `.host()` before adding up many.
    """

    words: Number = 0  # typed words, OOV included; no padding, beginning or end
    ends: Number = 0  # ends of sentences
    predicted: Number = 0  # counted targets: known words, and the ends if asked for
    sums: Mapping[str, Number] = {}  # by metric

    def __add__(self, other: "Counts") -> "Counts":  # type: ignore[override]  # sums, not concatenation
        names = {**self.sums, **other.sums}
        return Counts(
            words=self.words + other.words,
            ends=self.ends + other.ends,
            predicted=self.predicted + other.predicted,
            sums={name: self.sums.get(name, 0) + other.sums.get(name, 0) for name in names},
        )

    def host(self) -> "Counts":
        """The same as Python numbers, whose sums neither overflow nor lose digits."""
        return Counts(
            words=int(self.words),
            ends=int(self.ends),
            predicted=int(self.predicted),
            sums={name: each.item() if hasattr(each, "item") else each for name, each in self.sums.items()},
        )

    def value(self, metric: str) -> float:
        """The metric with this name; nan where there was nothing to take it over."""
        whole = self.over(metric)
        return float(self.sums.get(metric, 0)) / float(whole) if whole else float("nan")

    def over(self, metric: str) -> Number:
        """How many targets the metric is a mean over."""
        return {"predicted": self.predicted, "words": self.words, "tokens": self.words + self.ends}[
            METRICS[metric].over
        ]

    def to_row(self) -> dict[str, Any]:
        """For a line of JSON, which has no infinity; `from_row` undoes it."""
        sums = {name: None if each == float("inf") else each for name, each in self.sums.items()}
        return {"words": self.words, "ends": self.ends, "predicted": self.predicted, "sums": sums}

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> "Counts":
        """What `to_row` gave."""
        sums = {name: float("inf") if each is None else each for name, each in row["sums"].items()}
        return cls(words=row["words"], ends=row["ends"], predicted=row["predicted"], sums=sums)


def counts_of(words: Words, numbers: Any, *, ends: bool = False) -> Counts:
    """The sums over some targets. numbers: the library that computes them, `numpy` or `jax.numpy`.

    NumPy adds up in float64 and int64, JAX in float32 and int32.
    """
    typed = (words.kind == KNOWN) | (words.kind == UNKNOWN)
    ended = words.kind == END
    counted = (words.kind == KNOWN) | ended if ends else words.kind == KNOWN
    over = {"predicted": counted, "words": typed, "tokens": typed | ended}

    def total(values: Any, which: Any) -> Any:
        if values.dtype == bool:
            return (values & which).sum(dtype=whole)
        return numbers.where(which, values, values.dtype.type(0)).sum(dtype=real)

    whole, real = (numbers.int64, numbers.float64) if numbers.__name__ == "numpy" else (numbers.int32, numbers.float32)
    return Counts(
        words=typed.sum(dtype=whole),
        ends=ended.sum(dtype=whole),
        predicted=counted.sum(dtype=whole),
        sums={name: total(metric.of(words), over[metric.over]) for name, metric in METRICS.items()},
    )
