"""The privacy statement of a run that was not made yet: what it would promise if clients came as planned.

It has the items of a run's statement (arXiv:2305.18465, Appendix A) and says on its first line that nothing has
happened. What was realised, which alone holds in the end, is not in it: a simulation's participation stands beside the
planned one as what it is.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from tacit.errors import InputError
from tacit.privacy.participation import Participation
from tacit.privacy.rounding import rounded_up
from tacit.privacy.strategy import Record
from tacit.statements import text_central as text
from tacit.statements.facts import StatementFacts
from tacit.statements.statement import Label, Statement, account_command, statement

FORMAT = "tacit planned statement 1"
TITLE = "Privacy statement, planned"
PLANNED = Label(
    "PLANNED",
    "nothing has been trained. These are the promises of a run that may never be made; the statement of the finished "
    "run replaces this one, and only what was realised there holds.",
)


@dataclass(frozen=True, kw_only=True)
class PlannedFacts:
    """What a planned statement is made from: the run's facts, realised as planned because nothing else is known, and
    what a simulation, described in words, saw its devices do; None where there was none.

    InputError where the facts claim something realised, or the simulation is of another number of rounds.
    """

    run: StatementFacts
    simulated: Participation | None = None
    simulation: str = ""

    def __post_init__(self) -> None:
        if self.run.planned != self.run.realised or any(
            each.planned != each.realised for each in self.run.also_released
        ):
            raise InputError("planned and realised differ, but nothing was realised; give the planned one twice.")
        if self.simulated is not None and self.simulated.rounds != self.run.planned.participation.rounds:
            raise InputError(
                f"the simulation had {self.simulated.rounds} rounds and the plan has "
                f"{self.run.planned.participation.rounds}; simulate the plan."
            )

    def to_record(self) -> Record:
        """Plain values for JSON, all that `from_record` needs."""
        simulated = None if self.simulated is None else asdict(self.simulated)
        return {"run": self.run.to_record(), "simulated": simulated, "simulation": self.simulation}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "PlannedFacts":
        """The facts that `to_record` wrote; InputError where they are no such facts."""
        if record.keys() != {"run", "simulated", "simulation"}:
            raise InputError(f"the facts have the keys {sorted(record)}; use the version that wrote them.")
        run, simulated, simulation = record["run"], record["simulated"], record["simulation"]
        if not isinstance(run, Mapping) or not isinstance(simulated, Mapping | None) or not isinstance(simulation, str):
            raise InputError("the facts are not of the kinds they should be; use the version that wrote them.")
        try:
            seen = None if simulated is None else Participation(**simulated)
        except TypeError as error:
            raise InputError(f"the facts cannot be read ({error}); use the version that wrote them.") from error
        return cls(run=StatementFacts.from_record(run), simulated=seen, simulation=simulation)


def planned_statement(facts: PlannedFacts) -> Statement:
    """The statement of a run that was not made, with every item and every label that the facts call for."""
    stated = statement(facts.run)
    ours = {"3b": _assumptions(facts), "3c": _formal(facts.run), "3d": _verifiability(facts.run)}
    figures = {name: value for name, value in stated.figures.items() if name != "realised"}
    if facts.simulated is not None:
        figures["simulated"] = asdict(facts.simulated)
    return Statement(
        facts=facts,
        labels=(PLANNED, *stated.labels),
        items=tuple(replace(item, text=ours.get(item.number, item.text)) for item in stated.items),
        figures=figures,
        title=TITLE,
        format=FORMAT,
    )


def _assumptions(facts: PlannedFacts) -> str:
    run, guarantee = facts.run, facts.run.planned
    inflated = rounded_up(guarantee.clip_inflation, 6)
    encoded = f", at most {inflated} times that once encoded" if guarantee.clip_inflation > 1 else ""
    lines = [f"- Planned: {_limits(guarantee.participation)}."]
    if facts.simulated is not None:
        lines.append(
            f"- In a simulation, not in any run: {_limits(facts.simulated)}. {facts.simulation} The simulation is a "
            "model of devices; what real ones do is measured when they have done it."
        )
    lines += [
        f"- Participation is to be enforced so: {run.cohort_rule}.",
        f"- A client's update of a round has norm at most {guarantee.clip_norm:.6g} (clipped as one vector{encoded}) "
        f"and weight one; the mean divides by the constant report goal {run.report_goal:,}, whatever number comes.",
        f"- Gaussian seeds of standard deviation {guarantee.noise_multiplier:.6g} x {guarantee.clip_norm:.6g}, with "
        f"keys from {run.key_source}; the analysis is of real numbers, and the rounding of floating-point noise is not "
        "covered.",
    ]
    return "\n".join(lines)


def _formal(run: StatementFacts) -> str:
    return (
        "As planned, and not as it happened, because nothing has: the run would be "
        f"{text.promise(run.planned_in_all, run.delta)}. Figures are rounded up."
    )


def _verifiability(run: StatementFacts) -> str:
    again = account_command(run.planned, run.delta)
    listing = "\n".join(f"    {command}" for command in (again, run.verify_command) if command)
    return (
        f"The planned figures are re-derived from the parameters alone by\n\n{listing}\n\n"
        "After the run, `tacit account run` gives the realised ones. The mechanism and the accountant are programs "
        "whose source can be read."
    )


def _limits(served: Participation) -> str:
    return (
        f"{served.rounds:,} rounds, each client in at most {served.max_participations:,} of them (MaxP), two of them "
        f"at least {served.min_separation:,} rounds apart (MinS = {served.rounds_between:,} rounds in between)"
    )
