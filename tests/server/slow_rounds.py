"""The slow reference of the store: rounds in memory, one thread, each rule written out once more as plainly as it
goes.
"""

from dataclasses import dataclass, field

from tacit.server.store.assignments import FEWEST, NEARLY_FULL, NoPlace, ReportAnswer
from tacit.server.store.round_states import LONGEST_LEASE


@dataclass
class SlowAssignment:
    state: str = "assigned"
    worker: str | None = None
    body: str | None = None


@dataclass
class SlowRound:
    round: int
    attempt: int
    goal: int
    least: int
    most: int
    state: str = "selecting"
    assigned: int = 0
    lost: int = 0
    total: str | None = None
    reports: int | None = None
    assignments: dict[str, SlowAssignment] = field(default_factory=dict)
    partials: dict[str, tuple[int, int]] = field(default_factory=dict)  # worker -> (generation, reports)
    counted_before: int = 0  # of a round whose rows are gone

    def having(self, state: str, worker: str | None = None) -> list[str]:
        return [
            name
            for name, each in self.assignments.items()
            if each.state == state and (worker is None or each.worker == worker)
        ]

    @property
    def received(self) -> int:
        return len(self.having("received"))

    @property
    def counted(self) -> int:
        return self.counted_before or len(self.having("counted"))


class SlowStore:
    """What may be refused answers None or False; `Lost`: of a lease that another has."""

    def __init__(self) -> None:
        self.rounds: dict[str, SlowRound] = {}
        self.now = 0.0
        self.owner: str | None = None
        self.until: float | None = None
        self.term = 0
        self.redeemed: set[str] = set()

    # -- coordinators ------------------------------------------------------------------------------------------------

    def take_lease(self, owner: str, seconds: float) -> int | None:
        if self.until is not None and owner != self.owner and self.now < self.until <= self.now + LONGEST_LEASE:
            return None
        self.owner, self.until, self.term = owner, self.now + seconds, self.term + 1
        return self.term

    def holds(self, owner: str, term: int) -> bool:
        return (owner, term) == (self.owner, self.term)

    def open(self, task: str, new: SlowRound) -> bool:
        for other in self.rounds.values():
            if other.state == "abandoned" or (other.state == "released" and other.round < new.round):
                continue
            return False
        self.rounds[task] = new
        return True

    def move(self, task: str, before: tuple[str, ...], after: str) -> bool:
        if self.rounds[task].state not in before:
            return False
        self.rounds[task].state = after
        return True

    def begin_summing(self, task: str) -> bool:
        if not self.move(task, ("closing",), "summing"):
            return False
        self._lose(task, self.rounds[task].having("received"))
        return True

    def bind(self, task: str, digest: str, reports: int) -> bool | None:
        found = self.rounds[task]
        if found.state != "summing":
            return False
        if reports != found.counted or reports < found.least:
            return None
        found.state, found.total, found.reports = "closed", digest, reports
        return True

    def end(self, task: str, before: tuple[str, ...], after: str) -> bool:
        if not self.move(task, before, after):
            return False
        found = self.rounds[task]
        # the columns of the row stay; only the rows of devices go
        found.counted_before = found.counted
        found.assignments, found.partials = {}, {}
        return True

    # -- workers -----------------------------------------------------------------------------------------------------

    def assign(self, task: str, token: str | None = None) -> NoPlace | None:
        """None: it is given a place, whose name `assigned` is told."""
        found = self.rounds[task]
        if found.state != "selecting" or found.assigned >= found.most:
            return NoPlace.FULL
        if token is not None and token in self.redeemed:
            return NoPlace.REDEEMED
        found.assigned += 1
        if token is not None:
            self.redeemed.add(token)
        return None

    def assigned(self, task: str, name: str) -> None:
        self.rounds[task].assignments[name] = SlowAssignment()

    def give_back(self, task: str, name: str) -> bool:
        found = self.rounds[task]
        each = found.assignments.get(name)
        if found.state not in ("selecting", "reporting") or each is None or each.state != "assigned":
            return False
        del found.assignments[name]
        found.assigned -= 1
        return True

    def receive(self, task: str, name: str, worker: str, body: str, usable: bool) -> ReportAnswer:
        found = self.rounds[task]
        each = found.assignments.get(name)
        takes = found.state in ("selecting", "reporting")
        takes = takes and (not usable or found.received + found.counted < found.goal)
        if each is None:
            return ReportAnswer.LATE
        if each.body is not None:
            return ReportAnswer.AGAIN if each.body == body else ReportAnswer.OTHER
        if not takes:
            return ReportAnswer.LATE
        holding = {one.worker for one in found.assignments.values() if one.state == "received"}
        left = found.goal - found.received - found.counted
        if usable and left < NEARLY_FULL and holding and worker not in holding:
            return ReportAnswer.ELSEWHERE
        each.state, each.worker, each.body = "received" if usable else "lost", worker, body
        found.lost += not usable
        return ReportAnswer.RECEIVED

    def flush(self, task: str, worker: str, generation: int, reports: int, new: list[str]) -> bool:
        found = self.rounds[task]
        before = found.partials.get(worker, (-1, 0))
        if len(new) < FEWEST or found.state not in ("selecting", "reporting", "closing"):
            return False
        if generation != before[0] + 1 or reports != before[1] + len(new):
            return False
        if not set(new) <= set(found.having("received", worker)):
            return False
        for name in new:
            found.assignments[name].state = "counted"
        found.partials[worker] = generation, reports
        return True

    def give_up(self, task: str, worker: str) -> int:
        found = self.rounds[task]
        if found.state not in ("selecting", "reporting", "closing"):
            return 0
        return self._lose(task, found.having("received", worker))

    def _lose(self, task: str, names: list[str]) -> int:
        for name in names:
            self.rounds[task].assignments[name].state = "lost"
        self.rounds[task].lost += len(names)
        return len(names)
