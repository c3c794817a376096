"""Attacks on added noise that succeeded once: on its low bits, and on two sums with one noise.

Each is an attacker's program that knows everything but the key and one client's contribution. It may learn as much as
the guarantee allows, which here is next to nothing: contributions are a ten-thousandth of the noise's deviation.
"""

from itertools import product

import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import binom

from tacit.mechanisms import NoiseState, stream_for
from tacit.privacy.strategy import (
    PUBLISHED_BLT,
    Banded,
    BandedInverse,
    BandedToeplitz,
    Independent,
    Strategy,
    Tree,
)

Vector = npt.NDArray[np.float32]

STRATEGIES: dict[str, Strategy] = {
    "independent": Independent(),
    "tree": Tree(),
    "tree, variance-reduced": Tree(variance_reduced=True),
    "blt": PUBLISHED_BLT["b400"],
    "banded": Banded(np.tile([1.0, 0.5, 0.25], (8, 1)) * (np.arange(8)[:, None] + np.arange(3) < 8)),
    "banded-toeplitz": BandedToeplitz((1.0, 0.5)),
    "lambda-cgd": BandedInverse((1.0, -0.9)),
    "banded-inverse": BandedInverse((1.0, -0.5, -0.125)),
}
every_mechanism = pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES.keys())

SAME = pytest.mark.nightly

STDDEV = 0.7  # of a seed
COORDINATES = 300  # to which only the one client contributes
SENT = 1e-4 * STDDEV  # by that client to each; over all of them 0.002 deviations
TRIALS = 60


def released(strategy: Strategy, total: float, rounds: int, key: bytes) -> Vector:
    """What the last round of a run releases, when every coordinate's sum is `total` in every round."""
    stream = stream_for(strategy)
    state = stream.init(COORDINATES)
    for _ in range(rounds):
        sums = jnp.full(COORDINATES, total, jnp.float32)
        noisy, state = stream.add_noise(state, sums, stddev=STDDEV, key=key, purpose="model update")
    return np.asarray(noisy)


def attainable_without(noisy: Vector) -> int:
    """In how many coordinates the release is a float32 noise times a float32 standard deviation, with nothing added."""
    near = (noisy / np.float32(STDDEV)).view(np.int32)
    candidates = [(near + step).view(np.float32) for step in range(-2, 3)]
    found = np.array([np.float32(STDDEV) * each == noisy for each in candidates])
    return int(found.any(axis=0).sum())


@pytest.mark.parametrize(  # one of each way in which noise is added to a sum (mechanisms/step.py)
    "strategy",
    [
        pytest.param(each, id=name, marks=() if name in ("independent", "tree", "blt", "banded-inverse") else SAME)
        for name, each in STRATEGIES.items()
    ],
)
def test_low_bits_do_not_tell_who_took_part(strategy: Strategy) -> None:
    """The attacker plays both worlds with keys of its own, learns how many coordinates look attainable in each, and
    says of every trial to which it is nearer. At least 43 of 60 right by chance has probability below 6e-4.
    """
    rounds = 3
    without, with_client = (
        np.mean(
            [
                attainable_without(released(strategy, total, rounds, (999 + own).to_bytes(16, "big")))
                for own in range(20)
            ]
        )
        for total in (0.0, SENT)
    )
    right = 0
    for trial, total in product(range(TRIALS // 2), (0.0, SENT)):
        seen = attainable_without(released(strategy, total, rounds, trial.to_bytes(16, "big")))
        says_with = abs(seen - with_client) < abs(seen - without)
        right += says_with == (total > 0)
    assert binom.sf(42, TRIALS, 0.5) < 6e-4
    assert right < 43


@every_mechanism
def test_two_sums_with_one_key_do_not_cancel_their_noise(strategy: Strategy) -> None:
    """A run folder is copied and both copies go on, one without the client: the difference is noise, not the client.

    In every round after the copy, and in every pair of rounds, whose noise is correlated.
    """
    stream, key, size = stream_for(strategy), bytes(range(16)), 20_000

    def played(state: NoiseState, totals: list[float]) -> tuple[npt.NDArray[np.float64], NoiseState]:
        rows = []
        for total in totals:
            sums = jnp.full(size, total, jnp.float32)
            noisy, state = stream.add_noise(state, sums, stddev=STDDEV, key=key, purpose="model update")
            rows.append(np.asarray(noisy, np.float64))
        return np.array(rows), state

    _, state = played(stream.init(size), [0.0, 0.0, 0.0])
    copies = [type(state)(*(np.array(each) for each in state)) for _ in range(2)]
    (one, _), (other, _) = played(copies[0], [SENT, 0.0, 0.0]), played(copies[1], [0.0, 0.0, 0.0])
    apart = one - other
    combined = [apart[0], apart[1], apart[2], *(apart[i] + w * apart[j] for i, j in ((0, 1), (0, 2)) for w in (1, 0.5))]
    for each in combined:
        assert each.std() > 0.3 * STDDEV
        assert abs(each.mean()) < 5 * each.std() / size**0.5
