"""Which values a report supports, where it does not depend on the value: what shuffled reports hide in.

A randomizer has two levels where report y has, under value x, the probability

    share * blanket(y) * (E if y supports x, else 1),    share = 1 / (1 + (E - 1) Pr_blanket[y supports x]),

E = e^eps0, with one law `blanket` for all values, and where two different values are supported together, under the
blanket, with a probability that does not depend on which they are. All randomizers here are of this kind: they differ
in what the blanket draws. How likely the blanket's report supports two values or one of them is all that the bound of
`local_shuffling.py` needs.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from tacit.privacy.local_projective_geometry import space_for
from tacit.privacy.local_subset_selection import SubsetNumbers, check_local


@dataclass(frozen=True)
class Supports:
    """What a report drawn from the blanket supports of two different values, and of a third beside them.

    `alone`: a given one of the two and not the other; `both`; `neither`. 2 alone + both + neither = 1. For the attack:
    of `alone`, the part without the third value (`lone`) and with it (`joined`); 0 and 0 where the domain has no third.
    """

    epsilon: float
    alone: float
    both: float
    neither: float
    lone: float
    joined: float

    @property
    def share(self) -> float:
        """The part of each report that does not depend on its value."""
        return 1 / (1 + math.expm1(self.epsilon) * (self.alone + self.both))

    @property
    def p(self) -> float:
        """The probability that a report supports its device's value."""
        return self.share * math.exp(self.epsilon) * (self.alone + self.both)

    @property
    def q(self) -> float:
        """The probability that a report supports any one given other value."""
        return self.share * (math.exp(self.epsilon) * self.both + self.alone)


def subset_selection(domain: int, epsilon: float) -> Supports:
    """A uniform set of the size that `SubsetNumbers` says. Source: Ye & Barg 2018, arXiv:1702.00610."""
    return _uniform_subset(domain, SubsetNumbers(domain, epsilon).size, epsilon)


def k_ary(domain: int, epsilon: float) -> Supports:
    """A uniform value. Source: Kairouz, Bonawitz & Ramage 2016, arXiv:1602.07387."""
    return _uniform_subset(domain, 1, epsilon)


def projective_geometry(domain: int, epsilon: float) -> Supports:
    """A uniform point, which supports the points orthogonal to it. Source: Feldman et al. 2022, arXiv:2203.00194.

    The attack takes the first three points of the domain, which lie on a line: a point orthogonal to two of them is
    orthogonal to the third. Over two elements they do not, and are independent.
    """
    check_local(domain, epsilon)
    space = space_for(domain, epsilon)
    points, own, both = space.points, space.in_hyperplane, space.in_two_hyperplanes
    joined = both - space.orthogonal_to(3) if space.order == 2 else 0
    return Supports(
        epsilon=epsilon,
        alone=(own - both) / points,
        both=both / points,
        neither=(points - 2 * own + both) / points,
        lone=(own - both - joined) / points if domain > 2 else 0.0,
        joined=joined / points if domain > 2 else 0.0,
    )


def unary(domain: int, epsilon: float) -> Supports:
    """Optimised unary encoding: a bit for each value, the own one set with probability 1/2, others with 1/(E + 1).

    Source: Wang, Blocki, Li & Jha 2017, "Locally differentially private protocols for frequency estimation".
    """
    check_local(domain, epsilon)
    return _independent_bits(domain, 1 / (math.exp(epsilon) + 1), epsilon)


def rappor(domain: int, epsilon: float) -> Supports:
    """Basic one-time RAPPOR: a bit for each value, set for the own one only, each flipped with 1/(e^(eps/2) + 1).

    Source: Erlingsson, Pihur & Korolova 2014, arXiv:1407.6981, Section 3.2.
    """
    check_local(domain, epsilon)
    return _independent_bits(domain, 1 / (math.exp(epsilon / 2) + 1), epsilon)


# By name. A line here vouches that the randomizer has the two levels above, with these probabilities.
SUPPORTS: dict[str, Callable[[int, float], Supports]] = {
    "subset-selection": subset_selection,
    "projective-geometry": projective_geometry,
    "k-ary": k_ary,
    "unary": unary,
    "rappor": rappor,
}


def _uniform_subset(domain: int, size: int, epsilon: float) -> Supports:
    check_local(domain, epsilon)
    d, w = domain, size
    pairs, thirds = d * (d - 1), max(d - 2, 1)
    alone = w * (d - w) / pairs
    return Supports(
        epsilon=epsilon,
        alone=alone,
        both=w * (w - 1) / pairs,
        neither=(d - w) * (d - w - 1) / pairs,
        lone=alone * (d - w - 1) / thirds if d > 2 else 0.0,
        joined=alone * (w - 1) / thirds if d > 2 else 0.0,
    )


def _independent_bits(domain: int, q: float, epsilon: float) -> Supports:
    """Bits that are set with probability q where they are not the own value's."""
    alone = q * (1 - q)
    return Supports(
        epsilon=epsilon,
        alone=alone,
        both=q**2,
        neither=(1 - q) ** 2,
        lone=alone * (1 - q) if domain > 2 else 0.0,
        joined=alone * q if domain > 2 else 0.0,
    )
