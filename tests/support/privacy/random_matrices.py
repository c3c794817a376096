"""Strategies whose matrices are drawn."""

import numpy as np

from tacit.privacy.strategy import Banded, Dense


def random_dense(rounds: int, seed: int, least: float) -> Dense:
    """Entries uniform in [least, 1), the diagonal positive."""
    draw = np.random.default_rng(seed)
    matrix = np.tril(draw.uniform(least, 1.0, (rounds, rounds)))
    np.fill_diagonal(matrix, draw.uniform(0.1, 1.0, rounds))
    return Dense(matrix)


def random_banded(rounds: int, bands: int, seed: int, least: float) -> Banded:
    matrix = random_dense(rounds, seed, least).matrix
    columns = np.zeros((rounds, bands))
    for band in range(bands):
        columns[: rounds - band, band] = np.diag(matrix, -band)
    return Banded(columns)
