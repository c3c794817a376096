"""Simulated devices: the obvious twin bit for bit, the shares that were asked for, and no timer ever broken."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, kstest, lognorm
from tests.support.population.slow_devices import SlowDevices, everybody

from tacit.errors import InputError, ParticipationError, TacitError
from tacit.population.availability import DAY, HOUR, Availability, HalfDay, next_session
from tacit.population.check_ins import count_eligible, run_length, shuffle
from tacit.population.devices import Population, RoundRules, loop_settings
from tacit.population.settings import SimulationSettings
from tacit.population.simulated_cohorts import SimulatedCohorts
from tacit.population.simulation import Simulation
from tacit.population.simulation import simulate as run_simulation
from tacit.population.supply import Supply, check_supply
from tacit.population.work_model import WorkModel, attempt, training_time
from tacit.privacy.measured_participation import realised_participation

EASY = Availability(unmetered=0.9)
SMALL = Population(devices=400, availability=EASY)
RULES = RoundRules(report_goal=6, timer_hours=20, check_in_minutes=20)


def simulate(population: Population, rules: RoundRules, *, rounds: int, seed: int = 0) -> Simulation:
    return run_simulation(SimulationSettings(population=population, rules=rules, rounds=rounds, seed=seed))


def available(population: Population, at: int, seed: int = 0) -> int:
    found = loop_settings(population, RoundRules(report_goal=1, timer_hours=1), seed)
    return count_eligible(found, np.zeros(population.devices, np.int64), at, 1)


@settings(max_examples=10)
@given(
    devices=st.integers(20, 120),
    goal=st.integers(1, 5),
    timer=st.sampled_from([0.0001, 0.5, 9.0, 30.0]),
    clock=st.sampled_from(["finish", "upload"]),
    over=st.sampled_from([1.0, 1.3, 2.5]),
    dropout=st.sampled_from([0.0, 0.1, 0.6]),
    pause=st.sampled_from([0.0, 2.0]),
    seed=st.integers(0, 2**40),
)
def test_every_round_is_the_obvious_twins_bit_for_bit(
    devices: int, goal: int, timer: float, clock: Any, over: float, dropout: float, pause: float, seed: int
) -> None:
    population = Population(
        devices=devices,
        availability=Availability(zones=((-8.0, 1.0), (5.5, 2.0)), unmetered=0.95),
        work=WorkModel(dropout=dropout, examples_per_second=2.0),
    )
    rules = RoundRules(
        report_goal=goal,
        timer_hours=timer,
        clock=clock,
        over_selection=over,
        pause_minutes=pause,
        check_in_minutes=37.0,
        deadline_minutes=9.0,
    )
    cohorts, rounds = SimulatedCohorts(population, rules, seed=seed), 6
    clock_state = cohorts.start()
    expected = SlowDevices(population, rules, seed).run(rounds)
    for number in range(rounds):
        got, clock_state = cohorts.next_cohort(clock_state, number)
        told = {name: getattr(got, name) for name in expected[number] if name != "clients"}
        assert {"clients": got.clients.tolist(), **told} == expected[number]


def test_runs_of_neighbours_are_the_twins_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Above 131,072 devices neighbours ask together; the same code is checked here with runs of 3."""
    monkeypatch.setattr("tacit.population.devices.run_length", lambda devices: 3)
    monkeypatch.setattr("tests.support.population.slow_devices.run_length", lambda devices: 3)
    population = replace(SMALL, devices=100)
    cohorts = SimulatedCohorts(population, RULES, seed=3)
    assert cohorts.settings.run == 3 and cohorts.settings.runs == 34
    clock = cohorts.start()
    for number, expected in enumerate(SlowDevices(population, RULES, 3).run(5)):
        got, clock = cohorts.next_cohort(clock, number)
        assert (got.clients.tolist(), got.finished) == (expected["clients"], expected["finished"])


