"""A lower bound on the local epsilon of a randomizer of any size, from reports that it made.

The reports that support the value x and not y are e^epsilon times likelier under x than under y, of every randomizer
with two levels of probability: no test shows more. So their two rates, bounded by Clopper and Pearson, are the audit.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from tacit.audit.randomizer.supports import supports
from tacit.errors import InputError
from tacit.privacy.empirical.error_rates import epsilon_shown, rate_at_most
from tacit.privacy.empirical.samples import error_of
from tacit.randomizers.randomizer import Randomizer

PILOT, MOST_REPORTS = 50_000, 60_000_000
AT_ONCE = 1 << 20  # reports held at a time


@dataclass(frozen=True)
class Shown:
    """`lower` is at most the true local epsilon with the confidence; `estimate` promises nothing."""

    lower: float
    estimate: float


def epsilon_of_reports(
    randomizer: Randomizer,
    reports: int,
    generator: np.random.Generator,
    *,
    values: tuple[int, int] = (0, 1),
    confidence: float = 0.95,
) -> Shown:
    """From so many reports of each of two values, made by the shipped `encode`. Replace-one adjacency, one report.

    Raises: InputError for fewer reports than 10, or values outside the domain.
    """
    if reports < 10:
        raise InputError(f"reports={reports} show nothing; make 10 or more of each value, a million for 1%.")
    check_values(randomizer, *values)
    x, y = values
    present, absent = (_seen(randomizer, own, reports, x, y, generator) for own in values)
    each = error_of(confidence) / 2
    fpr, fnr = rate_at_most(absent, reports, each), rate_at_most(reports - present, reports, each)
    estimate = float(np.log(max(present, 1) / max(absent, 1)))
    return Shown(float(epsilon_shown(fpr, fnr, 0.0)), estimate)


def _seen(randomizer: Randomizer, own: int, reports: int, x: int, y: int, generator: np.random.Generator) -> int:
    sizes = [min(AT_ONCE, reports - begin) for begin in range(0, reports, AT_ONCE)]
    return sum(int(tells_apart(randomizer, randomizer.encode(np.full(n, own), generator), x, y).sum()) for n in sizes)


def reports_within(randomizer: Randomizer, share: float, *, confidence: float, values: tuple[int, int] = (0, 1)) -> int:
    """How many reports of each value bring the bound to within a share of epsilon, nearly; at most MOST_REPORTS.

    The logarithm of a rate r of n reports is known to z / sqrt(n r), of both rates, one of which is e^epsilon of the
    other. That one, how often a report of y supports x and not y, comes from PILOT reports that judge nothing.
    """
    check_values(randomizer, *values)
    x, y = values
    pilot = randomizer.encode(np.full(PILOT, y), np.random.default_rng(0))
    rate = (tells_apart(randomizer, pilot, x, y).sum() + 1) / PILOT
    z = -float(ndtri(error_of(confidence) / 2))
    both = z * (1 + math.exp(-randomizer.epsilon / 2)) / (share * randomizer.epsilon)
    return int(min(max(both**2 / rate, 10), MOST_REPORTS))


def tells_apart(randomizer: Randomizer, reports: NDArray[Any], x: int, y: int) -> NDArray[np.bool_]:
    """Which reports support x and not y: (devices,)."""
    return supports(randomizer, reports, x) & ~supports(randomizer, reports, y)


def check_values(randomizer: Randomizer, *values: int) -> None:
    """Raises: InputError unless all are in the domain, and no two alike."""
    for value in values:
        if not 0 <= value < randomizer.domain:
            raise InputError(f"the value {value} is outside 0..{randomizer.domain - 1}; audit values of the domain.")
    if len(set(values)) < len(values):
        raise InputError(f"values={values} are alike, and nothing tells them apart; give two different ones.")
