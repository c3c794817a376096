"""Noise of a banded inverse: a weighted sum of the seeds of the last p rounds.

Sources: DP-lambdaCGD (one earlier round, nothing carried: its seed is drawn again), BISR and BandInvMF (p rounds).
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tacit.mechanisms.step import Keep, NoiseStep
from tacit.mechanisms.stream import NoiseStream
from tacit.privacy.strategy import BandedInverse


@dataclass(frozen=True)
class BandedInverseStream(NoiseStream):
    """noise_t = sum_i coefficients_i Z_{t-i}: either carries p - 1 seeds, or draws them again and carries nothing.

    A seed costs more to draw than to read, so by default only one is drawn again (p = 2).
    """

    strategy: BandedInverse
    draws_again: bool | None = None  # None: for p = 2 only

    @cached_property
    def reach(self) -> int:
        """p - 1: how many rounds back the last coefficient reaches that is not zero."""
        return int(np.flatnonzero(self.strategy.coefficients).max())

    @property
    def carried(self) -> int:
        """The seeds carried when enough rounds are done."""
        draws_again = self.reach == 1 if self.draws_again is None else self.draws_again
        return 0 if draws_again else self.reach

    @property
    def draws_back(self) -> int:
        """The p - 1 rounds before, where their seeds are not carried."""
        return self.reach - self.carried

    def memory(self, rounds: int) -> int:
        """A seed of each round so far, at most p - 1; none where they are drawn again."""
        return min(rounds, self.carried)

    def step(self, round: int) -> NoiseStep:
        """The seed of round t is written over that of round t - (p - 1), after this was used for the last time."""
        drawn = self.strategy.coefficients[: len(self.rounds_drawn(round))]
        if not self.carried:
            return NoiseStep(seeds=drawn)
        buffers = [0.0] * self.memory(round)
        for back in range(1, len(buffers) + 1):
            buffers[(round - back) % self.carried] = self.strategy.coefficients[back]
        keep = Keep(slot=round % self.carried, seeds=(1.0,))
        return NoiseStep(seeds=drawn, buffers=tuple(buffers), then=keep)
