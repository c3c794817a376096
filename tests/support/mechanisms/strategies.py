"""Strategies whose noise is drawn: any of them, and a few with names."""

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from tacit.mechanisms import NoiseStream, stream_for
from tacit.mechanisms.banded_inverse import BandedInverseStream
from tacit.privacy.strategy import (
    PUBLISHED_BLT,
    Banded,
    BandedInverse,
    BandedToeplitz,
    Blt,
    Dense,
    Independent,
    Strategy,
    Toeplitz,
    Tree,
)

Matrix = npt.NDArray[np.float64]
ROUNDS = 48  # that the matrices below are made for


def falling(rounds: int, seed: int = 0) -> Matrix:
    """A lower triangle whose numbers fall with the distance from the diagonal, each row its own."""
    lag = np.maximum(0, np.subtract.outer(np.arange(rounds), np.arange(rounds)))
    rows = np.random.default_rng(seed).uniform(0.3, 1.0, (rounds, rounds)) * 0.7**lag
    return np.tril(rows + np.eye(rounds))


def columns_of(matrix: Matrix, bands: int) -> Matrix:
    """(n, bands): C[j + i, j]."""
    return np.array([np.pad(np.diag(matrix, -i), (0, i)) for i in range(bands)]).T


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    restarts = draw(st.sets(st.integers(1, 30), max_size=4))
    return Tree(restarts=tuple(sorted(restarts)), variance_reduced=draw(st.booleans()))


@st.composite
def blts(draw: st.DrawFn) -> Blt:
    buffers = draw(st.integers(1, 5))
    theta = [draw(st.floats(0.01, 1.0)) for _ in range(buffers)]
    omega = [draw(st.floats(0.001, 0.5)) for _ in range(buffers)]
    return Blt(theta=tuple(theta), omega=tuple(omega))


@st.composite
def tellings(draw: st.DrawFn) -> Strategy:
    """Strategies told by their numbers, a diagonal that keeps the inverse tame, and zeros among them."""
    bands = draw(st.integers(1, 9))
    tail = draw(st.lists(st.sampled_from([0.0, -0.04, 0.01, 0.05, 0.1]), min_size=bands - 1, max_size=bands - 1))
    numbers = (draw(st.sampled_from([0.5, 1.0, 1.7])), *tail)
    matrix = np.tril(falling(ROUNDS, draw(st.integers(0, 9))))
    kinds = (
        BandedToeplitz(numbers),
        BandedInverse(numbers),
        Toeplitz(coefficients=(*numbers, *(0.01,) * ROUNDS)[:ROUNDS]),
        Banded(columns_of(matrix, bands)),
        Dense(matrix),
    )
    return draw(st.sampled_from(kinds))


any_strategy = st.one_of(st.just(Independent()), trees(), blts(), tellings())
STRATEGIES: dict[str, Strategy] = {
    "independent": Independent(),
    "tree": Tree(),
    "tree, variance-reduced, restarted": Tree(restarts=(5, 13), variance_reduced=True),
    "blt": PUBLISHED_BLT["b400"],
    "banded": Banded(np.tile([1.0, 0.5, 0.25], (20, 1)) * (np.arange(20)[:, None] + np.arange(3) < 20)),
    "banded-inverse": BandedInverse((1.0, -0.5, -0.125)),
    "lambda-cgd": BandedInverse((1.0, -0.9)),
}


def carrying(strategy: Strategy) -> NoiseStream:
    """The stream of a strategy, none that draws seeds again."""
    stream = stream_for(strategy)
    return BandedInverseStream(strategy, draws_again=False) if isinstance(strategy, BandedInverse) else stream
