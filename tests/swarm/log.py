"""What devices of a swarm saw and did: each takes note of every task that it was given, and of how that ended."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

RECEIVED, REFUSED, DIED, UNANSWERED, STAYED_AWAY = "received", "refused", "died", "unanswered", "stayed away"


class TaskOutcome(NamedTuple):
    """A task that a device was given, and what became of it."""

    device: int
    run: str
    round: int
    task: str  # 32 hex: of this attempt at the round
    assignment: str
    model: str  # SHA-256 of the round's model
    took_part: bool  # by its own record, which it writes before its report leaves
    fault: str | None  # what a byzantine device did; None: it is honest
    # received: there is a receipt of its report; refused: the server answered otherwise; died; unanswered: it does not
    # know; stayed away: by its own rules
    how: str
    says: str = ""  # the step before which it died; the kind of the server's refusal; the rule
    spent: float = 0.0  # of all that it ever took part in, by its record, where each round costs 1

    @property
    def may_count(self) -> bool:
        """Whether the report may be in a sum without a receipt: all of it was sent, and no answer came."""
        return (self.how == DIED and self.says == "sent") or self.how == UNANSWERED


@dataclass
class SwarmLog:
    """Of all devices of a swarm."""

    parts: list[TaskOutcome] = field(default_factory=list)
    answers: Counter[tuple[str, int]] = field(
        default_factory=Counter
    )  # (what was asked, status); a byzantine device's by its kind
    idle: int = 0  # check-ins answered by when to come back
    unanswered: int = 0  # requests

    def of(self, task: str) -> list[TaskOutcome]:
        """What devices did in one attempt at a round."""
        return [each for each in self.parts if each.task == task]

    def received(self, task: str) -> list[TaskOutcome]:
        """Those of it whose report has a receipt."""
        return [each for each in self.of(task) if each.how == RECEIVED]

    def models(self) -> dict[tuple[str, int], set[str]]:
        """By run and round, the digests of the models that devices were told it begins with: one each, or a round was
        released twice.
        """
        found: dict[tuple[str, int], set[str]] = {}
        for each in self.parts:
            found.setdefault((each.run, each.round), set()).add(each.model)
        return found

    def to_record(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "assignments": len(self.parts),
            "idle_check_ins": self.idle,
            "requests_unanswered": self.unanswered,
            "how": dict(Counter(each.how for each in self.parts)),
            "answers": {f"{what}: {status}": count for (what, status), count in sorted(self.answers.items())},
            "rounds": [list(each) for each in sorted(self.models())],
        }


def overcharged(parts: Iterable[TaskOutcome]) -> dict[int, tuple[float, int]]:
    """By device, (what it spent, in how many rounds it took part) where that is not one for each."""
    spent: dict[int, float] = {}
    rounds: dict[int, set[tuple[str, int]]] = {}
    for each in parts:
        spent[each.device] = each.spent
        rounds.setdefault(each.device, set()).update([(each.run, each.round)] if each.took_part else [])
    return {device: (spent[device], len(own)) for device, own in rounds.items() if spent[device] != len(own)}


def rounds_apart(parts: Iterable[TaskOutcome]) -> int | None:
    """The least distance of two rounds of a run in which one device took part: None where none took part twice."""
    least, last = None, dict[tuple[int, str], int]()
    for each in sorted(parts, key=lambda part: part.round):
        if not each.took_part:
            continue
        before = last.get((each.device, each.run))
        if before is not None and before != each.round:
            least = each.round - before if least is None else min(least, each.round - before)
        last[each.device, each.run] = each.round
    return least
