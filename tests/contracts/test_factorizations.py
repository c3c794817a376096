"""What every factorization owes: losses, sensitivity, memory, what it says after its last round, record and stream.

A new one adds one line to STRATEGIES. The slow twins are dense matrices and all participation patterns, at small n.
"""

import json

import numpy as np
import pytest

from tacit.design.banded import design_banded
from tacit.design.blt import design_blt
from tacit.design.dense import design_dense, full_tree
from tacit.design.losses import losses
from tacit.design.toeplitz import (
    banded_inverse_square_root,
    banded_square_root,
    design_banded_inverse,
    design_banded_toeplitz,
    design_lambda_cgd,
)
from tacit.errors import AccountingError
from tacit.mechanisms import standard_normal_seeds, stream_for
from tacit.privacy.participation import Participation
from tacit.privacy.sensitivity import sensitivity_squared
from tacit.privacy.strategy import Banded, Dense, Independent, Strategy, Toeplitz, Tree, strategy_from_record

ROUNDS, SEPARATION, VISITS = 12, 4, 3
SERVED = Participation(rounds=ROUNDS, min_separation=SEPARATION, max_participations=VISITS)
ONCE = Participation(rounds=ROUNDS, min_separation=ROUNDS, max_participations=1)
# (strategy, vectors of the model's size it keeps, for how many rounds it is defined)
STRATEGIES: dict[str, tuple[Strategy, int, int | None]] = {
    "independent": (Independent(), 0, None),
    "tree": (Tree(), 4, None),
    "tree, variance-reduced, restarted": (Tree(restarts=(5,), variance_reduced=True), 3, None),
    "blt": (design_blt(SERVED, buffers=2), 2, None),
    "toeplitz": (Toeplitz(coefficients=(1.0, 0.5, 0.25) + 9 * (0.0,)), 2, ROUNDS),
    "banded-toeplitz": (design_banded_toeplitz(SERVED, bands=3), 2, None),
    "banded-toeplitz, beyond the separation": (design_banded_toeplitz(SERVED, bands=7), 3, None),  # the others are 0
    "square-root": (banded_square_root(4), 3, None),
    "inverse-square-root": (banded_inverse_square_root(3), 2, None),
    "banded-inverse": (design_banded_inverse(SERVED, bands=4, falling=True), 2, None),  # the last is 0
    "lambda-cgd": (design_lambda_cgd(SERVED), 0, None),
    "banded": (design_banded(SERVED, bands=SEPARATION), SEPARATION - 1, ROUNDS),
    "dense": (design_dense(ONCE), ROUNDS - 1, ROUNDS),
    "full-tree": (full_tree(ROUNDS), 7, ROUNDS),  # no further back than the largest tree
}
every_factorization = pytest.mark.parametrize(
    ("strategy", "memory", "defined"), STRATEGIES.values(), ids=STRATEGIES.keys()
)


def patterns(served: Participation, first: int = 0) -> list[tuple[int, ...]]:
    """All ways to take part from round `first` on."""
    found: list[tuple[int, ...]] = [()]
    for at in range(first, served.rounds):
        found += [(at, *rest) for rest in patterns(served, at + served.min_separation)]
    return [each for each in found if len(each) <= served.max_participations]


def moved_most(strategy: Strategy, served: Participation) -> float:
    """The largest squared norm of C times a pattern: contributions of norm 1 all the same way."""
    matrix = strategy.dense(served.rounds)
    assert (matrix.T @ matrix >= -1e-12).all()  # only then no other directions are worse (arXiv:2211.06530)
    return max(float((matrix[:, list(each)].sum(axis=1) ** 2).sum()) for each in patterns(served))


