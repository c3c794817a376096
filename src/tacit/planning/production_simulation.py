"""Who would come, for `tacit strategy`: many small simulations to search with, one of all devices to count on.

A small simulation divides devices and report goal by the same number; rounds hardly feel that (docs/populations.md).
"""

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tacit.cli.simulate import SimulationProgress
from tacit.errors import ParticipationError
from tacit.planning.clients import HOURS_PER_DAY
from tacit.planning.production import SimulatedRun
from tacit.population.devices import RoundRules
from tacit.population.supply import check_supply

if TYPE_CHECKING:
    from tacit.population.settings import SimulationSettings
    from tacit.population.simulation import Simulation

REPORTS = 50  # of a round in a small simulation: their MinS is within about 2% of that of all devices
DEVICES = 10_000  # at least so many there
HASTE = 0.97  # of the acceptable days, in small simulations: those of all devices may be a little slower


@dataclass
class Simulator:
    """The population with any report goal and timer. `last` is the last simulation of all devices."""

    asked: "SimulationSettings"
    acceptable_days: float
    last: "Simulation | None" = None
    _first_slow: tuple[int, float] | None = None
    _seen: dict[tuple[int, int, float, float], SimulatedRun | None] = field(default_factory=dict)

    @property
    def devices(self) -> int:
        """In the whole population."""
        return self.asked.population.devices

    def small(self, report_goal: int, hours: float) -> SimulatedRun | None:
        """Of a part of the devices; None where the run does not end in 97% of the acceptable days."""
        found = self._small(report_goal, hours, self.acceptable_days * HASTE)
        if found is None and self._first_slow is None:
            self._first_slow = (report_goal, hours)
        return found

    def whole(self, report_goal: int, hours: float) -> SimulatedRun | None:
        """Of all devices; None where the run does not end in the acceptable days."""
        from tacit.population.simulation import simulate

        rules = self._rules(report_goal, hours, self.acceptable_days)
        doing = f"all {self.devices:,} devices, timer of {hours:g} hours"
        try:
            with SimulationProgress(self.asked.rounds, doing) as progress:
                self.last = simulate(
                    self.asked.population,
                    rules,
                    rounds=self.asked.rounds,
                    seed=self.asked.seed,
                    progress=progress.round_done,
                )
        except ParticipationError:
            return None
        return _seen_run(self.last, report_goal, hours)

    def settings_of(self, run: "Simulation") -> "SimulationSettings":
        """Those that give the run again."""
        return replace(self.asked, rules=run.rules)

    def too_slow(self, timer: float | None, fed: int | None) -> ParticipationError:
        """Why the first run that did not end in time does not, which rounds starve, and what would fit.

        timer: as asked for; None: of all timers even a day was too long. fed: the largest report goal that ends in
        time, None where none does.
        """
        report_goal, hours = 1, timer or float(HOURS_PER_DAY)
        if timer is not None and fed is not None and self._first_slow is not None:
            report_goal, hours = self._first_slow
        rules = self._rules(report_goal, hours, self.acceptable_days)
        try:
            check_supply(self.asked.population, rules, self.asked.rounds, self.asked.seed)
        except ParticipationError as error:
            return error
        shorter = self._shorter_timer(report_goal, hours)
        slow = self._small(report_goal, hours, self.asked.rules.most_days)
        ways = [
            *([] if fed is None else [f"--report-goal-max {fed} with a weaker target"]),
            *([] if shorter is None else [f"--timer-hours {shorter:g}"]),
            *([] if slow is None else [f"--acceptable-days {math.ceil(slow.days / HASTE)}"]),
            *([] if fed is None else ["more devices"]),
            "fewer --rounds",
        ]
        takes = (
            f"not even {self.asked.rules.most_days:g} days are enough"
            if slow is None
            else f"they take {slow.days:.3g}, and {slow.starved} of them starve"
        )
        return ParticipationError(
            f"{self.asked.rounds} rounds of {report_goal} reports with a timer of {hours:g} hours do not end in "
            f"{self.acceptable_days:g} days in a simulation of {self.devices} devices: {takes}; use "
            f"{', '.join(ways[:-1])} or {ways[-1]}."
        )

    def _shorter_timer(self, report_goal: int, hours: float) -> float | None:
        """The longest timer of whole days, else of 12, 6, 3 or 1 hours, with which the run ends in time."""
        brief = (float(HOURS_PER_DAY), 12.0, 6.0, 3.0, 1.0)
        fits = next((each for each in brief if each < hours and self.small(report_goal, each) is not None), None)
        if fits != HOURS_PER_DAY:
            return fits
        met, missed = 1, math.ceil(hours / HOURS_PER_DAY)
        while missed - met > 1:
            middle = (met + missed) // 2
            if self.small(report_goal, float(middle * HOURS_PER_DAY)) is None:
                missed = middle
            else:
                met = middle
        return float(met * HOURS_PER_DAY)

    def _small(self, report_goal: int, hours: float, days: float) -> SimulatedRun | None:
        from tacit.population.simulation import simulate

        scale = max(1.0, min(report_goal / REPORTS, self.devices / DEVICES))
        goal = max(1, round(report_goal / scale))
        devices = self.devices * goal // report_goal  # rounded down: b rounds then need no more clients than there are
        key = (devices, goal, hours, days)
        if key not in self._seen:
            rules = self._rules(goal, hours, days)
            population = replace(self.asked.population, devices=devices)
            try:
                run = simulate(population, rules, rounds=self.asked.rounds, seed=self.asked.seed)
                self._seen[key] = _seen_run(run, report_goal, hours)
            except ParticipationError:
                self._seen[key] = None
        found = self._seen[key]
        return None if found is None else replace(found, report_goal=report_goal)

    def _rules(self, report_goal: int, hours: float, days: float) -> RoundRules:
        rules = self.asked.rules
        return replace(rules, report_goal=report_goal, timer_hours=hours, most_days=min(rules.most_days, days))


def _seen_run(run: "Simulation", report_goal: int, hours: float) -> SimulatedRun:
    return SimulatedRun(
        report_goal=report_goal,
        timer_hours=hours,
        promised=run.promised,
        realised=run.realised,
        days=run.days,
        starved=int(run.starved.size),
    )
