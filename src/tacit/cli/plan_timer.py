"""`tacit plan timer --simulate`: what each timer would bring in a simulated population, instead of an estimate.

For timers of one, two, three ... days the run is simulated; its MinS and MaxP, as the timer and the simulated times of
its rounds promise them, are accounted like any other plan. The best timer is the one with the largest MinS whose run
takes no more than the days that are acceptable.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.console import console, print_json
from tacit.cli.simulate import SimulationProgress
from tacit.cli.tables import print_table
from tacit.errors import InputError, ParticipationError
from tacit.planning import Mechanism, Plan, Scenario
from tacit.planning.clients import HOURS_PER_DAY
from tacit.planning.production import timers_worth_trying
from tacit.privacy.participation import Participation
from tacit.privacy.rounding import rounded_up

if TYPE_CHECKING:
    from tacit.population.simulation import Simulation

HEADINGS = ("timer", "MinS", "MaxP", "rounds a day", "days", "starved", "wasted", "zCDP", "epsilon", "")


@dataclass(frozen=True, kw_only=True)
class Simulated:
    """Options of `tacit plan timer`: whether to simulate, and what."""

    simulate: Annotated[
        bool, typer.Option("--simulate", help="Simulate the population with each timer, instead of an estimate.")
    ] = False
    acceptable_days: Annotated[float | None, typer.Option(help="With --simulate: how long the run may take.")] = None
    settings: Annotated[
        Path | None, typer.Option(help="With --simulate: a TOML file of settings, as `tacit simulate` takes.")
    ] = None
    seed: Annotated[int, typer.Option(help="With --simulate: another seed, another population.")] = 0

    def check(self) -> None:
        """InputError for options that mean nothing."""
        given = [name for name in ("acceptable_days", "settings") if getattr(self, name) is not None]
        if given and not self.simulate:
            raise InputError(f"--{given[0].replace('_', '-')} belongs to --simulate; give that as well, or drop it.")
        if self.acceptable_days is not None and not self.acceptable_days > 0:
            raise InputError(f"--acceptable-days {self.acceptable_days:g} leaves no time for a run; give days above 0.")


@dataclass(frozen=True, kw_only=True)
class TimerOutcome:
    """A timer, the simulated run behind it, and the plan with the participation that the timer promises there."""

    hours: int
    run: "Simulation"
    plan: Plan

    @property
    def promised(self) -> Participation:
        """What the timer promises in the simulated times of the rounds."""
        return self.run.promised


def simulated_timers(
    task: Scenario, mechanism: Mechanism, report_goal: int, asked: Simulated
) -> Iterator[TimerOutcome]:
    """Timers of whole days, as long as the run ends in acceptable days and a longer one may separate further.

    Ends behind the first timer that is too slow, that lets nobody come twice, or whose MinS fell: the population then
    gives no more. Raises ParticipationError where not even a timer of a day lets the run end.
    """
    from tacit.population.settings import settings_from
    from tacit.population.simulation import simulate

    def outcome(hours: int) -> TimerOutcome | None:
        of = settings_from(
            asked.settings,
            {
                ("population", "devices"): task.clients.devices,
                ("rules", "report_goal"): report_goal,
                ("rules", "timer_hours"): float(hours),
                ("rounds",): task.rounds,
                ("seed",): asked.seed,
            },
        )
        rules = of.rules
        if asked.acceptable_days is not None:
            rules = replace(rules, most_days=min(rules.most_days, asked.acceptable_days))
        try:
            with SimulationProgress(of.rounds, f"timer of {hours} hours") as progress:
                run = simulate(of.population, rules, rounds=of.rounds, seed=of.seed, progress=progress.round_done)
        except ParticipationError:
            if hours == HOURS_PER_DAY:
                raise
            return None
        return TimerOutcome(hours=hours, run=run, plan=_plan(task, mechanism, report_goal, run))

    yield from timers_worth_trying(outcome, task.rounds)


def _plan(task: Scenario, mechanism: Mechanism, report_goal: int, run: "Simulation") -> Plan:
    """The task with the participation that was simulated; `availability` is the simulator's business then."""
    promised = run.promised
    clients = replace(
        task.clients,
        availability=1.0,
        timer_hours=None,
        min_separation=promised.min_separation,
        max_participations=promised.max_participations,
        rounds_per_day=run.rounds_per_day,
    )
    return replace(task, clients=clients).plan(mechanism, report_goal)


def show_simulated_timers(
    task: Scenario,
    mechanism: Mechanism,
    report_goal: int,
    asked: Simulated,
    *,
    rho: float | None,
    delta: float,
    as_json: bool,
) -> None:
    """The table of `tacit plan timer --simulate`, or its JSON."""
    asked.check()
    found = list(simulated_timers(task, mechanism, report_goal, asked))
    best = max(found, key=lambda each: (each.run.promised.min_separation, -each.hours))
    reaching = None if rho is None else next((each.hours for each in found if each.plan.zcdp <= rho), None)
    if as_json:
        print_json(
            {
                "timers": [_record(each, delta) for each in found],
                "largest_separation_timer_hours": best.hours,
                "target_zcdp": rho,
                "shortest_timer_hours": reaching,
            }
        )
        return
    rows = []
    for each in found:
        marks = ["largest MinS"] * (each is best) + ["the target"] * (each.hours == reaching)
        rows.append((*_row(each, delta), f"<- {' and '.join(marks)}" if marks else ""))
    console.print(
        f"{task.clients.devices:,} simulated devices, report goal {report_goal}, {task.rounds} rounds, "
        f"{mechanism.name}."
    )
    print_table(HEADINGS, rows)
    if rho is not None and reaching is None:
        console.print("No timer reaches the target: the population has no more to give; raise the report goal or z.")
    console.print(
        f"Epsilon at delta {delta:g}. MinS and MaxP are what the timer promises in the simulated times of the rounds; "
        "the real ones are measured after the run."
    )


def _record(each: TimerOutcome, delta: float) -> dict[str, Any]:
    realised = each.run.realised
    return {
        "timer_hours": each.hours,
        **each.plan.to_record(delta),
        "realised_rounds_between": realised.rounds_between,
        "realised_max_participations": realised.max_participations,
        "starved_rounds": int(each.run.starved.size),
        "wasted_visits_share": _wasted(each.run),
    }


def _row(each: TimerOutcome, delta: float) -> tuple[str, ...]:
    promised = each.run.promised
    return (
        f"{each.hours}h",
        str(promised.rounds_between),
        str(promised.max_participations),
        f"{each.run.rounds_per_day:.4g}",
        f"{each.run.days:.3g}",
        str(each.run.starved.size),
        f"{_wasted(each.run):.0%}",
        rounded_up(each.plan.zcdp),
        rounded_up(each.plan.guarantee.epsilon(delta)),
    )


def _wasted(run: "Simulation") -> float:
    return sum(each.wasted for each in run.happened) / sum(each.selected for each in run.happened)
