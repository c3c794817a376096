"""What goes wrong with devices of a swarm, and what bad ones do, drawn from a seed: the same in every repetition."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from tacit.errors import InputError

# Between which steps a device may die: it has the task; the model; recorded that it takes part; a report; sent half of
# the report; sent all of it and not read the receipt.
STEPS = ("assigned", "fetched", "recorded", "trained", "half sent", "sent")


class Fault(Enum):
    """What a byzantine device does in place of what it should. Its value is what logs say."""

    NAN = "an update with a value that is no number"
    TOO_LONG = "an update a hundred times as long as the clip norm"
    WRONG_SHAPE = "an update with a coordinate too many"
    OVERSIZE = "a report of ten times the size"
    CUT = "half of a report, as if it were all"
    REPLAY = "its report twice, and then another in its place"
    OLD_REPORT = "the bytes of an earlier report for a new assignment"
    ANOTHERS = "a report for another device's assignment"
    FORGED_SECRET = "a report with a secret that it made up"
    FORGED_TOKEN = "a check-in with a token that it made up"
    GARBAGE = "a check-in that is no JSON"
    SLOW_LORIS = "a request that never ends"
    EARLY = "check-ins without waiting, and reports in every round that lets it"
    RANDOM_SHARES = "a sealed report with shares of no key"
    RANDOM_CIPHERTEXTS = "a sealed report of random ciphertexts"
    WRONG_BOXES = "a sealed report whose boxes do not open"


SEALED = (Fault.RANDOM_SHARES, Fault.RANDOM_CIPHERTEXTS, Fault.WRONG_BOXES)  # of which nobody sees a single one
ANYWHERE = tuple(kind for kind in Fault if kind not in SEALED)


@dataclass(frozen=True, kw_only=True)
class SwarmFaults:
    """How much goes wrong, and how, as shares between 0 and 1."""

    die: float = 0.0  # of the times that a device is given a task, between two steps drawn uniformly of STEPS
    byzantine: float = 0.0  # of the devices, each with one of `kinds`
    kinds: Sequence[Fault] = ANYWHERE
    lose: float = 0.0  # of the requests: they are sent, and the connection breaks before the answer comes
    delay_s: float = 0.0  # before each request, on average; exponentially distributed
    skew_s: float = 0.0  # standard deviation of devices' clocks

    def __post_init__(self) -> None:
        for name in ("die", "byzantine", "lose"):
            if not 0 <= getattr(self, name) <= 1:
                raise InputError(f"{name}={getattr(self, name)} is no share; give 0 to 1.")
        for name in ("delay_s", "skew_s"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise InputError(f"{name}={getattr(self, name)} is no time; give seconds, 0 or more.")
        if self.byzantine and not self.kinds:
            raise InputError("byzantine devices need kinds of faults; give some.")

    def kind_of(self, device: int, seed: int) -> Fault | None:
        """What this device does wrong all its life; None for an honest one."""
        draw = random.Random(f"kind {seed} {device}")
        return draw.choice(self.kinds) if draw.random() < self.byzantine else None

    def dies_at(self, draw: random.Random) -> str | None:
        """The step before which a device dies now; None: it lives."""
        return draw.choice(STEPS) if draw.random() < self.die else None
