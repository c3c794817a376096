"""The server's step: each optimizer against its NumPy twin, and how fast they go when."""

from typing import Any, get_args

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import InputError
from tacit.training import ServerOptimizer
from tacit.training.server import SECOND_MOMENT, Method, server_step


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


def slow(optimizer: ServerOptimizer, means: Any) -> Any:
    """The slow, obvious twin in float64: the models after each of the means (rounds, d), from zeros."""
    b1, b2, tau, g2 = optimizer.momentum, SECOND_MOMENT, optimizer.adaptivity, means**2
    first, second = np.zeros(means.shape[1]), np.zeros(means.shape[1])
    if optimizer.method in ("yogi", "adagrad"):
        second = second + tau**2
    theta, models = np.zeros(means.shape[1]), []
    for t, mean in enumerate(means):
        match optimizer.method:
            case "sgd":
                step = mean
            case "momentum":
                first = b1 * first + mean
                step = first
            case "nesterov":
                first = b1 * first + mean
                step = b1 * first + mean
            case "adam":  # Kingma & Ba 2015, Algorithm 1
                first, second = b1 * first + (1 - b1) * mean, b2 * second + (1 - b2) * g2[t]
                step = first / (1 - b1 ** (t + 1)) / (np.sqrt(second / (1 - b2 ** (t + 1))) + tau)
            case "yogi":  # Reddi et al. 2021, Algorithm 2
                first = b1 * first + (1 - b1) * mean
                second = second - (1 - b2) * g2[t] * np.sign(second - g2[t])
                step = first / (np.sqrt(second) + tau)
            case "adagrad":  # the same
                first, second = b1 * first + (1 - b1) * mean, second + g2[t]
                step = first / (np.sqrt(second) + tau)
        theta = theta + optimizer.learning_rate * step
        models.append(theta)
    return np.array(models)


@pytest.mark.parametrize("method", get_args(Method))
@given(
    seed=st.integers(0, 2**32 - 1),
    scale=st.sampled_from([1e-4, 1e-2, 1.0]),
    rate=st.floats(0.01, 2.0),
    momentum=st.sampled_from([0.0, 0.5, 0.9]),
    tau=st.sampled_from([1e-5, 1e-3]),
)
def test_each_method_is_its_slow_twin(
    method: Method, seed: int, scale: float, rate: float, momentum: float, tau: float
) -> None:
    optimizer = ServerOptimizer(method=method, learning_rate=rate, momentum=momentum, adaptivity=tau)
    means = (scale * np.random.default_rng(seed).standard_normal((5, 4))).astype(np.float32)
    transformation, model = optimizer.transformation(5), jnp.zeros(4)
    state, found = transformation.init(model), []
    for mean in means:
        model, state = server_step(transformation, model, state, jnp.asarray(mean))
        found.append(np.asarray(model))
    wanted = slow(optimizer, means.astype(np.float64))
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5 * np.abs(wanted).max())


def test_yogi_forgets_slower_than_adam_when_means_become_small() -> None:
    """What it is for (Zaheer et al. 2018): after large means, small ones do not make its steps long."""
    means = np.concatenate([np.ones((50, 1)), np.full((400, 1), 1e-3)])
    last = {
        method: np.diff(slow(ServerOptimizer(method=method, momentum=0.0), means)[:, 0])[-1]
        for method in ("adam", "yogi")
    }
    assert last["yogi"] < 0.2 * last["adam"]


def test_a_cooldown_falls_linearly_over_the_last_rounds() -> None:
    found = steps(ServerOptimizer(learning_rate=1.0, momentum=0.0, cooldown=0.4), 10)
    assert found == pytest.approx([1.0] * 7 + [0.75, 0.5, 0.25])
    assert all(step > 0 for step in found), "no round is released in vain"


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        (
            {"method": "newton"},
            "server.method='newton' is unknown; use one of sgd, momentum, nesterov, adam, yogi, adagrad",
        ),
        ({"adaptivity": 0.0}, "server.adaptivity=0.0 must be a positive number"),
        ({"learning_rate": 0.0}, "server.learning_rate=0.0 must be a positive number"),
        ({"momentum": 1.0}, "server.momentum=1.0 must be in"),
        ({"cooldown": 1.5}, "server.cooldown=1.5 must be a share"),
    ],
)
def test_wrong_settings_are_refused(wrong: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InputError) as refused:
        ServerOptimizer(**wrong)
    assert complaint in str(refused.value)
