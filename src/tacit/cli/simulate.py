"""`tacit simulate`: a population of devices, round after round, before anything is trained.

The simulator needs numba, which is imported when the command runs: `tacit account` must not wait for it.
"""

from pathlib import Path
from typing import Annotated

import typer

from tacit.cli import values
from tacit.cli.blocks import say_blocks
from tacit.cli.display import display
from tacit.cli.options import Json, command


@command
def simulate(
    out: Annotated[
        Path | None, typer.Option(help="A folder for report.html, rounds.csv, summary.json, settings and figures.")
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
    as_json: Json = False,
) -> None:
    """Who would come, how often, and how long it would take: realised MinS and MaxP, days, wasted work."""
    from tacit.jobs.plan.simulate import simulate as run_simulation
    from tacit.population.settings import SimulationSettings

    simulation = SimulationSettings.read(
        settings,
        {
            ("population", "devices"): None if population is None else values.count(population, "population"),
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
    with display(as_json) as progress:
        result = run_simulation(simulation, out=out, progress=progress)
    say_blocks(result, as_json)
