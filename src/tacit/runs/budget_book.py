"""What is written in the budget of a population, entry by entry, and what all entries say together."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

from tacit.errors import InputError, RunError

FORMAT = "tacit population 1"
DAY = 86400.0  # seconds

State = Literal["entered", "begun", "settled", "withdrawn"]


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What a run takes from each client: rho of zCDP by releases with noise, epsilon by reports that it randomises."""

    zcdp: float = 0.0
    local_epsilon: float = 0.0

    def __post_init__(self) -> None:
        for name, value in (("zcdp", self.zcdp), ("local_epsilon", self.local_epsilon)):
            if not 0 <= value < math.inf:
                raise InputError(f"a run with {name}={value} promises nothing, which no budget affords; add noise.")

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(zcdp=self.zcdp + other.zcdp, local_epsilon=self.local_epsilon + other.local_epsilon)

    def at_least(self, other: "Cost") -> bool:
        """Whether it is no less than the other in either currency."""
        return self.zcdp >= other.zcdp and self.local_epsilon >= other.local_epsilon

    def within(self, limit: "Cost", rounding: float) -> bool:
        """Whether it is no more than the limit in either currency, up to a relative error of rounding."""
        return self.zcdp <= limit.zcdp * (1 + rounding) and self.local_epsilon <= limit.local_epsilon * (1 + rounding)

    def __str__(self) -> str:
        said = (("zCDP", self.zcdp), ("local epsilon", self.local_epsilon))
        return " and ".join(f"{name} {value:.6g}" for name, value in said if value) or "nothing"

    def or_more(self, other: "Cost") -> "Cost":
        """The larger of both in each currency."""
        return Cost(zcdp=max(self.zcdp, other.zcdp), local_epsilon=max(self.local_epsilon, other.local_epsilon))


@dataclass(frozen=True, kw_only=True)
class Window:
    """What may be taken from each client in every `days` days, beside what may be in all; None: nothing but that.

    Windows follow one another from the budget's beginning, by the clock. A run counts whole in every window that it
    touches, from its entry until it is settled: with correlated noise a part of a run has no cost of its own that adds
    up. So each window's releases cost at most its limit, and k windows together at most k times that.
    """

    days: float
    zcdp: float | None = None
    local_epsilon: float | None = None

    def __post_init__(self) -> None:
        if not 0 < self.days < math.inf:
            raise InputError(f"a window of {self.days} days is none; give a finite number above 0, 7 for a week.")
        for name, value in (("zcdp", self.zcdp), ("local_epsilon", self.local_epsilon)):
            if value is not None and not 0 < value < math.inf:
                raise InputError(f"{name}={value} of a window is no budget; give a finite number above 0.")
        if self.zcdp is None and self.local_epsilon is None:
            raise InputError("a window limits something; give a zCDP, an epsilon or a local epsilon of each, or none.")

    def begins(self, created: float, now: float) -> float:
        """When the window began in which `now` lies, of a budget created then; in Unix seconds."""
        length = self.days * DAY
        return created + math.floor((now - created) / length) * length


@dataclass(frozen=True, kw_only=True)
class Allowed:
    """The first entry: who the clients are and what may be taken from each in all; None: nothing of that kind.

    delta: where epsilon is given of the zCDP; None: nowhere.
    """

    what: ClassVar[str] = "allowed"
    format: str = FORMAT
    clients: str
    zcdp: float | None
    local_epsilon: float | None
    delta: float | None
    created: float
    window: Window | None = None

    def __post_init__(self) -> None:
        for name, value in (("zcdp", self.zcdp), ("local_epsilon", self.local_epsilon)):
            if value is not None and not 0 < value < math.inf:
                raise InputError(f"{name}={value} is no budget; give a finite number above 0, or leave it out.")
        if self.zcdp is None and self.local_epsilon is None:
            raise InputError("a budget allows something; give a zCDP, an epsilon with its delta, or a local epsilon.")
        if self.delta is not None and not 0 < self.delta < 1:
            raise InputError(f"delta={self.delta} is not a probability between 0 and 1; give for example 1e-6.")
        for name, each in (("zcdp", "zCDP"), ("local_epsilon", "local epsilon")):
            if self.window is not None and getattr(self.window, name) is not None and getattr(self, name) is None:
                raise InputError(f"a window limits {each}, and none is allowed in all; give what all windows may take.")
        if not self.clients.strip():
            raise InputError("clients='' does not say whose budget this is; describe the clients in a few words.")


@dataclass(frozen=True, kw_only=True)
class Reserved:
    """A run that is about to be begun, and what it may cost."""

    what: ClassVar[str] = "entered"
    name: str
    kind: str  # of run
    run: str  # where its folder is to be
    clients: int  # how many it reads
    planned: Cost
    time: float


