"""What one round of a mechanism does, written down: which weighted vectors make the noise, and what is kept.

Every mechanism here is linear, so this is all there is to say, and two files know how to do it: `step_cpu.py` on a CPU,
`step_accelerator.py` on an accelerator.
"""

from typing import NamedTuple, TypeAlias

Weights: TypeAlias = tuple[float, ...]


class Decay(NamedTuple):
    """Every buffer takes up the noise and fades: s_j <- s_j + (noise - rates_j s_j).

    Rates, not factors 1 - rate: a buffer that keeps 0.9999999999921 of itself has a factor that float32 rounds to 1
    and a rate that it holds. A rate is met to a millionth of itself, or to 1e-9 where that is more
    (tests/mechanisms/test_precision.py): what float32 rounds away of the sum is as often too much as too little.
    """

    rates: Weights


class Keep(NamedTuple):
    """One buffer is written anew: s_slot <- noise * (the noise) + seeds . Z + buffers . s."""

    slot: int
    noise: float = 0.0
    seeds: Weights = ()
    buffers: Weights = ()


class NoiseStep(NamedTuple):
    """noise = seeds . Z + buffers . s, added up in this order; then what is kept.

    Weights count from the first seed and the first buffer; those left out are zero. Weights and sums are float32, or
    float64 rounded once where the weights are `cancelling`: where they nearly add up to nothing, so that what is
    rounded away from each of them would be seen in the sum of many rounds.
    """

    seeds: Weights
    buffers: Weights = ()
    then: Decay | Keep | None = None
    cancelling: bool = False
