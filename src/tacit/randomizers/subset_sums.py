"""The sum of many uniform subsets, drawn at once: halves of the domain, halves of the halves, down to single values.

Only one thing about a device matters on the way down: how many values of its subset lie in the range at hand. All
devices with the same number are alike, so a range keeps a histogram (how many devices have 0, 1, 2, ... values in
it), and a split moves each class into the two halves by one multinomial draw of the hypergeometric law.

A device whose subset leaves out its own value is an insider of the ranges that hold the value (one place less to
choose from there) and an outsider of all others. Insiders of one range differ only in where in it their values are;
until that is asked they are exchangeable, so who goes left is a hypergeometric draw from the histogram.

Source: exchangeability; the law is exact up to the rounding of double precision. The cost does not depend on the
number of devices, only on the domain and, through the width of the histograms, on the size of the subsets.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

MOST_DEVICES = 10**9 - 1  # NumPy's hypergeometric draws stop here
NEGLIGIBLE = 1e-30  # hypergeometric probabilities below this share of the largest are left out


@dataclass(frozen=True)
class Ranges:
    """Ranges of values of one level, in order: how long, and per range the devices with 0, 1, 2, ... values in it.

    outsiders, insiders: (ranges, classes). Lengths differ by one at most.
    """

    lengths: Numbers
    outsiders: Numbers
    insiders: Numbers


def sum_of_subsets(owners: Numbers, size: int, others: int, other_size: int, generator: np.random.Generator) -> Numbers:
    """How often each value is in one of the subsets, (domain,) int64.

    owners[x] devices draw `size` values uniformly from all but x; `others` devices draw `other_size` values uniformly
    from all. At most `MOST_DEVICES` devices.
    """
    domain = owners.size
    classes = max(size, other_size) + 1
    outsiders, insiders = np.zeros((2, 1, classes), np.int64)
    outsiders[0, other_size] = others
    insiders[0, size] = owners.sum()
    level = Ranges(np.array([domain]), outsiders, insiders)
    before = np.concatenate(([0], np.cumsum(owners)))  # devices whose own value comes before each value
    while level.lengths.max() > 1:
        level = _halved(level, before, generator)
    return level.outsiders[:, 1] if level.outsiders.shape[1] > 1 else np.zeros(domain, np.int64)


def _halved(level: Ranges, before: Numbers, generator: np.random.Generator) -> Ranges:
    """The next level: every range in two, those of one value as they are."""
    lengths = level.lengths
    left, right = (lengths + 1) // 2, lengths // 2
    starts = np.concatenate(([0], np.cumsum(lengths)[:-1]))
    go_left = before[starts + left] - before[starts]
    width = min(level.outsiders.shape[1], int(left.max()) + 1)
    # Places 0, 1 of axis 1 are the left and the right half.
    outsiders = np.zeros((lengths.size, 2, width), np.int64)
    insiders = np.zeros((lengths.size, 2, width), np.int64)
    for length in np.unique(lengths):
        rows = np.flatnonzero(lengths == length)
        if length == 1:
            outsiders[rows, 0, :2] = level.outsiders[rows, :2]
            continue
        a, b = (int(length) + 1) // 2, int(length) // 2
        leaving = _chosen(level.insiders[rows], go_left[rows], generator)
        _split(level.outsiders[rows], a, b, rows, outsiders[:, 0], outsiders[:, 1], generator)
        _split(leaving, a - 1, b, rows, insiders[:, 0], outsiders[:, 1], generator)
        _split(level.insiders[rows] - leaving, a, b - 1, rows, outsiders[:, 0], insiders[:, 1], generator)
    kept = np.stack([np.ones_like(right, bool), right > 0], axis=1)
    return Ranges(np.stack([left, right], axis=1)[kept], outsiders[kept], insiders[kept])


def _chosen(histograms: Numbers, chosen: Numbers, generator: np.random.Generator) -> Numbers:
    """How many of each class are among `chosen` devices picked uniformly, row by row."""
    out = np.zeros_like(histograms)
    rest, wanted = histograms.sum(axis=1), chosen.copy()
    for number in np.flatnonzero(histograms.any(axis=0)):
        here = histograms[:, number]
        rest = rest - here
        out[:, number] = generator.hypergeometric(here, rest, wanted)
        wanted = wanted - out[:, number]
    return out


def _split(
    histograms: Numbers,
    a: int,
    b: int,
    rows: Numbers,
    left: Numbers,
    right: Numbers,
    generator: np.random.Generator,
) -> None:
    """Adds every class of each row, split over `a` places on the left and `b` on the right, into left and right."""
    for number in np.flatnonzero(histograms.any(axis=0)):
        some = np.flatnonzero(histograms[:, number])
        lowest, law = _hypergeometric(a, b, int(number))
        drawn = generator.multinomial(histograms[some, number], law)
        highest = lowest + law.size - 1
        left[rows[some], lowest : highest + 1] += drawn
        right[rows[some], number - highest : number - lowest + 1] += drawn[:, ::-1]


def _hypergeometric(a: int, b: int, chosen: int) -> tuple[int, FloatArray]:
    """Probabilities that of `chosen` out of a + b places lowest, lowest + 1, ... are among the `a`.

    Ratios of neighbours, multiplied outwards from the most likely number: relative error about 1e-16 a step.
    """
    least, most = max(0, chosen - b), min(a, chosen)
    mode = min(max((chosen + 1) * (a + 1) // (a + b + 2), least), most)
    deviation = np.sqrt(chosen * a / (a + b) * max(b, 1) / (a + b)) if a + b else 0.0
    reach = int(14 * deviation) + 80  # e^(-14^2 / 2) is below NEGLIGIBLE; where a normal law is far off, 80 steps are
    up = np.arange(mode, min(most, mode + reach), dtype=np.float64)
    down = np.arange(mode, max(least, mode - reach), -1, dtype=np.float64)
    above = np.cumprod((a - up) * (chosen - up) / ((up + 1) * (b - chosen + up + 1)))
    below = np.cumprod(down * (b - chosen + down) / ((a - down + 1) * (chosen - down + 1)))
    law = np.concatenate((below[::-1], [1.0], above))
    kept = np.flatnonzero(law > NEGLIGIBLE)
    law = law[kept[0] : kept[-1] + 1]
    return mode - below.size + int(kept[0]), law / law.sum()
