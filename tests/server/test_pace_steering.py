"""When devices come back: no more of them in a second than a server answers, however many they were thought to be.

The simulator (`population/simulated_cohorts.py`) says whether rounds fill when devices come as often as that.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.server.stores import Clock, sqlite_store

from tacit.device.turn import later
from tacit.population.devices import Population, RoundRules
from tacit.population.simulated_cohorts import SimulatedCohorts
from tacit.population.work_model import SECOND
from tacit.protocol.messages import ComeBack
from tacit.recipe.deployment_section import DeploymentSection
from tacit.server.http.check_in_rates import CheckInRates
from tacit.server.http.pace_steering import (
    CHECK_INS,
    LEAST_S,
    MOST_S,
    OVER,
    STEP,
    WRONG,
    PaceSteering,
    SharedRates,
    away,
    period_of,
    unseen,
    window_of,
)

Draw = np.random.Generator


@pytest.mark.parametrize("devices", [1, 10, 10_000, 1_000_000, 100_000_000])
def test_devices_come_at_a_rate_that_is_answered_and_not_all_at_once(devices: int) -> None:
    """Devices that were all sent away in one second, simulated for ten periods."""
    period = period_of(devices)
    found, many = window_of(period), min(devices, 20_000)
    assert LEAST_S <= period <= MOST_S and found.after == period / 2
    draw = np.random.default_rng(devices)
    times = np.cumsum(draw.uniform(found.after, found.before, (many, 20)), axis=1).ravel()
    counts = np.histogram(times, bins=100, range=(0, 10 * period))[0] * devices / many / (period / 10)
    settled = counts[30:]  # after three periods they are spread
    assert settled.mean() == pytest.approx(devices / period, rel=0.05 if many > 100 else 0.5)
    if many > 1000 and period < MOST_S:
        assert settled.max() < 1.3 * CHECK_INS


def test_a_population_that_is_not_known_waits_for_a_moment() -> None:
    assert 10 < window_of(period_of(0)).after < window_of(period_of(0)).before < 60


# -- how many there are is counted -------------------------------------------------------------------------------------


@dataclass
class Came:
    """Check-ins of a simulated population, a step after another."""

    times: np.ndarray[Any, np.dtype[np.float64]]  # (steps,) seconds
    rates: np.ndarray[Any, np.dtype[np.float64]]  # (steps,) check-ins a second
    periods: np.ndarray[Any, np.dtype[np.float64]]  # (steps,) T as it was told

    def rate(self, since: float, until: float) -> float:
        """In the mean."""
        return float(self.rates[(self.times >= since) & (self.times < until)].mean())


def played(
    devices: int,
    pace: PaceSteering,
    *,
    seconds: float,
    first: Callable[[Draw], Any],
    step: float,
    told: float | None = None,
    seed: int = 1,
) -> Came:
    """20,000 devices, each of which stands for many, are told when to come back; `first`: when they come at first.

    told: a T to tell in place of the pace's.
    """
    many, draw = 20_000, np.random.default_rng(seed)
    due, weight = first(draw) + np.zeros(many), devices // many
    times = np.arange(step, seconds, step)
    rates, periods = np.zeros(len(times)), np.zeros(len(times))
    for at, now in enumerate(times):
        here = np.flatnonzero(due <= now)
        periods[at] = pace.period if told is None else told
        due[here] = now + draw.uniform(*window_of(periods[at]), len(here))
        pace.sent += weight * len(here)
        pace.look(float(now))
        rates[at] = weight * len(here) / step
    return Came(times, rates, periods)


def evenly(period: float) -> Callable[[Draw], Any]:
    """When devices come that have come once in `period` for long: after the rest of what they were told."""

    def first(draw: Draw) -> Any:
        told = draw.uniform(0.5, 1.5, 80_000)
        told = draw.choice(told, 20_000, p=told / told.sum())  # longer waits are met more often
        return period * told * draw.random(20_000)

    return first


MILLION = 1_000_000


@pytest.mark.parametrize("times_wrong", [0.1, 1.0, 10.0])
def test_a_wrong_guess_is_made_good(times_wrong: float) -> None:
    """A million devices that came as the guess had it; then they are counted."""
    guess = times_wrong * MILLION
    before, right = period_of(guess), period_of(MILLION)
    settled = 3 * right + OVER * before  # by then everybody came who was told the guess's T
    play = {"seconds": settled + 2 * right, "first": evenly(before), "step": settled / 1000}
    came = played(MILLION, PaceSteering(0.0, guess), **play)
    assert came.rate(settled, np.inf) == pytest.approx(CHECK_INS, rel=0.05)
    assert came.periods[came.times > settled] == pytest.approx(right, rel=2 * STEP)
    soon = came.times > OVER * min(before, right)
    assert came.periods[soon] == pytest.approx(right, rel=0.25), "and it is told to those who come long before"
    unpaced = played(MILLION, PaceSteering(0.0, guess), **play, told=before)
    assert unpaced.rate(settled, np.inf) == pytest.approx(CHECK_INS / times_wrong, rel=0.05), (
        "what a guess alone brings"
    )


def test_devices_that_come_all_at_once_after_an_outage_are_spread() -> None:
    """All of a million in one minute, to a server that began anew without knowing how many there are."""
    came = played(
        MILLION, PaceSteering(0.0, 10.0), seconds=4_000, first=lambda draw: draw.uniform(0, 60, 20_000), step=1
    )
    minute = MILLION / 60
    assert came.rates[came.times < 60].mean() == pytest.approx(minute, rel=0.3)
    later = np.convolve(came.rates[came.times > 90], np.ones(30) / 30, mode="valid")
    assert later.max() < 2.5 * CHECK_INS < minute / 6
    assert came.rate(3_000, 4_000) == pytest.approx(CHECK_INS, rel=0.15)


def test_devices_that_find_no_server_try_so_seldom_that_one_could_answer_them() -> None:
    """Ten million that are due while it is away for five hours; by the second, in the hour before it is back."""
    period, away_for = period_of(10 * MILLION), 5 * 3600.0
    paced, alike = tries(period, away_for, told=OVER * period), tries(period, away_for, told=0.0)
    assert paced < 5 * CHECK_INS < 10 * CHECK_INS < alike


def tries(period: float, until: float, *, told: float) -> float:
    """A second, in the last hour; `told`: what each device was told last."""
    draw, many, count = np.random.default_rng(3), 20_000, 0
    due = period * draw.uniform(0, OVER, many)
    for fruitless in range(200):
        count += int(((due > until - 3600) & (due <= until)).sum())
        due += draw.uniform(*later(min(fruitless, 30), told), many)
    assert due.min() > until
    return count / 3600 * 10 * MILLION / many


def test_devices_that_went_leave_the_count() -> None:
    pace = PaceSteering(0.0, MILLION)
    came = played(MILLION, pace, seconds=3_000, first=evenly(period_of(MILLION)), step=5)
    assert came.periods[-1] == pytest.approx(1_000, rel=0.1)
    assert [pace.look(3_000 + age).away > 0 for age in (500.0, 1_700.0)] == [True, False]
    assert pace.period == LEAST_S


ANSWERS = st.lists(st.tuples(st.floats(0.0, 30.0), st.integers(0, 500)), min_size=1, max_size=60)


@given(ANSWERS)
@settings(max_examples=50, deadline=None)
def test_groups_of_answers_count_as_each_of_them_would(steps: list[tuple[float, int]]) -> None:
    """The slow reference keeps every answer with its time and its T."""
    pace, now, answers = PaceSteering(0.0, 5_000.0), 0.0, list[tuple[float, float, int]]()
    for wait, count in steps:
        answers.append((now + wait / 2, pace.period, count))  # in the midst of the step
        now += wait
        pace.sent += count
        found = pace.look(now).away
        slow = sum(count * away((now - at) / period) for at, period, count in answers)
        total = sum(count for _, _, count in answers)
        assert found == pytest.approx(slow, abs=1 + total / 64)
        assert len(pace._groups) <= len(steps)


def test_what_is_unseen_is_the_integral_of_what_is_away() -> None:
    grid = np.linspace(0, 2, 20_001)
    curve = np.array([away(float(age)) for age in grid])
    for age in (0.0, 0.3, 0.5, 0.9, 1.4, 1.5, 2.0):
        assert unseen(age) == pytest.approx(np.trapezoid(curve[grid >= age], grid[grid >= age]), abs=1e-3)
    assert unseen(0.0) == 1.0


# -- several workers ---------------------------------------------------------------------------------------------------


def test_workers_add_up_what_they_see_and_one_that_begins_takes_up_the_count(tmp_path: Path) -> None:
    clock = Clock()
    store = sqlite_store(tmp_path, clock)

    def worker(name: str) -> CheckInRates:
        made = CheckInRates(store, name * 32, clock=lambda: clock.now)
        made.look({"es": 20_000})
        return made

    def goes_on(*those: CheckInRates, each: int) -> None:
        """For 60 s, in which each of them answers so many a second."""
        for _ in range(30):
            clock.now += 2.0
            for one in those:
                for _ in range(2 * each):
                    one.answer("es")
                one.look({"es": 20_000})

    first, second = worker("a"), worker("b")
    assert [each.known["es"].devices for each in (first, second)] == [20_000, 20_000], "the guess is not added up"
    goes_on(first, second, each=20)
    both = [each.known["es"].devices for each in (first, second)]
    # 40 a second that are told to come once in T are 40 T devices; T follows them down to LEAST_S
    assert both[0] == pytest.approx(both[1], rel=0.1) and both[0] < 2_000
    clock.now += 3600.0  # both end; the next one begins where they were
    third = worker("c")
    assert third.known["es"].devices == pytest.approx(both[0], rel=0.1)
    fourth = worker("d")
    assert fourth.known["es"].devices == third.known["es"].devices, "and another beside it does not count them again"
    assert ComeBack.model_validate_json(fourth.answer("es")).after_s == pytest.approx(fourth.known["es"].period / 2)
    assert ComeBack.model_validate_json(fourth.answer("fr")).after_s == 15.0


def test_whoever_asks_without_waiting_keeps_devices_away_no_longer_than_a_wrong_guess_might(tmp_path: Path) -> None:
    clock = Clock()
    store = sqlite_store(tmp_path, clock)
    made = CheckInRates(store, "a" * 32, clock=lambda: clock.now)
    made.look({"es": 10_000})
    for _ in range(600):
        clock.now += 10.0
        made.known["es"].sent += 50_000
        made.look({"es": 10_000})
    assert made.known["es"].devices > 1e6
    assert made.known["es"].period == pytest.approx(period_of(WRONG * 10_000), rel=STEP)


def test_what_others_say_is_added_to_what_a_worker_saw() -> None:
    pace = PaceSteering(0.0, 0.0, others=SharedRates(away=50_000.0, unseen=10_000.0))
    pace.look(1.0)
    assert pace.devices == 60_000


# -- do rounds fill? ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("devices", [100_000, 10_000_000])
def test_simulated_devices_that_ask_so_often_fill_rounds_within_their_selection(devices: int) -> None:
    """A sample of the population, with as large a share of it wanted in a round as 6,500 reports are of ten million.

    The simulator draws who is idle, charged and connected when; whoever asks once in each period is its device.
    """
    selection = DeploymentSection(population="es", devices=devices).selecting_minutes * 60
    assert max(seconds_to_fill(period_of(devices))) < selection / 2
    assert max(seconds_to_fill(86_400.0, reports=600_000)) > selection  # of six in a hundred, asked once a day


def test_a_population_that_was_guessed_ten_times_too_large_fills_its_rounds() -> None:
    """Three in a hundred of a million devices: with the guess too few of them ask within half an hour."""
    selection, guess = 1800.0, 10.0 * MILLION
    came = played(MILLION, PaceSteering(0.0, guess), seconds=2_000, first=evenly(period_of(guess)), step=5)
    assert max(seconds_to_fill(float(came.periods[-1]), reports=300_000)) < selection
    assert max(seconds_to_fill(period_of(guess), reports=300_000)) > selection


def seconds_to_fill(period: float, reports: int = 6_500) -> list[float]:
    """From the opening of each of twelve rounds to its last device, when each device asks once in so many seconds."""
    sample = 10_000
    rules = RoundRules(report_goal=round(reports * sample / 10_000_000), timer_hours=6.0, check_in_minutes=period / 60)
    cohorts = SimulatedCohorts(Population(devices=sample), rules, seed=5)
    clock, waited = cohorts.start(), []
    for number in range(12):
        happened, clock = cohorts.next_cohort(clock, number)
        waited.append((happened.filled - happened.opened) / SECOND)
    return waited
