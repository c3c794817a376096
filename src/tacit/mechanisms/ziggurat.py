"""Standard normal numbers from random words: Marsaglia and Tsang's ziggurat, a whole array at a time.

Sources: Marsaglia and Tsang 2000 (Journal of Statistical Software 5:8); Doornik 2005, whose advice it follows to let no
bit serve both strip and place. The half bell f(x) = exp(-x^2/2), x >= 0, is covered by 256 strips of equal area V:
strip i >= 1 is as wide as x_i and lies between the heights f(x_i) and f(x_(i+1)), strip 0 is the rest below f(x_1) with
the tail. A word chooses a strip and a place in it; where the place is nearer than x_(i+1) it lies under the bell, which
it does 99 times out of 100, and there is nothing more to do. The loop over the others is compiled without a branch that
matters: a third of the time of NumPy's own ziggurat, half of which is the generator's.
"""

import math

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from tacit.compiled import compiled

STRIPS = 256
EDGE = 3.6541528853610088  # x_1 for 256 strips: Doornik 2005, Table 1
TAIL = 0.5 * math.erfc(EDGE / math.sqrt(2.0))  # the probability above it


def _edges() -> npt.NDArray[np.float64]:
    """x_0 ... x_256: x_0 is the width of a rectangle of height f(x_1) that is as large as strip 0."""
    bell = math.exp(-0.5 * EDGE * EDGE)
    area = EDGE * bell + TAIL * math.sqrt(2.0 * math.pi)
    edges = [area / bell, EDGE]
    while len(edges) < STRIPS:
        edges.append(math.sqrt(-2.0 * math.log(area / edges[-1] + math.exp(-0.5 * edges[-1] ** 2))))
    return np.array([*edges, 0.0])


EDGES = _edges()
WIDTHS = (EDGES[:-1] * 2.0**-31).astype(np.float32)  # of a strip, for a signed word
INNER = EDGES[1:].astype(np.float32)  # how far a strip lies under the bell for certain
FLOOR = np.exp(-0.5 * EDGES[:-1] ** 2)
RISE = np.exp(-0.5 * EDGES[1:] ** 2) - FLOOR
FLOOR[0], RISE[0] = -1.0, 0.0  # what is beyond the edge of strip 0 is the tail's: nothing there is above the bell


class Ziggurat:
    """Fills arrays of one size with standard normal float32, as a pure function of where the generator stands."""

    def __init__(self, size: int) -> None:
        """`size`, even: the numbers to fill at a time."""
        self._at = np.empty(size, np.intp)
        self._strip = np.empty(size, np.intp)

    def fill(self, generator: np.random.Generator, numbers: npt.NDArray[np.float32]) -> None:
        """Standard normal numbers (size,), from half as many 64-bit words and some for those outside.

        All that is done to a number is exact or rounded as IEEE says, but for exp, log and sqrt where it is outside.
        """
        words = np.asarray(generator.bit_generator.random_raw(len(numbers) // 2)).view(np.uint32)
        outside = _place(words, WIDTHS, INNER, numbers, self._at, self._strip)
        at, strip = self._at[:outside], self._strip[:outside]
        numbers[at] = _outside(generator, strip, numbers[at].astype(np.float64))


@compiled
def _place(
    words: npt.NDArray[np.uint32],
    widths: npt.NDArray[np.float32],
    inner: npt.NDArray[np.float32],
    numbers: npt.NDArray[np.float32],
    at: npt.NDArray[np.intp],
    strips: npt.NDArray[np.intp],
) -> int:
    """Each word's strip and place; how many are not under the bell for certain, where they are and in which strip."""
    outside = 0
    for index in range(words.size):
        word = words[index]
        strip = word & np.uint32(0xFF)  # the low byte
        # An odd multiple of 128: exact in float32, and never zero.
        place = np.float32(np.int32((word & np.uint32(0xFFFFFF00)) | np.uint32(0x80))) * widths[strip]
        numbers[index] = place
        if abs(place) >= inner[strip]:
            at[outside] = index
            strips[outside] = strip
            outside += 1
    return outside


def _outside(
    generator: np.random.Generator, strip: npt.NDArray[np.intp], place: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """What becomes of places that are not under the bell for certain.

    Under the bell after all, by a height drawn in the strip: they stay. Above it: begun again, with NumPy's ziggurat.
    Beyond the edge of strip 0: a number of the tail, by its inverse distribution function.
    """
    uniform = 1.0 - generator.random(len(place))  # (0, 1]
    above = np.flatnonzero(FLOOR[strip] + uniform * RISE[strip] >= np.exp(-0.5 * place * place))
    tail = np.flatnonzero(strip == 0)
    place[tail] = np.copysign(ndtri(TAIL * uniform[tail]), place[tail])
    place[above] = generator.standard_normal(len(above), dtype=np.float32)
    return place
