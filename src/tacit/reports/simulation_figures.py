"""The figures of a simulated population: its days, its rounds, and who came how often."""

import numpy as np
from numpy.typing import NDArray

from tacit.population.availability import DAY
from tacit.population.simulation import Simulation
from tacit.population.work_model import SECOND
from tacit.reports.figure import BLUE, GREEN, ORANGE, PURPLE, RED, Axis, Figure, Line, Panel

POINTS = 1500  # of a curve: more than a figure has pixels for
BINS = 60


def figures(run: Simulation) -> list[Figure]:
    """Two figures: how it went over the days, and how often devices came."""
    return [_over_days(run), _participation(run)]


def _over_days(run: Simulation) -> Figure:
    opened = np.array([each.opened for each in run.happened]) / DAY
    eligible = np.array([each.eligible for each in run.happened]) / run.population.devices
    minutes = (run.finished - np.array([each.opened for each in run.happened])) / (60 * SECOND)
    return Figure(
        name="days",
        title=f"{run.rounds:,} rounds of {run.rules.report_goal:,} reports from {run.population.devices:,} devices",
        alt=f"Over the days of the run the share of devices that are eligible, how long rounds take, and how many "
        f"devices are selected for each report: {run.days:.3g} days, {run.rounds_per_day:.4g} rounds a day.",
        panels=(
            Panel(
                title="eligible when a round opens",
                marks=(_line("eligible", opened, eligible, BLUE),),
                x=Axis("days"),
                y=Axis("share of the devices", percent=True, low=0),
            ),
            Panel(
                title="how long a round takes",
                marks=(_line("round", opened, minutes, ORANGE),),
                x=Axis("days"),
                y=Axis("minutes", log=True),
            ),
            Panel(
                title="selected for each report used",
                marks=(
                    _line("selected", opened, _per_report(run, "selected"), GREEN),
                    _line("late", opened, _per_report(run, "late"), PURPLE, 1),
                    _line("dropped out", opened, _per_report(run, "dropped"), RED, 2),
                ),
                x=Axis("days"),
                y=Axis("devices", low=0),
            ),
        ),
        headed=True,
        across=True,
        height=3.9,
        legend="below",
    )


def _participation(run: Simulation) -> Figure:
    came, served = run.times_came, run.realised
    gaps = np.flatnonzero(run.separations)
    panels = [
        Panel(
            title="how often a device came",
            marks=(Line(label="devices", x=np.arange(came.size), y=came / run.population.devices, hue=BLUE),),
            x=Axis("participations", whole=True),
            y=Axis("share of the devices", percent=True, low=0),
        )
    ]
    if gaps.size:
        edges = np.unique(np.linspace(gaps[0], gaps[-1] + 1, BINS + 1).astype(np.int64))
        share = np.add.reduceat(run.separations, edges[:-1]) / run.separations.sum() / np.diff(edges)
        panels.append(
            Panel(
                title=f"rounds until it came again: at least {served.min_separation}",
                marks=(_line("returns", (edges[:-1] + edges[1:] - 1) / 2, share, ORANGE),),
                x=Axis("rounds"),
                y=Axis("share of all returns, per round", low=0),
            )
        )
    return Figure(
        name="participation",
        title=f"Who came again behind a timer of {run.rules.timer_hours:g} hours",
        alt=f"How often devices came, and how many rounds lay between: MinS {served.rounds_between}, MaxP "
        f"{served.max_participations}.",
        panels=tuple(panels),
        headed=True,
        across=True,
        height=3.9,
        legend="below",
    )


def _per_report(run: Simulation, name: str) -> NDArray[np.float64]:
    return np.array([getattr(each, name) for each in run.happened]) / run.rules.report_goal


def _line(label: str, x: NDArray[np.float64], y: NDArray[np.float64], hue: int, stroke: int = 0) -> Line:
    """At most POINTS of the points, evenly taken."""
    taken = slice(None, None, -(-len(x) // POINTS))
    return Line(label=label, x=x[taken], y=y[taken], hue=hue, stroke=stroke)
