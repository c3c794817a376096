"""What every mechanism of the catalogue owes: losses, sensitivity, memory, its end, record, recipe and stream.

Examples are those of MECHANISMS, so a line there adds the tests. The slow references are dense matrices and all
participation patterns, at small n, and the defaults of `Strategy`, which know the matrix alone.
"""

import json
import tomllib

import numpy as np
import pytest
import tomli_w

from tacit.design.catalogue import MECHANISMS, chosen
from tacit.design.dense import full_tree
from tacit.design.losses import losses, prefix_errors
from tacit.design.mechanism import ChosenMechanism, Mechanism
from tacit.design.toeplitz import banded_square_root
from tacit.errors import AccountingError, InputError
from tacit.mechanisms import standard_normal_seeds, stream_for
from tacit.privacy.participation import Participation
from tacit.privacy.sensitivity import sensitivity_squared
from tacit.privacy.strategy import Matrix, Strategy, Toeplitz, Tree, strategy_from_record

ROUNDS, SEPARATION, VISITS = 12, 4, 3
SERVED = Participation(rounds=ROUNDS, min_separation=SEPARATION, max_participations=VISITS)
ONCE = Participation(rounds=ROUNDS, min_separation=ROUNDS, max_participations=1)


def made(mechanism: Mechanism, parameters: object) -> tuple[Strategy, Participation]:
    """(the strategy, the participation that it was made for): several visits where it can have them."""
    example = ChosenMechanism(mechanism=mechanism, parameters=parameters)  # type: ignore[arg-type]
    try:
        return example.strategy(SERVED), SERVED
    except InputError:
        return example.strategy(ONCE), ONCE


