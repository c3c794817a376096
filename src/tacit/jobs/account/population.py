"""One budget over a population: what its clients may spend in all, and what every run spent."""

import html
import time
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from types import NoneType
from typing import Any

from tacit.errors import InputError, of_type
from tacit.files import PathLike, as_path
from tacit.privacy import gaussian
from tacit.privacy.delta import DELTA_TOO_LARGE, publishing_warning
from tacit.records import to_plain
from tacit.runs.budget import PopulationBudget
from tacit.runs.budget_book import Reservation, Window
from tacit.statements.population import PopulationSpent, WindowSpent


@dataclass(frozen=True, kw_only=True)
class PopulationAccount:
    """A population's budget as it stands: what is allowed, what is spent, and the runs that spent it, in their order.

    `spent` counts a run that is not settled as it was planned; withdrawn ones (begun by nobody) are left out.
    """

    path: str
    spent: PopulationSpent | None  # None: no run was entered yet
    allowed: Mapping[str, Any]
    runs: tuple[Reservation, ...]
    window: WindowSpent | None = None  # of the days that it is now; None: the budget has no windows

    @property
    def epsilon(self) -> float | None:
        """Of all releases with noise together, at the budget's delta; None where it has none."""
        delta = self.allowed["delta"]
        return None if delta is None else gaussian.epsilon(self.zcdp, delta) if self.zcdp else 0.0

    @property
    def zcdp(self) -> float:
        """rho of all releases with noise together."""
        return 0.0 if self.spent is None else self.spent.zcdp

    @property
    def local_epsilon(self) -> float:
        """Epsilon of all local reports together."""
        return 0.0 if self.spent is None else self.spent.local_epsilon

    @property
    def warnings(self) -> tuple[str, ...]:
        """What nobody may overlook: more was taken than allowed, or delta allows to publish a client's data."""
        found = []
        if self.spent is not None and self.spent.exceeded:
            found.append(
                "BUDGET EXCEEDED: more was taken than is allowed, because clients came more often than planned."
            )
        fewest = min((each.reserved.clients for each in self.runs), default=1)
        if self.allowed["delta"] is not None and (warning := publishing_warning(self.allowed["delta"], fewest)):
            found.append(f"{DELTA_TOO_LARGE}: {warning}")
        return tuple(found)

    def to_record(self) -> dict[str, Any]:
        """Plain values for JSON: what `tacit account population --json` prints."""
        return {
            "schema": "tacit.population",
            "version": 1,
            "path": self.path,
            **self.allowed,
            "spent": {"zcdp": self.zcdp, "epsilon": self.epsilon, "local_epsilon": self.local_epsilon},
            "window_now": None if self.window is None else to_plain(self.window),
            "runs": [
                {**to_plain(each.reserved), "state": each.state, "counts": to_plain(each.cost)} for each in self.runs
            ],
            "warnings": list(self.warnings),
        }

    def __str__(self) -> str:
        """What is gone, in a sentence."""
        return "nothing is spent yet" if self.spent is None else self.spent.taken()

    def _repr_html_(self) -> str:
        """The same, as a notebook shows it."""
        return f"<p>{html.escape(str(self))}</p>"


def account_population(population: PathLike) -> PopulationAccount:
    """What was taken of a population's budget, and by which runs. Raises: RunError where there is none, or it is not
    what was written.

    population: the folder that `begin_population` made.
    """
    path = as_path("population", population)
    budget = PopulationBudget.open(path)
    book = budget.read()
    assert book.allowed is not None  # or it could not be opened
    return PopulationAccount(
        path=str(path),
        spent=PopulationSpent.from_book(budget.name, book, settled=False) if book.counted else None,
        allowed={
            "clients": book.allowed.clients,
            "zcdp": book.allowed.zcdp,
            "local_epsilon": book.allowed.local_epsilon,
            "delta": book.allowed.delta,
            "window": None if book.allowed.window is None else to_plain(book.allowed.window),
        },
        runs=tuple(book.counted),
        window=WindowSpent.from_book(book, time.time()),
    )


def begin_population(
    population: PathLike,
    *,
    clients: str,
    zcdp: float | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    local_epsilon: float | None = None,
    window_days: float | None = None,
    window_zcdp: float | None = None,
    window_epsilon: float | None = None,
    window_local_epsilon: float | None = None,
) -> PopulationAccount:
    """Begin the budget of a population: a new folder in which every run that names it is entered.

    What is left out may not be taken at all, and nothing of this can be changed later.

    population: the folder to make.
    clients: who they are, in words.
    zcdp: what all releases with noise may cost each of them in all.
    epsilon, delta: the same, in place of zcdp.
    local_epsilon: what all reports that they randomise themselves may cost.
    window_days: the days of a window, for which there is a smaller budget beside; a run counts whole in each window in
    which it may release.
    window_zcdp: what releases with noise may cost in a window.
    window_epsilon: the same at delta, in place of it.
    window_local_epsilon: what reports that they randomise themselves may cost in a window.

    Raises: InputError; RunError where there is something at `population`.
    """
    of_type("clients", clients, str)
    numbers = {"zcdp": zcdp, "epsilon": epsilon, "delta": delta, "local_epsilon": local_epsilon}
    numbers |= {"window_days": window_days, "window_zcdp": window_zcdp, "window_epsilon": window_epsilon}
    for name, value in (numbers | {"window_local_epsilon": window_local_epsilon}).items():
        of_type(name, value, Real, NoneType)
    zcdp = _in_zcdp("", zcdp, epsilon, delta)
    window_zcdp = _in_zcdp("window_", window_zcdp, window_epsilon, delta)
    window = None
    if window_days is not None:
        window = Window(days=window_days, zcdp=window_zcdp, local_epsilon=window_local_epsilon)
    elif window_zcdp is not None or window_local_epsilon is not None:
        raise InputError("a limit of each window needs the days of one; give window_days, 7 for a week.")
    path = as_path("population", population)
    PopulationBudget.create(path, clients=clients, zcdp=zcdp, local_epsilon=local_epsilon, delta=delta, window=window)
    return account_population(path)


def _in_zcdp(what: str, zcdp: float | None, epsilon: float | None, delta: float | None) -> float | None:
    """What is allowed in zCDP, where it was given as that, or as an epsilon at delta. what: before the names."""
    if epsilon is None:
        return zcdp
    if zcdp is not None:
        raise InputError(
            f"{what}zcdp={zcdp:g} and {what}epsilon={epsilon:g} both say what is allowed; give one of them."
        )
    if delta is None:
        raise InputError(f"{what}epsilon={epsilon:g} is an epsilon at a delta; give that, too.")
    return gaussian.zcdp_for_epsilon(epsilon, delta)
