"""The exact law of a randomizer's reports, by driving the shipped `encode` through every choice it can make.

Whether a device lies is decided by one 64-bit word: the number of words that lie is found by bisection. All other
choices are uniform whole numbers, of which every sequence is played. A choice that is refused and drawn again (a value
taken already, the vector 0) leaves the law of the rest as it is, so those sequences are left out. That the numbers are
uniform is `subsets._draw_numbers`'s and NumPy's part; tests look at it.
"""

import itertools
from collections.abc import Iterator
from decimal import ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from tacit.audit.randomizer.likelihood import check_values
from tacit.audit.randomizer.supports import supports
from tacit.errors import InputError
from tacit.randomizers.projective_geometry import ProjectiveGeometryResponse
from tacit.randomizers.randomizer import Randomizer
from tacit.randomizers.subset_selection import SubsetSelection

MOST_CHOICES = 2_000_000  # sequences of one value: seconds
WORDS = 2**64

Law = dict[bytes, Fraction]
"""The probability of each report, by the bytes of its row."""


class ScriptedChoices:
    """What `encode` takes for a generator, and asks for whole numbers: it answers as the script says, in order."""

    bit_generator = None

    def __init__(self, *script: NDArray[Any]) -> None:
        self._script = [np.ascontiguousarray(each).reshape(-1) for each in script]

    def integers(
        self, low: int, high: int, size: Any = None, dtype: Any = np.int64, endpoint: bool = False
    ) -> NDArray[Any]:
        """The next numbers of the script; words of 0 where it is shorter than what is fetched ahead."""
        count = int(np.prod(size))
        part = self._script[0][:count]
        self._script[0] = self._script[0][count:]
        if not len(self._script[0]):
            del self._script[0]
        if len(part) and not low <= part.min() <= part.max() < high + endpoint:
            raise InputError(f"the script has {part.min()} to {part.max()}, and {low} to below {high} was asked for.")
        return np.concatenate([part, np.zeros(count - len(part), dtype)]).astype(dtype).reshape(size)


def exact_epsilon(randomizer: Randomizer) -> tuple[float, int]:
    """(the exact local epsilon of the shipped `encode`, rounded down; how many choices were played).

    The logarithm of the largest ratio of probabilities of one report under two values, all pairs; infinite where a
    report is impossible under one of them. Raises: InputError where there are more than MOST_CHOICES.
    """
    laws = [exact_law(randomizer, value) for value in range(randomizer.domain)]
    seen = set().union(*laws)
    worst, played = Fraction(1), randomizer.domain * choices(randomizer)
    for report in seen:
        chances = [law.get(report, Fraction(0)) for law in laws]
        if min(chances) == 0:
            return float("inf"), played
        worst = max(worst, max(chances) / min(chances))
    with localcontext() as context:
        context.prec, context.rounding = 60, ROUND_FLOOR
        logarithm = (Decimal(worst.numerator) / Decimal(worst.denominator)).ln()
        nearest = float(logarithm)
        return (nearest if Decimal(nearest) <= logarithm else float(np.nextafter(nearest, 0))), played


def exact_law(randomizer: Randomizer, value: int) -> Law:
    """The probability of every report of a device that holds the value, as exact fractions that sum to 1."""
    check_values(randomizer, value)
    if choices(randomizer) > MOST_CHOICES:
        raise InputError(
            f"{randomizer.name} over {randomizer.domain} values has {choices(randomizer):,} sequences of choices, and "
            f"{MOST_CHOICES:,} are played; take a smaller domain, or likelihood ratios (--reports)."
        )
    lie = Fraction(lying_words(randomizer, value), WORDS)
    law: Law = {}
    for chance, lies in (1 - lie, False), (lie, True):
        rows = _all_reports(randomizer, value, lies)
        found, counts = np.unique(rows, axis=0, return_counts=True)
        for row, count in zip(found, counts, strict=True):
            report = np.ascontiguousarray(row).tobytes()
            law[report] = law.get(report, Fraction(0)) + chance * int(count) / len(rows)
    return law


