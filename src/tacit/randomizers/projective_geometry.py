"""A report of two dozen bits with the error of Subset Selection: points and hyperplanes of a projective space.

Values are points x of the projective space of dimension t - 1 over the field of q elements. A report is a point y,
and supports every x with <x, y> = 0: a share of about 1/q of all values, so that q is chosen near e^eps + 1. Any two
hyperplanes meet in equally many points, which makes the estimate unbiased whatever the other devices hold.

Source: Feldman, Nelson, Nguyen & Talwar 2022, "Private frequency estimation via projective geometry",
arXiv:2203.00194. Which space is taken, and how many of its points are in how many hyperplanes, is in
`privacy/local_projective_geometry.py`.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tacit.compiled import compiled
from tacit.errors import InputError
from tacit.privacy.local_projective_geometry import ProjectiveSpace, space_for, support_probabilities
from tacit.randomizers.randomizer import Randomizer, Reports, checked_values, lies
from tacit.randomizers.subsets import Numbers

AT_ONCE = 1 << 20  # reports whose coordinates are held at a time


@dataclass(frozen=True)
class Geometry(ProjectiveSpace):
    """A projective space with its points' coordinates.

    Points are numbered by their canonical vector, the one whose first coordinate that is not 0 is 1: first those with
    a 1 in front, by the digits after it, then those with 0, 1 in front, and so on; the last is (0, ..., 0, 1).
    """

    order: int
    length: int

    @cached_property
    def inverses(self) -> Numbers:
        """1/a modulo the order in place a, (order,); 0 in place 0."""
        inverse = np.zeros(self.order, np.int64)
        inverse[1] = 1
        _fill_inverses(inverse)
        return inverse

    @cached_property
    def _starts(self) -> Numbers:
        """The number of the first point with its leading 1 in each coordinate, then the number of points."""
        blocks = self.order ** np.arange(self.length - 1, -1, -1, dtype=np.int64)
        return np.concatenate((np.zeros(1, np.int64), np.cumsum(blocks)))

    def vectors(self, numbers: Numbers) -> Numbers:
        """The canonical vectors of points, (n, length)."""
        lead = np.searchsorted(self._starts, numbers, side="right") - 1
        rest = numbers - self._starts[lead]
        out = np.empty((numbers.size, self.length), np.int64)
        for place in range(self.length - 1, -1, -1):
            rest, out[:, place] = np.divmod(rest, self.order)
        out[np.arange(numbers.size), lead] = 1
        return out

    def numbers(self, vectors: Numbers) -> Numbers:
        """The points that vectors other than 0 lie on, (n,)."""
        lead = np.argmax(vectors != 0, axis=1)
        scale = self.inverses[vectors[np.arange(len(vectors)), lead]]
        number = np.zeros(len(vectors), np.int64)
        for place in range(self.length):
            digit = vectors[:, place] * scale % self.order
            number = number * self.order + np.where(place > lead, digit, 0)
        return np.asarray(number + self._starts[lead], np.int64)


def geometry_for(domain: int, epsilon: float) -> Geometry:
    """The space of `space_for`, with coordinates. InputError for a domain that no space is large enough for."""
    space = space_for(domain, epsilon)
    return Geometry(space.order, space.length)


@dataclass(frozen=True)
class ProjectiveGeometryResponse(Randomizer):
    """Reports a point of the hyperplane orthogonal to the device's value with probability p, else one outside it.

    Each point of the hyperplane is exactly e^eps times as likely as each point outside. With s, s2 points orthogonal
    to one, two points: p = s e^eps / (s e^eps + K - s), q = (s2 e^eps + s - s2) / (s e^eps + K - s). The domain is
    rounded up to the K points of the space; points beyond the domain are values that nobody holds.

    A report is one number below K, uint32. Counting the votes takes domain / q steps for each different report.
    """

    name = "projective-geometry"

    def __post_init__(self) -> None:
        super().__post_init__()
        geometry_for(self.domain, self.epsilon)

    @property
    def geometry(self) -> Geometry:
        """The projective space whose points are values and reports."""
        return geometry_for(self.domain, self.epsilon)

    @property
    def most_supported(self) -> int:
        """The points of a hyperplane, as far as they are in the domain."""
        return min(self.geometry.in_hyperplane, self.domain)

    @property
    def lie(self) -> float:
        """The probability that the own value is not supported, 1 - p without its rounding error."""
        return support_probabilities(self.geometry, self.epsilon)[0]

    @property
    def p(self) -> float:
        """The probability that a report supports the device's value."""
        return 1 - self.lie

    @property
    def q(self) -> float:
        """The probability that a report supports any one given other value."""
        return support_probabilities(self.geometry, self.epsilon)[1]

    @property
    def bits(self) -> float:
        """Bits of a report: one number below K."""
        return float((self.geometry.points - 1).bit_length())

    def encode(self, values: Numbers, generator: np.random.Generator) -> Reports:
        """One point for each value, (devices,) uint32."""
        own = checked_values(values, self.domain)
        return self.drawn_points(own, lies(generator, own.size, self.lie), generator)

    def votes(self, reports: Reports) -> Numbers:
        """How many reports support each value, (domain,). InputError for a report that no device can send."""
        points = self.geometry.points
        if reports.ndim != 1 or (reports.size and reports.max() >= points):
            raise InputError(f"reports of shape {reports.shape} are not one point below {points} each.")
        return self.votes_of_counts(np.bincount(reports, minlength=points))

    def drawn_points(self, own: Numbers, outside: npt.NDArray[np.bool_], generator: np.random.Generator) -> Reports:
        """A uniform point for each value, in its hyperplane or `outside` it.

        All coordinates but the value's leading one are uniform; that one is solved for, so that <x, y> is 0 inside
        and a uniform other number outside. Every point has equally many such vectors; the vector 0 is drawn again.
        """
        geometry, rows = self.geometry, np.arange(own.size)
        x = geometry.vectors(own)
        y = np.zeros_like(x)
        lead = np.argmax(x != 0, axis=1)
        product = np.where(outside, generator.integers(1, geometry.order, own.size), 0)
        again = rows
        while again.size:
            y[again] = generator.integers(0, geometry.order, (again.size, geometry.length))
            y[again, lead[again]] = 0
            solved = product[again] - (x[again] * y[again] % geometry.order).sum(axis=1)
            y[again, lead[again]] = solved % geometry.order
            again = again[~y[again].any(axis=1)]
        return geometry.numbers(y).astype(np.uint32)

    def votes_of_counts(self, counts: Numbers) -> Numbers:
        """Votes from how often each point was reported: for each such point, the values orthogonal to it.

        Values come in lines (u, b), b = 0..q-1 and u a point with one coordinate less. A point with a last
        coordinate meets each line once, where <u, y> + b y_t = 0; one without meets a line wholly or not at all.
        """
        geometry = self.geometry
        reported = np.flatnonzero(counts)
        lines = -(-self.domain // geometry.order)
        shorter = Geometry(geometry.order, geometry.length - 1)
        starts = shorter.vectors(np.arange(min(lines, shorter.points)))
        votes = np.zeros(starts.shape[0] * geometry.order + 1, np.int64)
        for begin in range(0, reported.size, AT_ONCE):
            some = reported[begin : begin + AT_ONCE]
            _count(starts, geometry.vectors(some), counts[some], geometry.inverses, votes)
        # The point (0, ..., 0, 1) is on no line; it comes last, and is a value only if all points are.
        last = (geometry.vectors(reported)[:, -1] == 0) if self.domain == geometry.points else np.zeros(0, bool)
        if last.size:
            votes[geometry.points - 1] = counts[reported][last].sum()
        return votes[: self.domain]


@compiled
def _count(starts: Numbers, vectors: Numbers, weights: Numbers, inverses: Numbers, votes: Numbers) -> None:
    """Adds each report's weight to the values (u, b) orthogonal to it, u in `starts`.

    From one u to the next only the last coordinate grows, by one, but where a digit is carried: an addition a line.
    """
    order, places = inverses.size, starts.shape[1]
    scaled = np.empty(places, np.int64)
    for report in range(vectors.shape[0]):
        last = vectors[report, -1]
        slope = order - inverses[last] if last else 1  # b = -<u, y> / y_t
        for place in range(places):
            scaled[place] = vectors[report, place] * slope % order
        weight, product = weights[report], 0
        for line in range(starts.shape[0]):
            if line and starts[line, -1] == starts[line - 1, -1] + 1:
                product += scaled[-1]
                if product >= order:
                    product -= order
            else:
                product = 0
                for place in range(places):
                    product += starts[line, place] * scaled[place]
                product %= order
            if last:
                votes[line * order + product] += weight
            elif product == 0:
                for b in range(order):
                    votes[line * order + b] += weight


@compiled
def _fill_inverses(inverse: Numbers) -> None:
    """1/a = -(q // a) / (q mod a) modulo the prime q, for a = 2, 3, ..."""
    order = inverse.size
    for number in range(2, order):
        inverse[number] = (order - order // number) * inverse[order % number] % order
