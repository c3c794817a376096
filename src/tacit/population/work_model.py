"""What an attempt to train takes: how many examples a device has, how fast it is, and how often it drops out."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.compiled import compiled
from tacit.errors import InputError
from tacit.population.hashed_randomness import draw, gaussian, uniform

SECOND = 1000  # milliseconds
TRAIT_EXAMPLES, TRAIT_SPEED = 8, 9


@dataclass(frozen=True, kw_only=True)
class WorkModel:
    """A device's data and speed, and the chance that it fails.

    A device has `examples` (the median; lognormal with deviation `examples_spread` of the log), of which it trains on
    at most `most_examples`, at `examples_per_second` (median over devices, deviation `speed_spread` of the log). Model
    down and update up take `transfer_seconds` on average, exponentially distributed from attempt to attempt. An
    attempt fails by itself with probability `dropout`, at a uniform moment of it, on top of those that a session's end
    or the deadline cuts short: arXiv:1902.01046, Section 9, saw 6% to 10% in all. The other defaults are guesses that
    make a round of arXiv:2305.18465's size last some minutes. InputError for values that mean nothing.
    """

    examples: float = 400.0
    examples_spread: float = 0.8
    most_examples: float = 1000.0
    examples_per_second: float = 4.0
    speed_spread: float = 0.4
    transfer_seconds: float = 20.0
    dropout: float = 0.06

    def __post_init__(self) -> None:
        for name in ("examples", "most_examples", "examples_per_second"):
            if not 0 < getattr(self, name) < math.inf:
                raise InputError(f"{name}={getattr(self, name)} is not a finite number above 0; give one.")
        for name in ("examples_spread", "speed_spread", "transfer_seconds"):
            if not 0 <= getattr(self, name) < math.inf:
                raise InputError(f"{name}={getattr(self, name)} is not a finite number of 0 or more; give one.")
        if not 0 <= self.dropout < 1:
            raise InputError(
                f"dropout={self.dropout} is no share below 1, and a round waits for reports; give 0 or more and less."
            )


class Attempts(NamedTuple):
    """A WorkModel for the compiled loops; times in milliseconds."""

    traits: np.uint64  # keys
    transfer: np.uint64
    failure: np.uint64
    moment: np.uint64
    known: NDArray[np.float32]  # (devices,) examples where they are known, else empty
    examples: float
    examples_spread: float
    most: float
    per_example: float
    speed_spread: float
    transfers: float
    dropout: float
    deadline: int


def attempts_of(
    work: WorkModel,
    *,
    deadline: int,
    traits: np.uint64,
    keys: tuple[np.uint64, np.uint64, np.uint64],
    known: NDArray[np.float32],
) -> Attempts:
    """The same work as numbers; `keys` are those of transfer, failure and its moment."""
    transfer, failure, moment = keys
    return Attempts(
        traits=traits,
        transfer=transfer,
        failure=failure,
        moment=moment,
        known=known,
        examples=float(work.examples),
        examples_spread=float(work.examples_spread),
        most=float(work.most_examples),
        per_example=float(SECOND / work.examples_per_second),
        speed_spread=float(work.speed_spread),
        transfers=float(work.transfer_seconds * SECOND),
        dropout=float(work.dropout),
        deadline=deadline,
    )


@compiled
def training_time(attempts: Attempts, device: int) -> int:
    """Milliseconds that the device trains, the transfers left out; at least one, and the same at each attempt."""
    if attempts.known.size:
        examples = float(attempts.known[device])
    else:
        examples = attempts.examples * math.exp(
            attempts.examples_spread * gaussian(draw(attempts.traits, device, TRAIT_EXAMPLES))
        )
    slower = math.exp(-attempts.speed_spread * gaussian(draw(attempts.traits, device, TRAIT_SPEED)))
    return max(1, int(min(examples, attempts.most) * attempts.per_example * slower))


@compiled
def attempt(attempts: Attempts, device: int, at: int, session_ends: int) -> tuple[int, bool]:
    """(when the attempt that begins at `at` ends, whether it ends with an upload).

    It uploads unless it fails by itself, its session ends or the deadline passes before it is done.
    """
    transfers = int(-math.log1p(-uniform(draw(attempts.transfer, device, at))) * attempts.transfers)
    lasts = training_time(attempts, device) + transfers
    ends = at + lasts
    uploads = True
    if uniform(draw(attempts.failure, device, at)) < attempts.dropout:
        ends = at + 1 + int(uniform(draw(attempts.moment, device, at)) * lasts)
        uploads = False
    latest = min(session_ends, at + attempts.deadline)
    return (latest, False) if ends > latest else (ends, uploads)
