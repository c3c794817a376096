"""Backwards: each answer is accounted forwards, and found again by trying everything."""

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.design.catalogue import MECHANISMS
from tacit.design.mechanism import Mechanism
from tacit.errors import InputError
from tacit.planning import Clients, Scenario, Utility, report_goal_for, rounds_for, timer_for
from tacit.planning.steps import Goal, seven_steps
from tacit.planning.targets import noise_for, timers
from tacit.privacy.gaussian import zcdp_for_epsilon
from tacit.privacy.strategy import Toeplitz

QUICK = [
    "independent",
    "tree",
    "tree-variance-reduced",
    "blt-b100",
]  # held fixed: their loss never falls with more visits
GIVEN_BLT = MECHANISMS["blt-b400"]


def small(rounds: int, devices: int, noise: float = 1.0, **clients: float) -> Scenario:
    utility = Utility(noise_multiplier=noise, report_goal=20)
    return Scenario(clients=Clients(devices=devices, **clients), rounds=rounds, utility=utility)


@pytest.mark.parametrize("name", QUICK)
@given(rounds=st.integers(1, 40), devices=st.integers(20, 400), zcdp=st.floats(0.01, 20))
@settings(max_examples=12, deadline=None)
def test_the_least_report_goal_is_the_first_that_does_it(name: str, rounds: int, devices: int, zcdp: float) -> None:
    scenario = small(rounds, devices)
    found = report_goal_for(scenario, MECHANISMS[name], zcdp)
    every = (scenario.plan(MECHANISMS[name], goal) for goal in range(1, devices + 1))
    first = next((plan.report_goal for plan in every if plan.zcdp <= zcdp), None)
    assert found.plan.zcdp <= zcdp
    if first is None:
        assert found.noisier > 1
        assert found.plan.zcdp == pytest.approx(zcdp, rel=1e-12)
    else:
        assert (found.plan.report_goal, found.noisier, found.at_utility) == (first, 1.0, True)


def test_the_search_respects_the_limits_given() -> None:
    scenario = small(40, 10_000, min_separation=10)
    assert report_goal_for(scenario, GIVEN_BLT, 1e-3).plan.report_goal <= 1000
    assert report_goal_for(scenario, GIVEN_BLT, 0.5, most=7).plan.report_goal <= 7
    with pytest.raises(InputError, match="give at least 1"):
        report_goal_for(scenario, GIVEN_BLT, 0.5, most=0)
    with pytest.raises(InputError, match="need 20000 different clients"):
        report_goal_for(small(40, 10_000, min_separation=20_000), GIVEN_BLT, 0.5)


def test_epsilon_one_at_the_papers_utility() -> None:
    """The question of the brief: which report goal and noise reach epsilon 1, checked by forward accounting."""
    scenario = Scenario(clients=Clients(devices=16_600_000), rounds=2000, utility=Utility())
    found = report_goal_for(scenario, GIVEN_BLT, zcdp_for_epsilon(1, 1e-10))
    assert found.at_utility
    assert found.plan.guarantee.epsilon(1e-10) <= 1
    ratio = found.plan.guarantee.noise_multiplier / found.plan.report_goal
    assert ratio == pytest.approx(scenario.plan(GIVEN_BLT, 6500).guarantee.noise_multiplier / 6500, rel=1e-12)
    before = scenario.plan(GIVEN_BLT, found.plan.report_goal - 1)
    assert before.guarantee.epsilon(1e-10) > 1


@pytest.mark.parametrize("name", QUICK)
@given(rounds=st.integers(1, 60), zcdp=st.floats(0.05, 30))
@settings(max_examples=10, deadline=None)
def test_the_most_rounds_are_the_last_that_do_it(name: str, rounds: int, zcdp: float) -> None:
    scenario = small(rounds, 200)
    planned = scenario.plan(MECHANISMS[name], 20)
    fixed = Mechanism.fixed(name, planned.strategy)
    found = rounds_for(scenario, MECHANISMS[name], 20, zcdp)
    last = 0
    while True:
        longer = dataclasses.replace(scenario, rounds=last + 1)
        plan = longer.plan(fixed, 20, noise_multiplier=planned.guarantee.noise_multiplier)
        if plan.zcdp > zcdp or last > 1000:
            break
        last += 1
    if last <= 1000:
        assert (found.rounds if found else 0) == last


