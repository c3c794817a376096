"""Designing mechanisms: the parameters that cost least for a participation, what they cost, and all side by side."""

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tacit.design.blt import spread
from tacit.design.catalogue import MECHANISMS, mechanism_named
from tacit.design.mechanism import Mechanism, Parameters
from tacit.design.objective import Losses, Objective, checked_objective
from tacit.errors import InputError, TacitError, of_type
from tacit.files import write_whole
from tacit.jobs.readable import Readable
from tacit.privacy.participation import Participation
from tacit.privacy.strategy import Record, Strategy
from tacit.progress import Progress, counted, silent
from tacit.records import json_ready
from tacit.reports.page import Block, Table


@dataclass(frozen=True, kw_only=True)
class Design(Readable):
    """A strategy of a mechanism for a participation, and what it costs.

    Where there is none, `refused` says why, and strategy, losses and memory are None. `memory` is in vectors of the
    model's size when all rounds are done; `seconds` is how long the design took.
    """

    mechanism: str
    parameters: Parameters
    objective: Objective
    strategy: Strategy | None
    losses: Losses | None
    memory: int | None
    seconds: float
    refused: str | None = None

    @property
    def title(self) -> str:
        """The mechanism with what was said of it: "blt, 2 buffers"."""
        return ", ".join([self.mechanism, *_said(self.parameters)])

    def of(self) -> tuple[Strategy, Losses]:
        """The strategy and its losses. Raises: InputError with the reason where there is none."""
        if self.strategy is None or self.losses is None:
            raise InputError(self.refused or f"{self.title} was not designed.")
        return self.strategy, self.losses

    def save(self, path: Path) -> None:
        """Write the strategy as JSON, which `tacit account` reads."""
        write_strategy(self.of()[0], path)

    def figures(self) -> Record:
        """Everything but the values of a whole matrix, which `save` writes."""
        strategy, cost = self.of()
        record = strategy.to_record()
        record.pop("values", None)
        return {
            "mechanism": self.mechanism,
            "kind": record.pop("kind"),
            "objective": self.objective,
            "loss": cost.of(self.objective),
            "max_loss": cost.max_loss,
            "rms_loss": cost.rms_loss,
            "max_error": cost.max_error,
            "rms_error": cost.rms_error,
            "sensitivity": cost.sensitivity,
            "exact": cost.exact,
            **record,
            "seconds": self.seconds,
        }

    def to_record(self) -> Record:
        """Plain values for JSON: what `tacit design NAME --json` prints."""
        return {"schema": "tacit.design", "version": 1, **self.figures()}

    def row(self) -> Record:
        """A line of a comparison."""
        return {
            "name": self.title,
            "max_loss": None if self.losses is None else self.losses.max_loss,
            "rms_loss": None if self.losses is None else self.losses.rms_loss,
            "memory": self.memory,
            "refused": self.refused,
            "seconds": self.seconds,
        }

    def blocks(self) -> list[Block]:
        """What people read of it."""
        return [Table(tuple((name, str(value)) for name, value in self.figures().items()))]


@dataclass(frozen=True, kw_only=True)
class RobustDesign:
    """One strategy for several participations: in each its loss, and the least loss that is possible there."""

    mechanism: str
    objective: Objective
    strategy: Strategy
    cases: tuple[tuple[Participation, float, float], ...]
    seconds: float

    def rows(self) -> list[Record]:
        """A line for each participation; its ratio is what it costs there not to have been designed for it alone."""
        return [
            {**asdict(participation), "loss": loss, "least_loss": least, "ratio": loss / least}
            for participation, loss, least in self.cases
        ]

    def save(self, path: Path) -> None:
        """Write the strategy as JSON, which `tacit account` reads."""
        write_strategy(self.strategy, path)

    def figures(self) -> Record:
        """The strategy, the worst ratio, and each participation."""
        record, rows = self.strategy.to_record(), self.rows()
        return {
            "mechanism": self.mechanism,
            "kind": record.pop("kind"),
            "objective": self.objective,
            "worst_ratio": max(row["ratio"] for row in rows),
            **record,
            "seconds": self.seconds,
            "participations": rows,
        }

    def to_record(self) -> Record:
        """Plain values for JSON: what `tacit design NAME --json` prints."""
        return {"schema": "tacit.design.robust", "version": 1, **self.figures()}


