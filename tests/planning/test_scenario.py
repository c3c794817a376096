"""Forwards: what a configuration promises and takes; the signal-to-noise hypothesis as arithmetic."""

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.design.catalogue import MECHANISMS
from tacit.design.losses import losses
from tacit.errors import InputError
from tacit.planning import Clients, Scenario, Utility, mechanism_named
from tacit.privacy import Guarantee, Participation

TREE = MECHANISMS["tree"]
QUICK = ["independent", "tree", "tree-variance-reduced", "blt-b400", "square-root"]


def scenario(rounds: int = 2000, devices: int = 4_210_000, **clients: float) -> Scenario:
    return Scenario(clients=Clients(devices=devices, **clients), rounds=rounds, utility=Utility())


def test_the_published_run_of_es_es() -> None:
    # arXiv:2305.18465, Table 1: 1900 rounds, MinS 526, MaxP 3, noise multiplier 7, report goal 6500: zCDP 0.35.
    plan = scenario(1900, min_separation=527, max_participations=3).plan(TREE, 6500, noise_multiplier=7)
    assert plan.guarantee.participation == Participation(rounds=1900, min_separation=527, max_participations=3)
    assert plan.zcdp == pytest.approx(0.35, abs=0.005)
    assert plan.participations == 1900 * 6500


def test_the_reference_itself_gets_its_own_noise() -> None:
    reference = MECHANISMS["tree-variance-reduced"]
    assert scenario().plan(reference, 6500).guarantee.noise_multiplier == pytest.approx(7, rel=1e-15)


@pytest.mark.parametrize("name", QUICK)
@given(factor=st.integers(2, 40), base=st.integers(100, 2000), rounds=st.integers(1, 300))
@settings(max_examples=20)
def test_more_reports_and_noise_together_keep_the_noise_of_the_mean(
    name: str, factor: int, base: int, rounds: int
) -> None:
    """And where the separation stays, rho falls with the square: both exactly what the hypothesis says."""
    kept = scenario(rounds, devices=10**7, min_separation=50)
    one, many = (kept.plan(MECHANISMS[name], base * times) for times in (1, factor))
    assert many.guarantee.noise_multiplier == pytest.approx(factor * one.guarantee.noise_multiplier, rel=1e-12)
    assert many.noise_of_mean == pytest.approx(one.noise_of_mean, rel=1e-12)
    assert many.zcdp == pytest.approx(one.zcdp / factor**2, rel=1e-12)


@given(rounds=st.integers(1, 400), goal=st.integers(1, 5000), objective=st.sampled_from(["max", "rms"]))
@settings(max_examples=30)
def test_at_equal_utility_mechanisms_compare_by_their_loss(rounds: int, goal: int, objective: str) -> None:
    """rho = (loss / (noise of the mean * report goal))^2 / 2, whatever the mechanism."""
    utility = Utility(objective=objective)  # type: ignore[arg-type]
    kept = Scenario(clients=Clients(devices=10**6), rounds=rounds, utility=utility)
    plans = [kept.plan(MECHANISMS[name], goal) for name in QUICK]
    for plan in plans:
        assert plan.noise_of_mean == pytest.approx(plans[0].noise_of_mean, rel=1e-12)
        served = plan.guarantee.participation
        ratio = losses(plan.strategy, served).of(utility.objective) / (plan.noise_of_mean * goal)
        assert plan.zcdp == pytest.approx(ratio**2 / 2, rel=1e-9)


def test_a_plan_says_what_forward_accounting_says() -> None:
    inflated = dataclasses.replace(scenario(700), clip_inflation=1.01)
    for name in QUICK:
        plan = inflated.plan(MECHANISMS[name], 6500)
        guarantee = Guarantee(
            participation=Participation.worst_case(700, 647),
            strategy=plan.strategy,
            clip_norm=1.0,
            noise_multiplier=plan.guarantee.noise_multiplier,
            clip_inflation=1.01,
        )
        record = plan.to_record(1e-10)
        assert (record["zcdp"], record["epsilon"]) == (guarantee.zcdp, guarantee.epsilon(1e-10))


def test_days_follow_from_the_speed() -> None:
    assert scenario(2000).plan(TREE, 6500).days is None
    assert scenario(2000, rounds_per_day=250).plan(TREE, 6500).days == 8
    slowed = scenario(2000, rounds_per_day=313, timer_hours=96).plan(TREE, 6500)
    assert slowed.days == pytest.approx(2000 / (4_210_000 / 6500 / 4))


@pytest.mark.parametrize(("name", "kept"), [("independent", 0), ("tree", 11), ("blt-b100", 4)])
def test_a_plan_says_what_the_noise_keeps(name: str, kept: int) -> None:
    assert scenario().plan(MECHANISMS[name], 6500).to_record(1e-10)["memory"] == kept


def test_every_mechanism_plans() -> None:
    for name, mechanism in MECHANISMS.items():
        if mechanism.matrix is not None:  # for minutes, or for one participation
            continue
        plan = scenario(120, devices=6500 * 40).plan(mechanism, 6500)
        assert plan.zcdp > 0, name
        assert mechanism_named(name) is mechanism


def test_wrong_values_are_named() -> None:
    with pytest.raises(InputError, match="noise_multiplier=0"):
        Utility(noise_multiplier=0)
    with pytest.raises(InputError, match="report_goal=0"):
        Utility(report_goal=0)
    with pytest.raises(InputError, match="objective"):
        Utility(objective="mean")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="'forest' is none of independent"):
        mechanism_named("forest")
