"""Who can come how often: the limits of a population, a timer and a speed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import InputError
from tacit.planning import Clients
from tacit.privacy.measured_participation import timed_participation


def test_the_papers_limits() -> None:
    # arXiv:2305.18465, Section 2.2: 10^6 devices at 6500 reports give at most 153, es-ES with 4.21M at most 647.
    assert Clients(devices=1_000_000).longest_separation(6500) == 153
    assert Clients(devices=4_210_000).longest_separation(6500) == 647


@given(devices=st.integers(1, 60), report_goal=st.integers(1, 20))
def test_the_longest_separation_can_be_kept_and_no_longer_one(devices: int, report_goal: int) -> None:
    """Clients who come in turn keep it; one round more would need clients that do not exist."""
    if report_goal > devices:
        with pytest.raises(InputError, match="can be reached"):
            Clients(devices=devices).longest_separation(report_goal)
        return
    longest = Clients(devices=devices).longest_separation(report_goal)
    last: dict[int, int] = {}
    for slot in range(5 * longest * report_goal):
        when, who = divmod(slot, report_goal)[0], slot % (longest * report_goal)
        assert when - last.get(who, when - longest) >= longest
        last[who] = when
    assert (longest + 1) * report_goal > devices


def test_a_timer_separates_by_the_rounds_completed_in_it() -> None:
    clients = Clients(devices=4_210_000, timer_hours=24, rounds_per_day=300)
    assert clients.separation(6500) == 300
    assert clients.with_timer(48).separation(6500) == 600
    assert clients.speed(6500) == 300
    # Three days are more than the population has: it is the speed that gives, not the separation that grows.
    assert clients.with_timer(72).separation(6500) == 647
    assert clients.with_timer(72).speed(6500) == pytest.approx(4_210_000 / 6500 / 3)


@given(
    devices=st.integers(100, 10**7),
    availability=st.floats(0.01, 1),
    report_goal=st.integers(1, 100),
    hours=st.floats(1, 300),
    speed=st.floats(1, 500),
)
def test_nobody_comes_more_often_than_the_timer_lets_them(
    devices: int, availability: float, report_goal: int, hours: float, speed: float
) -> None:
    clients = Clients(devices=devices, availability=availability, timer_hours=hours, rounds_per_day=speed)
    if report_goal > clients.reachable:
        return
    kept = clients.speed(report_goal)
    assert kept is not None
    assert kept <= speed
    assert kept * hours / 24 * report_goal <= clients.reachable * (1 + 1e-12)
    assert 1 <= clients.separation(report_goal) <= max(1, kept * hours / 24 * (1 + 1e-12))


@given(hours=st.integers(1, 200), speed=st.integers(1, 300))
def test_the_estimate_is_what_a_log_of_evenly_spaced_rounds_measures(hours: int, speed: int) -> None:
    planned = Clients(devices=10**9, timer_hours=hours, rounds_per_day=speed).separation(1)
    finished = [24 * 3600 * number for number in range(1, 3 * planned + 4)]  # seconds times the speed: whole numbers
    for clock, least, most in (("finish", 0, 1), ("upload", -1, 0)):
        measured = timed_participation(finished, timer=hours * 3600 * speed, clock=clock)  # type: ignore[arg-type]
        assert max(1, planned + least) <= measured.min_separation <= planned + most


def test_the_timer_for_a_separation_is_the_shortest_in_whole_days() -> None:
    clients = Clients(devices=10**7, rounds_per_day=100)
    for separation in range(1, 1001):
        hours = clients.timer_for(separation)
        assert hours % 24 == 0
        assert clients.with_timer(hours).separation(100) >= separation
        assert hours == 24 or clients.with_timer(hours - 24).separation(100) < separation


def test_a_separation_beyond_the_rounds_says_that_nobody_comes_twice() -> None:
    served = Clients(devices=10**6).participation(rounds=500, report_goal=1000)
    assert (served.min_separation, served.max_participations) == (500, 1)


def test_an_enforced_count_is_kept_where_the_separation_allows_more() -> None:
    clients = Clients(devices=10**6, min_separation=100, max_participations=3)
    assert clients.participation(1000, 1000).max_participations == 3
    assert clients.participation(150, 1000).max_participations == 2


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"devices": 0}, "devices=0"),
        ({"devices": 2.5}, "devices=2.5"),
        ({"devices": 10, "availability": 0}, "availability=0"),
        ({"devices": 10, "availability": 1.5}, "availability=1.5"),
        ({"devices": 10, "timer_hours": -1.0, "rounds_per_day": 5.0}, "timer_hours=-1"),
        ({"devices": 10, "timer_hours": 24.0}, "give rounds_per_day"),
        ({"devices": 10, "timer_hours": 24.0, "rounds_per_day": 9.0, "min_separation": 3}, "give one of them"),
        ({"devices": 10, "min_separation": 0}, "min_separation=0"),
        ({"devices": 10, "rounds_per_day": float("nan")}, "rounds_per_day=nan"),
    ],
)
def test_contradictions_are_named(wrong: dict[str, float], says: str) -> None:
    with pytest.raises(InputError, match=says):
        Clients(**wrong)


def test_what_the_population_cannot_give_is_refused() -> None:
    with pytest.raises(InputError, match="need 1000 different clients, and 500 can be reached; give at most 50"):
        Clients(devices=1000, availability=0.5, min_separation=100).separation(10)
    with pytest.raises(InputError, match="report_goal=501 exceeds the 500 clients"):
        Clients(devices=1000, availability=0.5).separation(501)
    with pytest.raises(InputError, match="report_goal=0"):
        Clients(devices=1000).separation(0)
    with pytest.raises(InputError, match="give rounds_per_day"):
        Clients(devices=1000).timer_for(10)
