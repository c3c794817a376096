"""What the task of a round lets a report be: how its vector is written, bounded and summed, kind by kind of tasks.

Reports are vectors that machines add up: real numbers in the clear, float32, or whole numbers modulo 2^32, encoded
updates and counts alike. What differs from kind to kind is in `EXPECTED`, and nowhere else.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tacit.aggregation import FloatSum, ReportSum, WordSum
from tacit.errors import InputError
from tacit.protocol.messages import RoundTask, Training, TrainingAsked

LENGTH_BYTES = 8  # of a safetensors file before its header: how many bytes that has
MOST_HEADER = 4096  # bytes of safetensors' header that a report may have
ROUNDING = 1e-5  # relative: by which an update clipped in float32 may be beyond the clip norm
LOSS_STEPS = 1 << 15  # of an encoded loss, to half its bound: training.report_encoding.STEPS
BLOCK = 1 << 16  # coordinates whose squares are summed in float64 at a time
ITEM_BYTES = 4  # of a number of either kind


@dataclass(frozen=True, kw_only=True)
class Expected:
    """A report that the task of a round lets be."""

    tensor: Literal["update", "words"]  # float32, or uint32 modulo 2^32
    length: int  # of the tensor
    largest: int | None  # of whole numbers, each; None of real ones
    says: frozenset[str]  # of "short" and "bounded_loss", beside the tensor
    loss_bound: float | None  # of what it says
    sealed: str | None  # the task's
    check: Callable[[NDArray[Any]], None]  # the values (length,) of a usable report. Raises: InputError

    @classmethod
    def by(cls, task: RoundTask) -> "Expected":
        """That of a task; of one whose reports are sealed, what is in them."""
        return EXPECTED[task.asks.kind](task)

    @property
    def sums(self) -> ReportSum:
        """How such reports are added, by workers and by whoever adds up what those have."""
        vectors = FloatSum(self.length) if self.tensor == "update" else WordSum(self.length)
        return ReportSum(vectors, "short" in self.says, "bounded_loss" in self.says)

    @property
    def most_bytes(self) -> int:
        """No report is longer."""
        if self.sealed is not None:
            from tacit.protocol.sealed_shape import most_bytes

            return most_bytes(self.sealed)
        return LENGTH_BYTES + MOST_HEADER + ITEM_BYTES * self.length


def _of_training(task: RoundTask) -> Expected:
    asks = task.training
    if asks.encoded is not None:
        return Expected(
            tensor="words",
            length=asks.encoded.length,
            largest=2 * asks.encoded.encoding().largest,
            says=frozenset(),
            loss_bound=None,
            sealed=task.sealed,
            check=partial(check_words, asks=asks),
        )
    asked = {"short": asks.clip_estimate, "bounded_loss": asks.loss_bound}
    return Expected(
        tensor="update",
        length=asks.parameters,
        largest=None,
        says=frozenset(name for name, value in asked.items() if value is not None),
        loss_bound=asks.loss_bound,
        sealed=task.sealed,
        check=partial(_check_norm, clip_norm=asks.clip_norm),
    )


def _of_words(task: RoundTask) -> Expected:
    from tacit.protocol.word_questions import question_of, settings_of  # whoever trains needs nothing of it

    settings, domain = settings_of(task.words), question_of(task.words).domain
    most = settings.contributions
    return Expected(
        tensor="words",
        length=domain,
        largest=most,
        says=frozenset(),
        loss_bound=None,
        sealed=task.sealed,
        check=partial(check_counts, most=most, together=most * settings.randomizer_for(domain).most_supported),
    )


def _of_histograms(task: RoundTask) -> Expected:
    from tacit.evaluation.counts.report_layout import MOST_EACH, ReportLayout  # the same

    layout = ReportLayout(sizes=task.histograms.cells, local_epsilon=task.histograms.local_epsilon)
    return Expected(
        tensor="words",
        length=layout.length,
        largest=MOST_EACH,
        says=frozenset(),
        loss_bound=None,
        sealed=task.sealed,
        check=layout.check,
    )


EXPECTED: Mapping[str, Callable[[RoundTask], Expected]] = {
    "train": _of_training,
    "discover": _of_words,
    "evaluate": _of_histograms,
    "personalize": _of_histograms,
}


def trained_words(asked: Training) -> int:
    """Words of all epochs behind one report, with those that fill sentences and batches up: time and memory follow."""
    batches = -(-asked.sentences // asked.batch_size)
    return asked.epochs * batches * asked.batch_size * (asked.words + 1)


def check_counts(counts: NDArray[np.uint32], most: int, together: int) -> None:
    """That no count is larger than `most`, and all of them no larger than `together`. Raises: InputError."""
    if int(counts.max(initial=0)) > most:
        raise InputError(f"a count of the report is beyond {most}.")
    if (total := int(counts.sum(dtype=np.int64))) > together:
        raise InputError(f"the report supports {total:,} answers in all, and {together:,} are the most that one can.")


def check_words(words: NDArray[np.uint32], asks: TrainingAsked) -> None:
    """That encoded words (length,) are those of one clipped update, as exactly as their integers tell.

    Coordinates lie in 0..2 C_inf and, less the shift, have squared norm at most `longest_squared`; behind them stand 1,
    a bit where it is asked, the digits of a loss. Raises: InputError.
    """
    assert asks.encoded is not None  # the caller's to know
    encoding = asks.encoded.encoding()
    update, behind = words[: encoding.dimension], [int(each) for each in words[encoding.dimension :]]
    if int(update.max()) > 2 * encoding.largest:
        raise InputError(f"a coordinate of the report is beyond {2 * encoding.largest}.")
    if squared_norm(update, encoding.largest) > encoding.longest_squared:
        raise InputError(f"the report is longer than the clip norm {asks.clip_norm:g} allows.")
    if behind.pop(0) != 1:
        raise InputError("the report does not count as one.")
    if asks.clip_estimate is not None and behind.pop(0) > 1:
        raise InputError("the report's bit on its length is neither 0 nor 1.")
    base = 2 * encoding.largest + 1
    if any(digit >= base for digit in behind):
        raise InputError(f"a digit of the report's loss is beyond {base - 1}.")
    if sum(digit * base**place for place, digit in enumerate(behind)) > 2 * LOSS_STEPS:
        raise InputError("the report's loss is beyond its bound.")


def squared_norm(words: NDArray[np.uint32], shift: int) -> int:
    """Of whole numbers (length,), none beyond 2 `shift`, less `shift`: exactly.

    float64 adds whole numbers up to 2^53 without rounding, in half the time of int64, which is for larger squares.
    """
    largest = max(1, shift**2)
    exact = np.float64 if BLOCK * largest <= 1 << 53 else np.int64
    squared, size = 0, min(BLOCK, ((1 << 63) - 1) // largest)  # no sum of a block leaves its type
    for at in range(0, len(words), size):
        block = words[at : at + size].astype(exact)
        block -= shift
        squared += int(np.dot(block, block))
    return squared


def _check_norm(update: NDArray[np.float32], clip_norm: float) -> None:
    squared = 0.0
    for at in range(0, len(update), BLOCK):
        block = update[at : at + BLOCK].astype(np.float64)
        squared += float(np.dot(block, block))
    if not math.isfinite(squared):
        raise InputError("the update is not finite; a device reports that it is not usable instead.")
    if math.sqrt(squared) > clip_norm * (1 + ROUNDING):
        raise InputError(f"the update's norm is beyond the clip norm {clip_norm:g}.")