STRATEGIES: dict[str, tuple[Strategy, Participation]] = {
    f"{mechanism.name} {number}": made(mechanism, parameters)
    for mechanism in MECHANISMS.values()
    for number, parameters in enumerate(mechanism.examples)
} | {"toeplitz": (Toeplitz(coefficients=(1.0, 0.5, 0.25) + 9 * (0.0,)), SERVED)}  # of no mechanism
# Vectors of the model's size that each keeps after ROUNDS rounds, as its source says; of others the slow reference
# decides.
MEMORY = {
    "independent 0": 0,
    "tree 0": 4,
    "tree-variance-reduced 1": 3,
    "blt 0": 2,
    "toeplitz": 2,
    "banded-toeplitz 0": 2,
    "banded-toeplitz 1": 3,  # seven bands beyond the separation: the others are 0
    "square-root 0": 3,
    "inverse-square-root 0": 2,
    "banded-inverse 0": 2,  # the last of four is 0
    "lambda-cgd 0": 0,
    "banded 0": SEPARATION - 1,
    "dense 0": ROUNDS - 1,
    "tree-full 0": 7,  # no further back than the largest tree
}
every_factorization = pytest.mark.parametrize(("strategy", "served"), STRATEGIES.values(), ids=STRATEGIES.keys())
every_example = pytest.mark.parametrize(
    "example",
    [ChosenMechanism(mechanism=each, parameters=said) for each in MECHANISMS.values() for said in each.examples],
    ids=lambda example: " ".join(map(str, example.to_plain().values())),
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
        "limits", [SERVED, ONCE, Participation.worst_case(ROUNDS, 1)], ids=["some", "once", "always"]
    )
    def test_sensitivity_is_that_of_all_patterns_or_refused(
        self, strategy: Strategy, served: Participation, limits: Participation
    ) -> None:
        try:
            found = sensitivity_squared(strategy, limits)
        except AccountingError:
            bound, exact = strategy.sensitivity_squared(limits)
            assert not exact and bound >= moved_most(strategy, limits) * (1 - 1e-9)
            assert isinstance(strategy, Matrix) and limits.min_separation < SEPARATION  # columns may overlap
            return
        assert found == pytest.approx(moved_most(strategy, limits), rel=1e-9)

    def test_what_follows_from_the_matrix_alone_agrees(self, strategy: Strategy, served: Participation) -> None:
        """The defaults of `Strategy` are a bound of the sensitivity, and the rows and memory of the matrix."""
        slow, exact = Strategy.sensitivity_squared(strategy, served)
        value, known = strategy.sensitivity_squared(served)
        assert slow == pytest.approx(value, rel=1e-9) if exact and known else slow >= value * (1 - 1e-9)
        if isinstance(strategy, Tree):  # its nodes outnumber the rounds
            return
        np.testing.assert_allclose(strategy.row(7, 3), Strategy.row(strategy, 7, 3), rtol=0, atol=1e-14)
        if strategy.rounds_defined is not None:
            assert strategy.memory(ROUNDS) == Strategy.memory(strategy, ROUNDS)

    def test_losses_are_those_of_dense_matrices(self, strategy: Strategy, served: Participation) -> None:
        if isinstance(strategy, Tree):  # its nodes outnumber the rounds: the streamed decoder stands for C^{-1}
            spread = np.cumsum(stream_for(strategy).dense(ROUNDS), axis=0)
        else:
            spread = np.cumsum(np.linalg.inv(strategy.dense(ROUNDS)), axis=0)
            slow = prefix_errors.dispatch(object)(strategy, ROUNDS)
            assert prefix_errors(strategy, ROUNDS) == pytest.approx(slow, rel=1e-9)
        rows, moved = (spread**2).sum(axis=1), moved_most(strategy, served)
        found = losses(strategy, served)
        assert found.max_loss == pytest.approx((rows.max() * moved) ** 0.5, rel=1e-9)
        assert found.rms_loss == pytest.approx((rows.mean() * moved) ** 0.5, rel=1e-9)

    def test_after_its_last_round_it_goes_on_or_refuses(self, strategy: Strategy, served: Participation) -> None:
        longer = Participation(rounds=ROUNDS + 3, min_separation=SEPARATION, max_participations=VISITS)
        if strategy.rounds_defined is None:
            short, long = strategy.dense(ROUNDS), strategy.dense(ROUNDS + 3)
            if not isinstance(strategy, Tree):
                np.testing.assert_allclose(long[:ROUNDS, :ROUNDS], short, rtol=0, atol=1e-12)
            assert losses(strategy, longer).max_loss > 0
            return
        assert strategy.rounds_defined == ROUNDS
        with pytest.raises(AccountingError, match=str(ROUNDS)):
            strategy.dense(ROUNDS + 3)
        with pytest.raises(AccountingError):
            losses(strategy, longer)

    def test_record_brings_it_back(self, strategy: Strategy, served: Participation) -> None:
        again = strategy_from_record(json.loads(json.dumps(strategy.to_record())))
        assert again == strategy and hash(again) == hash(strategy)
        assert again.reference() == strategy.reference() and len(json.dumps(strategy.reference())) < 1000
        assert strategy.describe() and "\n" not in strategy.describe()

    def test_it_streams_what_it_declares(self, strategy: Strategy, served: Participation) -> None:
        stream = stream_for(strategy)
        state, drawn, noise = stream.init(5), [], []
        for round in range(ROUNDS):
            seeds = {
                at: standard_normal_seeds(at.to_bytes(16, "big"), stream.seeds_in(at), 5)
                for at in stream.rounds_drawn(round)
            }
            drawn.append(seeds[round])
            row, state = stream.next(state, np.concatenate(list(seeds.values())))
            assert state.buffers.shape[0] == strategy.memory(round + 1) == stream.memory(round + 1)
            noise.append(row)
        expected = stream.dense(ROUNDS) @ np.concatenate(drawn)
        np.testing.assert_allclose(noise, expected, rtol=0, atol=1e-5)
        if not isinstance(strategy, Tree):
            np.testing.assert_allclose(strategy.dense(ROUNDS) @ expected, np.concatenate(drawn), rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", MEMORY)
def test_memory_is_known(name: str) -> None:
    assert STRATEGIES[name][0].memory(ROUNDS) == MEMORY[name]


@every_example
class TestEveryMechanism:
    def test_its_parameters_survive_a_recipe(self, example: ChosenMechanism) -> None:
        assert chosen(tomllib.loads(tomli_w.dumps(example.to_plain()))) == example

    def test_a_wish_that_was_settled_is_the_same_strategy(self, example: ChosenMechanism) -> None:
        _, served = made(example.mechanism, example.parameters)
        settled = example.settled(served)
        assert not settled.parameters.needs_design and settled.settled(served) == settled
        assert settled.strategy(served) == example.strategy(served)
        if example.mechanism.matrix is not None:
            assert isinstance(example.strategy(served), example.mechanism.matrix)

    def test_what_a_comparison_tries_of_it_can_be_made(self, example: ChosenMechanism) -> None:
        mechanism = example.mechanism
        for parameters in mechanism.compared(mechanism, SERVED):
            assert mechanism.strategy(SERVED, parameters=parameters).dense(ROUNDS).shape[1] == ROUNDS


def test_it_is_named_and_explained() -> None:
    for name, mechanism in MECHANISMS.items():
        assert mechanism.name == name and mechanism.says and mechanism.explains.endswith(".")


def test_full_tree_moves_as_its_nodes_do() -> None:
    """So the tree's exact sensitivity is the one that `full_tree_losses` may use."""
    assert moved_most(full_tree(ROUNDS), SERVED) == pytest.approx(sensitivity_squared(Tree(), SERVED), rel=1e-12)


def test_a_coefficient_cut_at_the_separation_would_understate() -> None:
    """The trap: the square root's coefficients beyond the separation matter, and leaving them out is seen."""
    served = Participation(rounds=ROUNDS, min_separation=2, max_participations=6)
    whole = sensitivity_squared(banded_square_root(ROUNDS), served)
    assert whole == pytest.approx(moved_most(banded_square_root(ROUNDS), served), rel=1e-12)
    assert sensitivity_squared(banded_square_root(2), served) < 0.5 * whole
