"""What a statement says of the budget of the clients whose text was used: how much of it is gone after this run.

Costs of several runs add. Of releases with noise, rho of zCDP: also where later runs were chosen by what earlier ones
released, because the budget was fixed before the first (arXiv:2008.11193, Theorem 1 with a Renyi filter of zCDP). All
of them are Gaussian, so epsilon follows from the sum exactly, as from one run's. Of local reports, epsilon: basic
composition. A client that took part in everything has both; (epsilon, delta) of the one and epsilon of the other add.
"""

import math
from dataclasses import dataclass
from datetime import UTC, datetime

from tacit.errors import InputError
from tacit.plurals import quantity
from tacit.privacy import gaussian
from tacit.privacy.rounding import rounded_up
from tacit.runs.budget_book import Book
from tacit.statements.contradictions import ASK, check_count, check_seal


@dataclass(frozen=True, kw_only=True)
class WindowSpent:
    """What runs took of each client, at most, that may have released in one of the windows of a budget: `days` days
    from `begins` (Unix seconds). None is allowed: nothing limits it but the whole budget.
    """

    days: float
    begins: float
    zcdp: float
    zcdp_allowed: float | None
    local_epsilon: float
    local_epsilon_allowed: float | None

    @classmethod
    def from_book(cls, book: Book, now: float) -> "WindowSpent | None":
        """Of the window that it is now; None where the budget has none."""
        begins = book.window_begins(now)
        if begins is None or book.allowed is None or book.allowed.window is None:
            return None
        window, taken = book.allowed.window, book.in_window(now)
        return cls(
            days=window.days,
            begins=begins,
            zcdp=taken.zcdp,
            zcdp_allowed=window.zcdp,
            local_epsilon=taken.local_epsilon,
            local_epsilon_allowed=window.local_epsilon,
        )

    def __post_init__(self) -> None:
        if not (0 < self.days < math.inf and math.isfinite(self.begins)):
            raise InputError(f"a window of {self.days} days from {self.begins} is none; {ASK}.")
        for what, spent, allowed in self.pots:
            if not 0 <= spent < math.inf or (allowed is not None and not 0 < allowed < math.inf):
                raise InputError(f"of a window {what} {spent} of {allowed} is spent, which cannot be; {ASK}.")

    @property
    def pots(self) -> tuple[tuple[str, float, float | None], ...]:
        """(what, how much is taken, how much is allowed) of each currency."""
        return (
            ("zCDP", self.zcdp, self.zcdp_allowed),
            ("local epsilon", self.local_epsilon, self.local_epsilon_allowed),
        )

    def taken(self) -> str:
        """What is gone in it and what windows do together, for people."""
        parts = [f"{what} {rounded_up(spent, 6)} of {allowed:.6g}" for what, spent, allowed in self.pots if allowed]
        return (
            f"Runs that may have released in the {self.days:g} days from "
            f"{datetime.fromtimestamp(self.begins, UTC):%Y-%m-%d %H:%M} UTC took {' and '.join(parts)}, each counted "
            "whole. So k such windows together cost each client at most k times that limit, and never more than the "
            "whole budget."
        )


@dataclass(frozen=True, kw_only=True)
class PopulationSpent:
    """A population's budget at a run's end: `runs` of it, this one among them, took at most `zcdp` and `local_epsilon`
    from each client, of what is allowed (None: nothing of that kind is). Those under way count as planned.

    `population` is what the budget is called, `clients` who they are; `seal` is that of the budget's last entry;
    `settled` says whether this run counts with what it took, not with what was planned.
    """

    population: str
    clients: str
    runs: int
    zcdp: float
    zcdp_allowed: float | None
    local_epsilon: float
    local_epsilon_allowed: float | None
    delta: float | None
    seal: str
    settled: bool
    window: WindowSpent | None = None

    @classmethod
    def from_book(cls, name: str, book: Book, *, settled: bool) -> "PopulationSpent":
        """Of a budget as it stands."""
        assert book.allowed is not None  # or the budget would not have been read
        total = book.total
        return cls(
            population=name,
            clients=book.allowed.clients,
            runs=len(book.counted),
            zcdp=total.zcdp,
            zcdp_allowed=book.allowed.zcdp,
            local_epsilon=total.local_epsilon,
            local_epsilon_allowed=book.allowed.local_epsilon,
            delta=book.allowed.delta,
            seal=book.seals[-1],
            settled=settled,
            window=WindowSpent.from_book(book, book.latest),
        )

    def __post_init__(self) -> None:
        check_count("runs", self.runs, minimum=1)
        check_seal(self.seal)
        for what, spent, allowed in self._pots:
            if not 0 <= spent < math.inf or (allowed is not None and not 0 < allowed < math.inf):
                raise InputError(f"of a population {what} {spent} of {allowed} is spent, which cannot be; {ASK}.")
            if spent and allowed is None:
                raise InputError(f"of a population {what} {spent} is spent and none is allowed; {ASK}.")
        if self.delta is not None and not 0 < self.delta < 1:
            raise InputError(f"delta={self.delta} of a population is not a probability; {ASK}.")

    @property
    def _pots(self) -> tuple[tuple[str, float, float | None], ...]:
        return (
            ("zCDP", self.zcdp, self.zcdp_allowed),
            ("local epsilon", self.local_epsilon, self.local_epsilon_allowed),
        )

    @property
    def exceeded(self) -> bool:
        """Whether more was taken than is allowed: clients came more often than planned."""
        pots = (*self._pots, *(() if self.window is None else self.window.pots))
        return any(allowed is not None and spent > allowed * (1 + 1e-9) for _, spent, allowed in pots)

    def check_covers(self, *, zcdp: float = 0.0, local_epsilon: float = 0.0) -> None:
        """InputError unless what one run took, where that is settled, is within what all did."""
        if not self.settled:
            return
        if zcdp > self.zcdp * (1 + 1e-9) or local_epsilon > self.local_epsilon * (1 + 1e-9):
            raise InputError(
                f"this run took zCDP {zcdp:.6g} and local epsilon {local_epsilon:.6g} of a population whose "
                f"{self.runs} runs took {self.zcdp:.6g} and {self.local_epsilon:.6g} in all; {ASK}."
            )

    def sentence(self) -> str:
        """What is gone after a run, as its statement says it."""
        return f"Several runs share these clients. After this one, {self.taken()}"

    def taken(self) -> str:
        """What is gone, for people."""
        parts = [f"{what} {rounded_up(spent, 6)} of {allowed:.6g}" for what, spent, allowed in self._pots if allowed]
        if self.delta is not None and self.zcdp_allowed is not None and self.zcdp:
            parts[0] += f" (epsilon {rounded_up(gaussian.epsilon(self.zcdp, self.delta), 6)} at delta {self.delta:g})"
        return (
            f"of the budget of {self.population!r} ({self.clients}), "
            f"{quantity(self.runs, 'run')} took {' and '.join(parts)} from each client at most."
            + ("" if self.window is None else f" {self.window.taken()}")
        )
