"""Faults of correlated noise: a sensitivity of one participation, and a tree that forgets the noise before it."""

import math

import numpy as np
from numpy.typing import NDArray

from tacit.audit.court.exhibit import Draw, Exhibit, Scores, Version

ROUNDS, SEPARATION = 32, 8
LEAVES, TREES = 4, 4


def release(moves: Scores, noise: NDArray[np.float64]) -> Draw:
    """A Gaussian release, seen in the direction that tells most.

    moves: (r,), how the canary moves each number released. noise: (r, s), which of s independent standard normal
    numbers each one has. The score is that of the likelihood ratio, so that mu is all that the release leaks.
    """
    weights = np.linalg.solve(noise @ noise.T, moves)

    def draw(present: bool, runs: int, generator: np.random.Generator) -> Scores:
        released = generator.standard_normal((runs, noise.shape[1])) @ noise.T + present * moves
        scores: Scores = released @ weights
        return scores

    return draw


def _bands(coefficients: Scores, rounds: int) -> Version:
    """Noise for the sensitivity that a client has who comes every SEPARATION rounds among so many; the claim is mu = 1.

    The strategy is the lower triangular Toeplitz matrix of the coefficients, over ROUNDS rounds in truth.
    """
    strategy = sum(value * np.eye(ROUNDS, k=-lag) for lag, value in enumerate(coefficients))
    believed = strategy[:rounds, :rounds:SEPARATION].sum(axis=1)
    moved = strategy[:, ::SEPARATION].sum(axis=1)
    return Version(1.0, release(moved, float(np.linalg.norm(believed)) * np.eye(ROUNDS)))


def _tree(leaves: int) -> NDArray[np.float64]:
    """Which nodes' noise each prefix sum of a binary tree has: (leaves, nodes)."""
    nodes = [(first, size) for size in _sizes(leaves) for first in range(0, leaves, size)]
    noise = np.zeros((leaves, len(nodes)))
    for step in range(leaves):
        first, left = 0, step + 1
        while left:
            size = 1 << (left.bit_length() - 1)
            noise[step, nodes.index((first, size))] = 1
            first, left = first + size, left - size
    return noise


def _sizes(leaves: int) -> list[int]:
    return [1 << height for height in range(leaves.bit_length())]


def _restarted(*, carried: bool) -> Version:
    """Prefix sums over TREES trees, each of LEAVES rounds; the canary comes in the first round and never again.

    carried: whether the last noise of a tree stays in the sums after it. A client of one tree has one node on each
    level, so the claim is the root of their number at a noise multiplier of 1.
    As published, an assertion stops the code before that; the fault is what it does without.
    """
    one = _tree(LEAVES)
    noise = np.kron(np.eye(TREES), one)
    if carried:
        noise += np.kron(np.tri(TREES, k=-1), np.broadcast_to(one[-1], one.shape))
    return Version(
        math.sqrt(len(_sizes(LEAVES))), release(np.ones(LEAVES * TREES), np.asarray(noise, dtype=np.float64))
    )


COEFFICIENTS = 1 / np.sqrt(np.arange(1.0, SEPARATION + 1))
ALL_SEEN = "all noisy sums or models are seen; the canary's client comes whenever the participation allows"
CORRELATED = (
    Exhibit(
        number=1,
        name="jax-privacy: sensitivity of bands from as many rounds as bands",
        source="https://github.com/google-deepmind/jax_privacy/pull/238",
        threat_model=ALL_SEEN,
        measure="mu",
        law="normal",
        broken=_bands(COEFFICIENTS, len(COEFFICIENTS)),
        mended=_bands(COEFFICIENTS, ROUNDS),
    ),
    Exhibit(
        number=6,
        name="DP-FTRL: a tree restarts without the noise before it",
        source="https://github.com/google-research/DP-FTRL/issues/2",
        threat_model=ALL_SEEN,
        measure="mu",
        law="normal",
        broken=_restarted(carried=False),
        mended=_restarted(carried=True),
    ),
)