@settings(max_examples=25)
@given(device=st.integers(0, 10**6), day=st.integers(0, 300), seed=st.integers(0, 99))
def test_sessions_are_the_obvious_twins(device: int, day: int, seed: int) -> None:
    population = Population(devices=10**6 + 1, availability=Availability(zones=((-3.0, 1.0), (9.0, 1.0))))
    found = loop_settings(population, RULES, seed).sessions
    expected = SlowDevices(population, RULES, seed).sessions(device, day - 2, 12)
    at = day * DAY
    for begin, end in [session for session in expected if session[1] > at][:4]:
        assert next_session(found, device, at) == (begin, end)
        at = end


def test_the_share_of_available_devices_is_what_was_asked_for() -> None:
    """Everybody on the charger from 22 for 8 hours: share of networks x charging x idle, by local time."""
    night = HalfDay(charging=0.5, idle=0.8, starts=22.0, starts_spread=0.0, hours=8.0, hours_spread=0.0)
    never = replace(night, charging=0.0, starts=13.0)
    here = Availability(unmetered=0.7, night=night, day=never, rhythm_spread=0.0, zones=((0.0, 3.0), (6.0, 1.0)))
    population, expected = Population(devices=40_000, availability=here), 0.7 * 0.5 * 0.8
    for hour, zones in ((23.0, 1.0), (5.5, 0.75), (21.0, 0.25), (12.0, 0.0)):  # 21 o'clock is 3 in the second zone
        found = available(population, round((24 * 9 + hour) * HOUR))
        assert binomtest(found, 40_000, expected * zones).pvalue > 1e-4, hour
        if zones:
            assert binomtest(found, 40_000, 1.1 * expected * zones).pvalue < 1e-4, "a wrong share would not be seen"


