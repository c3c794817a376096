"""What a visit takes: how many examples a device has, how fast it is, and how often it drops out."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError
from tacit.population.hashed_randomness import bell, compiled, draw, uniform

SECOND = 1000  # milliseconds
TRAIT_EXAMPLES, TRAIT_SPEED = 8, 9


@dataclass(frozen=True, kw_only=True)
class Work:
    """A device's data and speed, and the chance that it fails.

    A device has `examples` (the median; lognormal with deviation `examples_spread` of the log), of which it trains on
    at most `most_examples`, at `examples_per_second` (median over devices, deviation `speed_spread` of the log). Model
    down and update up take `transfer_seconds` on average, exponentially distributed from visit to visit. A visit fails
    by itself with probability `dropout`, at a uniform moment of it, on top of those that a session's end or the
    deadline cuts short: arXiv:1902.01046, Section 9, saw 6% to 10% in all. The other defaults are guesses that make a
    round of arXiv:2305.18465's size last some minutes. InputError for values that mean nothing.
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


class Visits(NamedTuple):
    """A Work for the compiled loops; times in milliseconds."""

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


def visits_of(
    work: Work,
    *,
    deadline: int,
    traits: np.uint64,
    keys: tuple[np.uint64, np.uint64, np.uint64],
    known: NDArray[np.float32],
) -> Visits:
    """The same work as numbers; `keys` are those of transfer, failure and its moment."""
    transfer, failure, moment = keys
    return Visits(
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
def training_time(law: Visits, device: int) -> int:
    """How long the device trains, in milliseconds, the transfers left out; at least one, and the same at each visit."""
    if law.known.size:
        examples = float(law.known[device])
    else:
        examples = law.examples * math.exp(law.examples_spread * bell(draw(law.traits, device, TRAIT_EXAMPLES)))
    slower = math.exp(-law.speed_spread * bell(draw(law.traits, device, TRAIT_SPEED)))
    return max(1, int(min(examples, law.most) * law.per_example * slower))


@compiled
def visit(law: Visits, device: int, at: int, session_ends: int) -> tuple[int, bool]:
    """(when the visit that begins at `at` ends, whether it ends with an upload).

    It uploads unless it fails by itself, its session ends or the deadline passes before it is done.
    """
    transfers = int(-math.log1p(-uniform(draw(law.transfer, device, at))) * law.transfers)
    lasts = training_time(law, device) + transfers
    ends = at + lasts
    uploads = True
    if uniform(draw(law.failure, device, at)) < law.dropout:
        ends = at + 1 + int(uniform(draw(law.moment, device, at)) * lasts)
        uploads = False
    latest = min(session_ends, at + law.deadline)
    return (latest, False) if ends > latest else (ends, uploads)
