"""Noise of any strategy whose rows can be told: each round takes back its shares of the noise of the rounds before it.

C Zhat = Z is solved by forward substitution, Zhat_t = (Z_t - sum_{i>0} C[t, t-i] Zhat_{t-i}) / C[t, t]. The noise that
is carried is float32: what is rounded away of it in one round is missing when the next ones take it back.
"""

from dataclasses import dataclass

import numpy as np

from tacit.mechanisms.step import Keep, NoiseStep
from tacit.mechanisms.stream import NoiseStream
from tacit.privacy.strategy import Strategy


@dataclass(frozen=True)
class SubstitutionStream(NoiseStream):
    """Carries the noise of the last p - 1 rounds, p the diagonals of C that are not zero.

    A full matrix has as many diagonals as rounds: all earlier noise is carried, a vector more each
    round. That is for comparison on small models, and for short runs.
    """

    strategy: Strategy
    carries = np.float32

    def step(self, round: int) -> NoiseStep:
        """The noise of round t is written over that of round t - (p - 1), after this was used for the last time."""
        shares = self.strategy.row(round, self.memory(round))
        buffers, slots = np.zeros(len(shares) - 1), self.memory(round + 1)
        if slots:  # while the memory still grows, each round has a slot of its own
            buffers[(round - np.arange(1, len(shares))) % slots] = -shares[1:] / shares[0]
        return NoiseStep(
            seeds=(1.0 / float(shares[0]),),
            buffers=tuple(buffers.tolist()),
            then=Keep(slot=round % slots, noise=1.0) if slots else None,
        )
