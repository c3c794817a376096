"""The clip norm finds the wanted quantile, costs what Theorem 1 says, and changes only where it may."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kstest

from tacit.errors import AccountingError, InputError
from tacit.mechanisms import standard_normal_seeds, stream_for
from tacit.privacy import Blt, Guarantee, Independent, Participation, Tree
from tacit.statements import Ledger, NoisedSum
from tacit.training.adaptive_clipping import AdaptiveClipping, ClipState, clip_of_round, first_clip, follow

KEY = b"0123456789abcdef"
GOAL = 200


def planned(strategy: Any, rounds: int = 60) -> Guarantee:
    return Guarantee(
        participation=Participation.worst_case(rounds=rounds, min_separation=10),
        strategy=strategy,
        clip_norm=1.0,
        noise_multiplier=2.0 if strategy else 0.0,
    )


def moved(state: ClipState, norms: Any, **options: Any) -> tuple[ClipState, NoisedSum]:
    """`follow`, told what devices with updates of these norms say."""
    return follow(state, int((norms <= state.estimate).sum()), reports=len(norms), **options)


def played(
    clipping: AdaptiveClipping, strategy: Any, rounds: int, *, median: float = 3.0, key: bytes = KEY
) -> tuple[list[ClipState], list[NoisedSum]]:
    """States after each round of clients whose norms are log-normal around `median`."""
    _, counts = clipping.guarantees(planned(strategy, rounds), GOAL)
    draw, state = np.random.default_rng(0), first_clip(clipping, counts)
    states, releases = [], []
    for round in range(rounds):
        state = clip_of_round(state, counts, round)
        norms = (median * np.exp(0.5 * draw.normal(size=GOAL))).astype(np.float32)
        state, release = moved(state, norms, settings=clipping, counts=counts, report_goal=GOAL, round=round, key=key)
        states.append(state)
        releases.append(release)
    return states, releases


@pytest.mark.parametrize(
    ("strategy", "quantile"),
    [
        pytest.param(strategy, quantile, marks=() if quantile == quick else pytest.mark.nightly)
        for strategy, quick in ((None, 0.3), (Independent(), 0.5), (Tree(restarts=(20, 40)), 0.8))
        for quantile in (0.3, 0.5, 0.8)
    ],
)
def test_the_estimate_finds_the_quantile(strategy: Any, quantile: float) -> None:
    states, _ = played(AdaptiveClipping(initial=0.5, quantile=quantile), strategy, 200)
    found = np.mean([float(state.estimate) for state in states[100:]])
    wanted = 3.0 * math.exp(0.5 * {0.3: -0.5244, 0.5: 0.0, 0.8: 0.8416}[quantile])
    assert found == pytest.approx(wanted, rel=0.12)


def test_it_becomes_the_clip_norm_only_where_the_noise_starts_afresh() -> None:
    states, _ = played(AdaptiveClipping(initial=0.5), Tree(restarts=(20, 40)), 60)
    active = [float(state.active) for state in states]
    assert active[:20] == [0.5] * 20
    assert active[20:40] == [float(states[19].estimate)] * 20
    assert active[40:] == [float(states[39].estimate)] * 20
    assert len(set(active)) == 3
    every = [float(state.active) for state in played(AdaptiveClipping(initial=0.5), Independent(), 9)[0]]
    assert len(set(every)) == 9


def test_one_round_is_the_formula_of_the_paper() -> None:
    clipping = AdaptiveClipping(initial=2.0, quantile=0.4, learning_rate=0.3)
    _, counts = clipping.guarantees(planned(None), 4)
    norms = np.array([1.0, 2.0, 2.1, 5.0], np.float32)  # two of four are no longer than 2
    state = first_clip(clipping, counts)
    state, _ = moved(state, norms, settings=clipping, counts=counts, report_goal=4, round=0, key=KEY)
    assert float(state.estimate) == pytest.approx(2.0 * math.exp(-0.3 * (2 / 4 - 0.4)))
    state, _ = moved(state, norms, settings=clipping, counts=counts, report_goal=4, round=1, key=KEY)
    # 2 exp(-0.03) = 1.94: now one of four is below
    assert float(state.estimate) == pytest.approx(2.0 * math.exp(-0.3 * (2 / 4 + 1 / 4 - 2 * 0.4)))


@given(z=st.floats(0.1, 20), goal=st.integers(1, 10_000), stddev=st.none() | st.floats(0.05, 1000), data=st.data())
@settings(max_examples=40, deadline=None)
def test_updates_and_counts_together_cost_what_was_planned(
    z: float, goal: int, stddev: float | None, data: st.DataObject
) -> None:
    strategy = data.draw(st.sampled_from([Independent(), Tree(restarts=(7,))]))
    whole = Guarantee(
        participation=Participation.worst_case(rounds=12, min_separation=3),
        strategy=strategy,
        clip_norm=1.0,
        noise_multiplier=z,
    )
    clipping = AdaptiveClipping(initial=0.1, bit_stddev=stddev)
    if 2 * (goal / 20 if stddev is None else stddev) <= z:
        with pytest.raises(AccountingError, match="nothing is left"):
            clipping.guarantees(whole, goal)
        return
    updates, counts = clipping.guarantees(whole, goal)
    assert updates.zcdp + counts.zcdp == pytest.approx(whole.zcdp, rel=1e-9)
    assert counts.seed_stddev == pytest.approx(goal / 20 if stddev is None else stddev)


def test_the_ledger_accounts_both_sequences_and_refuses_a_clip_norm_changed_too_early() -> None:
    clipping, whole = AdaptiveClipping(initial=0.5), planned(Tree(restarts=(20, 40)))
    updates, _ = clipping.guarantees(whole, GOAL)
    states, counts = played(clipping, whole.strategy, 60)
    assert whole.strategy is not None
    rows = [
        NoisedSum(
            round=round,
            what="model update",
            strategy_record=whole.strategy.to_record(),
            clip_norm=float(state.active),
            noise_multiplier=updates.noise_multiplier,
            reports=GOAL,
            dropped=0,
        )
        for round, state in enumerate(states)
    ]
    ledger = Ledger((*rows, *counts))
    assert ledger.composition(whole.participation).zcdp == pytest.approx(whole.zcdp, rel=1e-9)


def test_the_counts_have_the_noise_that_is_accounted() -> None:
    """One count each of many runs: standard deviation report goal / 20, and neither more nor less."""
    clipping = AdaptiveClipping(initial=3.0)
    _, counts = clipping.guarantees(planned(Independent(), 1), GOAL)
    norms = np.full(GOAL, 1.0, np.float32)
    noise = []
    for number in range(1000):
        state = first_clip(clipping, counts)
        key = number.to_bytes(16, "little")
        state, _ = moved(state, norms, settings=clipping, counts=counts, report_goal=GOAL, round=0, key=key)
        noise.append(float(state.counted) * GOAL - GOAL / 2)
    assert kstest(np.array(noise) / (GOAL / 20), "norm").pvalue > 0.01
    assert kstest(np.array(noise) / (1.4 * GOAL / 20), "norm").pvalue < 1e-4
    assert kstest(np.array(noise) / (GOAL / 28), "norm").pvalue < 1e-4


def test_the_noise_of_a_tree_is_the_trees() -> None:
    """Nine rounds add the tree's dense map of their seeds; over 150 keys that has the tree's scale and no other."""
    tree, stddev = Tree(restarts=(8,)), 50.0
    stream = stream_for(tree)
    clipping = AdaptiveClipping(initial=3.0, bit_stddev=stddev)
    _, counts = clipping.guarantees(planned(tree, 9), GOAL)
    prefix = stream.dense(9).sum(axis=0)
    sums = []
    for number in range(150):
        state, seeds = first_clip(clipping, counts), []
        for round in range(9):
            told: dict[str, Any] = {"reports": GOAL, "report_goal": GOAL, "round": round}
            key = number.to_bytes(16, "little")
            state, _ = follow(state, GOAL, settings=clipping, counts=counts, key=key, **told)
            assert state.noise is not None
            seeds.append(standard_normal_seeds(bytes(state.noise.keys[0])[:16], stream.seeds_in(round), 1))
        sums.append(float(state.counted) * GOAL - 9 * GOAL / 2)
        on_grids = 9 * stddev / 256 / 2  # at most half a step a round
        assert sums[-1] == pytest.approx(stddev * float(prefix @ np.concatenate(seeds)[:, 0]), abs=on_grids)
    assert kstest(np.array(sums) / (stddev * float(np.linalg.norm(prefix))), "norm").pvalue > 0.01
    assert kstest(np.array(sums) / (stddev * 3.0), "norm").pvalue < 1e-3


def test_what_cannot_adapt_is_refused() -> None:
    blt = Blt(theta=(0.5,), omega=(0.1,))
    with pytest.raises(InputError, match="blt strategy that never starts afresh"):
        AdaptiveClipping(initial=1.0).guarantees(planned(blt), GOAL)
    with pytest.raises(InputError, match=r"privacy\.mechanism\.restarts"):
        AdaptiveClipping(initial=1.0).guarantees(planned(Tree()), GOAL)
    for wrong in ({"initial": 0.0}, {"initial": 1.0, "quantile": 1.0}, {"initial": 1.0, "learning_rate": math.inf}):
        with pytest.raises(InputError, match="clipping"):
            AdaptiveClipping(**wrong)
    with pytest.raises(InputError, match="bit_stddev"):
        AdaptiveClipping(initial=1.0, bit_stddev=-1.0)


def test_an_estimate_that_runs_away_stays_a_number() -> None:
    states, _ = played(AdaptiveClipping(initial=1e-3, learning_rate=5.0), Independent(), 60, median=1e30)
    assert math.isfinite(float(states[-1].estimate))
