"""`tacit simulate`: a population of devices, round after round, before anything is trained.

The simulator needs numba, which is imported when the command runs: `tacit account` must not wait for it.
"""

import csv
import io
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from tacit.cli.bars import counting_bar
from tacit.cli.console import complaints, console, print_json, speaks_plainly
from tacit.cli.plan_options import whole
from tacit.files import write_whole
from tacit.privacy.participation import Participation

if TYPE_CHECKING:
    from tacit.population.settings import SimulationSettings
    from tacit.population.simulated_cohorts import SimulatedRound
    from tacit.population.simulation import Simulation

EVERY = 10.0  # seconds: a line where no bar moves


@speaks_plainly
def simulate(
    out: Annotated[
        Path | None, typer.Option(help="A folder for rounds.csv, summary.json, settings and figures.")
    ] = None,
    settings: Annotated[
        Path | None, typer.Option(help="A TOML file: availability, work, rules; options here come above it.")
    ] = None,
    population: Annotated[str | None, typer.Option(help="Devices: 16600000, 16.6M or 1.66e7.")] = None,
    report_goal: Annotated[int | None, typer.Option(help="Reports that a round waits for.")] = None,
    rounds: Annotated[int | None, typer.Option(help="Rounds of the whole run.")] = None,
    timer_hours: Annotated[float | None, typer.Option(help="How long a device stays away after it took part.")] = None,
    clock: Annotated[
        str | None, typer.Option(help="When its timer starts: at its round's finish (the papers'), or at its upload.")
    ] = None,
    over_selection: Annotated[float | None, typer.Option(help="Devices selected for each report.")] = None,
    unmetered: Annotated[float | None, typer.Option(help="Share of devices with an unmetered network.")] = None,
    dropout: Annotated[float | None, typer.Option(help="Chance that a visit fails by itself.")] = None,
    most_days: Annotated[float | None, typer.Option(help="How many days the run may take.")] = None,
    seed: Annotated[int | None, typer.Option(help="Another seed, another population.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
) -> None:
    """Who would come, how often, and how long it would take: realised MinS and MaxP, days, wasted work."""
    from tacit.population.settings import settings_from
    from tacit.population.simulation import simulate as run_simulation

    asked = settings_from(
        settings,
        {
            ("population", "devices"): None if population is None else whole(population, "population"),
            ("population", "availability", "unmetered"): unmetered,
            ("population", "work", "dropout"): dropout,
            ("rules", "report_goal"): report_goal,
            ("rules", "timer_hours"): timer_hours,
            ("rules", "clock"): clock,
            ("rules", "over_selection"): over_selection,
            ("rules", "most_days"): most_days,
            ("rounds",): rounds,
            ("seed",): seed,
        },
    )
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)  # before the work, in case it cannot be
    with SimulationProgress(asked.rounds, "simulating") as progress:
        run = run_simulation(
            asked.population, asked.rules, rounds=asked.rounds, seed=asked.seed, progress=progress.round_done
        )
        progress.says("counting who came")
        record = record_of(run)
        if out is not None:
            record["files"] = write_simulation(run, asked, record, out)
    if as_json:
        print_json(record)
        return
    _show(run, out)


class SimulationProgress:
    """Rounds, days and the time left: a bar on a terminal, else a line now and then."""

    def __init__(self, rounds: int, doing: str) -> None:
        self._rounds, self._done, self._doing = rounds, 0, doing
        self._began = self._told = time.monotonic()
        self._bar = counting_bar(quiet=False, says=True)
        self._task = self._bar.add_task(doing, total=rounds, shown="")

    def __enter__(self) -> "SimulationProgress":
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def says(self, doing: str) -> None:
        """What is done now."""
        self._bar.update(self._task, description=doing)

    def round_done(self, happened: "SimulatedRound") -> None:
        """One more."""
        self._done += 1
        day = f"day {happened.finished / 86_400_000:.1f}"
        self._bar.update(self._task, completed=self._done, shown=day)
        now = time.monotonic()
        if self._bar.disable and now - self._told >= EVERY:
            left = (now - self._began) / self._done * (self._rounds - self._done)
            complaints.print(f"{self._doing}: round {self._done}/{self._rounds}, {day}, {left:.0f} s left")
            self._told = now


def record_of(run: "Simulation") -> dict[str, Any]:
    """Plain values for JSON."""
    selected = sum(each.selected for each in run.happened)
    wasted = sum(each.wasted for each in run.happened)
    lasted = (run.finished - np.array([each.opened for each in run.happened])) / 60_000
    return {
        "devices": run.population.devices,
        "report_goal": run.rules.report_goal,
        "rounds": run.rounds,
        "timer_hours": run.rules.timer_hours,
        "clock": run.rules.clock,
        "seed": run.seed,
        "realised": _served(run.realised),
        "promised_by_timer": _served(run.promised),
        "days": run.days,
        "rounds_per_day": run.rounds_per_day,
        "round_minutes": dict(
            zip(("median", "p99", "max"), np.percentile(lasted, [50, 99, 100]).tolist(), strict=True)
        ),
        "starved_rounds": int(run.starved.size),
        "starved": spans(run.starved.tolist()),
        "selected": selected,
        "dropped": sum(each.dropped for each in run.happened),
        "late": sum(each.late for each in run.happened),
        "wasted_visits_share": wasted / selected,
        "used_device_hours": run.used_hours,
        "wasted_device_hours": run.wasted_hours,
        "participations_per_device": run.times_came.tolist(),
    }


def _served(served: Participation) -> dict[str, int]:
    return {
        "min_separation": served.min_separation,
        "rounds_between": served.rounds_between,
        "max_participations": served.max_participations,
    }


def spans(numbers: list[int]) -> list[str]:
    """Whole numbers that never fall, as "3", "7-12", ..."""
    found: list[list[int]] = []
    for number in numbers:
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return [f"{first}" if first == last else f"{first}-{last}" for first, last in found]


def write_simulation(run: "Simulation", asked: "SimulationSettings", record: dict[str, Any], out: Path) -> list[str]:
    """rounds.csv, summary.json, settings.toml and the figures; their names."""
    import json

    from tacit.population.simulation import COLUMNS
    from tacit.reports.drawing import write_figure
    from tacit.reports.simulation_figures import figures

    table = io.StringIO()
    rows = csv.writer(table, lineterminator="\n")
    rows.writerow(COLUMNS)
    rows.writerows(run.rows())
    contents = {
        "rounds.csv": table.getvalue(),
        "summary.json": json.dumps(record, indent=1) + "\n",
        "settings.toml": asked.to_toml(),
    }
    for name, text in contents.items():
        write_whole(out / name, text.encode())
    return [*contents, *(name for figure in figures(run) for name in write_figure(figure, out))]


def _show(run: "Simulation", out: Path | None) -> None:
    served, promised, rules = run.realised, run.promised, run.rules
    record = record_of(run)
    reach = run.population.devices // rules.report_goal
    console.print(
        f"{run.population.devices:,} devices, {run.rounds:,} rounds of {rules.report_goal:,} reports, timer "
        f"{rules.timer_hours:g} hours from the {rules.clock}."
    )
    console.print(
        f"Realised: MinS {served.rounds_between}, MaxP {served.max_participations}. The timer and the times of the "
        f"rounds promise MinS {promised.rounds_between}, MaxP {promised.max_participations}; devices / report goal is "
        f"{reach:,}."
    )
    minutes = record["round_minutes"]
    console.print(
        f"{run.days:.3g} days, {run.rounds_per_day:.4g} rounds a day; a round takes {minutes['median']:.3g} minutes "
        f"(median), {minutes['max']:.4g} at most."
    )
    console.print(
        f"Of {record['selected']:,} visits {record['wasted_visits_share']:.1%} were wasted ({record['dropped']:,} "
        f"dropped out, {record['late']:,} came late): {run.wasted_hours:,.0f} device hours beside "
        f"{run.used_hours:,.0f} used."
    )
    if run.starved.size:
        listed = record["starved"]
        more = f" and {len(listed) - 8} stretches more" if len(listed) > 8 else ""
        console.print(
            f"{run.starved.size} rounds starved (every device was asked once, and too few could come): "
            f"{', '.join(listed[:8])}{more}. A shorter timer, fewer reports or more devices would fill them."
        )
    console.print("A model of devices, not a measurement of any: see docs/populations.md for what it assumes.")
    if out is not None:
        console.print(f"Rounds, summary, settings and figures in {out}; `tacit account log {out / 'rounds.csv'} ...`")
