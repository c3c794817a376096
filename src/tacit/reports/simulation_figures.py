"""The figures of a simulated population: its days, its rounds, and who came how often."""

import numpy as np
from numpy.typing import NDArray

from tacit.planning.panels import Curve, Panel, PlannedFigure
from tacit.population.availability import DAY
from tacit.population.simulation import Simulation
from tacit.population.work_model import SECOND

POINTS = 1500  # of a curve: more than a figure has pixels for
BINS = 60


def figures_of(run: Simulation) -> list[PlannedFigure]:
    """Two figures: how it went over the days, and how often devices came."""
    return [_over_days(run), _participation(run)]


def _over_days(run: Simulation) -> PlannedFigure:
    opened = np.array([each.opened for each in run.happened]) / DAY
    eligible = np.array([each.eligible for each in run.happened]) / run.population.devices
    minutes = (run.finished - np.array([each.opened for each in run.happened])) / (60 * SECOND)
    return PlannedFigure(
        name="days",
        title=f"{run.rounds:,} rounds of {run.rules.report_goal:,} reports from {run.population.devices:,} devices",
        source="simulation",
        says=f"{run.days:.3g} days, {run.rounds_per_day:.4g} rounds a day",
        panels=(
            Panel(
                title="eligible when a round opens",
                x_label="days",
                y_label="share of the devices",
                curves=(_curve("eligible", opened, eligible, 0),),
            ),
            Panel(
                title="how long a round takes",
                x_label="days",
                y_label="minutes",
                curves=(_curve("round", opened, minutes, 1),),
                log_y=True,
            ),
            Panel(
                title="selected for each report used",
                x_label="days",
                y_label="devices",
                curves=(
                    _curve("selected", opened, _per_report(run, "selected"), 2),
                    _curve("late", opened, _per_report(run, "late"), 3, 1),
                    _curve("dropped out", opened, _per_report(run, "dropped"), 5, 2),
                ),
            ),
        ),
    )


def _participation(run: Simulation) -> PlannedFigure:
    came, served = run.times_came, run.realised
    gaps = np.flatnonzero(run.separations)
    panels = [
        Panel(
            title="how often a device came",
            x_label="participations",
            y_label="share of the devices",
            curves=(
                Curve(
                    label="devices",
                    x=tuple(float(k) for k in range(came.size)),
                    y=tuple((came / run.population.devices).tolist()),
                    hue=0,
                ),
            ),
        )
    ]
    if gaps.size:
        edges = np.unique(np.linspace(gaps[0], gaps[-1] + 1, BINS + 1).astype(np.int64))
        share = np.add.reduceat(run.separations, edges[:-1]) / run.separations.sum() / np.diff(edges)
        panels.append(
            Panel(
                title=f"rounds until it came again: at least {served.min_separation}",
                x_label="rounds",
                y_label="share of all returns, per round",
                curves=(_curve("returns", (edges[:-1] + edges[1:] - 1) / 2, share, 1),),
            )
        )
    return PlannedFigure(
        name="participation",
        title=f"Who came again behind a timer of {run.rules.timer_hours:g} hours",
        source="simulation",
        says=f"MinS {served.rounds_between}, MaxP {served.max_participations}",
        panels=tuple(panels),
    )


def _per_report(run: Simulation, name: str) -> NDArray[np.float64]:
    return np.array([getattr(each, name) for each in run.happened]) / run.rules.report_goal


def _curve(label: str, x: NDArray[np.float64], y: NDArray[np.float64], hue: int, stroke: int = 0) -> Curve:
    """At most POINTS of the points, evenly taken."""
    taken = slice(None, None, -(-len(x) // POINTS))
    return Curve(label=label, x=tuple(x[taken].tolist()), y=tuple(y[taken].tolist()), hue=hue, stroke=stroke)
