"""What a timer leaves of a population: a limit on the reports that any schedule can get, before a run is begun.

A device that comes back as soon as its timer and its sessions let it, and that nothing ever fails, gives as many
reports in any time as it can give. Summed over the population that bounds every run: so many rounds of so many reports
take at least so many days. The devices are the simulated ones; where they are too many, the first `SAMPLE` stand for
all, and a run is refused only where the sample leaves no doubt (five standard errors).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tacit.compiled import compiled
from tacit.errors import ParticipationError
from tacit.population.availability import NEVER, next_session
from tacit.population.check_ins import LoopSettings
from tacit.population.devices import Population, RoundRules, loop_settings
from tacit.population.work_model import training_time

SAMPLE = 8192
MARGIN = 5.0  # standard errors
HOURS_PER_DAY = 24
BRIEF = (12.0, 6.0, 3.0, 1.0)  # hours: timers of less than a day that are worth naming


@compiled
def earliest_reports(settings: LoopSettings, devices: int, timer: int, until: int) -> NDArray[np.int64]:
    """(devices, 2): the most reports that each of the first devices can give before `until`, and the first one's time.

    Greedy is best for one device: to be free earlier is never worse. NEVER for a device that gives none.
    """
    found = np.zeros((devices, 2), np.int64)
    for device in range(devices):
        works = training_time(settings.attempts, device)
        at, first = 0, NEVER
        while at < until:
            begins, ends = next_session(settings.sessions, device, at)
            begins = max(begins, at)
            if begins >= until or works > settings.attempts.deadline:
                break
            if begins + works > ends:
                at = max(ends, at + 1)
                continue
            first = min(first, begins + works)
            found[device, 0] += 1
            at = begins + works + timer
        found[device, 1] = first
    return found


@dataclass(frozen=True, kw_only=True)
class Supply:
    """The most reports that a population can give until a run must end, and how many devices give any.

    Estimates where the population is larger than the sample; the margins are then five standard errors, else 0.
    """

    reports: float
    reports_margin: float
    devices: float
    devices_margin: float

    @classmethod
    def from_population(cls, population: Population, rules: RoundRules, seed: int) -> "Supply":
        """Under these rules, from one schedule per sampled device."""
        small = replace(rules, report_goal=1)  # the report goal says nothing about supply
        settings, size = loop_settings(population, small, seed), min(population.devices, SAMPLE)
        found = earliest_reports(settings, size, rules.timer, rules.until)
        scale = population.devices
        gives = found[:, 1] < NEVER
        error = 0.0 if size == population.devices else MARGIN * scale / math.sqrt(size)
        return cls(
            reports=scale * float(found[:, 0].mean()),
            reports_margin=error * float(found[:, 0].std()),
            devices=scale * float(gives.mean()),
            devices_margin=error * float(gives.std()),
        )


def check_supply(population: Population, rules: RoundRules, rounds: int, seed: int) -> Supply:
    """Refuse a run that cannot end before `rules.most_days`, whatever the server does; the supply otherwise.

    The numbers in the complaint are limits: more is impossible, and a run that keeps them may still be slow. Raises
    ParticipationError naming what would fit.
    """
    supply = Supply.from_population(population, rules, seed)
    if supply.reports + supply.reports_margin == 0 or supply.devices == 0:
        raise ParticipationError(
            f"none of {min(population.devices, SAMPLE)} devices ever finishes a visit: they are not available for as "
            f"long as training takes them, or not done within deadline_minutes={rules.deadline_minutes:g}; give longer "
            "sessions, less work or a later deadline."
        )
    if supply.devices + supply.devices_margin < rules.report_goal:
        raise ParticipationError(
            f"round 0 would wait for ever: report_goal={rules.report_goal} needs as many different devices, and about "
            f"{supply.devices:.0f} of {population.devices} are ever available; use report_goal <= "
            f"{int(supply.devices)}, or at least {_more_devices(population, rules.report_goal / supply.devices)} "
            "devices."
        )
    needed = rounds * rules.report_goal
    if supply.reports + supply.reports_margin < needed:
        raise ParticipationError(_never_ends(population, rules, rounds, supply, seed))
    return supply


def _never_ends(population: Population, rules: RoundRules, rounds: int, supply: Supply, seed: int) -> str:
    """What the population gives, from which round on it starves for good, and what would fit."""
    needed, starves = rounds * rules.report_goal, int(supply.reports / rules.report_goal)
    goal = int(supply.reports / rounds)
    ways = [f"report_goal <= {goal}"] if goal else []
    ways.append(f"at least {_more_devices(population, needed / supply.reports)} devices")

    def enough(hours: float) -> bool:
        return Supply.from_population(population, replace(rules, timer_hours=hours), seed).reports >= needed

    hours = longest_timer(enough, at_most=min(rules.timer_hours, rules.most_days * HOURS_PER_DAY))
    ways += [f"timer_hours <= {hours:g}"] if hours else []
    ways.append(f"most_days >= {math.ceil(rules.most_days * needed / supply.reports)}")
    return (
        f"{rounds} rounds of {rules.report_goal} reports need {needed} reports, and {population.devices} devices with "
        f"a timer of {rules.timer_hours:g} hours give at most about {supply.reports:.0f} in most_days="
        f"{rules.most_days:g}: the rounds from {starves} on starve; use {', '.join(ways[:-1])} or {ways[-1]}."
    )


def _more_devices(population: Population, factor: float) -> int:
    return math.ceil(population.devices * factor)


def longest_timer(fits: Callable[[float], bool], *, at_most: float) -> float | None:
    """The longest timer with which a run fits, in hours: whole days if any do, else 12, 6, 3 or 1 hours; None if none.

    at_most: the longest to try, in hours. Exact where no timer fits that is longer than one that does not.
    """
    longest = next((hours for hours in (float(HOURS_PER_DAY), *BRIEF) if hours <= at_most and fits(hours)), None)
    if longest != HOURS_PER_DAY:
        return longest
    met, missed = 1, int(at_most / HOURS_PER_DAY) + 1
    while missed - met > 1:
        middle = (met + missed) // 2
        met, missed = (middle, missed) if fits(float(HOURS_PER_DAY * middle)) else (met, middle)
    return float(HOURS_PER_DAY * met)
