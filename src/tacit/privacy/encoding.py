"""What encoding for secure aggregation costs: contributions become integer vectors, and rounding lengthens them."""

import math

from tacit.errors import InputError

RETRY_PROBABILITY = math.exp(-0.5)  # alpha of arXiv:2305.18465, Algorithm 2, as used in production


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
