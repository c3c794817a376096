"""One turn of a device: what happened when it looked whether there was something to do."""

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

# not eligible: it did not ask; idle: there was nothing to do; refused: it would not; unanswered: no answer, or none
# that the protocol allows; reported: it took part; lost: it took part, and no receipt came in time.
What: TypeAlias = Literal["not eligible", "idle", "refused", "unanswered", "reported", "lost"]


@dataclass(frozen=True, kw_only=True)
class Turn:
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
