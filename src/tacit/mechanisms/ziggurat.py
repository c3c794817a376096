"""Standard normal numbers from random words: Marsaglia and Tsang's ziggurat, a whole array at a time.

Sources: Marsaglia and Tsang 2000 (Journal of Statistical Software 5:8); Doornik 2005, whose advice it follows to let no
bit serve both strip and place. The half bell f(x) = exp(-x^2/2), x >= 0, is covered by 256 strips of equal area V:
strip i >= 1 is as wide as x_i and lies between the heights f(x_i) and f(x_(i+1)), strip 0 is the rest below f(x_1) with
the tail. A word chooses a strip (8 bits) and a place in it (56 bits, signed); where the place is nearer than x_(i+1) it
lies under the bell, which it does 99 times out of 100, and there is nothing more to do.

Every number is a uniform place in a slab: a strip, or, beyond strip 0, one of the slabs into which the tail is cut. So
a number stands for an interval of the real line that is known exactly (`exact_interval`), and its law is that of the
bell to a relative error of 2^-44 (docs/floating-point.md). The bits depend on nobody's generator of normal numbers;
exp is the only function that is not a correctly rounded operation, and decides only whether a place is taken.
"""

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from tacit.compiled import compiled

Words = npt.NDArray[np.uint64]
FloatArray = npt.NDArray[np.float64]
Places = npt.NDArray[np.intp]

STRIPS = 256
EDGE = 3.6541528853610088  # x_1 for 256 strips: Doornik 2005, Table 1
TAIL = 0.5 * math.erfc(EDGE / math.sqrt(2.0))  # the probability above it
SLAB = math.log(2.0) / EDGE  # the tail is cut so that the bell falls by half from one slab to the next, or by more
NEEDED = 3  # spare words that the next attempt may take


def _edges() -> FloatArray:
    """x_0 ... x_256: x_0 is the width of a rectangle of height f(x_1) that is as large as strip 0."""
    bell = math.exp(-0.5 * EDGE * EDGE)
    area = EDGE * bell + TAIL * math.sqrt(2.0 * math.pi)
    edges = [area / bell, EDGE]
    while len(edges) < STRIPS:
        edges.append(math.sqrt(-2.0 * math.log(area / edges[-1] + math.exp(-0.5 * edges[-1] ** 2))))
    return np.array([*edges, 0.0])


EDGES = _edges()
UNITS = EDGES[:-1] * 2.0**-63  # the width of a strip for a signed word, exactly
INNER = EDGES[1:].copy()  # how far a strip lies under the bell for certain
FLOOR = np.exp(-0.5 * EDGES[:-1] ** 2)
RISE = np.exp(-0.5 * EDGES[1:] ** 2) - FLOOR


@compiled
def place(words: Words, numbers: FloatArray, at: Places, strips: Places) -> int:
    """Each word's place in its strip; how many are not under the bell for certain, where and in which strip."""
    outside = 0
    for index in range(numbers.size):
        word = words[index]
        strip = word & np.uint64(0xFF)
        # The middle of the 2^-55th part of the strip that the word has chosen: never zero.
        number = np.float64(np.int64((word & np.uint64(0xFFFFFFFFFFFFFF00)) | np.uint64(0x80))) * UNITS[strip]
        numbers[index] = number
        if abs(number) >= INNER[strip]:
            at[outside] = index
            strips[outside] = strip
            outside += 1
    return outside


@compiled
def settle(
    words: Words, numbers: FloatArray, at: Places, strips: Places, first: int, outside: int, spare: Words, used: int
) -> tuple[int, int]:
    """What becomes of the places that are not under the bell for certain, from the `first` of them on.

    Under the bell after all, by a height drawn in the strip: they stay. Above it: begun again with a new word. Beyond
    the edge of strip 0: a place in the tail. `words` and `strips` then say what was taken, slab k of the tail being
    strip 256 + k. Returns (settled, spare words used); fewer than `outside` when the spare words run out.
    """
    for which in range(first, outside):
        while True:
            if spare.size - used < NEEDED:
                return which, used
            number, strip = numbers[at[which]], strips[which]
            if strip == 0:
                # Slab k with probability 2^-(k+1), by the zeros at the end of a word; then Marsaglia's rejection.
                slab = 0
                while slab < 63 and (spare[used] >> np.uint64(slab)) & np.uint64(1) == 0:
                    slab += 1
                word, height = spare[used + 1], np.float64(spare[used + 2] >> np.uint64(11)) * 2.0**-53
                used += 3
                share = np.float64((word >> np.uint64(8)) | np.uint64(1)) * 2.0**-56
                beyond = (slab + share) * SLAB
                if height < math.exp(slab * math.log(2.0) - EDGE * beyond - 0.5 * beyond * beyond):
                    words[at[which]] = (word >> np.uint64(9)) | (np.uint64(number < 0) << np.uint64(63))
                    strips[which] = STRIPS + slab
                    numbers[at[which]] = math.copysign(EDGE + beyond, number)
                    break
                continue
            height = np.float64(spare[used] >> np.uint64(11)) * 2.0**-53
            if FLOOR[strip] + height * RISE[strip] < math.exp(-0.5 * number * number):
                used += 1
                break
            word = spare[used + 1]
            used += 2
            strip = np.intp(word & np.uint64(0xFF))
            number = np.float64(np.int64((word & np.uint64(0xFFFFFFFFFFFFFF00)) | np.uint64(0x80))) * UNITS[strip]
            words[at[which]], strips[which], numbers[at[which]] = word, strip, number
            if abs(number) < INNER[strip]:
                break
    return outside, used


def exact_interval(word: int, strip: int) -> tuple[Fraction, Fraction]:
    """(low, width): a settled word stands for the numbers low + u width, 0 <= u < 1, u being bits not drawn yet."""
    if strip < STRIPS:
        signed = (word >> 8) - ((word >> 63) << 56)
        width = Fraction(float(EDGES[strip])) / 2**55
        return signed * width, width
    width = Fraction(SLAB) / 2**55
    low = Fraction(EDGE) + (strip - STRIPS) * Fraction(SLAB) + (word & (2**55 - 1)) * width
    return (-low - width, width) if word >> 63 else (low, width)
