"""The pattern that an auditor plays: worth what the sensitivity says, and what all patterns tried one by one say."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.mechanisms.strategies import STRATEGIES, any_strategy

from tacit.audit.mechanism import linear
from tacit.audit.mechanism.linear import Linear
from tacit.audit.mechanism.patterns import worst_pattern
from tacit.audit.mechanism.streams import EveryNode, key_of
from tacit.errors import AccountingError
from tacit.mechanisms import standard_normal_seeds, stream_for
from tacit.mechanisms.tree import TreeStream
from tacit.privacy import Guarantee
from tacit.privacy.participation import Participation
from tacit.privacy.sensitivity import sensitivity_bound_squared
from tacit.privacy.strategy import Strategy, Tree


def by_trying(gram: linear.Numbers, limits: Participation) -> float:
    """The most that any pattern is worth."""
    few = limits.effective
    apart = (
        pattern
        for count in range(1, few.max_participations + 1)
        for pattern in combinations(range(few.rounds), count)
        if all(later - earlier >= few.min_separation for earlier, later in pairwise(pattern))
    )
    return max(float(gram[np.ix_(pattern, pattern)].sum()) for pattern in apart)


def worth(gram: linear.Numbers, pattern: tuple[int, ...]) -> float:
    return float(gram[np.ix_(pattern, pattern)].sum())


small_limits = st.builds(
    Participation,
    rounds=st.integers(1, 11),
    min_separation=st.integers(1, 5),
    max_participations=st.integers(1, 4),
)


@given(seed=st.integers(0, 2**32), limits=small_limits)
def test_no_pattern_is_better_than_nearly_that_one(seed: int, limits: Participation) -> None:
    """Of any matrix what is kept of beginnings may miss the best, by little; the rules hold always."""
    random = np.random.default_rng(seed).random((limits.rounds, limits.rounds))
    gram = random.T @ random
    pattern, few = worst_pattern(gram, limits), limits.effective
    assert len(pattern) <= few.max_participations
    assert all(np.diff(pattern) >= few.min_separation)
    assert 0.97 * by_trying(gram, limits) <= worth(gram, pattern) <= by_trying(gram, limits) * (1 + 1e-12)


@given(strategy=any_strategy, limits=small_limits)
def test_of_a_strategy_it_is_the_best_of_all_and_worth_the_sensitivity(
    strategy: Strategy, limits: Participation
) -> None:
    found = _as_accounted(strategy, limits.rounds)
    attained = worth(found.gram, worst_pattern(found.gram, limits))
    assert attained == pytest.approx(by_trying(found.gram, limits), rel=1e-9)
    try:
        squared, exact = sensitivity_bound_squared(strategy, limits)
    except AccountingError:  # coefficients that rise: no sensitivity is known
        return
    assert attained <= squared * (1 + 1e-9)
    if exact and (found.gram >= -1e-12).all():
        assert attained == pytest.approx(squared, rel=1e-9)


def test_of_a_restarted_tree_it_is_not_as_early_as_may_be() -> None:
    limits = Participation(rounds=128, min_separation=60, max_participations=2)
    gram = linear.of_every_node(Tree(restarts=(40,)), 128).gram
    pattern = worst_pattern(gram, limits)
    assert pattern != (0, 60)
    assert worth(gram, pattern) == 16 > worth(gram, (0, 60)) == 13


def _as_accounted(strategy: Strategy, rounds: int) -> Linear:
    return linear.of_every_node(strategy, rounds) if isinstance(strategy, Tree) else linear.of_sums(strategy, rounds)


@given(strategy=any_strategy, rounds=st.integers(1, 12), seed=st.integers(0, 2**32))
def test_the_score_has_deviation_one_and_moves_most(strategy: Strategy, rounds: int, seed: int) -> None:
    noise = stream_for(strategy).dense(rounds)
    random = np.random.default_rng(seed)
    canary = random.normal(size=rounds)
    weights, moved = linear.of_sums(strategy, rounds).told_by(canary)
    assert np.linalg.norm(weights @ noise) == pytest.approx(1, rel=1e-6)
    assert weights @ canary == pytest.approx(moved, rel=1e-6)
    other = random.normal(size=rounds)
    assert abs(other @ canary) / np.linalg.norm(other @ noise) <= moved * (1 + 1e-6)


@pytest.mark.parametrize("variance_reduced", [False, True], ids=["plain", "variance-reduced"])
def test_every_node_of_a_tree_is_its_contributions_and_its_seed(variance_reduced: bool) -> None:
    rounds, runs = 7, 5
    strategy = Tree(restarts=(4,), variance_reduced=variance_reduced)
    limits = Participation.worst_case(rounds, 2)
    guarantee = Guarantee(participation=limits, strategy=strategy, clip_norm=1.5, noise_multiplier=2.0)
    sums = np.random.default_rng(1).normal(size=(rounds, runs)).astype(np.float32)
    released = EveryNode(guarantee)(sums, 3)
    stream, state, seeds = TreeStream(strategy), TreeStream(strategy).init(runs), []
    for round in range(rounds):
        asked = {"stddev": guarantee.seed_stddev, "key": key_of(3), "purpose": "model update"}
        key = stream.round_keys(state, sums[round], **asked)[0]
        seeds.append(standard_normal_seeds(key.seeds, stream.seeds_in(round), runs))
        _, state = stream.add_noise(state, sums[round], **asked)
    drawn = guarantee.seed_stddev * np.concatenate(seeds)
    nodes = strategy.dense(rounds) @ sums + drawn
    shown, node, row = stream.dense(rounds) @ drawn + sums, 0, 0
    for round in range(rounds):
        np.testing.assert_allclose(released[row], shown[round], atol=guarantee.seed_stddev / 256)
        below = stream.seeds_in(round) - 1
        shown_below = released[row + 1 : row + 1 + below]
        np.testing.assert_allclose(shown_below, nodes[node : node + below], rtol=1e-4, atol=1e-5)
        node, row = node + below + 1, row + below + 1
    assert row == len(released)


@pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES.keys())
def test_what_a_score_is_told_of_fits_what_is_released(strategy: Strategy) -> None:
    found = _as_accounted(strategy, 6)
    assert found.signal.shape == (len(found.precision), 6)
    assert np.allclose(found.precision, found.precision.T)