@dataclass(frozen=True, kw_only=True)
class MechanismComparison(Readable):
    """Designs of every mechanism for one participation, the least loss first and those refused last."""

    participation: Participation
    objective: Objective
    designs: tuple[Design, ...]

    def __iter__(self) -> Iterator[Design]:
        return iter(self.designs)

    def __repr__(self) -> str:
        return f"MechanismComparison({self.participation}: {', '.join(each.mechanism for each in self.designs)})"

    def __len__(self) -> int:
        return len(self.designs)

    def to_record(self) -> Record:
        """Plain values for JSON, for whom, and a row for each design: what `tacit design compare --json` prints."""
        return {
            "schema": "tacit.design.comparison",
            "version": 1,
            "rounds": self.participation.rounds,
            "min_separation": self.participation.min_separation,
            "max_participations": self.participation.max_participations,
            "objective": self.objective,
            "mechanisms": [each.row() for each in self.designs],
        }

    def table(self) -> Table:
        """The losses at equal privacy, and what each must remember."""
        rows = []
        for each in self.designs:
            cost = each.losses
            shown = (each.refused or "", "") if cost is None else (f"{cost.max_loss:.4f}", f"{cost.rms_loss:.4f}")
            rows.append((each.title, *shown, "" if each.memory is None else str(each.memory), f"{each.seconds:.2f}"))
        return Table(rows=tuple(rows), head=("mechanism", "max loss", "rms loss", "memory (models)", "seconds"))

    def blocks(self) -> list[Block]:
        """What people read of it."""
        return [self.table()]


# -- the job -----------------------------------------------------------------------------------------------------------


def design_mechanism(
    mechanism: str,
    participation: Participation,
    *,
    objective: Objective | None = None,
    progress: Progress = silent,
    **parameters: Any,
) -> Design:
    """The strategy of a mechanism that costs least for `participation`, or the one that `parameters` say.

    `mechanism` is a name of the catalogue or `package.module:NAME`; `parameters` are what it takes (docs/recipes.md);
    `objective` is the loss to minimise, "max" of the worst prefix sum or "rms"; left out, the mechanism's own. Raises:
    InputError where a name, a parameter or the participation does not fit; AccountingError where its sensitivity is
    not known.
    """
    of_type("mechanism", mechanism, str)
    of_type("participation", participation, Participation)
    entry = mechanism_named(mechanism)
    wanted = checked_objective(entry.objective if objective is None else objective)
    return _designed(entry, entry.given(parameters), participation, wanted, progress)


def design_robust_mechanism(
    mechanism: str,
    participations: Sequence[Participation],
    *,
    objective: Objective | None = None,
    progress: Progress = silent,
    **parameters: Any,
) -> RobustDesign:
    """One strategy for all `participations`: the one whose worst ratio to the least loss possible there is least.

    Raises: InputError for a mechanism that has no such design, or no participation.
    """
    entry = mechanism_named(mechanism)
    if entry.build_robust is None:
        able = ", ".join(name for name, each in MECHANISMS.items() if each.build_robust is not None)
        raise InputError(f"{entry.name} is designed for one participation at a time; for several, take {able}.")
    wanted = checked_objective(entry.objective if objective is None else objective)
    given = entry.given(parameters)
    begin = time.perf_counter()
    strategy = entry.build_robust(participations, wanted, given)
    seconds = time.perf_counter() - begin
    cases = []
    for participation in counted(
        participations, "designing for each participation", progress, total=len(participations)
    ):
        alone = entry.build(participation, wanted, given, silent)
        cases.append(
            (participation, entry.cost(strategy, participation).of(wanted), entry.cost(alone, participation).of(wanted))
        )
    return RobustDesign(mechanism=entry.name, objective=wanted, strategy=strategy, cases=tuple(cases), seconds=seconds)


