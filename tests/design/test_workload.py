"""Workloads against the server's own steps, and the errors of every strategy under them against dense matrices."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.design.strategies import ROUNDS, STRATEGIES
from tests.design.workloads import matrix_of, workloads

from tacit.design.losses import losses, prefix_errors, workload_errors
from tacit.design.workload import PREFIX, Workload
from tacit.errors import InputError
from tacit.mechanisms.tree import TreeStream
from tacit.privacy import Participation, Tree
from tacit.training import ServerOptimizer
from tacit.training.server import server_step

SERVERS = {
    "sgd": (ServerOptimizer(method="sgd"), PREFIX),
    "momentum": (ServerOptimizer(), Workload(momentum=0.9)),
    "nesterov": (ServerOptimizer(method="nesterov", momentum=0.8), Workload(momentum=0.8, nesterov=True)),
    "cooled": (ServerOptimizer(momentum=0.5, cooldown=0.3), Workload(momentum=0.5, cooldown=0.3)),
    "cooled-all-along": (ServerOptimizer(method="sgd", cooldown=1.0), Workload(cooldown=1.0)),
    "cooled-nesterov": (
        ServerOptimizer(method="nesterov", cooldown=0.05),
        Workload(momentum=0.9, nesterov=True, cooldown=0.05),
    ),
}
CORRELATED = [name for name, each in STRATEGIES.items() if not isinstance(each, Tree)]


@pytest.mark.parametrize("name", SERVERS)
def test_it_is_what_the_server_makes_of_one_mean_after_another(name: str) -> None:
    server, workload = SERVERS[name]
    rounds = 21
    transformation = server.transformation(rounds)
    models = []
    model = jnp.zeros(rounds)
    state = transformation.init(model)
    for mean in np.eye(rounds, dtype=np.float32):  # a coordinate for each round: its mean alone is not zero
        model, state = server_step(transformation, model, state, jnp.asarray(mean))
        models.append(model)
    assert np.asarray(models) == pytest.approx(matrix_of(workload, rounds), abs=2e-6)


@settings(max_examples=20, deadline=None)
@given(workload=workloads(), rounds=st.integers(1, 60), size=st.integers(1, 70))
def test_blocks_of_rows_and_the_inverse_are_those_of_the_matrix(workload: Workload, rounds: int, size: int) -> None:
    matrix, at = matrix_of(workload, rounds), 0
    for block in workload.blocks(rounds, size):
        assert block.shape[1] == min(at + size, rounds)
        assert block == pytest.approx(matrix[at : at + size, : at + size], rel=1e-12)
        at += len(block)
    assert at == rounds
    bands = workload.inverse(rounds)
    inverse = np.zeros((rounds, rounds))
    for lag in range(bands.shape[1]):
        inverse += np.diag(bands[: rounds - lag, lag], -lag)
        assert not bands[rounds - lag :, lag].any()
    assert inverse @ matrix == pytest.approx(np.eye(rounds), abs=1e-9)


@settings(max_examples=20, deadline=None)
@given(workload=workloads(), name=st.sampled_from(CORRELATED), rounds=st.integers(1, ROUNDS))
def test_every_strategy_has_the_errors_of_its_matrix(workload: Workload, name: str, rounds: int) -> None:
    rows = np.linalg.solve(STRATEGIES[name].dense(rounds).T, matrix_of(workload, rounds).T).T
    variances = (rows**2).sum(axis=1)
    slow = np.sqrt([variances.max(), variances.mean(), variances[-1]])
    assert workload_errors(STRATEGIES[name], workload, rounds) == pytest.approx(slow, rel=1e-9)


@pytest.mark.parametrize("name", CORRELATED)
def test_without_momentum_and_cooldown_it_is_the_prefix_sums(name: str) -> None:
    strategy, served = STRATEGIES[name], Participation(rounds=ROUNDS, min_separation=10, max_participations=3)
    assert workload_errors(strategy, PREFIX, ROUNDS)[:2] == pytest.approx(prefix_errors(strategy, ROUNDS), rel=1e-12)
    assert losses(strategy, served, PREFIX) == losses(strategy, served)
    momentum = losses(strategy, served, Workload(momentum=0.9))
    assert momentum.sensitivity == losses(strategy, served).sensitivity
    assert momentum.rms_error > losses(strategy, served).rms_error


pulls = st.sampled_from([0.0, 1e-3, 0.02, 0.3])


@settings(max_examples=20, deadline=None)
@given(workload=workloads(), pull=pulls, name=st.sampled_from(CORRELATED), rounds=st.integers(1, ROUNDS))
def test_with_what_training_takes_back_they_have_those_of_a_matrix_too(
    workload: Workload, pull: float, name: str, rounds: int
) -> None:
    matrix = np.linalg.inv(np.linalg.inv(matrix_of(workload, rounds)) + pull * np.eye(rounds, k=-1))
    variances = (np.linalg.solve(STRATEGIES[name].dense(rounds).T, matrix.T) ** 2).sum(axis=0)
    slow = np.sqrt([variances.max(), variances.mean(), variances[-1]])
    assert workload_errors(STRATEGIES[name], workload, rounds, pull) == pytest.approx(slow, rel=1e-7)


@settings(max_examples=20, deadline=None)
@given(
    workload=workloads(),
    pull=pulls,
    rounds=st.integers(1, 40),
    restarts=st.sets(st.integers(1, 45), max_size=3),
    reduced=st.booleans(),
)
def test_so_has_a_tree_by_the_matrix_of_its_stream(
    workload: Workload, pull: float, rounds: int, restarts: set[int], reduced: bool
) -> None:
    tree = Tree(restarts=tuple(sorted(restarts)), variance_reduced=reduced)
    matrix = np.linalg.inv(np.linalg.inv(matrix_of(workload, rounds)) + pull * np.eye(rounds, k=-1))
    variances = ((matrix @ TreeStream(tree).dense(rounds)) ** 2).sum(axis=1)
    slow = np.sqrt([variances.max(), variances.mean(), variances[-1]])
    assert workload_errors(tree, workload, rounds, pull) == pytest.approx(slow, rel=1e-7)
    plain = workload_errors(tree, PREFIX, rounds)
    assert plain[:2] == pytest.approx(prefix_errors(tree, rounds), rel=1e-12)


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        ({"momentum": 1.0}, "momentum=1.0 must be in"),
        ({"momentum": -0.1}, "momentum=-0.1 must be in"),
        ({"nesterov": True}, "give momentum=0.9"),
        ({"momentum": 0.9, "cooldown": 1.5}, "cooldown=1.5 must be a share"),
        ({"cooldown": float("nan")}, "must be a share"),
    ],
)
def test_a_server_that_is_none_is_refused(wrong: dict[str, Any], match: str) -> None:
    with pytest.raises(InputError, match=match):
        Workload(**wrong)
