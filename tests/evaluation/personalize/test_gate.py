"""The gate against its definition, and policies that were chosen on some users and judged on others."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from scipy.stats import binomtest
from tests.evaluation.made_users import diverged, made_users

from tacit.errors import InputError
from tacit.evaluation.counts.histograms import Buckets, Histogram, HistogramCells
from tacit.evaluation.personalize.deltas import Deltas, Pairs
from tacit.evaluation.personalize.gate import (
    LEVELS,
    GatePolicy,
    GateRule,
    accepted,
    chance_of_gains,
    deployed_change,
    policy_change,
)
from tacit.evaluation.personalize.policies import design, difference, judged, worth_of
from tacit.networks.metrics import TOP1

BINS = Buckets.steps(-20, 30, 200).with_unchanged_apart()
TOKENS = Buckets((1000.0, 2500.0))


@given(gained=some.integers(0, 60), lost=some.integers(0, 60))
def test_the_sign_test_is_the_binomial_one(gained: int, lost: int) -> None:
    found = chance_of_gains(Pairs(gained=np.array([[gained]]), lost=np.array([[lost]])))[0, 0]
    slow = binomtest(gained, gained + lost, 0.5, alternative="greater").pvalue if gained + lost else 1.0
    assert found == pytest.approx(slow, abs=1e-12)
    assert (found <= 0.5) == (gained > lost), "level 0.5 accepts just what is better at all"


def test_where_nothing_changed_a_level_is_its_error_rate_at_most() -> None:
    draw = np.random.default_rng(1)
    words = draw.integers(0, 80, 20_000)
    gained = draw.binomial(words, 0.5)
    chance = chance_of_gains(Pairs(gained=gained[:, None], lost=(words - gained)[:, None]))[:, 0]
    for level in (0.2, 0.05):
        assert level / 3 < np.mean(chance <= level) <= level * 1.05


def candidates(deltas: Deltas, levels: tuple[float, ...] = LEVELS) -> dict[GateRule, Histogram]:
    cells = HistogramCells(slices=TOKENS, bins=BINS)
    found = {}
    for strategy, level in product(range(deltas.change[TOP1].shape[1]), levels):
        rule = GateRule(strategy=strategy, level=level)
        counts = np.bincount(cells.of(deltas.tokens, deployed_change(deltas, rule)), minlength=cells.size)
        found[rule] = Histogram.from_cells(cells, counts, 0.0, len(deltas))
    return found


@pytest.fixture(scope="module")
def halves() -> tuple[Deltas, Deltas]:
    """600 users whose accuracy changes by 0.01 under the best of three strategies, give or take 0.03."""
    deltas = Deltas.from_outcomes(made_users(600, (0.01, 0.0, -0.05), seed=9))
    rows = np.arange(len(deltas))
    return deltas.of_clients(rows % 2 == 0), deltas.of_clients(rows % 2 == 1)


def test_a_gate_protects_people_it_was_not_designed_on(halves: tuple[Deltas, Deltas]) -> None:
    ours, fresh = halves
    free, barred, by_tokens, both = design(candidates(ours), buckets=TOKENS, harm_weight=2.0, gated=True)
    assert [rule and rule.strategy for rule in free.rules] == [0, 0, 0], "the strategy that helps"
    without, with_gate = judged(free, fresh), judged(barred, fresh)
    assert with_gate.harmed.high < without.harmed.low
    assert with_gate.harmed_surely.value < without.harmed_surely.value
    assert with_gate.gain.value > 0.5 * without.gain.value
    assert without.deployed.value == 1.0 and 0.2 < with_gate.deployed.value < 0.9
    for each in (without, with_gate, judged(by_tokens, fresh), judged(both, fresh)):
        assert 0 <= each.regret_to_gate_oracle.value <= each.regret_to_grid_oracle.value
    assert difference(barred, free, fresh).value == pytest.approx(with_gate.gain.value - without.gain.value)


def test_judging_is_the_slow_loop(halves: tuple[Deltas, Deltas]) -> None:
    _, fresh = halves
    policy = GatePolicy(name="p", buckets=TOKENS, rules=(GateRule(strategy=1, level=0.2), None, GateRule(strategy=0)))
    slow = []
    for row in range(len(fresh)):
        tokens = fresh.tokens[row]
        rule = policy.rules[0 if tokens < 1000 else 1 if tokens < 2500 else 2]
        change = 0.0
        if rule is not None:
            assert fresh.gate is not None
            gained, lost = (int(side[row, rule.strategy]) for side in (fresh.gate.gained, fresh.gate.lost))
            chance = binomtest(gained, gained + lost, 0.5, alternative="greater").pvalue if gained + lost else 1.0
            change = float(fresh.change[TOP1][row, rule.strategy]) if chance <= rule.level else 0.0
        slow.append(change)
    assert policy_change(policy, fresh).tolist() == slow
    found = judged(policy, fresh)
    assert found.gain.value == pytest.approx(np.mean(slow))
    assert found.harmed.value == pytest.approx(np.mean(np.array(slow) < 0))
    assert found.harm.value == pytest.approx(-np.minimum(slow, 0).mean())


def test_a_bucket_that_nothing_helps_keeps_the_global_model() -> None:
    deltas = Deltas.from_outcomes(made_users(200, (-0.1, -0.2), spread=0.0))
    *_, by_tokens = design(candidates(deltas, (1.0,)), buckets=TOKENS, harm_weight=1.0, gated=False)
    assert by_tokens.rules == (None, None, None)
    assert judged(by_tokens, deltas).harmed.value == 0


def test_harm_weighs_as_asked() -> None:
    cells = HistogramCells(slices=Buckets(), bins=Buckets((-0.1, 0.0, 0.1)).with_unchanged_apart())
    histogram = Histogram.from_cells(cells, [1, 2, 5, 4, 3, 0], 0.0, 15)  # -0.1, -0.05, 0, 0.05, 0.1
    assert worth_of(histogram, 2.0).utility[0] == pytest.approx(3 * 0.1 + 4 * 0.05 - 2 * (0.1 + 2 * 0.05))
    assert worth_of(histogram, 2.0).variance[0] == pytest.approx(3 * 0.1**2 + 4 * 0.05**2 + 0.2**2 + 2 * 0.1**2)


def test_small_gains_weigh_as_much_as_small_losses() -> None:
    """Most gains of a model on its own domain are below one bin: counted as nothing, the gate would reject them all."""
    cells = HistogramCells(slices=Buckets(), bins=Buckets.steps(-10, 20, 100).with_unchanged_apart())
    changes = np.array([0.004] * 60 + [-0.004] * 25 + [0.0] * 15)
    flat = np.bincount(cells.of(np.zeros(100), changes), minlength=cells.size)
    assert worth_of(Histogram.from_cells(cells, flat, 0.0, 100), 1.0).utility[0] == pytest.approx(35 * 0.005)
    mixed = Histogram.from_cells(
        HistogramCells(slices=Buckets(), bins=Buckets.steps(-10, 20, 100)), np.zeros(33), 0.0, 0
    )
    with pytest.raises(InputError, match="bin of their own"):
        worth_of(mixed, 1.0)


def test_a_rule_that_noise_alone_recommends_is_not_followed() -> None:
    draw = np.random.default_rng(3)
    cells = HistogramCells(slices=Buckets(), bins=BINS)
    rules = [GateRule(strategy=number) for number in range(3)]
    chosen = 0
    for _ in range(200):
        noised = {rule: Histogram.from_cells(cells, 5 * draw.standard_normal(cells.size), 25.0, 100) for rule in rules}
        worth = [worth_of(each, 2.0) for each in noised.values()]
        *_, by_tokens = design(noised, buckets=Buckets(), harm_weight=2.0, gated=False)
        chosen += by_tokens.rules != (None,)
        best = max(worth, key=lambda each: float(each.utility[0]))
        assert (by_tokens.rules != (None,)) == (best.utility[0] > best.variance[0] ** 0.5)
    assert 0.25 < chosen / 200 < 0.5  # of one rule less than a sixth, of three less than two fifths


def test_a_bucket_of_few_people_follows_the_others() -> None:
    """Five users cannot say that another strategy is theirs; a hundred can."""
    cells = HistogramCells(slices=Buckets((1000.0,)), bins=BINS)
    common, other = GateRule(strategy=0), GateRule(strategy=1)

    def counted(few: list[float], many: list[float]) -> Histogram:
        tokens = np.array([500.0] * len(few) + [2000.0] * len(many))
        flat = np.bincount(cells.of(tokens, np.array(few + many)), minlength=cells.size)
        return Histogram.from_cells(cells, flat, 0.0, len(tokens))

    for pairs, own in ((5, common), (100, other)):
        candidates = {
            common: counted([0.03, -0.02] * pairs, [0.03] * 200),
            other: counted([0.04, -0.02] * pairs, [0.0] * 200),
        }
        *_, by_tokens = design(candidates, buckets=cells.slices, harm_weight=1.0, gated=False)
        assert by_tokens.rules == (own, common)


def test_a_gate_never_lets_a_diverged_model_pass() -> None:
    deltas = Deltas.from_outcomes([diverged(each) for each in made_users(3)])
    assert not accepted(deltas, 0.5).any() and accepted(deltas, 1.0).all()


def test_a_gate_without_text_or_sense_is_refused() -> None:
    with pytest.raises(InputError, match="needs text of its own"):
        accepted(Deltas.from_outcomes(made_users(3, gate=False)), 0.5)
    with pytest.raises(InputError, match=r"level 0 must be in \(0, 1\]"):
        GateRule(strategy=0, level=0.0)
    with pytest.raises(InputError, match="1 rules for 3 buckets"):
        GatePolicy(name="p", buckets=TOKENS, rules=(None,))