def test_defaults_have_the_published_swing_over_the_day() -> None:
    """arXiv:1902.01046, Section 9: about four times as many at night, for a population of the United States."""
    states = Availability(zones=((-5.0, 0.47), (-6.0, 0.30), (-7.0, 0.07), (-8.0, 0.16)))
    population = Population(devices=20_000, availability=states)
    shares = [available(population, 9 * DAY + half * HOUR // 2) for half in range(48)]
    assert 3.4 < max(shares) / min(shares) < 4.6


def test_attempts_take_the_time_and_fail_as_often_as_asked() -> None:
    work = WorkModel(examples_spread=0.5, speed_spread=0.3, transfer_seconds=0.0, dropout=0.2, most_examples=1e9)
    found = loop_settings(Population(devices=20_000, work=work), replace(RULES, deadline_minutes=1e6), 5).attempts
    seconds = np.array([training_time(found, device) for device in range(20_000)]) / 1000
    spread = np.hypot(0.5, 0.3)  # of draws that end at 3.46 deviations: not far from normal ones
    assert kstest(seconds, lognorm(s=spread, scale=100).cdf).statistic < 0.02
    assert kstest(seconds, lognorm(s=spread, scale=110).cdf).statistic > 0.04
    ended = [attempt(found, device, 1000 + device, 10**12) for device in range(20_000)]
    failed = sum(not uploads for _, uploads in ended)
    assert binomtest(failed, 20_000, 0.2).pvalue > 1e-4 > binomtest(failed, 20_000, 0.22).pvalue
    part = [
        (ends - 1001 - device) / (1000 * seconds[device]) for device, (ends, uploads) in enumerate(ended) if not uploads
    ]
    assert kstest(part, "uniform").pvalue > 1e-4


def test_transfers_are_exponential() -> None:
    work = WorkModel(examples=1e-6, examples_spread=0.0, transfer_seconds=30.0, dropout=0.0)
    found = loop_settings(Population(devices=10_000, work=work), replace(RULES, deadline_minutes=1e6), 5).attempts
    took = [(attempt(found, device, 77, 10**12)[0] - 77) / 1000 for device in range(10_000)]
    assert kstest(np.array(took) / 30.0, "expon").pvalue > 1e-4 > kstest(np.array(took) / 33.0, "expon").pvalue


def test_an_attempt_ends_with_its_session_and_its_deadline() -> None:
    work = WorkModel(examples_spread=0.0, speed_spread=0.0, transfer_seconds=0.0, dropout=0.0)  # 100 seconds each
    found = loop_settings(Population(devices=9, work=work), RULES, 0).attempts
    assert attempt(found, 3, 0, 100_000) == (100_000, True)
    assert attempt(found, 3, 0, 99_999) == (99_999, False)
    hasty = loop_settings(Population(devices=9, work=work), replace(RULES, deadline_minutes=1.0), 0).attempts
    assert attempt(hasty, 3, 0, 10**9) == (60_000, False)


def test_known_examples_are_used() -> None:
    work = WorkModel(speed_spread=0.0, transfer_seconds=0.0, dropout=0.0)
    found = loop_settings(Population(devices=6, work=work), RULES, 0, examples=[4, 40, 10**9, 0, 1, 2]).attempts
    assert [training_time(found, device) for device in range(4)] == [1000, 10_000, 250_000, 1]
    with pytest.raises(InputError, match="one finite count"):
        loop_settings(Population(devices=6), RULES, 0, examples=[1, 2])


@settings(max_examples=8)
@given(
    timer=st.sampled_from([0.0001, 3.0, 24.0, 40.0]),
    clock=st.sampled_from(["finish", "upload"]),
    seed=st.integers(0, 10**6),
)
def test_no_timer_is_broken_and_the_promise_is_kept(timer: float, clock: Any, seed: int) -> None:
    """Realised MinS and MaxP are never worse than what the timer promises from the times of the rounds."""
    rules = replace(RULES, timer_hours=timer, clock=clock, most_days=40.0)
    run = simulate(SMALL, rules, rounds=60, seed=seed)
    assert run.realised.min_separation >= run.promised.min_separation
    assert run.realised.max_participations <= run.promised.max_participations
    assert run.realised == realised_participation(
        60, np.repeat(np.arange(60), 6), np.concatenate([each.clients for each in run.happened])
    )
    finished_last: dict[int, int] = {}
    for each in run.happened:
        assert len(set(each.clients.tolist())) == 6
        assert each.opened <= each.filled < each.finished
        for client in each.clients.tolist():
            if clock == "finish" and client in finished_last:
                assert each.finished >= finished_last[client] + rules.timer
            finished_last[client] = each.finished
        assert each.selected == len(each.clients) + each.wasted


def test_who_came_how_often_adds_up() -> None:
    run = simulate(SMALL, replace(RULES, timer_hours=5), rounds=200, seed=2)
    assert run.participations_per_device.sum() == 400
    assert (run.participations_per_device * np.arange(run.participations_per_device.size)).sum() == 200 * 6
    assert run.participations_per_device.size - 1 == run.realised.max_participations
    assert int(np.flatnonzero(run.separations)[0]) == run.realised.min_separation
    assert run.separations.sum() == 200 * 6 - (400 - run.participations_per_device[0])
    rows = list(run.rows())
    assert [row[0] for row in rows] == list(range(200))
    assert all(before[2] <= after[1] for before, after in pairwise(rows))
    assert run.days == pytest.approx(rows[-1][2] / 86_400)
    assert run.wasted_hours > 0 and run.used_hours > 0
    assert {row[0] for row in rows if row[-1]} == set(run.underfilled.tolist())


def test_drop_outs_are_as_many_as_asked() -> None:
    """With sessions that never end and no deadline only `dropout` is left."""
    population = Population(devices=3000, availability=everybody(), work=WorkModel(dropout=0.15))
    rules = RoundRules(report_goal=50, timer_hours=10, deadline_minutes=600)
    run = simulate(population, rules, rounds=100, seed=4)
    selected, dropped = (sum(getattr(each, name) for each in run.happened) for name in ("selected", "dropped"))
    assert abs(dropped / selected - 0.15) < 0.015
    late = sum(each.late for each in run.happened)
    assert 0.2 < late / (100 * 50) < 0.3001  # 15 places more than reports, nearly all of them late


def test_without_over_selection_nobody_is_late() -> None:
    run = simulate(SMALL, replace(RULES, over_selection=1.0), rounds=30, seed=1)
    assert all(each.late == 0 for each in run.happened)


def test_the_order_is_a_fresh_permutation_and_fair() -> None:
    order, first = np.empty(5, np.int32), np.zeros((5, 5))
    key = loop_settings(SMALL, RULES, 9).order
    for cell in range(6000):
        shuffle(order, key, cell)
        first[np.arange(5), order] += 1
    assert (first.sum(axis=0) == 6000).all()
    assert np.abs(first / 6000 - 0.2).max() < 0.025
    assert [run_length(devices) for devices in (10, 131_071, 131_072, 16_600_000)] == [1, 1, 2, 253]


def test_runs_resume_bit_for_bit_from_the_saved_arrays() -> None:
    whole = SimulatedCohorts(SMALL, RULES, seed=8)
    clock, cohorts, saved = whole.start(), [], None
    for number in range(12):
        if number == 5:
            saved = tuple(np.array(part) for part in clock)
        before = clock.ready.copy()
        each, after = whole.next_cohort(clock, number)
        assert (clock.ready == before).all()  # state in, state out
        cohorts.append(each)
        clock = after
    assert saved is not None
    again = SimulatedCohorts(SMALL, RULES, seed=8)
    resumed = type(clock)(*saved)
    for number in range(5, 12):
        each, resumed = again.next_cohort(resumed, number)
        assert (each.clients == cohorts[number].clients).all()
        assert (each.opened, each.finished) == (cohorts[number].opened, cohorts[number].finished)
    assert (resumed.ready == clock.ready).all() and resumed.opens == clock.opens


def test_the_clock_survives_a_checkpoint(tmp_path: Path) -> None:
    """Training saves it like any state: the same arrays, bit for bit, of the same types and shapes."""
    from tacit.training.checkpoint import leaves, load_checkpoint, save_checkpoint

    cohorts = SimulatedCohorts(SMALL, RULES, seed=8)
    _, clock = cohorts.next_cohort(cohorts.start(), 0)
    digest = save_checkpoint(tmp_path / "clock.safetensors", leaves(clock))
    loaded = load_checkpoint(tmp_path / "clock.safetensors", cohorts.start(), digest)
    assert loaded.ready.dtype == np.int64 and loaded.opens.shape == ()
    expected, again = cohorts.next_cohort(clock, 1)[0], SimulatedCohorts(SMALL, RULES, seed=8).next_cohort(loaded, 1)[0]
    assert (expected.clients == again.clients).all() and expected.finished == again.finished


def test_other_seeds_are_other_populations() -> None:
    cohorts = [simulate(SMALL, RULES, rounds=3, seed=seed).happened[0].clients.tolist() for seed in (0, 0, 1)]
    assert cohorts[0] == cohorts[1] != cohorts[2]


def test_supply_is_a_limit_that_an_impatient_server_comes_near() -> None:
    """One report a round, taken at once: the devices give nearly all that they can."""
    population = Population(devices=30, availability=everybody(), work=WorkModel(dropout=0.0, transfer_seconds=0.0))
    rules = RoundRules(
        report_goal=1,
        timer_hours=24,
        check_in_minutes=1,
        pause_minutes=0,
        over_selection=10,
        most_days=20,
        clock="upload",
    )
    supply = Supply.from_population(population, rules, 0)
    assert supply.reports_margin == 0 and supply.devices == 30
    cohorts, rounds = SimulatedCohorts(population, replace(rules, over_selection=1.0), seed=0), 0
    clock = cohorts.start()
    with pytest.raises(ParticipationError, match=r"of 1 reports on day 20"):
        while True:
            _, clock = cohorts.next_cohort(clock, rounds)
            rounds += 1
    assert 0.9 * supply.reports < rounds <= supply.reports


REFUSED: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({}, {"report_goal": 401}, "report_goal=401 exceeds the 400 devices"),
    ({}, {"report_goal": 380}, r"round 0 would wait for ever.* report_goal <= 3\d\d, or at least 4\d\d devices"),
    ({}, {"timer_hours": 24.0 * 200}, r"rounds from \d+ on starve; use report_goal <= \d+, .*timer_hours <= \d+ or"),
    ({}, {"deadline_minutes": 0.001}, "ever finishes a visit"),
    ({}, {"most_days": 0.5}, "most_days=0.5"),
]


@pytest.mark.parametrize(("of_population", "of_rules", "says"), REFUSED, ids=[each[2][:30] for each in REFUSED])
def test_what_never_ends_is_refused_before_it_begins(
    of_population: dict[str, Any], of_rules: dict[str, Any], says: str
) -> None:
    with pytest.raises(ParticipationError, match=says):
        simulate(replace(SMALL, **of_population), replace(RULES, **of_rules), rounds=500)


def test_the_ways_out_lead_out() -> None:
    """A timer that the complaint names is possible, and the next longer one is not."""
    rules = replace(RULES, timer_hours=24.0 * 200)
    with pytest.raises(ParticipationError) as caught:
        check_supply(SMALL, rules, 500, 0)
    hours = float(str(caught.value).split("timer_hours <= ")[1].split(" ")[0])
    check_supply(SMALL, replace(rules, timer_hours=hours), 500, 0)
    with pytest.raises(ParticipationError):
        check_supply(SMALL, replace(rules, timer_hours=hours + 24), 500, 0)
    assert simulate(SMALL, replace(rules, timer_hours=hours / 2), rounds=500).rounds == 500


WRONG: list[tuple[Any, dict[str, Any], str]] = [
    (Population, {"devices": 0}, "devices=0 is not a whole number"),
    (Population, {"devices": 10**9}, "devices=1000000000 is above"),
    (Availability, {"unmetered": 0.0}, "no device is ever available"),
    (Availability, {"unmetered": 1.2}, "unmetered=1.2 is no share"),
    (Availability, {"zones": ()}, "no time zones"),
    (Availability, {"zones": ((0.0, 0.0),)}, "weigh nothing"),
    (Availability, {"rhythm_spread": 9.0}, "rhythm_spread=9.0"),
    (Availability, {"night": replace(Availability().night, starts=12.0)}, "night.starts=12.0 is not in the night"),
    (WorkModel, {"dropout": 1.0}, "dropout=1.0 is no share below 1"),
    (WorkModel, {"examples": 0}, "examples=0 is not a finite number above 0"),
    (WorkModel, {"speed_spread": float("nan")}, "speed_spread=nan"),
    (RoundRules, {"report_goal": 0, "timer_hours": 1}, "report_goal=0"),
    (RoundRules, {"report_goal": 5, "timer_hours": 0}, "timer_hours=0 is no time above 0"),
    (RoundRules, {"report_goal": 5, "timer_hours": float("inf")}, "timer_hours=inf"),
    (RoundRules, {"report_goal": 5, "timer_hours": 1, "over_selection": 0.9}, "over_selection=0.9"),
    (RoundRules, {"report_goal": 5, "timer_hours": 1, "clock": "start"}, "clock='start'"),
    (RoundRules, {"report_goal": 5, "timer_hours": 1, "pause_minutes": -1}, "pause_minutes=-1"),
]


@pytest.mark.parametrize(("kind", "values", "says"), WRONG, ids=[each[2] for each in WRONG])
def test_wrong_settings_name_the_value_and_the_way_out(kind: Any, values: dict[str, Any], says: str) -> None:
    with pytest.raises(TacitError, match=says):
        kind(**values)