def lying_words(randomizer: Randomizer, value: int) -> int:
    """How many of the 2^64 words make a device with the value answer without it; by bisection, all else fixed.

    The device lies for words below a threshold; which it is is asked of `encode` alone.
    """
    low, high = 0, WORDS  # words below `low` lie, those from `high` on do not
    while low < high:
        middle = (low + high) // 2
        if _lies(randomizer, value, middle):
            low = middle + 1
        else:
            high = middle
    return low


def choices(randomizer: Randomizer) -> int:
    """How many sequences of choices a device that lies, or one that does not, has at most."""
    if isinstance(randomizer, ProjectiveGeometryResponse):
        space = randomizer.geometry
        return int((space.order - 1) * space.order**space.length)
    size = randomizer.size if isinstance(randomizer, SubsetSelection) else 1
    return int(np.prod(np.arange(randomizer.domain - size, randomizer.domain, dtype=object)))


def _lies(randomizer: Randomizer, value: int, word: int) -> bool:
    """Whether the device lies on this word: its report, with the first of all other choices, leaves the value out."""
    # One script that serves both ways: a set is longer where the device lies, and the vector 0 is no answer where not.
    first = next(_scripts(randomizer, value, lies=not isinstance(randomizer, ProjectiveGeometryResponse)))
    report = _encoded(randomizer, np.array([value]), np.array([word], np.uint64), *first)
    return not supports(randomizer, report, value)[0]


def _all_reports(randomizer: Randomizer, value: int, lies: bool) -> NDArray[Any]:
    """The report of every sequence of choices, a row each."""
    scripts = list(_scripts(randomizer, value, lies))
    own = np.full(len(scripts), value)
    words = np.full(len(scripts), 0 if lies else WORDS - 1, np.uint64)
    return _encoded(randomizer, own, words, *map(np.concatenate, zip(*scripts, strict=True)))


def _encoded(
    randomizer: Randomizer, own: NDArray[Any], words: NDArray[np.uint64], *choices: NDArray[Any]
) -> NDArray[Any]:
    if not isinstance(randomizer, ProjectiveGeometryResponse):
        halves = np.concatenate([choices[0], np.zeros(choices[0].size % 2, np.uint32)]).astype(np.uint32)
        choices = (halves.view(np.uint64),)
    script = cast(np.random.Generator, ScriptedChoices(words, *choices))
    return np.asarray(randomizer.encode(own, script))


def _scripts(randomizer: Randomizer, value: int, lies: bool) -> Iterator[tuple[NDArray[Any], ...]]:
    """Every sequence of choices that leads to a report without a second draw."""
    if isinstance(randomizer, ProjectiveGeometryResponse):
        yield from _vectors(randomizer, value, lies)
        return
    domain = randomizer.domain
    size = randomizer.size if isinstance(randomizer, SubsetSelection) else 1
    # The middle of the 2^32 numbers that become each value: Lemire's method refuses only the first few of them.
    half_of = np.array([((2 * item + 1) << 31) // domain for item in range(domain)], np.uint32)
    others = [item for item in range(domain) if item != value]
    for drawn in itertools.permutations(others, size if lies else size - 1):
        yield (half_of[list(drawn)],)


def _vectors(randomizer: ProjectiveGeometryResponse, value: int, lies: bool) -> Iterator[tuple[NDArray[Any], ...]]:
    """All products and vectors but those of which the vector 0 comes."""
    space = randomizer.geometry
    lead = int(np.argmax(space.vectors(np.array([value]))[0] != 0))
    own = space.vectors(np.array([value]))[0]
    for product in range(1, space.order):
        for drawn in itertools.product(range(space.order), repeat=space.length):
            rest = np.array(drawn)
            rest[lead] = 0
            if lies or rest.any() or (-(own * rest).sum()) % space.order:
                yield np.array([product]), np.array(drawn)