def test_rounds_end_where_the_strategy_does() -> None:
    short = Mechanism.fixed("short", Toeplitz(coefficients=tuple([1.0] + [0.0] * 39)))
    found = rounds_for(small(30, 200), short, 20, 1e9)
    assert found is not None
    assert found.rounds == 40


def test_noise_for_a_target_at_a_given_report_goal() -> None:
    scenario = small(40, 400)
    borne = scenario.plan(GIVEN_BLT, 20)
    met = noise_for(scenario, GIVEN_BLT, 20, borne.zcdp / 4)
    assert met.noisier == pytest.approx(2)
    assert met.plan.zcdp <= borne.zcdp / 4
    assert noise_for(scenario, GIVEN_BLT, 20, borne.zcdp * 4).noisier == 1


def test_the_timer_is_the_shortest_that_does_it() -> None:
    scenario = small(200, 4000, rounds_per_day=30)
    listed = dict(timers(scenario, GIVEN_BLT, 20))
    assert list(listed) == list(range(24, max(listed) + 1, 24))
    assert listed[max(listed)].guarantee.participation.min_separation == 200  # the population has no more
    costs = [plan.zcdp for plan in listed.values()]
    assert costs == sorted(costs, reverse=True)
    for zcdp in (costs[0] * 2, costs[2], costs[-1]):
        found = timer_for(scenario, GIVEN_BLT, 20, zcdp)
        assert found is not None
        hours, plan = found
        assert plan.zcdp <= zcdp
        assert hours == 24 or listed[hours - 24].zcdp > zcdp
    assert timer_for(scenario, GIVEN_BLT, 20, costs[-1] / 2) is None


@pytest.mark.parametrize("zcdp", [0.0, -1.0, float("inf"), float("nan")])
def test_no_target_is_refused(zcdp: float) -> None:
    with pytest.raises(InputError, match="target"):
        report_goal_for(small(40, 400), GIVEN_BLT, zcdp)
    with pytest.raises(InputError, match="target"):
        rounds_for(small(40, 400), GIVEN_BLT, 20, zcdp)


@pytest.mark.parametrize("name", ["tree-variance-reduced", "blt-b400"])
@pytest.mark.parametrize("most", [None, 8000])
@pytest.mark.parametrize("speed", [None, 313.0])
def test_seven_steps_in_their_order(name: str, most: int | None, speed: float | None) -> None:
    clients = Clients(devices=4_210_000, rounds_per_day=speed)
    goal = Goal(zcdp=zcdp_for_epsilon(4, 1e-10), delta=1e-10, max_goal=most)
    reached, steps = seven_steps(Scenario(clients=clients, rounds=2000, utility=Utility()), MECHANISMS[name], goal)
    assert [step.number for step in steps] == [1, 2, 3, 4, 5, 6, 7]
    assert steps[2].figures["report_goal"] == reached.plan.report_goal
    assert reached.plan.zcdp <= goal.zcdp
    large, small = (steps[2].figures["share_kept"][size] for size in ("2400000", "80000"))
    assert 0.9 < large < small < 1  # the papers' noise, whose network learnt
    assert steps[0].figures["zcdp_without"] > reached.plan.zcdp
    assert (f"{steps[3].figures.get('timer_hours')} hours" in " ".join(steps[3].sentences)) is (speed is not None)
    if name == "tree-variance-reduced":
        assert steps[4].figures["update_noise_multiplier"] > steps[4].figures["noise_multiplier"]
    told = " ".join(sentence for step in steps for sentence in step.sentences)
    assert "None" not in told
    assert "nan" not in told


@pytest.mark.parametrize("zcdp", [0.0, -1.0, float("nan")])
def test_a_target_that_nothing_reaches_is_none(zcdp: float) -> None:
    with pytest.raises(InputError, match="is no target; give a number above 0"):
        Goal.from_target(zcdp=zcdp, delta=1e-10)
