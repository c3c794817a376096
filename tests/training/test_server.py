"""The server's step: which optimizers there are, and how fast they go when."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from tacit.errors import InputError
from tacit.training import ServerOptimizer
from tacit.training.server import server_step


def steps(optimizer: ServerOptimizer, rounds: int) -> list[float]:
    """How far each round moves one parameter whose mean update is always 1."""
    transformation = optimizer.transformation(rounds)
    model = jnp.zeros(1)
    state, at = transformation.init(model), [0.0]
    for _ in range(rounds):
        model, state = server_step(transformation, model, state, jnp.ones(1))
        at.append(float(model[0]))
    return np.diff(at).tolist()


def test_without_momentum_a_step_is_the_learning_rate_times_the_mean() -> None:
    assert steps(ServerOptimizer(learning_rate=0.5, momentum=0.0), 3) == pytest.approx([0.5] * 3)


def test_momentum_and_nesterov_by_hand() -> None:
    trace = [1.0, 1.9, 2.71]  # m <- 0.9 m + 1
    assert steps(ServerOptimizer(learning_rate=2.0), 3) == pytest.approx([2 * m for m in trace])
    ahead = [2 * (0.9 * m + 1) for m in trace]
    assert steps(ServerOptimizer(method="nesterov", learning_rate=2.0), 3) == pytest.approx(ahead)


def test_adam_moves_a_coordinate_by_about_its_learning_rate() -> None:
    assert steps(ServerOptimizer(method="adam", learning_rate=0.01), 4) == pytest.approx([0.01] * 4, rel=1e-3)


def test_a_cooldown_falls_linearly_over_the_last_rounds() -> None:
    found = steps(ServerOptimizer(learning_rate=1.0, momentum=0.0, cooldown=0.4), 10)
    assert found == pytest.approx([1.0] * 7 + [0.75, 0.5, 0.25])
    assert all(step > 0 for step in found), "no round is released in vain"


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"method": "sgd"}, "server.method='sgd' is unknown; use one of momentum, nesterov, adam"),
        ({"learning_rate": 0.0}, "server.learning_rate=0.0 must be a positive number"),
        ({"momentum": 1.0}, "server.momentum=1.0 must be in"),
        ({"cooldown": 1.5}, "server.cooldown=1.5 must be a share"),
    ],
)
def test_wrong_settings_are_refused(wrong: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InputError) as refused:
        ServerOptimizer(**wrong)
    assert complaint in str(refused.value)
