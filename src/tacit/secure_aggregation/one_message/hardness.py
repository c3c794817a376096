"""How hard the problem behind the published parameters is, beside the standard: tests hold it, no round needs it."""

import math
from types import MappingProxyType

from tacit.secure_aggregation.discrete_gaussian import WIDTH

# Homomorphic Encryption Standard (November 2018), Table 1: the largest log2 q for 128 bits against classical attacks,
# secret uniform in {-1, 0, 1} (the strictest column), error of width 8 / sqrt(2 pi).
STANDARD_BITS = MappingProxyType({4096: 109, 8192: 218, 16384: 438})
STANDARD_WIDTH = 8 / math.sqrt(2 * math.pi)


def reduced_width(width: float = float(WIDTH), honest: int = 2) -> float:
    """The width of the keys of a problem without hints that is as hard as one client's, when the sum is revealed.

    The hint is the sum with the keys of `honest - 1` others, each of width sigma and unknown to whoever attacks:
    `1/sigma_0^2 = 2 (1/sigma^2 + 1/((honest - 1) sigma^2))`. For errors it is the same. After Kim, Lee, Seo and
    Song, CRYPTO 2023, in the form of Espitau, Niot and Prest, CRYPTO 2024, and the page's derivation.
    """
    return 1 / math.sqrt(2 * (1 / width**2 + 1 / ((honest - 1) * width**2)))