@every_factorization
class TestEveryFactorization:
    @pytest.mark.parametrize(
        "served", [SERVED, ONCE, Participation.worst_case(ROUNDS, 1)], ids=["some", "once", "always"]
    )
    def test_sensitivity_is_that_of_all_patterns_or_refused(
        self, strategy: Strategy, memory: int, defined: int | None, served: Participation
    ) -> None:
        try:
            found = sensitivity_squared(strategy, served)
        except AccountingError:
            assert isinstance(strategy, Banded | Dense) and served.min_separation < SEPARATION  # columns may overlap
            return
        assert found == pytest.approx(moved_most(strategy, served), rel=1e-9)

    def test_losses_are_those_of_dense_matrices(self, strategy: Strategy, memory: int, defined: int | None) -> None:
        served = ONCE if isinstance(strategy, Dense) else SERVED
        if isinstance(strategy, Tree):  # its nodes outnumber the rounds: the streamed decoder stands for C^{-1}
            spread = np.cumsum(stream_for(strategy).dense(ROUNDS), axis=0)
        else:
            spread = np.cumsum(np.linalg.inv(strategy.dense(ROUNDS)), axis=0)
        rows, moved = (spread**2).sum(axis=1), moved_most(strategy, served)
        found = losses(strategy, served)
        assert found.max_loss == pytest.approx((rows.max() * moved) ** 0.5, rel=1e-9)
        assert found.rms_loss == pytest.approx((rows.mean() * moved) ** 0.5, rel=1e-9)

    def test_memory_is_known(self, strategy: Strategy, memory: int, defined: int | None) -> None:
        assert strategy.memory(ROUNDS) == stream_for(strategy).memory(ROUNDS) == memory
        assert strategy.memory(2) == stream_for(strategy).memory(2)

    def test_after_its_last_round_it_goes_on_or_refuses(
        self, strategy: Strategy, memory: int, defined: int | None
    ) -> None:
        assert strategy.rounds_defined == defined
        longer = Participation(rounds=ROUNDS + 3, min_separation=SEPARATION, max_participations=VISITS)
        if defined is None:
            short, long = strategy.dense(ROUNDS), strategy.dense(ROUNDS + 3)
            if not isinstance(strategy, Tree):
                np.testing.assert_allclose(long[:ROUNDS, :ROUNDS], short, rtol=0, atol=1e-12)
            assert losses(strategy, longer).max_loss > 0
            return
        with pytest.raises(AccountingError, match=str(ROUNDS)):
            strategy.dense(ROUNDS + 3)
        with pytest.raises(AccountingError):
            losses(strategy, longer)

    def test_record_brings_it_back(self, strategy: Strategy, memory: int, defined: int | None) -> None:
        again = strategy_from_record(json.loads(json.dumps(strategy.to_record())))
        assert again == strategy and hash(again) == hash(strategy)

    def test_it_streams_what_it_declares(self, strategy: Strategy, memory: int, defined: int | None) -> None:
        stream, key, purpose = stream_for(strategy), bytes(16), "model update"
        state, drawn, noise = stream.init(5), [], []
        for round in range(ROUNDS):
            seeds = {
                at: standard_normal_seeds(key, purpose, at, stream.seeds_in(at), 5) for at in stream.rounds_drawn(round)
            }
            drawn.append(seeds[round])
            row, state = stream.next(state, np.concatenate(list(seeds.values())))
            noise.append(np.asarray(row))
        expected = stream.dense(ROUNDS) @ np.concatenate(drawn).astype(np.float64)
        np.testing.assert_allclose(noise, expected, rtol=0, atol=1e-5)
        if not isinstance(strategy, Tree):
            np.testing.assert_allclose(strategy.dense(ROUNDS) @ expected, np.concatenate(drawn), rtol=0, atol=1e-9)


def test_full_tree_moves_as_its_nodes_do() -> None:
    """So the tree's exact sensitivity is the one that `full_tree_losses` may use."""
    assert moved_most(full_tree(ROUNDS), SERVED) == pytest.approx(sensitivity_squared(Tree(), SERVED), rel=1e-12)


def test_a_coefficient_cut_at_the_separation_would_understate() -> None:
    """The trap: the square root's coefficients beyond the separation matter, and leaving them out is seen."""
    served = Participation(rounds=ROUNDS, min_separation=2, max_participations=6)
    whole = sensitivity_squared(banded_square_root(ROUNDS), served)
    assert whole == pytest.approx(moved_most(banded_square_root(ROUNDS), served), rel=1e-12)
    assert sensitivity_squared(banded_square_root(2), served) < 0.5 * whole
