"""What people read of a simulated population: its days, its rounds, and how often devices took part."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.plurals import quantity
from tacit.population.availability import DAY, HOUR
from tacit.population.simulation import Simulation
from tacit.population.work_model import SECOND
from tacit.reports.blocks import Block, Paragraph, Table
from tacit.reports.figure import BLUE, GREEN, ORANGE, PURPLE, RED, Axis, Bars, Figure, Line, Panel, Points

POINTS = 1500  # of a curve: more than a figure has pixels for
BINS = 60


LISTED = 8  # stretches of starved rounds


def blocks(run: Simulation, record: Mapping[str, Any], out: Path | None = None) -> list[Block]:
    """The run in a few sentences; `record` is `run.to_record()`."""
    realised, promised, rules = run.realised, run.promised, run.rules
    minutes = record["round_minutes"]
    said = [
        f"{quantity(run.population.devices, 'device')}, {quantity(run.rounds, 'round')} of "
        f"{quantity(rules.report_goal, 'report')}, timer "
        f"{rules.timer_hours:g} hours from the {rules.clock}.",
        f"Realised: MinS {realised.rounds_between}, MaxP {realised.max_participations}. The timer and the times of the "
        f"rounds promise MinS {promised.rounds_between}, MaxP {promised.max_participations}; devices / report goal is "
        f"{run.population.devices // rules.report_goal:,}.",
        f"{run.days:.3g} days, {run.rounds_per_day:.4g} rounds a day; a round takes {minutes['median']:.3g} minutes "
        f"(median), {minutes['max']:.4g} at most.",
        f"Of {record['selected']:,} visits {record['wasted_visits_share']:.1%} were wasted ({record['dropped']:,} "
        f"dropped out, {record['late']:,} came late): {run.wasted_hours:,.0f} device hours beside "
        f"{run.used_hours:,.0f} used.",
    ]
    found: list[Block] = [*map(Paragraph, said), *caveats(run, record)]
    if out is None:
        return found
    where = f"Report, rounds, summary, settings and figures in {out}; `tacit account log {out / 'rounds.csv'} ...`"
    return [*found, Paragraph(where)]


def caveats(run: Simulation, record: Mapping[str, Any]) -> list[Block]:
    """The rounds that starved, and what it is a model of."""
    listed, said = record["starved"], []
    if listed:
        more = f" and {len(listed) - LISTED:,} more" if len(listed) > LISTED else ""
        said.append(
            f"{quantity(int(run.underfilled.size), 'round')} starved (every device was asked once, and too few "
            f"could come): {', '.join(listed[:LISTED])}{more}. A shorter timer, fewer reports or more "
            "devices would fill them."
        )
    said.append("A model of devices, not a measurement of any: see docs/populations.md for what it assumes.")
    return [Paragraph(each) for each in said]


def answer(run: Simulation) -> str:
    """How long the run takes, and how often devices come."""
    realised, promised, starved = run.realised, run.promised, run.underfilled.size
    said = (
        f"{run.days:.3g} days for {quantity(run.rounds, 'round')} of {quantity(run.rules.report_goal, 'report')} with "
        f"{quantity(run.population.devices, 'device')}. Behind a timer of {run.rules.timer_hours:g} hours a device "
        f"comes at most {quantity(realised.max_participations, 'time')} with at least "
        f"{quantity(realised.rounds_between, 'round')} between; what can be promised is "
        f"MaxP {promised.max_participations:,} and MinS {promised.rounds_between:,}."
    )
    return f"{said} {starved / run.rounds:.0%} of the rounds starved." if starved else said


def table(record: Mapping[str, Any]) -> Table:
    """The figures of the run; `record` is `run.to_record()`."""
    minutes = record["round_minutes"]
    rows = (
        ("devices", f"{record['devices']:,}"),
        ("reports a round", f"{record['report_goal']:,}"),
        ("rounds", f"{record['rounds']:,}"),
        ("timer, hours", f"{record['timer_hours']:g} from the {record['clock']}"),
        ("days", f"{record['days']:.3g}"),
        ("rounds a day", f"{record['rounds_per_day']:.4g}"),
        (
            "minutes of a round: median, 99th percentile, longest",
            " / ".join(f"{each:.4g}" for each in minutes.values()),
        ),
        ("MinS and MaxP, realised", _limits(record["realised"])),
        ("MinS and MaxP, as the timer and the times of the rounds promise", _limits(record["promised_by_timer"])),
        ("starved rounds", f"{record['starved_rounds']:,}"),
        (
            "devices selected / dropped out / late",
            f"{record['selected']:,} / {record['dropped']:,} / {record['late']:,}",
        ),
        ("visits that were wasted", f"{record['wasted_visits_share']:.1%}"),
        (
            "device hours used / wasted",
            f"{record['used_device_hours']:,.0f} / {record['wasted_device_hours']:,.0f}",
        ),
    )
    return Table(rows)


def _limits(of: Mapping[str, int]) -> str:
    return f"{of['rounds_between']:,} and {of['max_participations']:,}"


def figures(run: Simulation) -> tuple[Figure, ...]:
    """How it went over the days, at which hours of the day, and how often devices came."""
    return (_over_days(run), _over_hours(run), _participation(run))


def _over_days(run: Simulation) -> Figure:
    opened = np.array([each.opened for each in run.happened]) / DAY
    eligible = np.array([each.eligible for each in run.happened]) / run.population.devices
    minutes = (run.finished - np.array([each.opened for each in run.happened])) / (60 * SECOND)
    return Figure(
        name="days",
        title=f"{quantity(run.rounds, 'round')} of {quantity(run.rules.report_goal, 'report')} from "
        f"{quantity(run.population.devices, 'device')}",
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
        same_x=True,
        height=2.6,
        legend="below",
    )


def _over_hours(run: Simulation) -> Figure:
    """What was to be had at which hour; an hour in which no round opened is left out."""
    of: dict[int, list[int]] = {}
    for number, each in enumerate(run.happened):
        of.setdefault(each.opened % DAY // HOUR, []).append(number)
    hours = sorted(of)
    eligible = np.array([each.eligible for each in run.happened]) / run.population.devices
    minutes = (run.finished - np.array([each.opened for each in run.happened])) / (60 * SECOND)
    days = max(run.days, 1.0)
    best = max(hours, key=lambda hour: eligible[of[hour]].mean())
    across = Axis("hour of the day, UTC", whole=True, low=-0.7, high=23.7)
    return Figure(
        name="hours",
        title="The hours of the day",
        alt=f"Mean share of eligible devices, rounds opened a day and minutes of a round by hour of the day, UTC; most "
        f"devices are eligible at {best} o'clock, {eligible[of[best]].mean():.1%}.",
        panels=(
            Panel(
                marks=(Bars(x=hours, y=[eligible[of[each]].mean() for each in hours], hue=BLUE, width=0.8),),
                x=across,
                y=Axis("eligible devices when a round opens, mean", percent=True),
            ),
            Panel(
                marks=(Bars(x=hours, y=[len(of[each]) / days for each in hours], hue=GREEN, width=0.8),),
                x=across,
                y=Axis("rounds that open in this hour, a day"),
            ),
            Panel(
                marks=(Points(x=hours, y=[float(np.median(minutes[of[each]])) for each in hours], hue=ORANGE),),
                x=across,
                y=Axis("minutes of a round, median", log=True),
            ),
        ),
        headed=True,
        same_x=True,
        height=2.4,
    )


def _participation(run: Simulation) -> Figure:
    came, realised = run.participations_per_device, run.realised
    gaps = np.flatnonzero(run.separations)
    panels = [
        Panel(
            title="how often a device came",
            marks=(
                Bars(label="devices", x=np.arange(came.size), y=came / run.population.devices, hue=BLUE, width=0.8),
            ),
            x=Axis("participations", whole=True),
            y=Axis("share of the devices", percent=True, low=0),
        )
    ]
    if gaps.size:
        edges = np.unique(np.linspace(gaps[0], gaps[-1] + 1, BINS + 1).astype(np.int64))
        share = np.add.reduceat(run.separations, edges[:-1]) / run.separations.sum() / np.diff(edges)
        panels.append(
            Panel(
                title=f"rounds until it came again: at least {realised.min_separation}",
                marks=(_line("returns", (edges[:-1] + edges[1:] - 1) / 2, share, ORANGE),),
                x=Axis("rounds"),
                y=Axis("share of all returns, per round", low=0),
            )
        )
    return Figure(
        name="participation",
        title=f"Who came again behind a timer of {run.rules.timer_hours:g} hours",
        alt=f"How often devices came, and how many rounds lay between: MinS {realised.rounds_between}, MaxP "
        f"{realised.max_participations}.",
        panels=tuple(panels),
        headed=True,
        height=3.0,
        legend="below",
    )


def _per_report(run: Simulation, name: str) -> NDArray[np.float64]:
    return np.array([getattr(each, name) for each in run.happened]) / run.rules.report_goal


def _line(label: str, x: NDArray[np.float64], y: NDArray[np.float64], hue: int, stroke: int = 0) -> Line:
    """At most POINTS of the points, evenly taken."""
    taken = slice(None, None, -(-len(x) // POINTS))
    return Line(label=label, x=x[taken], y=y[taken], hue=hue, stroke=stroke)
