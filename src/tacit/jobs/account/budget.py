"""Runs that are entered in the budget of their population: when they begin, resume and end."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from tacit.errors import InputError, RunError
from tacit.files import PathLike, as_path
from tacit.privacy.composition import Composition
from tacit.privacy.local_guarantee import LocalGuarantee
from tacit.progress import Progress, Warned, silent
from tacit.records import to_plain
from tacit.runs import Metadata, Run
from tacit.runs.budget import ROUNDING, PopulationBudget
from tacit.runs.budget_book import Cost
from tacit.runs.metadata import BudgetUsed, DiscoveryMetadata, TrainingMetadata
from tacit.statements import count, discover
from tacit.statements.accounts import accounts_of
from tacit.statements.population import PopulationSpent
from tacit.statements.run_facts import BUDGET


@dataclass(frozen=True, kw_only=True)
class BudgetRequest:
    """What a run is going to take of each client of a population."""

    population: Path
    clients: int  # how many it reads
    planned: Cost

    @classmethod
    def from_options(cls, population: PathLike | None, clients: int, planned: Cost | None) -> "BudgetRequest | None":
        """None without a population. Raises: InputError where nothing is released, which no budget counts."""
        if population is None:
            return None
        if planned is None:
            raise InputError(
                f"this run releases nothing under a promise, so there is nothing to enter in '{population}'; give a "
                "price, or leave the population out."
            )
        return cls(population=as_path("population", population), clients=clients, planned=planned)


def check_left(request: BudgetRequest | None) -> None:
    """BudgetError where the population's budget has less left than the run needs, before anything else is checked."""
    if request is not None:
        PopulationBudget.open(request.population).check(request.planned)


def reserved(request: BudgetRequest | None, out: Path, metadata: Metadata, create: Callable[[Metadata], Run]) -> Run:
    """A new run folder, entered in the budget of its population first, where it names one.

    create: makes the folder, with the metadata that it is given. Raises: BudgetError, RunError before anything is
    written.
    """
    if request is None:
        return create(metadata)
    budget = PopulationBudget.open(request.population)
    with budget.reserving(kind=metadata.kind, run=out, clients=request.clients, planned=request.planned) as (
        name,
        book,
    ):
        state = to_plain(PopulationSpent.from_book(budget.name, book, settled=False))
        used = BudgetUsed(path=str(request.population.resolve()), entry=name, state=state)
        return create(replace(metadata, budget=used))


def refuse_another(run: Run, population: Path | None) -> None:
    """RunError where an existing run began with another population than the one given now."""
    used = run.metadata.budget
    begun, now = (None if used is None else used.path, None if population is None else str(population.resolve()))
    if begun != now:
        raise RunError(f"'{run.path}' was begun with {_named(begun)}, not {_named(now)}; give that, or another --out.")


def recheck(run: Run, progress: Progress = silent) -> "Reservation | None":
    """That the run may release more of its population, and how much is reserved for it; None without a population.

    progress: is warned when that is not enough and more is reserved. Raises: RunError where the run is not entered in
    its budget.
    """
    used = run.metadata.budget
    if used is None:
        return None
    budget = PopulationBudget.open(Path(used.path))
    return Reservation(budget, used, run.path, budget.recheck(used.entry, run.path), progress)


class Reservation:
    """What a run may cost by its entry in the budget of its population. The budget is read again only where more is
    needed, and then more is reserved on disk before anything is released that costs so much.
    """

    def __init__(
        self, budget: PopulationBudget, used: BudgetUsed, run: Path, reserved: Cost, progress: Progress
    ) -> None:
        self._budget, self._entry, self._run, self._progress = budget, used.entry, run, progress
        self.cost = reserved  # so far

    def covers(self, needed: Cost) -> None:
        """That the run may release what brings its cost to `needed`. Raises: BudgetError where that is neither reserved
        nor free; RunError where the budget cannot be written.
        """
        if needed.within(self.cost, ROUNDING):
            return
        before, self.cost = self.cost, self._budget.reserve_more(self._entry, needed, run=self._run)
        self._progress(
            Warned(
                "budget-raised",
                f"'{self._run}' costs more than was reserved, because clients come more often than planned: the "
                f"population {self._budget.name!r} has now {self.cost} reserved for it in place of {before}.",
            )
        )


def commit(run: Run) -> None:
    """When nothing more can be released from the run: commit what it spent, by its ledger and log, to the budget, and
    note the budget's state in the run. Hold the run's lock.
    """
    used = run.metadata.budget
    if used is None:
        return
    budget = PopulationBudget.open(Path(used.path))
    book = budget.commit(used.entry, spent_by(run), run=run.path, seal=run.seal)
    if BUDGET not in run.notes:
        run.note(BUDGET, to_plain(PopulationSpent.from_book(budget.name, book, settled=True)))


def spent_by(run: Run) -> Cost:
    """The realised cost of a run to each client so far."""
    if not run.steps_done:
        return Cost()
    if isinstance(run.metadata, TrainingMetadata):
        realised: Composition | LocalGuarantee | None = accounts_of(run).realised
    elif isinstance(run.metadata, DiscoveryMetadata):
        realised = discover.facts(run).guarantee
    else:
        facts = count.evaluation_facts(run)
        realised = None if facts is None else facts.guarantee
    if isinstance(realised, LocalGuarantee):
        return Cost(local_epsilon=realised.user_epsilon)
    return Cost() if realised is None else Cost(zcdp=realised.zcdp)


def _named(population: str | None) -> str:
    return "no population" if population is None else f"the population '{population}'"
