"""The results of designs: a strategy and its error, one for several participations, all mechanisms side by side."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from tacit.design.mechanism import Parameters
from tacit.design.objective import Losses, Objective
from tacit.design.workload import PREFIX, Workload
from tacit.errors import InputError
from tacit.files import write_whole
from tacit.jobs.result import JobResult
from tacit.privacy.participation import Participation
from tacit.privacy.strategy import Record, Strategy
from tacit.records import json_ready
from tacit.reports.blocks import Block, Paragraph, Table

Made = Literal["prefix", "server"]
MEANING = "Errors of the prefix sums for seeds of deviation 1; loss = error x sensitivity, at equal privacy."
OF_MODELS = "models: the same of the server's models, in units of its learning rate."
BOUND = "The sensitivity is a proved upper bound, so the losses are too."
SHOWN = 8  # numbers of a list that people read


@dataclass(frozen=True, kw_only=True)
class Design(JobResult):
    """A strategy of a mechanism for a participation, and what it costs.

    Where there is none, `refused` says why, and strategy, losses and memory are None. `losses` are of the prefix sums,
    `models` of the models of a `server` with momentum or a cooldown, None where none was asked about; `workload` says
    whose loss was lowered. `memory` is in vectors of the model's size when all rounds are done; `seconds` is how long
    the design took.
    """

    mechanism: str
    parameters: Parameters
    objective: Objective
    strategy: Strategy | None
    losses: Losses | None
    memory: int | None
    seconds: float
    refused: str | None = None
    server: Workload = PREFIX
    workload: Made = "prefix"
    models: Losses | None = None

    @property
    def title(self) -> str:
        """The mechanism with what was said of it: "blt, 2 buffers"."""
        return ", ".join([self.mechanism, *_said(self.parameters)])

    def strategy_and_losses(self) -> tuple[Strategy, Losses]:
        """The strategy and its losses. Raises: InputError with the reason where there is none."""
        if self.strategy is None or self.losses is None:
            raise InputError(self.refused or f"{self.title} was not designed.")
        return self.strategy, self.losses

    @property
    def loss(self) -> float:
        """What was lowered. Raises: InputError as `of`."""
        cost = self.strategy_and_losses()[1] if self.workload == "prefix" or self.models is None else self.models
        return cost.of(self.objective)

    def save(self, path: Path) -> None:
        """Write the strategy as JSON, which `tacit account` reads."""
        write_strategy(self.strategy_and_losses()[0], path)

    def figures(self) -> Record:
        """Everything but the values of a whole matrix, which `save` writes."""
        strategy, cost = self.strategy_and_losses()
        record = strategy.to_record()
        record.pop("values", None)
        return {
            "mechanism": self.mechanism,
            "kind": record.pop("kind"),
            "objective": self.objective,
            **({} if self.models is None else {"workload": self.workload, **asdict(self.server)}),
            "loss": self.loss,
            **_errors(cost),
            **({} if self.models is None else {f"models_{name}": each for name, each in _errors(self.models).items()}),
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
            **self._of_models(),
            "memory": self.memory,
            "refused": self.refused,
            "seconds": self.seconds,
        }

    def _of_models(self) -> Record:
        """Of a comparison's line, where a server was asked about."""
        if self.server == PREFIX:
            return {}
        cost = self.models
        return {
            "workload": self.workload,
            "models_max_loss": None if cost is None else cost.max_loss,
            "models_rms_loss": None if cost is None else cost.rms_loss,
        }

    def blocks(self) -> list[Block]:
        """What people read of it."""
        exact = self.strategy_and_losses()[1].exact
        said = [MEANING, *([] if self.models is None else [OF_MODELS]), *([] if exact else [BOUND])]
        return [_table_of(self.figures()), *(Paragraph(each) for each in said)]


@dataclass(frozen=True, kw_only=True)
class RobustDesign(JobResult):
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

    def blocks(self) -> list[Block]:
        """What people read of it."""
        figures = self.figures()
        rows = figures.pop("participations")
        head = tuple(name.replace("_", " ") for name in rows[0])
        return [_table_of(figures), Table(tuple(tuple(_shown(each) for each in row.values()) for row in rows), head)]


@dataclass(frozen=True, kw_only=True)
class MechanismComparison(JobResult):
    """Designs of every mechanism for one participation, the least loss first and those refused last."""

    participation: Participation
    objective: Objective
    designs: tuple[Design, ...]
    server: Workload = PREFIX

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
            **({} if self.server == PREFIX else asdict(self.server)),
            "mechanisms": [each.row() for each in self.designs],
        }

    def table(self) -> Table:
        """The losses at equal privacy, and what each must remember."""
        of_server = self.server != PREFIX
        rows = []
        for each in self.designs:
            costs = (each.losses, *((each.models,) if of_server else ()))
            losses = [f"{it:.4f}" for cost in costs if cost is not None for it in (cost.max_loss, cost.rms_loss)]
            shown = losses or [each.refused or "", *[""] * (2 * len(costs) - 1)]
            made = [{"server": "models", "prefix": "sums"}[each.workload]] if of_server else []
            memory = "" if each.memory is None else str(each.memory)
            rows.append((each.title, *shown, *made, memory, f"{each.seconds:.2f}"))
        more = ("models' max loss", "models' rms loss", "made for") if of_server else ()
        return Table(rows=tuple(rows), head=("mechanism", "max loss", "rms loss", *more, "memory (models)", "seconds"))

    def blocks(self) -> list[Block]:
        """What people read of it."""
        return [self.table()]


def _errors(cost: Losses) -> Record:
    return {name: getattr(cost, name) for name in ("max_loss", "rms_loss", "max_error", "rms_error")}


def _table_of(figures: Record) -> Table:
    return Table(tuple((name.replace("_", " "), _shown(value)) for name, value in figures.items()))


def _shown(value: object) -> str:
    if isinstance(value, list):
        listed = ", ".join(_shown(each) for each in value[:SHOWN])
        return listed if len(value) <= SHOWN else f"{listed}, ... ({len(value)} in all)"
    return f"{value:.8g}" if isinstance(value, float) else str(value)


def _said(parameters: Parameters) -> Iterator[str]:
    """What was said beyond the defaults: "2 buffers"."""
    defaults = type(parameters)().to_plain()
    for name, value in parameters.to_plain().items():
        if value != defaults.get(name):
            yield f"{len(value)} {name}" if isinstance(value, list) else name if value is True else f"{value} {name}"


def write_strategy(strategy: Strategy, path: Path) -> None:
    """The strategy as JSON, values and all."""
    write_whole(path, (json.dumps(json_ready(strategy.to_record())) + "\n").encode())
