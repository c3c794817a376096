"""What one round of a mechanism does, written down: which weighted vectors make the noise, and what is kept.

Every mechanism here is linear, so this is all there is to say; `step_cpu.py` carries it out.
"""

import struct
from itertools import zip_longest
from typing import NamedTuple, TypeAlias

Weights: TypeAlias = tuple[float, ...]


class Decay(NamedTuple):
    """Every buffer takes up the noise and fades: s_j <- s_j + (noise - rates_j s_j).

    Rates, not factors 1 - rate: a buffer that keeps 0.9999999999921 of itself has a rate with all its digits and a
    factor with few (tests/mechanisms/test_precision.py).
    """

    rates: Weights


class Keep(NamedTuple):
    """One buffer is written anew: s_slot <- noise * (the noise) + seeds . Z + buffers . s."""

    slot: int
    noise: float = 0.0
    seeds: Weights = ()
    buffers: Weights = ()


class NoiseStep(NamedTuple):
    """noise = seeds . Z + buffers . s, added up in this order in float64; then what is kept.

    Weights count from the first seed and the first buffer; those left out are zero. The first `own` seeds are the
    round's own, the others are drawn again.
    """

    seeds: Weights
    buffers: Weights = ()
    then: Decay | Keep | None = None

    def fresh(self, own: int) -> int:
        """Which of the round's own seeds weighs most: the one whose law the release of the round rests on."""
        return max(range(min(own, len(self.seeds))), key=lambda seed: abs(self.seeds[seed]))

    def seeds_needed(self) -> list[int]:
        """Which seeds have a weight: those of a plain tree's lower nodes have none in the round that completes more."""
        kept = self.then.seeds if isinstance(self.then, Keep) else ()
        return [seed for seed, weights in enumerate(zip_longest(self.seeds, kept)) if any(weights)]

    def to_bytes(self) -> bytes:
        """All its numbers: two steps that do different things differ."""
        match self.then:
            case None:
                kept: tuple[Weights, ...] = ()
            case Decay(rates):
                kept = (rates,)
            case Keep(slot, noise, seeds, buffers):
                kept = ((float(slot), noise), seeds, buffers)
        lists = (self.seeds, self.buffers, *kept)
        return b"".join(struct.pack(f"<q{len(each)}d", len(each), *each) for each in lists)
