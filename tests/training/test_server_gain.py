"""The noise that reaches the model, as it is foreseen, against noise that is drawn and sent through the server."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.design.catalogue import chosen
from tacit.design.losses import prefix_errors
from tacit.mechanisms import stream_for
from tacit.privacy import Participation
from tacit.privacy.strategy import Independent, Strategy
from tacit.training import ServerOptimizer
from tacit.training.server import gain

WEIGHTS = 4000


def simulated(server: ServerOptimizer, strategy: Strategy, rounds: int) -> float:
    """The slow twin: the rms over rounds of a weight's noise, of seeds of deviation 1 through stream and optimizer."""
    stream, draw = stream_for(strategy), np.random.default_rng(7)
    noise, transformation = stream.init(WEIGHTS), server.transformation(rounds)
    model = jnp.zeros(WEIGHTS)
    state, squares = transformation.init(model), []

    @jax.jit
    def step(model, state, mean):  # type: ignore[no-untyped-def]
        change, state = transformation.update(-mean, state, model)
        return model + change, state

    for round in range(rounds):
        wanted = sum(stream.seeds_in(each) for each in stream.rounds_drawn(round))
        fresh = draw.standard_normal((wanted, WEIGHTS)) if round == 0 or stream.draws_back == 0 else None
        assert fresh is not None, "streams that draw back need their old seeds"
        row, noise = stream.next(noise, fresh)
        model, state = step(model, state, jnp.asarray(row, jnp.float32))
        squares.append(float(jnp.mean(model**2)))
    return float(np.sqrt(np.mean(squares)))


SERVERS = {
    "sgd": ServerOptimizer(method="sgd", learning_rate=0.3),
    "momentum": ServerOptimizer(learning_rate=0.5),
    "nesterov": ServerOptimizer(method="nesterov", learning_rate=2.0, momentum=0.8),
}


@pytest.mark.parametrize("server", SERVERS.values(), ids=SERVERS)
@pytest.mark.parametrize("rounds", [3, 40])
def test_of_independent_noise_it_is_exact(server: ServerOptimizer, rounds: int) -> None:
    foreseen = gain(server, rounds)
    assert foreseen is not None
    found = simulated(server, Independent(), rounds)
    assert found == pytest.approx(foreseen * prefix_errors(Independent(), rounds)[1], rel=0.02)
    assert found != pytest.approx(1.2 * foreseen * prefix_errors(Independent(), rounds)[1], rel=0.02)


@pytest.mark.parametrize("server", SERVERS.values(), ids=SERVERS)
@pytest.mark.parametrize("mechanism", ["tree", "tree-variance-reduced", "blt", "banded-inverse"])
def test_of_correlated_noise_it_is_near(server: ServerOptimizer, mechanism: str) -> None:
    rounds = 96
    asked = {"name": mechanism} | ({"coefficients": [1.0, -0.5, -0.1]} if mechanism == "banded-inverse" else {})
    strategy = chosen(asked).strategy(Participation(rounds=rounds, min_separation=24, max_participations=4))
    foreseen = gain(server, rounds)
    assert foreseen is not None
    found = simulated(server, strategy, rounds) / (foreseen * prefix_errors(strategy, rounds)[1])
    assert found == pytest.approx(1.0, abs=0.02) if server.method == "sgd" else 0.6 < found < 1.0


def test_a_cooldown_quiets_and_adaptive_servers_are_not_foreseen() -> None:
    steady, cooled = (gain(ServerOptimizer(cooldown=share), 100) for share in (0.0, 1.0))
    assert steady is not None and cooled == pytest.approx(steady / 3**0.5)
    assert gain(ServerOptimizer(method="adam"), 100) is None


@given(rate=st.floats(0.01, 10), momentum=st.floats(0, 0.99), rounds=st.integers(1, 300))
def test_it_grows_with_the_rate_and_lies_between_one_rate_and_what_momentum_makes_of_it(
    rate: float, momentum: float, rounds: int
) -> None:
    found = gain(ServerOptimizer(learning_rate=rate, momentum=momentum), rounds)
    doubled = gain(ServerOptimizer(learning_rate=2 * rate, momentum=momentum), rounds)
    assert found is not None and doubled == pytest.approx(2 * found)
    assert rate * (1 - 1e-9) <= found <= rate / (1 - momentum) * (1 + 1e-9)
