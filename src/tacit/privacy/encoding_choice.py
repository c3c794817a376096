"""How the numbers of an encoding are chosen: the coarsest scale that lengthens updates by little, and room for noise.

A server chooses; devices check what it chose (`encoding.py`).
"""

import math
from dataclasses import replace
from numbers import Real

from tacit.errors import InputError, conceivable
from tacit.privacy.encoding import (
    MOST,
    PALEY_ORDERS,
    RETRY_PROBABILITY,
    SIGMAS,
    Encoding,
    check_count,
    check_real,
    clip_inflation,
)

OVERFLOW = 2.0**-40  # probability that decryptors' noise leaves the modulus in any round of a run
UNSENT = 2.0**-80  # probability that a decryptor has noise in any round of a run that is beyond `margin_each`


def padded_dimension(parameters: int) -> int:
    """The least h * 2^j of at least so many parameters, with h one of PALEY_ORDERS: how long a rotated vector is."""
    least = 0
    for paley in PALEY_ORDERS:
        found = paley << max(0, -(-parameters // paley) - 1).bit_length()
        least = found if not least else min(least, found)
    return least


def encoding_within(
    parameters: int, clip_norm: float, report_goal: int, *, inflation: float = MOST, sigmas: float = SIGMAS
) -> Encoding:
    """The coarsest that lengthens no update by more than the factor `inflation`, for sums of so many reports.

    The bound of `inflated_clip_norm`, squared, is a quadratic in 1 / scale; its root is exact. Raises: InputError
    for an inflation that is none, and where a coordinate of a sum needs more than WORD bits.
    """
    check_count("parameters", parameters)
    check_real("clip_norm", clip_norm)
    conceivable("clip_norm", float(clip_norm))
    if isinstance(inflation, bool) or not isinstance(inflation, Real) or not 1 < float(inflation) < math.inf:
        raise InputError(f"inflation={inflation!r} is no factor above 1; give {MOST:g}, say.")
    dimension = padded_dimension(parameters)
    tail = math.sqrt(-2 * math.log(RETRY_PROBABILITY))
    squared = (dimension / 4 + tail * math.sqrt(dimension) / 2) / clip_norm**2
    linear, room = tail / clip_norm, inflation**2 - 1
    scale = (linear + math.sqrt(linear**2 + 4 * squared * room)) / (2 * room)
    while clip_inflation(clip_norm, dimension, scale) > inflation:  # the last bit
        scale = math.nextafter(scale, math.inf)
    return Encoding(
        parameters=parameters,
        dimension=dimension,
        clip_norm=clip_norm,
        scale=scale,
        report_goal=report_goal,
        sigmas=sigmas,
    ).checked()


def encoding_with_noise(
    encoding: Encoding, deviation: float, *, decryptors: int, rounds: int, failure: float = OVERFLOW
) -> Encoding:
    """The same for sums to which each of so many decryptors adds noise: a modulus that holds both.

    deviation: of one decryptor's noise in a coordinate of its largest round, in the units of updates. In each of
    `rounds` rounds a coordinate of the decryptors' sum is normal with deviation sqrt(decryptors) * scale *
    deviation, and each integer is at most 1/2 beside its number; that any is beyond the margin has probability at
    most `failure` (a union bound). One decryptor's is beyond `margin_each` in any of them, for any decryptor, with
    at most UNSENT: noise that a protocol without a modulus cannot send is so rare that no guarantee need count it.
    Raises: InputError for numbers that are none, or where words of WORD bits are too short.
    """
    check_real("deviation", deviation)
    check_count("decryptors", decryptors)
    check_count("rounds", rounds)
    if not 0 < failure < 1:
        raise InputError(f"failure={failure} does not lie between 0 and 1; give 2**-40, say.")
    from scipy.special import ndtri  # an account of an encoding by itencoding needs no SciPy

    def farthest(often: float, added: int) -> int:
        deviations = -float(ndtri(often / (2 * encoding.dimension * rounds)))
        return math.ceil(deviations * math.sqrt(added) * encoding.scale * deviation + added / 2)

    margin, each = farthest(failure, decryptors), farthest(UNSENT / decryptors, 1)
    return replace(encoding, margin=margin, margin_each=each).checked()
