"""What is released as a linear map of what clients send and of the noise, and the one number of it that tells most.

Released are rows, A x + s B Z for contributions x (rounds,), independent seeds Z and their deviation s. Where the noise
is normal, the projection on (B B^T)^{-1} A u tells best whether a client that adds u was there: no other function of
the rows does better (Neyman and Pearson), and its mean moves by sqrt(u^T A^T (B B^T)^{-1} A u) / s deviations.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.mechanisms import stream_for
from tacit.mechanisms.tree import TreeStream
from tacit.privacy.strategy import Strategy, Tree

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Linear:
    """signal: A, (rows, rounds). precision: the inverse of B B^T, (rows, rows)."""

    signal: Numbers
    precision: Numbers

    @property
    def gram(self) -> Numbers:
        """X = A^T (B B^T)^{-1} A, (rounds, rounds): C^T C where the rows are all that is released."""
        return self.signal.T @ self.precision @ self.signal

    def told_by(self, canary: Numbers) -> tuple[Numbers, float]:
        """(weights (rows,) of a score with deviation 1 for seeds with deviation 1, by how much it moves).

        canary: u, (rounds,).
        """
        direction = self.precision @ (self.signal @ canary)
        moved = math.sqrt(float(direction @ self.signal @ canary))
        return direction / moved, moved


def of_sums(strategy: Strategy, rounds: int) -> Linear:
    """Of the noised sums of so many rounds, as a stream releases them."""
    if isinstance(strategy, Tree):
        noise = stream_for(strategy).dense(rounds)
        inverse = np.linalg.inv(noise @ noise.T).astype(np.float64, copy=False)
        return Linear(np.eye(rounds), inverse)
    matrix = strategy.dense(rounds)
    return Linear(np.eye(rounds), matrix.T @ matrix)


def of_every_node(strategy: Tree, rounds: int) -> Linear:
    """Of a tree's noised sums and all its complete nodes, which the accountant counts as released.

    Rows: of each round its noised sum, then the nodes that it completes but for the largest, smaller ones first.
    """
    stream = TreeStream(strategy)
    noise, matrix = stream.dense(rounds), strategy.dense(rounds)
    signals, noises, node = [], [], 0
    for round in range(rounds):
        signals.append(np.eye(rounds)[round])
        noises.append(noise[round])
        for _ in range(stream.seeds_in(round) - 1):
            signals.append(matrix[node])
            noises.append(np.eye(len(matrix))[node])
            node += 1
        node += 1
    inverse = np.linalg.inv(np.array(noises))
    return Linear(np.array(signals), inverse.T @ inverse)
