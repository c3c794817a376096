"""What a report may be: a vector of so many numbers, each bounded, that machines add up, and what stands beside it.

Numbers are real, float32, in the clear; or whole, uint32 modulo 2^32, encoded updates and counts alike. A question says
the shape of its reports; whoever checks and adds them needs nothing else of its kind.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError

if TYPE_CHECKING:
    from tacit.privacy.encoding import Encoding

ROUNDING = 1e-5  # relative: by which an update clipped in float32 may be beyond the clip norm
BLOCK = 1 << 16  # coordinates whose squares are summed in float64 at a time
LOSS_STEPS = 1 << 15  # of an encoded loss, to half its bound: training.private_loss.STEPS
ITEM_BYTES = 4  # of a number of either kind
SHORT = "short"  # a bit beside the vector: whether the update was no longer than the clip estimate
LOSS = "bounded_loss"  # a number beside the vector: the training loss, clipped to [0, bound], less half the bound


@dataclass(frozen=True, kw_only=True)
class ReportShape:
    """A vector of numbers, what bounds it, and what is said beside it.

    `check` raises InputError for values (length,) that no usable report has: beyond `largest`, longer than a norm, in
    two cells of a histogram, whatever the guarantee of the kind rests on.
    """

    tensor: Literal["update", "words"]  # float32, or uint32 modulo 2^32
    length: int  # of the vector
    largest: int | None  # of whole numbers, each; None of real ones
    beside: frozenset[str] = frozenset()  # of SHORT and LOSS
    loss_bound: float | None = None  # of LOSS
    check: Callable[[NDArray[Any]], None]

    @property
    def bytes(self) -> int:
        """Of the vector."""
        return ITEM_BYTES * self.length


def update_shape(
    parameters: int, *, clip_norm: float, clip_estimate: float | None, loss_bound: float | None
) -> ReportShape:
    """Of clipped updates (d,) in the clear, with what is asked beside."""
    said = {SHORT: clip_estimate, LOSS: loss_bound}
    return ReportShape(
        tensor="update",
        length=parameters,
        largest=None,
        beside=frozenset(name for name, value in said.items() if value is not None),
        loss_bound=loss_bound,
        check=partial(check_norm, clip_norm=clip_norm),
    )


def encoded_shape(length: int, encoding: "Encoding", *, clip_norm: float, clip_estimate: float | None) -> ReportShape:
    """Of encoded updates, what is asked beside in the same integers."""
    check = partial(check_encoded, encoding=encoding, clip_norm=clip_norm, says_short=clip_estimate is not None)
    return ReportShape(tensor="words", length=length, largest=2 * encoding.largest, check=check)


def counts_shape(length: int, *, most: int, together: int) -> ReportShape:
    """Of counts (length,), each at most `most`, and all of them at most `together`."""
    check = partial(check_counts, most=most, together=together)
    return ReportShape(tensor="words", length=length, largest=most, check=check)


def check_counts(counts: NDArray[np.uint32], most: int, together: int) -> None:
    """That no count is larger than `most`, and all of them no larger than `together`. Raises: InputError."""
    if int(counts.max(initial=0)) > most:
        raise InputError(f"a count of the report is beyond {most}.")
    if (total := int(counts.sum(dtype=np.int64))) > together:
        raise InputError(f"the report supports {total:,} answers in all, and {together:,} are the most that one can.")


def check_norm(update: NDArray[np.float32], clip_norm: float) -> None:
    """That real numbers (d,) are finite, and no longer than the clip norm but for rounding. Raises: InputError."""
    squared = 0.0
    for at in range(0, len(update), BLOCK):
        block = update[at : at + BLOCK].astype(np.float64)
        squared += float(np.dot(block, block))
    if not math.isfinite(squared):
        raise InputError("the update is not finite; a device reports that it is not usable instead.")
    if math.sqrt(squared) > clip_norm * (1 + ROUNDING):
        raise InputError(f"the update's norm is beyond the clip norm {clip_norm:g}.")


def check_encoded(words: NDArray[np.uint32], *, encoding: "Encoding", clip_norm: float, says_short: bool) -> None:
    """That encoded words (length,) are those of one clipped update, as exactly as their integers tell.

    Coordinates lie in 0..2 C_inf and, less the shift, have squared norm at most `longest_squared`; behind them stand 1,
    a bit where it is asked, the digits of a loss. Raises: InputError.
    """
    update, behind = words[: encoding.dimension], [int(each) for each in words[encoding.dimension :]]
    if int(update.max()) > 2 * encoding.largest:
        raise InputError(f"a coordinate of the report is beyond {2 * encoding.largest}.")
    if squared_norm(update, encoding.largest) > encoding.longest_squared:
        raise InputError(f"the report is longer than the clip norm {clip_norm:g} allows.")
    if behind.pop(0) != 1:
        raise InputError("the report does not count as one.")
    if says_short and behind.pop(0) > 1:
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
