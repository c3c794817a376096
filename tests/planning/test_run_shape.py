"""Shapes of runs: what is claimed of their noise, that they fit their population, and that no other is better."""

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.design.best import best_mechanism
from tacit.errors import InputError
from tacit.planning.new_recipe import FROM_ALIKE, FROM_PUBLIC, FROM_RANDOM, FROM_UNLIKE, _gains
from tacit.planning.run_shape import LEAST, VISITS, Learning, RunShape, shape_of_run
from tacit.population.cohorts import check_population
from tacit.privacy.gaussian import zcdp_for_epsilon
from tacit.privacy.participation import Participation

ways = st.sampled_from([FROM_RANDOM, FROM_PUBLIC])
populations = st.integers(2 * LEAST, 10**6)
budgets = st.floats(1e-4, 100)
few = settings(deadline=None, max_examples=25)


@pytest.mark.parametrize(
    ("separation", "times", "low", "high"),
    [(1, 4, 1.0, 1.0), (8, 4, 1.05, 1.35), (16, 8, 1.05, 1.35), (32, 4, 1.05, 1.35), (32, 1, 1.5, 2.1)],
)
def test_the_noise_of_a_step_hardly_depends_on_the_cut(separation: int, times: int, low: float, high: float) -> None:
    """In multiples of 1 / (clients mu): the loss is at mu = 1, and clients = separation * cohort."""
    participation = Participation.worst_case(separation * times, separation)
    loss = best_mechanism(participation).candidates[0].losses.max_loss
    assert low - 1e-9 <= loss * separation / participation.rounds <= high + 1e-9


@few
@given(populations, budgets, ways)
def test_a_shape_fits_its_population(clients: int, zcdp: float, way: Learning) -> None:
    shape = shape_of_run(clients, zcdp, way)
    check_population(shape.participation, clients=clients, report_goal=shape.report_goal)
    assert shape.rounds * shape.report_goal <= VISITS and shape.report_goal >= LEAST
    assert 0 <= shape.expected <= 1 and 0 < shape.learning_rate(1.0) <= 1
    assert shape.learning_rate(0.5) == pytest.approx(2 * shape.learning_rate(1.0), rel=0.06)


@few
@given(populations, budgets, ways)
def test_no_other_progress_is_better(clients: int, zcdp: float, way: Learning) -> None:
    """The slow reference: the same formula written out, at a thousand distances."""
    shape = shape_of_run(clients, zcdp, way)
    farthest = way.step * way.moving(shape.rounds)

    def expected(progress: float) -> float:
        noise = shape.noise / shape.progress * progress
        ratio = noise / (way.scale * (progress / shape.rounds / 10) ** way.hold)
        left = 1 / (1 + (way.half / progress) ** way.power)
        return (way.start + (1 - way.start) * left) * math.exp(-ratio / 5 - ratio**4)

    assert shape.expected == pytest.approx(expected(shape.progress))
    best = max(expected(farthest * 10 ** (-3 * at / 1000)) for at in range(1001))
    assert shape.expected >= 0.99 * best


@few
@given(populations, budgets, ways)
def test_more_clients_and_more_budget_never_hurt(clients: int, zcdp: float, way: Learning) -> None:
    """Up to the hundredth that is given for fewer participations."""
    here = shape_of_run(clients, zcdp, way).expected
    assert shape_of_run(2 * clients, zcdp, way).expected >= 0.98 * here
    assert shape_of_run(clients, 4 * zcdp, way).expected >= 0.98 * here
    assert shape_of_run(clients, math.inf, way).share_kept == 1


def test_momentum_moves_late() -> None:
    way = replace(FROM_RANDOM, momentum=0.5)
    moved, speed = 0.0, 0.0
    for _ in range(7):
        speed = 0.5 * speed + 1
        moved += speed
    assert way.step * way.moving(7) == pytest.approx(moved)
    assert replace(way, momentum=0.0).moving(7) == 7


def test_too_few_clients_are_refused() -> None:
    with pytest.raises(InputError, match="12 training clients make no cohorts of 20"):
        shape_of_run(12, zcdp_for_epsilon(8, 1e-5), FROM_RANDOM)


def test_what_is_learnt_is_what_was_measured() -> None:
    """Accuracies in per cent by progress, of docs/results/first-hour.md, over the 15.3 that long runs end with."""
    measured = {41: 4.02, 120: 7.14, 214: 8.80, 311: 9.83, 410: 10.7, 710: 12.1, 1110: 13.2}
    slower = {43: 5.48, 62: 6.51, 82: 7.16, 102: 7.58, 122: 8.18, 142: 8.74}
    for progress, accuracy in [*measured.items(), *slower.items(), (4020, 14.73)]:
        assert FROM_RANDOM.learnt(progress) == pytest.approx(accuracy / 15.3, abs=0.08)
    assert isinstance(shape_of_run(5000, 1.0, FROM_RANDOM), RunShape)


def test_what_a_public_model_gains_is_what_was_measured() -> None:
    """Accuracies in per cent by progress, of docs/results/first-hour.md, over those of the public model."""
    chat = {4.5: 13.38, 9: 13.62, 18: 13.95, 36: 14.04, 93: 14.34, 1110: 15.02}
    blogs = {4.5: 14.27, 9: 14.21, 18: 14.31, 36: 14.34, 93: 14.39, 426: 14.53, 1110: 14.53}
    for way, start, near, measured in ((FROM_UNLIKE, 12.93, 0.03, chat), (FROM_ALIKE, 14.18, 0.01, blogs)):
        for progress, accuracy in measured.items():
            assert way.learnt(progress) / way.start == pytest.approx(accuracy / start, abs=near)


def test_no_measured_run_gained_more_than_the_farthest_end() -> None:
    """Gains in per cent of a public model's top-1 by (people, epsilon), of docs/results/people.md; delta 1e-5."""
    way = replace(FROM_PUBLIC, parameters=732_108)
    far = {(500, 8): 16.2, (1_500, 8): 28.3, (5_000, 8): 30.3, (15_000, 8): 33.0, (24_433, 1): 28.4, (24_433, 8): 32.6}
    near = {(24_433, 1): 5.7, (24_433, 8): 8.4}
    for (people, epsilon), gain in [*far.items(), *near.items()]:
        shape = shape_of_run(people, zcdp_for_epsilon(epsilon, 1e-5), way)
        low, _, high = _gains(shape)
        assert 100 * low < gain < 100 * high, (people, epsilon)
    assert all(
        100 * _gains(shape_of_run(n, zcdp_for_epsilon(e, 1e-5), way)).unlike < gain for (n, e), gain in far.items()
    )


def test_what_noise_leaves_of_a_public_model_is_what_was_measured() -> None:
    """Shares kept by (noise in a weight, clip norms a round), of docs/results/first-hour.md."""
    way = replace(FROM_PUBLIC, parameters=144_528)
    measured = {(0.1, 0.9): (0.892, 0.897), (0.03, 0.9): (0.983,), (0.1, 3.0): (0.930,), (0.03, 3.0): (0.991,)}
    for (noise, carried), shares in measured.items():
        for share in shares:
            assert way.share_kept(noise, carried) == pytest.approx(share, abs=0.03)
