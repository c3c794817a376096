"""When devices come back: no more of them in a second than a server answers, whatever their number."""

import numpy as np
import pytest

from tacit.deployment.pacing import CHECK_INS, LEAST_S, MOST_S, window
from tacit.population.devices import Population, RoundRules
from tacit.population.simulated_cohorts import SimulatedCohorts
from tacit.population.work_model import SECOND
from tacit.recipe.deployment_section import DeploymentSection


@pytest.mark.parametrize("devices", [1, 10, 10_000, 1_000_000, 100_000_000])
def test_devices_come_at_a_rate_that_is_answered_and_not_all_at_once(devices: int) -> None:
    """Devices that were all sent away in one second, simulated for ten periods."""
    found = window(devices)
    period, many = (found.after + found.before) / 2, min(devices, 20_000)
    assert LEAST_S <= period <= MOST_S and found.after == period / 2
    draw = np.random.default_rng(devices)
    times = np.cumsum(draw.uniform(found.after, found.before, (many, 20)), axis=1).ravel()
    counts = np.histogram(times, bins=100, range=(0, 10 * period))[0] * devices / many / (period / 10)
    settled = counts[30:]  # after three periods they are spread
    assert settled.mean() == pytest.approx(devices / period, rel=0.05 if many > 100 else 0.5)
    if many > 1000 and period < MOST_S:
        assert settled.max() < 1.3 * CHECK_INS


def test_a_population_that_is_not_known_waits_for_a_moment() -> None:
    assert 10 < window(0).after < window(0).before < 60


@pytest.mark.parametrize("devices", [100_000, 10_000_000])
def test_simulated_devices_that_ask_so_often_fill_rounds_within_their_selection(devices: int) -> None:
    """A sample of the population, with as large a share of it wanted in a round as 6,500 reports are of ten million.

    The simulator draws who is idle, charged and connected when; whoever asks once in each period is its device.
    """
    selection = DeploymentSection(population="es", devices=devices).selecting_minutes * 60
    found = window(devices)
    assert max(seconds_to_fill((found.after + found.before) / 2)) < selection / 2
    assert max(seconds_to_fill(86_400.0, reports=600_000)) > selection  # of six in a hundred, asked once a day


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
