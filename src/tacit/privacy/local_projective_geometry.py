"""Projective spaces: how many points, in how many hyperplanes, and which space answers which question.

In the one place that the device's code and the accounting both read it from.
Source: Feldman, Nelson, Nguyen & Talwar 2022, "Private frequency estimation via projective geometry",
arXiv:2203.00194. Fields of prime order only: a power of a prime would be nearer to e^eps + 1 for a few epsilons near
1 and 2, and lower the variance by 3 percent there at most.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import exp

from tacit.errors import InputError

MOST_POINTS = 2**26  # the server counts reports point by point: half a gigabyte
WORTH_A_BIT = 1.01  # a smaller space is taken when its variance is within 1 percent of the best


@dataclass(frozen=True)
class ProjectiveSpace:
    """The projective space over the field of `order` elements (a prime) whose points have `length` coordinates."""

    order: int
    length: int

    @property
    def points(self) -> int:
        """(q^t - 1) / (q - 1)."""
        return self.orthogonal_to(0)

    @property
    def in_hyperplane(self) -> int:
        """Points orthogonal to one point: (q^(t-1) - 1) / (q - 1)."""
        return self.orthogonal_to(1)

    @property
    def in_two_hyperplanes(self) -> int:
        """Points orthogonal to two different points: (q^(t-2) - 1) / (q - 1)."""
        return self.orthogonal_to(2)

    def orthogonal_to(self, independent: int) -> int:
        """Points orthogonal to so many linearly independent ones, 0 where there are no more coordinates."""
        left = max(self.length - independent, 0)
        return int((self.order**left - 1) // (self.order - 1))


@lru_cache(maxsize=64)
def space_for(domain: int, epsilon: float) -> ProjectiveSpace:
    """The space with at least `domain` points whose reports have the least variance, or nearly, in fewer bits."""
    candidates = []
    for length in range(2, 2 + domain.bit_length()):
        least = _smallest(length, domain)
        most = _smallest(length, MOST_POINTS + 1) - 1
        wanted = min(max(round(exp(epsilon)) + 1, least), most)
        for order in (_prime_from(least, 1), _prime_from(wanted, 1), _prime_from(wanted, -1)):
            if least <= order <= most:
                candidates.append(ProjectiveSpace(order, length))
    scored = [(rare_variance(space, epsilon), space) for space in candidates]
    if not scored:
        raise InputError(f"domain={domain} needs a space of more than {MOST_POINTS} points: take Subset Selection.")
    best = min(score for score, _ in scored)
    return min((space for score, space in scored if score <= WORTH_A_BIT * best), key=lambda space: space.points)


def support_probabilities(space: ProjectiveSpace, epsilon: float) -> tuple[float, float]:
    """(1 - p, q): the probability that a report leaves its own value out, and that it supports a given other one."""
    own, both = space.in_hyperplane, space.in_two_hyperplanes
    total = own * exp(epsilon) + space.points - own
    return (space.points - own) / total, (both * exp(epsilon) + own - both) / total


def rare_variance(space: ProjectiveSpace, epsilon: float) -> float:
    """Variance that one report adds to the estimate of a value nobody holds."""
    lie, other = support_probabilities(space, epsilon)
    return other * (1 - other) / (1 - lie - other) ** 2


def _smallest(length: int, points: int) -> int:
    """The smallest order whose space has that many points."""
    order = max(2, int(points ** (1 / (length - 1))) - 2)
    while sum(order**power for power in range(length)) < points:
        order += 1
    return order


def _prime_from(number: int, step: int) -> int:
    """The nearest prime at or after (step 1) or before (step -1) a number; 2 is the smallest."""
    number = max(number, 2)
    while any(number % divisor == 0 for divisor in range(2, int(number**0.5) + 1)):
        number += step
    return number
