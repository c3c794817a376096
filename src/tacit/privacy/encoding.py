"""What encoding for secure aggregation costs: contributions become integer vectors, and rounding lengthens them.

`clip_inflation` is the factor, `Encoding.within` the coarsest scale that keeps it small, and what a sum takes then.
"""

import math
from dataclasses import dataclass

from tacit.errors import InputError

RETRY_PROBABILITY = math.exp(-0.5)  # alpha of arXiv:2305.18465, Algorithm 2, as used in production
MOST = 1.01  # of the clip norm after rounding: 2% of zCDP, at about 20 bits a coordinate


def inflated_clip_norm(
    clip_norm: float, dimension: int, scale: float, *, retry_probability: float = RETRY_PROBABILITY
) -> float:
    """The largest norm of a contribution after clipping, encoding and decoding, in the units of `clip_norm`.

    A contribution of `dimension` coordinates (padding included) is clipped to `clip_norm` C, multiplied by
    `scale` s, rotated and rounded at random to integers; the rounding is repeated until its squared norm is
    within the bound that one attempt exceeds with probability at most `retry_probability` alpha. Hence always
    `C_inflated^2 = C^2 + d/(4 s^2) + sqrt(2 log(1/alpha)) (C/s + sqrt(d)/(2 s^2))`, a proved upper bound.
    Noise is still added by C itself. Source: arXiv:2305.18465, Section 2.4. InputError for values that make
    no such encoding.
    """
    for name, value in (("clip_norm", clip_norm), ("scale", scale)):
        if not 0 < value < math.inf:
            raise InputError(f"{name}={value} is not a finite number above 0; give one.")
    if isinstance(dimension, bool) or not hasattr(dimension, "__index__") or dimension < 1:
        raise InputError(f"dimension={dimension!r} is not a number of coordinates; give a whole number above 0.")
    if not 0 < retry_probability < 1:
        raise InputError(f"retry_probability={retry_probability} does not lie between 0 and 1; give exp(-0.5), say.")
    tail = math.sqrt(-2 * math.log(retry_probability))
    # Each term is divided by the scale apart: its square alone may overflow or vanish.
    rounding = math.sqrt(dimension) / (2 * scale)
    return math.sqrt(clip_norm**2 + rounding**2 + tail * (clip_norm / scale + rounding / scale))


def clip_inflation(
    clip_norm: float, dimension: int, scale: float, *, retry_probability: float = RETRY_PROBABILITY
) -> float:
    """`inflated_clip_norm` in clip norms: the factor by which a Guarantee's sensitivity grows, above 1."""
    return inflated_clip_norm(clip_norm, dimension, scale, retry_probability=retry_probability) / clip_norm


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