@dataclass(frozen=True, kw_only=True)
class RunBegun:
    """The folder of an entered run exists: from now on it counts."""

    what: ClassVar[str] = "begun"
    name: str


@dataclass(frozen=True, kw_only=True)
class Raised:
    """A begun run is going to cost more than was planned: what it may cost now, entered before that is released."""

    what: ClassVar[str] = "raised"
    name: str
    reserved: Cost


@dataclass(frozen=True, kw_only=True)
class Withdrawn:
    """An entered run was never begun: nothing was released from it, and nothing can be."""

    what: ClassVar[str] = "withdrawn"
    name: str


@dataclass(frozen=True, kw_only=True)
class Committed:
    """Nothing more can be released from a run: what it took, by its ledger and log."""

    what: ClassVar[str] = "settled"
    name: str
    spent: Cost
    of: str  # the seal of its journal, from which that follows
    time: float | None = None  # None: of a budget that did not say; it may have released until now


Line = Allowed | Reserved | RunBegun | Raised | Withdrawn | Committed
KINDS: Mapping[str, type[Line]] = {
    each.what: each for each in (Allowed, Reserved, RunBegun, Raised, Withdrawn, Committed)
}


@dataclass(frozen=True, kw_only=True)
class Reservation:
    """One run of a population as it stands now."""

    reserved: Reserved
    state: State = "entered"
    raised: Cost | None = None  # what it may cost, where that became more than was planned
    spent: Cost | None = None  # of a settled one
    settled: float | None = None  # when, in Unix seconds; None: it may release still, or it is not known

    def may_release_after(self, when: float) -> bool:
        """Whether it can have released something then or later."""
        return self.state != "withdrawn" and (self.settled is None or self.settled >= when)

    @property
    def cost(self) -> Cost:
        """What counts: what was spent where that is settled, nothing where it was withdrawn, else what is reserved."""
        if self.state == "withdrawn":
            return Cost()
        if self.spent is not None:
            return self.spent
        return self.reserved.planned if self.raised is None else self.raised


def _sum(runs: Iterable[Reservation]) -> Cost:
    costs = [each.cost for each in runs]
    return Cost(
        zcdp=math.fsum(each.zcdp for each in costs), local_epsilon=math.fsum(each.local_epsilon for each in costs)
    )


@dataclass
class Book:
    """All entries of a budget so far, and what they say together."""

    allowed: Allowed | None = None
    runs: dict[str, Reservation] = field(default_factory=dict)
    seals: list[str] = field(default_factory=list)

    @property
    def counted(self) -> list[Reservation]:
        """The runs that cost something, or may."""
        return [each for each in self.runs.values() if each.state != "withdrawn"]

    @property
    def total(self) -> Cost:
        """What all of them cost each client, at most."""
        return _sum(self.counted)

    @property
    def latest(self) -> float:
        """When the last entry was made, as the clocks of their writers said."""
        times = [each for run in self.runs.values() for each in (run.reserved.time, run.settled) if each is not None]
        return max(times, default=0.0 if self.allowed is None else self.allowed.created)

    def window_begins(self, now: float) -> float | None:
        """When the window began that it is now, in Unix seconds; None where there are none. A clock that was set back
        changes nothing: it is never earlier than the last entry.
        """
        if self.allowed is None or self.allowed.window is None:
            return None
        return self.allowed.window.begins(self.allowed.created, max(now, self.latest))

    def in_window(self, now: float) -> Cost:
        """What the runs cost each client, at most, that may release in the window of now: each its whole."""
        begins = self.window_begins(now)
        return Cost() if begins is None else _sum(each for each in self.counted if each.may_release_after(begins))

    def take(self, line: Line, seal: str, where: str) -> None:
        """One more entry. Raises: RunError where it cannot follow those before it."""
        if isinstance(line, Allowed):
            fits = self.allowed is None
            self.allowed = line
        elif isinstance(line, Reserved):
            fits = self.allowed is not None and line.name not in self.runs
            self.runs[line.name] = Reservation(reserved=line)
        else:
            before = self.runs.get(line.name)
            follows: dict[type, tuple[State, ...]] = {
                RunBegun: ("entered",),
                Raised: ("begun",),
                Withdrawn: ("entered",),
                Committed: ("begun",),
            }
            fits = before is not None and before.state in follows[type(line)]
            if before is not None and isinstance(line, Raised):
                fits = fits and line.reserved.at_least(before.cost)
                self.runs[line.name] = replace(before, raised=line.reserved)
            elif before is not None:
                spent, when = (line.spent, line.time) if isinstance(line, Committed) else (None, None)
                self.runs[line.name] = replace(before, state=line.what, spent=spent, settled=when)  # type: ignore[arg-type]
        if not fits:
            raise RunError(
                f"{where} ({line.what}) cannot follow the entries before it; restore the folder from a copy."
            )
        self.seals.append(seal)
