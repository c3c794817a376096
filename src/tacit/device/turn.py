"""One turn of a device: what happened when it checked in."""

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

# not eligible: it did not ask; idle: there was nothing to do; refused: it would not; unanswered: no answer, or none
# that the protocol allows; reported: it took part; lost: it took part, and no receipt came in time.
What: TypeAlias = Literal["not eligible", "idle", "refused", "unanswered", "reported", "lost"]
SOON = 1.0, 5.0  # seconds until the next turn after a report, from and to
LATER = 1.0, 3.0  # after a first turn that gave nothing
LONGEST = 900.0  # after turns that gave nothing, each of which doubles the time
MOST_AWAY = 259_200.0  # seconds: no server asks for longer, and an answer to a check-in carries no signature
FIRST = 100  # of what the server asked for last: so small a part of it is waited at first, where that is more


def later(fruitless: int, told: float) -> tuple[float, float]:
    """Between which seconds a turn follows as many that gave nothing: each doubles them, up to LONGEST.

    told: seconds in which the server asked for this device last. Who comes seldom waits longer, up to that, or else all
    who found no server would be upon it when it is back.
    """
    first = max(1.0, told / FIRST / LATER[1])
    longer = min(first * 2.0**fruitless, max(LONGEST, told) / LATER[1])
    return LATER[0] * longer, LATER[1] * longer


@dataclass(frozen=True)
class Pause:
    """What a session yields to be called again so many seconds later."""

    seconds: float


@dataclass(frozen=True, kw_only=True)
class SessionOutcome:
    """What happened, in a sentence and for programs."""

    what: What
    says: str
    at: float  # Unix seconds, by the device's clock
    wait: tuple[float, float]  # seconds after which to look again, from and to
    run: str | None = None
    round: int | None = None
    zcdp: float | None = None  # what this run has cost this device by now
    spent: float = 0.0  # and everything
    budget: float = 0.0

    def __str__(self) -> str:
        """As people read it, in a line."""
        spent = f" Spent: zCDP {self.spent:.4g} of {self.budget:g}." if self.what in ("reported", "lost") else ""
        return f"{self.what}: {self.says}{spent}"

    def to_record(self) -> dict[str, Any]:
        """Plain values for JSON: what `tacit device --json` prints of each turn."""
        return {
            "schema": "tacit.device",
            "version": 1,
            "what": self.what,
            "says": self.says,
            "at": self.at,
            "wait_s": list(self.wait),
            "run": self.run,
            "round": self.round,
            "zcdp": self.zcdp,
            "spent_zcdp": self.spent,
            "budget_zcdp": self.budget,
        }
