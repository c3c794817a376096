"""What encoding for secure aggregation costs: contributions become integer vectors, and rounding lengthens them.

`clip_inflation` is the factor, and `Encoding` has the numbers that updates are encoded by in
`secure_aggregation.encoding`. How they are chosen is in `encoding_choice.py`.
"""

import math
from dataclasses import dataclass, replace
from numbers import Integral, Real

from tacit.errors import InputError

RETRY_PROBABILITY = math.exp(-0.5)  # alpha of arXiv:2305.18465, Algorithm 2, as used in production
ATTEMPTS = 64  # of rounding; all are too long with probability below alpha^64 = 2e-14
MOST = 1.01  # of the clip norm after rounding: 2% of zCDP, at about 20 bits a coordinate
SIGMAS = 10.0  # a rotated coordinate is clipped at so many; no update of a billion coordinates ever is
WORD = 32  # bits of a coordinate at most
EXACT = 1 << 24  # whole numbers that float32, in which an update is rotated, has all of
EXACT_SQUARED = 1 << 62  # a squared norm, and what rounding may add to it before it is measured, in 64 bits with sign


def _paley_orders(largest: int) -> tuple[int, ...]:
    """Orders q + 1 with q = 3 modulo 4 and 2 (q + 1) with q = 1 modulo 4, q prime, that are no smaller one doubled."""
    found = [1]
    for order in range(4, largest + 1, 4):
        for q, rest in ((order - 1, 3), (order // 2 - 1, 1)):
            prime = q > 2 and all(q % p for p in range(2, math.isqrt(q) + 1))
            doubled = any((order // each).bit_count() == 1 and order % each == 0 for each in found)
            if prime and q % 4 == rest and not doubled:
                found.append(order)
    return tuple(found)


# Of Hadamard matrices by Paley's constructions over prime fields: 1, 12, 20, 28, ..., 148, ..., 252. Larger ones pad
# a vector less and take more additions.
PALEY_ORDERS = _paley_orders(256)


def inflated_clip_norm(
    clip_norm: float, dimension: int, scale: float, *, retry_probability: float = RETRY_PROBABILITY
) -> float:
    """The largest norm of a contribution after clipping, encoding and decoding, in the units of `clip_norm`.

    A contribution of `dimension` coordinates (padding included) is clipped to `clip_norm` C, multiplied by
    `scale` s, rotated and rounded at random to integers; the rounding is repeated until its squared norm is
    within the bound that one attempt exceeds with probability at most `retry_probability` alpha. Hence always
    `C_inflated^2 = C^2 + d/(4 s^2) + sqrt(2 log(1/alpha)) (C/s + sqrt(d)/(2 s^2))`, a proved upper bound.
    Noise is still added by C itself. Source: arXiv:2305.18465, Section 2.4. InputError for values that make
    no such encoding.
    """
    check_real("clip_norm", clip_norm)
    check_real("scale", scale)
    if isinstance(dimension, bool) or not hasattr(dimension, "__index__") or dimension < 1:
        raise InputError(f"dimension={dimension!r} is not a number of coordinates; give a whole number above 0.")
    if not 0 < retry_probability < 1:
        raise InputError(f"retry_probability={retry_probability} does not lie between 0 and 1; give exp(-0.5), say.")
    tail = math.sqrt(-2 * math.log(retry_probability))
    # Each term is divided by the scale apart: its square alone may overflow or vanish.
    rounding = math.sqrt(dimension) / (2 * scale)
    return math.sqrt(clip_norm**2 + rounding**2 + tail * (clip_norm / scale + rounding / scale))


def clip_inflation(
    clip_norm: float, dimension: int, scale: float, *, retry_probability: float = RETRY_PROBABILITY
) -> float:
    """`inflated_clip_norm` in clip norms: the factor by which a Guarantee's sensitivity grows, above 1."""
    return inflated_clip_norm(clip_norm, dimension, scale, retry_probability=retry_probability) / clip_norm


def check_real(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < math.inf:
        raise InputError(f"{name}={value!r} is not a finite number above 0; give one.")


def check_count(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise InputError(f"{name}={value!r} is no number of them; give a whole number above 0.")


@dataclass(frozen=True, kw_only=True)
class Encoding:
    """How updates of `parameters` coordinates become integers modulo 2^bits, of which sums are made.

    An update is clipped to `clip_norm`, multiplied by `scale`, padded to `dimension` coordinates and rotated; each is
    clipped to `sigmas` standard deviations, rounded and shifted to 0..2 `largest`. A sum holds at most `report_goal`
    updates. Source: arXiv:2305.18465, Algorithm 2. Raises: InputError for numbers that make no encoding.
    """

    parameters: int
    dimension: int
    clip_norm: float
    scale: float
    report_goal: int
    sigmas: float = SIGMAS
    margin: int = 0  # what decryptors' noise may add to a coordinate of the sum, either way: see `encoding_with_noise`
    margin_each: int = 0  # and one decryptor's alone, where slots of whole numbers have to hold it

    def __post_init__(self) -> None:
        clip_inflation(self.clip_norm, self.dimension, self.scale)  # refuses what is none
        check_count("parameters", self.parameters)
        check_count("report_goal", self.report_goal)
        if self.parameters > self.dimension:
            raise InputError(
                f"dimension={self.dimension} does not hold parameters={self.parameters}; give at least as many."
            )
        check_real("sigmas", self.sigmas)
        for name in ("margin", "margin_each"):
            value = getattr(self, name)
            if isinstance(value, bool) or not hasattr(value, "__index__") or value < 0:
                raise InputError(f"{name}={value!r} is no whole number from 0 on; take that of `encoding_with_noise`.")

    def checked(self) -> "Encoding":
        """Itself. Raises: InputError where a coordinate of a sum needs more than WORD bits, or is finer than EXACT."""
        if self.bits > WORD:
            noise = f" and noise up to {self.margin:,}" if self.margin else ""
            raise InputError(
                f"sums of report_goal={self.report_goal:,} reports with coordinates up to {self.largest:,}{noise} need "
                f"{self.bits} bits a coordinate, and words have {WORD}; ask for fewer reports, or allow a larger "
                "inflation."
            )
        if self.largest > EXACT or self.longest_squared > EXACT_SQUARED:
            raise InputError(
                f"coordinates up to {self.largest:,} of updates {math.isqrt(self.longest_squared):,} long are finer "
                f"than float32 and sums of squares in 64 bits tell; allow a larger inflation than {self.inflation!r}."
            )
        return self

    def with_clip_norm(self, clip_norm: float) -> "Encoding":
        """The same integers for updates of another clip norm: scale times clip norm stays, hence inflation and bits."""
        check_real("clip_norm", clip_norm)
        return replace(self, clip_norm=clip_norm, scale=self.scale * self.clip_norm / clip_norm)

    @property
    def inflation(self) -> float:
        """The factor by which encoding lengthens a clipped update, at most; above 1."""
        return clip_inflation(self.clip_norm, self.dimension, self.scale)

    @property
    def largest(self) -> int:
        """C_inf: the largest magnitude of an encoded coordinate, `sigmas` standard deviations, rounded up."""
        return math.ceil(self.sigmas * self.scale * self.clip_norm / math.sqrt(self.dimension))

    @property
    def longest_squared(self) -> int:
        """The largest squared norm of an encoded update, before the shift: what rounding is repeated for."""
        # Less than rounding of this product: the integers keep within the real bound.
        bound = inflated_clip_norm(self.clip_norm, self.dimension, self.scale) * self.scale
        return math.floor(bound**2 * (1 - 1e-15))

    @property
    def bits(self) -> int:
        """Of a coordinate of the sum: ceil(log2 M), M = 2 (C_inf m + margin) + 1 for m = report_goal."""
        return (2 * (self.largest * self.report_goal + self.margin)).bit_length()  # of M - 1, the largest remainder

    @property
    def modulus(self) -> int:
        """2^bits: sums are made modulo this."""
        return 1 << self.bits

    @property
    def most_reports(self) -> int:
        """How many reports cannot overflow the modulus, whatever they hold: at least report_goal."""
        return (self.modulus - 1 - 2 * self.margin) // (2 * self.largest)

    @property
    def clipping_probability(self) -> float:
        """An upper bound on the probability, over the signs, that any coordinate of one update is clipped.

        A rotated coordinate is sum_i x_i e_i / sqrt(d) with random signs e_i and |x| <= s C, so that it exceeds k
        standard deviations s C / sqrt(d) with probability at most 2 exp(-k^2 / 2) [Hoeffding's inequality]; there are d
        of them. What is clipped costs accuracy, no guarantee.
        """
        deviation = self.scale * self.clip_norm / math.sqrt(self.dimension)
        return min(1.0, 2 * self.dimension * math.exp(-((self.largest / deviation) ** 2) / 2))
