"""Learning with errors over a ring: published parameters, and what is proved of them.

A client's ciphertext is c_j = a_j s + t e_j + m_j in Z_q[X] / (X^N + 1), all j with one small key s; keys and errors
are discrete Gaussians of one width sigma. The parameters N, q and t are Willow's (ePrint 2024/936, as its authors'
program has them); no others are taken. Two bounds are ours: how many clients a sum may hold stands below, and
`hardness.py` has what the revealed sum of keys costs. docs/secure-aggregation-protocols.md derives both.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

import numpy as np

from tacit.errors import InputError
from tacit.secure_aggregation.discrete_gaussian import WIDTH
from tacit.secure_aggregation.one_message.ring import Residues, Ring
from tacit.secure_aggregation.secrets import derived, seeded

FAILURE_BITS = 64  # a sum fails to open with probability at most 2^-64 a round


@dataclass(frozen=True)
class LatticeParameters:
    """A published set: N = `degree`, q the product of `primes`, t = 2^plain_bits."""

    name: str
    degree: int
    primes: tuple[int, ...]
    plain_bits: int

    @cached_property
    def ring(self) -> Ring:
        """Z_q[X] / (X^N + 1)."""
        return Ring(self.degree, self.primes)

    @property
    def most_error(self) -> int:
        """The largest |E| for which t E + M, 0 <= M < t, certainly lies between -q/2 and q/2."""
        return (self.ring.modulus >> (self.plain_bits + 1)) - 1


# google/secure-aggregation, willow/src/shell/parameters.rs (2025), the three sets of KAHE_QS_*; the names are ours.
PUBLISHED = MappingProxyType(
    {
        each.name: each
        for each in (
            LatticeParameters("willow-4096", 4096, (274877816833, 274877718529), 56),
            LatticeParameters(
                "willow-8192", 8192, (1125899906629633, 1125899905744897, 1125899905351681, 1125899903827969), 168
            ),
            LatticeParameters(
                "willow-16384",
                16384,
                (2305843009211596801, 2305843009211400193, 2305843009210515457, 2305843009210023937),
                224,
            ),
        )
    }
)


def published(name: str) -> LatticeParameters:
    """The published parameters of a name. Raises: InputError for every other name."""
    if name not in PUBLISHED:
        raise InputError(f"'{name}' are no published lattice parameters; choose from {', '.join(PUBLISHED)}.")
    return PUBLISHED[name]


def error_bound(reports: int, coefficients: int) -> int:
    """What |e_1 + ... + e_n| stays within, in all coefficients of a round but with probability 2^-64.

    A discrete Gaussian is subgaussian with its width, so a sum of n exceeds x with probability at most
    `2 exp(-x^2 / (2 n sigma^2))`; this x makes the union over `coefficients` equal to 2^-64, and what the table of
    `discrete_gaussian` cuts off only helps.
    """
    return math.ceil(
        float(WIDTH) * math.sqrt(2 * reports * math.log(2.0) * (1 + FAILURE_BITS + math.log2(coefficients)))
    )


def public_polynomial(parameters: LatticeParameters, seed: bytes, index: int) -> Residues:
    """The transform of a_j (primes, N), uniform: what follows from the round's public seed (32 bytes) and j.

    Modulo prime i of w bits: words of 64 bits, little-endian, from the stream of `seeded` under
    derived(seed, "public polynomial", j, i) (both 4 bytes); of each the low w bits, left out where not below the prime.
    """
    found = np.empty((len(parameters.primes), parameters.degree), np.uint64)
    for at, prime in enumerate(parameters.primes):
        draw = seeded(derived(seed, "public polynomial", index.to_bytes(4, "little"), at.to_bytes(4, "little")))
        mask, filled = np.uint64((1 << prime.bit_length()) - 1), 0
        while filled < parameters.degree:
            words = np.frombuffer(draw(8 * (parameters.degree - filled)), "<u8") & mask
            kept = words[words < np.uint64(prime)]
            found[at, filled : filled + kept.size] = kept
            filled += kept.size
    return found
