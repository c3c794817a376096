"""How finely updates are encoded for secure aggregation: a scale that keeps the clip norm, and what a sum takes."""

import math
from dataclasses import dataclass

from tacit.errors import InputError
from tacit.privacy.encoding import RETRY_PROBABILITY, clip_inflation

MOST = 1.01  # of the clip norm after rounding: 2% of zCDP, at about 20 bits a coordinate


@dataclass(frozen=True, kw_only=True)
class Encoding:
    """Updates of `dimension` coordinates (padding included), clipped to `clip_norm`, rounded after times `scale`."""

    dimension: int
    clip_norm: float
    scale: float

    @classmethod
    def within(cls, parameters: int, clip_norm: float, *, inflation: float = MOST) -> "Encoding":
        """The coarsest that lengthens no update by more than the factor `inflation`, for so many parameters.

        Rotation by a Hadamard matrix pads them to a power of two. The bound of `inflated_clip_norm`, squared, is a
        quadratic in 1 / scale; its root is exact. InputError for an inflation that is none.
        """
        if not 1 < inflation < math.inf:
            raise InputError(f"inflation={inflation} is no factor above 1; give 1.01, say.")
        dimension = 1 << max(0, parameters - 1).bit_length()
        tail = math.sqrt(-2 * math.log(RETRY_PROBABILITY))
        squared = (dimension / 4 + tail * math.sqrt(dimension) / 2) / clip_norm**2
        linear, room = tail / clip_norm, inflation**2 - 1
        scale = (linear + math.sqrt(linear**2 + 4 * squared * room)) / (2 * room)
        while clip_inflation(clip_norm, dimension, scale) > inflation:  # the last bit
            scale = math.nextafter(scale, math.inf)
        return cls(dimension=dimension, clip_norm=clip_norm, scale=scale)

    @property
    def inflation(self) -> float:
        """The factor by which encoding lengthens a clipped update, at most; above 1."""
        return clip_inflation(self.clip_norm, self.dimension, self.scale)

    def bits(self, report_goal: int) -> int:
        """Of a coordinate of the sum: ceil(log2 M), M = 2 C_inf m + 1, C_inf = ceil(2 s C log(d) / sqrt(d)).

        Source: arXiv:2305.18465, Algorithm 2.
        """
        d = self.dimension
        largest = math.ceil(2 * self.scale * self.clip_norm * math.log(d) / math.sqrt(d))
        return (2 * largest * report_goal).bit_length()  # of M - 1, the largest remainder
