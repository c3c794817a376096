"""Whole numbers of a discrete Gaussian, from a table of its distribution to 128 bits.

The discrete Gaussian of width sigma takes x with probability proportional to exp(-x^2 / (2 sigma^2)): its standard
deviation is sigma (to 10^-300 for the width used here). A uniform word u of 128 bits is compared with every threshold
floor(2^128 P(X <= x)): the number is the first x whose threshold is above u. Thresholds are computed in exact decimal
arithmetic of 80 digits, so the distribution is the true one to a statistical distance of 2^-119 a number, what lies
beyond TAIL counted. No branch depends on a number (but Python and its compiler promise nothing about time).
"""

from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache

import numpy as np
import numpy.typing as npt

from tacit.compiled import compiled
from tacit.secure_aggregation.secrets import Draw

WIDTH = Fraction(13, 2)  # sigma of keys and errors; `lattice` says why
TAIL = 88  # 13.5 sigma, beyond which lies less than 2^-130
BITS = 128
WORD_BYTES = BITS // 8

Words = npt.NDArray[np.uint64]


def thresholds(width: Fraction = WIDTH, tail: int = TAIL) -> list[int]:
    """floor(2^128 P(X <= x)) for x = -tail, ..., tail - 1; at or above the last, X = tail."""
    with localcontext() as context:
        context.prec = 80
        scale = Decimal(width.denominator**2) / Decimal(2 * width.numerator**2)
        masses = [(-(Decimal(x * x) * scale)).exp() for x in range(-tail, tail + 1)]
        total, below, found = sum(masses), Decimal(0), []
        for mass in masses[:-1]:
            below += mass
            found.append(int(below / total * 2**BITS))
    return found


@cache
def _table() -> tuple[Words, Words]:
    """The thresholds' high and low words."""
    split = [divmod(each, 1 << 64) for each in thresholds()]
    high, low = zip(*split, strict=True)
    return np.array(high, np.uint64), np.array(low, np.uint64)


def sample(count: int, draw: Draw) -> npt.NDArray[np.int64]:
    """Numbers (count,) of the discrete Gaussian of width WIDTH, from 16 random bytes each."""
    words = np.frombuffer(draw(WORD_BYTES * count), "<u8").reshape(count, 2)
    return _sample(words, *_table())


@compiled
def _sample(words: Words, high: Words, low: Words) -> npt.NDArray[np.int64]:
    found = np.empty(words.shape[0], np.int64)
    for at in range(found.size):
        upper, lower, passed = words[at, 1], words[at, 0], np.int64(0)
        for x in range(high.size):
            passed += np.int64((upper > high[x]) | ((upper == high[x]) & (lower >= low[x])))
        found[at] = passed - TAIL
    return found
