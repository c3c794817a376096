"""The votes of many simulated devices at once, drawn from the joint law of their reports; a device makes its own."""

from functools import singledispatch

import numpy as np

from tacit.errors import InputError
from tacit.randomizers.k_ary import KaryRandomizedResponse
from tacit.randomizers.projective_geometry import AT_ONCE, ProjectiveGeometryResponse
from tacit.randomizers.randomizer import Randomizer
from tacit.randomizers.subset_selection import SubsetSelection
from tacit.randomizers.subset_sums import MOST_DEVICES, sum_of_subsets
from tacit.randomizers.subsets import Numbers

SIMULATED = 1 << 22  # numbers of reports held at a time where votes are simulated report by report


@singledispatch
def sample_votes(randomizer: Randomizer, holders: Numbers, generator: np.random.Generator) -> Numbers:
    """The votes of sum(holders) devices, holders[x] of them with value x: a draw from the joint law, (domain,).

    Of any randomizer, by making every report; a class whose law can be drawn at once registers how.
    """
    held = checked_holders(holders, randomizer.domain)
    return randomizer.votes(randomizer.encode(np.repeat(np.arange(randomizer.domain), held), generator))


@sample_votes.register
def _(randomizer: KaryRandomizedResponse, holders: Numbers, generator: np.random.Generator) -> Numbers:
    """A report is uniform with probability d * q, and otherwise the own value: exactly the law of `encode`."""
    held = checked_holders(holders, randomizer.domain)
    forced = generator.binomial(held, 1 - randomizer.domain * randomizer.q)
    rest = int(held.sum() - forced.sum())
    return forced + generator.multinomial(rest, np.full(randomizer.domain, 1 / randomizer.domain))


@sample_votes.register
def _(randomizer: ProjectiveGeometryResponse, holders: Numbers, generator: np.random.Generator) -> Numbers:
    """A report is a uniform point with probability 1 - g, and otherwise uniform in the own hyperplane. The first
    kind is drawn at once, the second a million at a time; only how often each point came is kept.
    """
    held = checked_holders(holders, randomizer.domain)
    points, share = randomizer.geometry.points, randomizer.geometry.in_hyperplane / randomizer.geometry.points
    forced = generator.binomial(held, (randomizer.p - share) / (1 - share))
    counts = generator.multinomial(int(held.sum() - forced.sum()), np.full(points, 1 / points))
    ends = np.cumsum(forced)
    for start in range(0, int(ends[-1]), AT_ONCE):
        mine = np.searchsorted(ends, np.arange(start, min(start + AT_ONCE, ends[-1])), side="right")
        counts += np.bincount(randomizer.drawn_points(mine, np.zeros(mine.size, bool), generator), minlength=points)
    return randomizer.votes_of_counts(counts)


@sample_votes.register
def _(randomizer: SubsetSelection, holders: Numbers, generator: np.random.Generator) -> Numbers:
    """A report is a uniform subset with probability 1 - g, and otherwise the own value with a uniform subset of the
    others, where p = (1 - g) size / d + g. `subset_sums.py` draws the sum of all these subsets at once. Few
    reports are made one by one instead, which is then faster. InputError from 10**9 devices on.
    """
    held = checked_holders(holders, randomizer.domain)
    devices = int(held.sum())
    if devices * randomizer.size <= SIMULATED:
        return randomizer.votes(randomizer.encode(np.repeat(np.arange(randomizer.domain), held), generator))
    if devices > MOST_DEVICES:
        raise InputError(f"{devices} devices are more than the {MOST_DEVICES} that can be drawn at once: split.")
    share = randomizer.size / randomizer.domain
    forced = generator.binomial(held, (randomizer.p - share) / (1 - share))
    rest = sum_of_subsets(forced, randomizer.size - 1, devices - int(forced.sum()), randomizer.size, generator)
    return forced + rest


def checked_holders(holders: Numbers, domain: int) -> Numbers:
    """Holders as sample_votes takes them: how many devices hold each value."""
    array = np.asarray(holders)
    if array.shape != (domain,) or not np.issubdtype(array.dtype, np.integer):
        raise InputError(f"holders of shape {array.shape} and type {array.dtype} are not {domain} whole numbers.")
    if array.min() < 0:
        raise InputError(f"{int(array.min())} devices cannot hold a value: holders are counts, 0 or more.")
    return np.ascontiguousarray(array, np.int64)
