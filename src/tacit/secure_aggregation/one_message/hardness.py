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


def core_svp_bits(dimension: int, modulus_bits: float, deviation: float) -> float:
    """log2 of the classical operations of the primal attack on ring learning with errors, by the core-SVP count.

    The smallest BKZ block b with `deviation sqrt(b) <= delta^(2b - d - 1) q^(m / d)` for some number of samples m up to
    `dimension`, d = dimension + m + 1, costs 2^(0.292 b). deviation: of keys and errors alike. Alkim, Ducas,
    Poeppelmann and Schwabe, USENIX Security 2016, section 6.3; structure of the ring is not used. A count, no proof: it
    leaves out how often the lattice problem is solved, and all memory.
    """
    samples = range(dimension // 4, dimension + 1, max(1, dimension // 256))
    low, high = 50, 10_000
    while low < high:  # what a block finds, a larger one finds, too
        block = (low + high) // 2
        root = math.log2((math.pi * block) ** (1 / block) * block / (2 * math.pi * math.e)) / (2 * (block - 1))
        short = math.log2(deviation) + math.log2(block) / 2
        found = any(
            short <= (2 * block - (dimension + m + 1) - 1) * root + m * modulus_bits / (dimension + m + 1)
            for m in samples
        )
        low, high = (low, block) if found else (block + 1, high)
    return 0.292 * low


def bits_lost_to_clients(honest: int) -> float:
    """log2 of the factor h - 1 by which the hybrid argument over h honest clients multiplies an advantage."""
    return math.log2(max(honest - 1, 1))
