"""When devices come back: no more of them in a second than a server answers, whatever their number."""

import numpy as np
import pytest

from tacit.deployment.pacing import CHECK_INS, LEAST_S, MOST_S, window


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
