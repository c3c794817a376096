"""Which epsilon a population affords: the best report goal against all of them, and what grows with what."""

from functools import lru_cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import InputError
from tacit.planning import Clients, mechanism_named
from tacit.planning.affordable import Affordable, PlannedTraining, affordable, forecast_at
from tacit.planning.noise_forecast import GOOD

FRESH = mechanism_named("independent")
TREE = mechanism_named("tree")


@lru_cache
def found(devices: int, rounds: int = 30, most: int | None = None, step: float = 10.0) -> Affordable:
    return affordable(Clients(devices=devices), PlannedTraining(rounds=rounds, step=step), TREE, most=most)


@pytest.mark.parametrize("mechanism", ["independent", "tree", "blt"])
def test_no_report_goal_is_much_better_than_the_best_of_those_tried(mechanism: str) -> None:
    clients, training, by = Clients(devices=60), PlannedTraining(rounds=24), mechanism_named(mechanism)
    # the slow reference: all of them
    best = min(forecast_at(clients, training, by, goal).ratio for goal in range(1, 61))
    assert best <= affordable(clients, training, by).noise_forecast.ratio <= 1.05 * best


def test_with_a_limit_on_reports_the_limit_is_kept_and_costs() -> None:
    assert found(600, most=20).report_goal <= 20
    assert found(600, most=20).works > found(600).works


@settings(max_examples=10)
@given(devices=st.integers(50, 5000), times=st.integers(2, 20))
def test_more_clients_afford_a_smaller_epsilon(devices: int, times: int) -> None:
    few, many = (
        affordable(Clients(devices=each), PlannedTraining(rounds=30), FRESH) for each in (devices, devices * times)
    )
    assert many.works < few.works


@given(share=st.floats(0.05, 0.9))
def test_more_accuracy_takes_a_larger_epsilon_and_at_it_the_share_is_kept(share: float) -> None:
    few = found(1000)
    assert few.epsilon_for(share) < few.epsilon_for(share + 0.05)
    assert few.at_epsilon(few.epsilon_for(share)).share_kept == pytest.approx(share, rel=1e-6)


def test_a_larger_network_and_a_longer_step_afford_less() -> None:
    large = affordable(Clients(devices=1000), PlannedTraining(rounds=30, parameters=10**6), TREE)
    assert large.works > found(1000).works > found(1000, step=1.0).works
    assert found(1000).at_epsilon(found(1000).works).share_kept == pytest.approx(GOOD)


def test_with_fewer_clients_in_reach_the_answer_is_that_of_so_many() -> None:
    half = affordable(Clients(devices=1000, availability=0.5), PlannedTraining(rounds=30), TREE, delta=1e-4)
    assert half.works == affordable(Clients(devices=500), PlannedTraining(rounds=30), TREE, delta=1e-4).works


@pytest.mark.parametrize(
    ("clients", "training", "most", "match"),
    [
        ({"min_separation": 3}, {}, None, "leave out min_separation"),
        ({}, {}, 0, "at most 0 is none"),
        ({}, {"rounds": 0}, None, "rounds=0 is nothing"),
        ({}, {"parameters": 0}, None, "parameters=0 is nothing"),
        ({}, {"step": float("inf")}, None, "carries no model"),
    ],
)
def test_what_means_nothing_is_refused(clients: dict, training: dict, most: int | None, match: str) -> None:  # type: ignore[type-arg]
    with pytest.raises(InputError, match=match):
        affordable(Clients(devices=100, **clients), PlannedTraining(**training), FRESH, most=most)
