"""Many coordinates in one coefficient: slots of bits that the sum of a whole cohort fits into, and slots that check it.

A coefficient below t = 2^plain_bits is `per_coefficient` slots of `width` bits, the first in the lowest bits; bits that
are left over are zero. The first `checks` slots of every polynomial hold 1 from each client, so that their sum is the
number of clients; then come the coordinates in their order, whole numbers from 0 to `largest`, and zeros behind the
last. Sums are exact: no modulus is reduced by. A contributor of noise puts noise + `margin` where a client puts its
coordinate, and the server takes the margins off again.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.compiled import compiled
from tacit.errors import InputError
from tacit.privacy.encoding import WORD
from tacit.secure_aggregation.one_message.lattice import LatticeParameters, error_bound
from tacit.secure_aggregation.one_message.ring import LIMBS, Residues

CHECK_BITS = 128  # of check slots in every polynomial, at least

Vector = npt.NDArray[np.uint32]


@dataclass(frozen=True)
class Slots:
    """Where the coordinates lie.

    dimension: of the vectors; largest: of what a client puts into a coordinate; reports: the most that a sum may hold;
    contributors: how many parties add noise, from -margin to margin each, to every sum.
    Raises: InputError for values that go together in no way.
    """

    parameters: LatticeParameters
    dimension: int
    largest: int
    reports: int
    contributors: int = 0
    margin: int = 0

    def __post_init__(self) -> None:
        for name in ("dimension", "largest", "reports"):
            if getattr(self, name) < 1:
                raise InputError(f"{name}={getattr(self, name)} must be at least 1.")
        if self.contributors < 0 or (self.margin < 1 if self.contributors else self.margin != 0):
            raise InputError(
                f"contributors={self.contributors} and margin={self.margin}: give a margin of at least 1 where there "
                "are contributors of noise, and 0 where there are none."
            )
        if self.width > WORD:
            noise = f" and noise of {self.contributors} parties to {self.margin:,} each" if self.contributors else ""
            raise InputError(
                f"{self.reports:,} reports of numbers to {self.largest:,}{noise} sum to {self.width} bits, and words "
                f"have {WORD}; ask for fewer reports{', fewer contributors or less noise' if noise else ''}."
            )
        if self.error_bound > self.parameters.most_error:
            raise InputError(f"{self.reports:,} reports are more than {self.parameters.name} can open; ask for fewer.")

    @property
    def width(self) -> int:
        """Bits of a slot: the sum of `reports` values up to `largest`, and of all noise with its margins, fits."""
        return self.most(self.reports).bit_length()

    def most(self, reports: int) -> int:
        """The largest that a slot of a sum of so many reports, and of all contributors, can be."""
        return self.largest * reports + 2 * self.margin * self.contributors

    @property
    def per_coefficient(self) -> int:
        """Slots of a coefficient."""
        return self.parameters.plain_bits // self.width

    @property
    def checks(self) -> int:
        """Check slots of a polynomial: a sum that is uniform modulo q passes with probability below 2^-127."""
        return -(-CHECK_BITS // self.width)

    @property
    def capacity(self) -> int:
        """Coordinates of a polynomial."""
        return self.parameters.degree * self.per_coefficient - self.checks

    @property
    def polynomials(self) -> int:
        """How many the vector takes."""
        return -(-self.dimension // self.capacity)

    @property
    def error_bound(self) -> int:
        """What a sum's errors stay within; `lattice.error_bound` for all of its coefficients."""
        return error_bound(self.reports + self.contributors, self.parameters.degree * self.polynomials)

    def check(self, vector: Vector, *, noise: bool = False) -> None:
        """Raises: InputError for another length or type, and for a coordinate beyond `largest`.

        noise: whether it is a contributor's, noise + margin, whose coordinates reach 2 margin.
        """
        if vector.shape != (self.dimension,) or vector.dtype != np.uint32:
            raise InputError(
                f"the vector is {vector.dtype}{list(vector.shape)}, and this round sums uint32[{self.dimension}]."
            )
        most = 2 * self.margin if noise else self.largest
        if int(vector.max()) > most:
            raise InputError(f"a coordinate is {int(vector.max())}, and this round takes numbers up to {most}.")

    def plain(self, vector: Vector, index: int) -> Residues:
        """The coefficients of polynomial `index` as limbs (N, LIMBS)."""
        part = vector[index * self.capacity : (index + 1) * self.capacity]
        limbs = np.zeros((self.parameters.degree, LIMBS), np.uint64)
        _fill(limbs, part, self.per_coefficient, self.width, self.checks)
        return limbs


@compiled
def _fill(limbs: Residues, part: Vector, slots: int, width: int, checks: int) -> None:
    number = 0
    for at in range(limbs.shape[0]):
        for slot in range(slots):
            value = np.uint64(0)
            if number < checks:
                value = np.uint64(1)
            elif number - checks < part.size:
                value = np.uint64(part[number - checks])
            number += 1
            limb, shift = (slot * width) // 64, (slot * width) % 64
            limbs[at, limb] |= value << np.uint64(shift)
            if shift + width > 64:
                limbs[at, limb + 1] |= value >> np.uint64(64 - shift)