def compare_mechanisms(
    participation: Participation,
    *,
    objective: Objective = "max",
    slow: bool = False,
    progress: Progress = silent,
) -> MechanismComparison:
    """Every mechanism of the catalogue for `participation`, by its loss; each designed for `objective`.

    slow: matrices for these rounds too, which take seconds to minutes. What cannot be had here says why.
    """
    of_type("participation", participation, Participation)
    wanted = checked_objective(objective)
    tried = [
        (mechanism, parameters)
        for mechanism in MECHANISMS.values()
        if slow or mechanism.matrix is None
        for parameters in mechanism.compared(mechanism, participation)
    ]
    designs = []
    for mechanism, parameters in counted(tried, "comparing mechanisms", progress, total=len(tried)):
        begin = time.perf_counter()
        try:
            designs.append(_designed(mechanism, parameters, participation, wanted, progress))
        except TacitError as error:
            designs.append(
                Design(
                    mechanism=mechanism.name,
                    parameters=parameters,
                    objective=wanted,
                    strategy=None,
                    losses=None,
                    memory=None,
                    seconds=time.perf_counter() - begin,
                    refused=str(error),
                )
            )
    designs.sort(key=lambda each: (each.losses is None, 0.0 if each.losses is None else each.losses.of(wanted)))
    return MechanismComparison(participation=participation, objective=wanted, designs=tuple(designs))


def _designed(
    mechanism: Mechanism, parameters: Parameters, participation: Participation, objective: Objective, progress: Progress
) -> Design:
    begin = time.perf_counter()
    strategy = mechanism.build(participation, objective, parameters, progress)
    seconds = time.perf_counter() - begin
    return Design(
        mechanism=mechanism.name,
        parameters=parameters,
        objective=objective,
        strategy=strategy,
        losses=mechanism.cost(strategy, participation),
        memory=strategy.memory(participation.rounds),
        seconds=seconds,
    )


def _said(parameters: Parameters) -> Iterator[str]:
    """What was said beyond the defaults: "2 buffers"."""
    defaults = type(parameters)().to_plain()
    for name, value in parameters.to_plain().items():
        if value != defaults.get(name):
            yield f"{len(value)} {name}" if isinstance(value, list) else name if value is True else f"{value} {name}"


def write_strategy(strategy: Strategy, path: Path) -> None:
    """The strategy as JSON, values and all."""
    write_whole(path, (json.dumps(json_ready(strategy.to_record())) + "\n").encode())


# -- for whom ----------------------------------------------------------------------------------------------------------


def limits_of(rounds: int, min_separation: int, max_participations: int | None = None) -> Participation:
    """What a design is for; left out, `max_participations` is as many as the separation allows.

    Raises: InputError where the numbers contradict each other.
    """
    worst = Participation.worst_case(rounds, min_separation).of_a_run()
    if min_separation > rounds:
        raise InputError(
            f"min_separation={min_separation} exceeds the {rounds} rounds: nobody could come twice; give at most "
            f"{rounds}, which says just that."
        )
    if max_participations is None:
        return worst
    if max_participations > worst.max_participations:
        longest = (rounds - 1) // (max_participations - 1)
        way_out = f" or a separation of at most {longest}" if longest else ""
        raise InputError(
            f"max_participations={max_participations} does not fit: {rounds} rounds at a separation of "
            f"{min_separation} allow {worst.max_participations}; give at most {worst.max_participations}{way_out}."
        )
    return Participation(rounds=rounds, min_separation=min_separation, max_participations=max_participations)


def several_limits(
    rounds: Sequence[int], min_separations: Sequence[int], max_participations: int | None = None
) -> tuple[Participation, ...]:
    """All combinations, rounds first; a `range` stands for three values at equal ratios between its ends.

    Among several, `max_participations` are promised where so many fit, and as many as fit elsewhere.
    """
    combined = [(each, separation) for each in _spread(rounds) for separation in _spread(min_separations)]
    if len(combined) == 1:
        return (limits_of(*combined[0], max_participations),)
    fitting = [limits_of(*each) for each in combined]
    if max_participations is None:
        return tuple(fitting)
    return tuple(
        Participation(
            rounds=each.rounds, min_separation=each.min_separation, max_participations=max_participations
        ).effective
        for each in fitting
    )


def _spread(values: Sequence[int]) -> Sequence[int]:
    return spread(values.start, values.stop - 1) if isinstance(values, range) else values
