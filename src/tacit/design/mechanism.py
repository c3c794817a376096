"""What an entry of the catalogue is: a mechanism by its one name, what may be said of it, and how its strategy is made.

The same entry serves recipes, commands, plans and comparisons, so none of them knows any mechanism by itself.
"""

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any

from tacit.design.families import in_numbers
from tacit.design.objective import Losses, Objective
from tacit.design.parameters import Parameters as Parameters  # what this file gives, to whoever reads it here
from tacit.design.workload import PREFIX, Workload
from tacit.errors import InputError, TacitError
from tacit.privacy.participation import Participation
from tacit.privacy.strategy import Matrix, Strategy
from tacit.progress import Progress, silent


@dataclass(frozen=True, kw_only=True)
class DesignProblem:
    """What a strategy is designed for: public numbers, and nothing of anybody's data."""

    participation: Participation
    """How many rounds, and who takes part how often; a separation is a distance in rounds."""
    objective: Objective
    """The loss to make small: of the worst round or the root mean square of all, in clip norms at 1/2-zCDP."""
    parameters: Any
    """What is said of the mechanism: its own `Parameters`."""
    workload: Workload = PREFIX
    """What a server makes of the releases, whose errors make the loss."""
    progress: Progress = field(default=silent, compare=False)
    """Who listens to a search; the strategy does not depend on it."""


Build = Callable[[DesignProblem], Strategy]
"""The strategy of a problem; InputError where there is none."""

BuildRobust = Callable[[Sequence[Participation], Objective, Any], Strategy]
"""(several participations, the objective, the parameters) -> one strategy for all of them."""


def in_full(name: str) -> Build:
    """The `build` of a mechanism that always says its strategy in full: see `tacit.design.families`."""
    return partial(_in_full, name)


def only_default(mechanism: "Mechanism", participation: Participation) -> Sequence[Parameters]:
    """What a comparison tries of most mechanisms: the defaults."""
    return (mechanism.parameters(),)


def cost_of_any(strategy: Strategy, participation: Participation, workload: Workload = PREFIX) -> Losses:
    """What a strategy costs: see `tacit.design.losses`."""
    from tacit.design.losses import losses  # an account, a recipe and a run ask for no loss

    return losses(strategy, participation, workload)


@dataclass(frozen=True, kw_only=True)
class Mechanism:
    """A mechanism by name; see `tacit.design.catalogue`."""

    name: str
    """The one name: in recipes, commands, plans and tables."""
    says: str
    """What it is, in a few words, for tables."""
    explains: str
    """What it is, in a sentence, for help."""
    build: Build
    parameters: type[Parameters] = Parameters
    examples: tuple[Parameters, ...] = (Parameters(),)
    """What the contract tests make of it."""
    compared: "Callable[[Mechanism, Participation], Sequence[Parameters]]" = only_default
    """What a comparison tries of it for a participation."""
    matrix: type[Matrix] | None = None
    """The class of its strategies where they are matrices for the rounds of one run: slow to design, and too many
    numbers for a recipe. Such a run keeps its matrix in a file.
    """
    objective: Objective = "max"
    """The loss that it is designed for where nobody says which."""
    any_workload: bool = False
    """Whether `build` makes any workload's errors small, and not those of prefix sums alone."""
    robust: BuildRobust | None = None
    """One strategy for several participations; None where there is no such design."""
    adapts: bool = False
    """Whether its noise can start afresh during a run, which is when a clip norm may change."""
    searched: bool = False
    """Whether a plan that searches for a report goal or a number of rounds tries it where none is named: it is
    designed fast, and never worse for a longer separation.
    """
    cost: Callable[[Strategy, Participation], Losses] = cost_of_any

    @classmethod
    def fixed(cls, name: str, strategy: Strategy, says: str = "", explains: str = "", **more: Any) -> "Mechanism":
        """One strategy whatever the participation."""
        return cls(name=name, says=says, explains=explains, build=partial(_always, strategy), **more)

    def parameters_from(
        self, values: Mapping[str, Any], *, error: type[TacitError] = InputError, where: str = ""
    ) -> Parameters:
        """Its parameters from plain values. Raises: `error` naming the key, InputError where they contradict."""
        return self.parameters.from_values(values, mechanism=self.name, error=error, where=where)

    def problem(
        self,
        participation: Participation,
        objective: Objective | None = None,
        parameters: Parameters | None = None,
        progress: Progress = silent,
        workload: Workload = PREFIX,
    ) -> DesignProblem:
        """The problem with its own objective and parameters where none are given."""
        return DesignProblem(
            participation=participation,
            objective=objective or self.objective,
            parameters=self.parameters() if parameters is None else parameters,
            workload=workload,
            progress=progress,
        )

    def strategy(
        self,
        participation: Participation,
        objective: Objective | None = None,
        parameters: Parameters | None = None,
        progress: Progress = silent,
        workload: Workload = PREFIX,
    ) -> Strategy:
        """The strategy for this participation; one that was made before is remembered, but for matrices.

        InputError where there is none for the workload.
        """
        problem = self.problem(participation, objective, parameters, progress, workload)
        if self.matrix is not None:
            return self.made(problem)
        return _remembered(self, replace(problem, progress=silent))

    def made(self, problem: DesignProblem) -> Strategy:
        """By `build`, made anew. InputError where there is no design for the workload."""
        if problem.workload != PREFIX and not self.any_workload:
            raise InputError(
                f"mechanism '{self.name}' has no design for what a server makes of the releases, only for prefix sums; "
                "take one that has (docs/mechanisms.md says which), or the workload of prefix sums."
            )
        return self.build(problem)


