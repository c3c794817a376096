"""Adaptive clipping: Theorem 1's division of the noise costs exactly what one sequence costs."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import AccountingError, InputError
from tacit.privacy import Guarantee, Participation, Tree
from tacit.privacy.composition import (
    BIT_NORM,
    bit_noise_multiplier,
    update_noise_multiplier,
)
from tacit.statements import Ledger, NoisedSum

positive = st.floats(1e-3, 1e3)


def joint_noise_multiplier(updates: float, bit_stddev: float) -> float:
    """What alone costs as much as updates and counts together: z = (z_delta^-2 + (2 sigma_b)^-2)^(-1/2)."""
    return 1 / math.hypot(1 / updates, 1 / bit_noise_multiplier(bit_stddev))


def test_the_papers_setting() -> None:
    # arXiv:2305.18465, Algorithm 1: report goal 6500, sigma_b = m / 20, noise multiplier 7.
    assert update_noise_multiplier(7.0, 6500 / 20) == pytest.approx((7**-2 - 650**-2) ** -0.5, rel=1e-12)
    assert 7.0 < update_noise_multiplier(7.0, 325.0) < 7.001


@given(noise=positive, more=st.floats(1e-3, 1e3))
def test_the_division_and_its_inverse(noise: float, more: float) -> None:
    bit_stddev = noise * (1 + more) / 2
    updates = update_noise_multiplier(noise, bit_stddev)
    assert updates > noise
    assert joint_noise_multiplier(updates, bit_stddev) == pytest.approx(noise, rel=1e-9)


@given(updates=positive, bit_stddev=positive)
def test_costs_add_to_the_joint_cost(updates: float, bit_stddev: float) -> None:
    joint = joint_noise_multiplier(updates, bit_stddev)
    assert joint**-2 == pytest.approx(updates**-2 + bit_noise_multiplier(bit_stddev) ** -2, rel=1e-12)


def test_the_theorem_equals_the_composition_of_the_ledger() -> None:
    strategy, noise, bit_stddev = Tree(restarts=(8, 24)), 1.5, 2.0
    plan = Participation(rounds=40, min_separation=6, max_participations=3)
    ledger = Ledger()
    for round in range(40):
        clip = 0.3 if round < 8 else 0.7 if round < 24 else 0.5
        ledger = ledger.add(release(round, "model update", strategy, clip, update_noise_multiplier(noise, bit_stddev)))
        bits = bit_noise_multiplier(bit_stddev)
        ledger = ledger.add(release(round, "clip estimate", strategy, BIT_NORM, bits))
    made = ledger.composition(plan)
    shorter = Participation(rounds=plan.rounds, min_separation=plan.rounds, max_participations=1)
    assert made.with_participation(shorter).zcdp < made.zcdp
    assert made.with_participation(plan) == made
    assert math.isclose(made.with_noise(3.0).zcdp, made.zcdp / 9, rel_tol=1e-12)
    alone = Guarantee(participation=plan, strategy=strategy, clip_norm=1.0, noise_multiplier=noise)
    assert made.zcdp == pytest.approx(alone.zcdp, rel=1e-12)
    assert made.epsilon(1e-8) == pytest.approx(alone.epsilon(1e-8), rel=1e-9)
    updates, estimate = made.sequences
    assert updates.clip_norms == ((0, 0.3), (8, 0.7), (24, 0.5))
    assert estimate.guarantee.seed_stddev == bit_stddev


def release(round: int, what: str, strategy: Tree, clip_norm: float, noise_multiplier: float) -> NoisedSum:
    return NoisedSum(
        round=round,
        what=what,
        strategy_record=strategy.to_record(),
        clip_norm=clip_norm,
        noise_multiplier=noise_multiplier,
        reports=10,
        dropped=0,
    )


def test_counts_that_cost_the_whole_budget_are_refused() -> None:
    with pytest.raises(AccountingError, match=r"give a bit_stddev above 3\.5"):
        update_noise_multiplier(7.0, 3.5)


@pytest.mark.parametrize("wrong", [0.0, -1.0, math.inf, math.nan])
def test_noise_that_is_none_is_refused(wrong: float) -> None:
    with pytest.raises(InputError, match="not a finite number above 0"):
        update_noise_multiplier(wrong, 1.0)
    with pytest.raises(InputError, match="bit_stddev"):
        update_noise_multiplier(1.0, wrong)
