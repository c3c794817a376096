"""Independent noise: the strategy is the identity, each round pays for itself (DP-SGD without sampling)."""

from dataclasses import dataclass

from tacit.mechanisms.step import NoiseStep
from tacit.mechanisms.stream import NoiseStream
from tacit.privacy.strategy import Independent


@dataclass(frozen=True)
class IndependentStream(NoiseStream):
    """One seed a round, used as it is; nothing is carried."""

    strategy: Independent

    def step(self, round: int) -> NoiseStep:
        """The seed itself."""
        return NoiseStep(seeds=(1.0,))
