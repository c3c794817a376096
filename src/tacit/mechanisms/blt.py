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

    Rates of decay, not the factors theta, are rounded to float32: what is streamed is the noise of a BLT whose omega_j
    and 1 - theta_j differ from the given ones by a millionth of themselves or less (1 - theta_j by 1e-9 where that is
    more). The buffers are float32: after 100,000 rounds their rounding has changed the noise by less than 1e-5 of its
    standard deviation and its prefix sums by less than 1e-4 of theirs (tests/mechanisms/test_precision.py).
    """

    strategy: Blt

    def step(self, round: int) -> NoiseStep:
        """Equation 3: Zhat = Z - sum_j omega_j s_j, then s_j <- theta_j s_j + Zhat."""
        return NoiseStep(
            seeds=(1.0,),
            buffers=tuple(-omega for omega in self.strategy.omega),
            then=Decay(tuple(1.0 - theta for theta in self.strategy.theta)),
        )
