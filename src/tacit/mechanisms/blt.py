"""Buffered linear Toeplitz noise: a few decaying buffers stand in for the whole history.

Source: arXiv:2408.08868 (paper 4), Equation 3 and Algorithm 3, with C as given: not normalised.
"""

from dataclasses import dataclass

from tacit.mechanisms.step import Decay, NoiseStep
from tacit.mechanisms.stream import NoiseStream
from tacit.privacy.strategy import Blt


@dataclass(frozen=True)
class BltStream(NoiseStream):
    """One seed a round; as many buffers as the strategy has, however many rounds there are.

    Buffers are float64: what is rounded away of one stays in it for as long as it lasts, which may be all rounds.
    """

    strategy: Blt

    def step(self, round: int) -> NoiseStep:
        """Equation 3: Zhat = Z - sum_j omega_j s_j, then s_j <- theta_j s_j + Zhat."""
        return NoiseStep(
            seeds=(1.0,),
            buffers=tuple(-omega for omega in self.strategy.omega),
            then=Decay(tuple(1.0 - theta for theta in self.strategy.theta)),
        )