def _in_full(name: str, problem: DesignProblem) -> Strategy:
    found = in_numbers(name, problem.parameters, problem.participation)
    assert found is not None, f"{name} has strategies that are designed"
    return found


@lru_cache(maxsize=4096)
def _remembered(mechanism: Mechanism, problem: DesignProblem) -> Strategy:
    return mechanism.made(problem)


def _always(strategy: Strategy, problem: DesignProblem) -> Strategy:
    return strategy


@dataclass(frozen=True, kw_only=True)
class ChosenMechanism:
    """A mechanism and what is said of it: what a recipe's `[privacy.mechanism]` holds."""

    mechanism: Mechanism
    parameters: Parameters
    path: str | None = field(default=None)
    """`package.module:NAME`, where it is not in the catalogue."""

    @property
    def name(self) -> str:
        """The name by which it was asked for."""
        return self.path or self.mechanism.name

    @property
    def needs_design(self) -> bool:
        """Whether the strategy is still to be designed."""
        return self.mechanism.matrix is not None or self.parameters.needs_design

    def strategy(
        self,
        participation: Participation,
        objective: Objective | None = None,
        progress: Progress = silent,
        workload: Workload = PREFIX,
    ) -> Strategy:
        """The strategy for this participation, designed where it is a wish. InputError where there is none."""
        return self.mechanism.strategy(participation, objective, self.parameters, progress, workload)

    def settled(
        self, participation: Participation, objective: Objective | None = None, workload: Workload = PREFIX
    ) -> "ChosenMechanism":
        """The same with the numbers of the strategy designed for `participation`, where they are few; a matrix stays
        a wish.
        """
        if not self.parameters.needs_design or self.mechanism.matrix is not None:
            return self
        return replace(
            self, parameters=self.parameters.settled(self.strategy(participation, objective, workload=workload))
        )

    def to_plain(self) -> dict[str, Any]:
        """Its name and what was given, for TOML; `catalogue.chosen` reads it."""
        return {"name": self.name, **self.parameters.to_plain()}


def imported(path: str) -> Mechanism:
    """The mechanism at `package.module:NAME`; InputError where there is none."""
    module, _, name = path.partition(":")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise InputError(
            f"mechanism {path!r} cannot be had ({error}); give package.module:NAME of a Mechanism."
        ) from None
    if not isinstance(found, Mechanism):
        raise InputError(f"{path!r} is a {type(found).__name__} and no Mechanism; see docs/extending.md.")
    return found
