"""Independent noise: the strategy is the identity, each round pays for itself (DP-SGD without sampling)."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.mechanisms.keys import round_key
from tacit.mechanisms.seeds import SeedVector
from tacit.mechanisms.step import NoiseStep
from tacit.mechanisms.step_cpu import released
from tacit.mechanisms.stream import NoiseStream
from tacit.privacy.strategy import Independent


@dataclass(frozen=True)
class IndependentStream(NoiseStream):
    """One seed a round, used as it is; nothing is carried."""

    strategy: Independent

    def step(self, round: int) -> NoiseStep:
        """The seed itself."""
        return NoiseStep(seeds=(1.0,))


def add_independent_noise(
    summed: npt.ArrayLike, *, stddev: float, key: bytes, purpose: str, round: int
) -> npt.NDArray[np.float64]:
    """summed (d,) + stddev * standard normal noise, on the grid of that standard deviation, float64.

    A release by itself: the noise is bound to the sum, to `stddev`, `purpose` and `round`: equal arguments, equal bits.
    """
    exact = np.asarray(summed, np.float64)
    of_round = round_key(key, purpose, round, bound_to=np.float64(stddev).tobytes(), summed=exact)
    nothing = np.zeros((0, exact.size))
    return released(NoiseStep(seeds=(1.0,)), 1, nothing, [SeedVector(of_round.seeds)], exact, stddev)
