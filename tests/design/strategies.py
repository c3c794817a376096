"""A strategy of every kind, some with numbers that are drawn."""

import numpy as np

from tacit.privacy import Blt, Independent, Toeplitz, Tree
from tacit.privacy.strategy import Banded, BandedInverse, BandedToeplitz, Dense, Strategy

ROUNDS = 40
RNG = np.random.default_rng(0)
MATRIX = np.tril(RNG.uniform(0, 1, (ROUNDS, ROUNDS))) + np.diag(np.full(ROUNDS, 1.0))
STRATEGIES: dict[str, Strategy] = {
    "independent": Independent(),
    "tree": Tree(),
    "tree-restarted": Tree(restarts=(7, 16, 33, 90)),
    "tree-variance-reduced": Tree(variance_reduced=True),
    "tree-variance-reduced-restarted": Tree(variance_reduced=True, restarts=(1, 9, 25)),
    "toeplitz": Toeplitz(coefficients=tuple(0.8**power for power in range(ROUNDS))),
    "banded-toeplitz": BandedToeplitz(coefficients=(1.0, 0.5, 0.2)),
    "banded-inverse": BandedInverse(coefficients=(1.0, -0.5, -0.1)),
    "blt": Blt(theta=(0.99, 0.5), omega=(0.1, 0.3)),
    "banded": Banded(columns=np.stack([MATRIX.diagonal(), np.append(MATRIX.diagonal(-1), 0.0)], axis=1)),
    "one-band": Banded(columns=MATRIX.diagonal()[:, None].copy()),
    "dense": Dense(matrix=MATRIX),
}
