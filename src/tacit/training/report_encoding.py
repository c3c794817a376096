"""What one device's report says, and how it is written where sums are of integers: public, and the same for all.

Beside its update a device may say in one bit whether that is short, and its training loss, clipped to [0, bound], minus
half the bound. Encoded, the three stand behind each other in one vector of residues.
"""

import hashlib
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.privacy.encoding import Encoding
from tacit.secure_aggregation import encode

Residues = NDArray[np.uint32]
STEPS = 1 << 15  # of a loss in a secure sum, to half the bound


@dataclass(frozen=True, kw_only=True)
class ReportEncoding:
    """How every device of a round encodes its report.

    Behind the coordinates of the update stand: 1, for the report; 1 or 0, for an update no longer than `clip_estimate`;
    the digits of the loss in whole steps. Digits are to the base 2 C_inf + 1, so that they are as small as the update's
    own coordinates, and no sum of so many reports leaves the modulus.
    """

    encoding: Encoding  # for the clip norm in force
    signs: bytes  # the 32 bytes that the rotation's random signs follow from
    clip_estimate: float | None = None  # each says whether its update is no longer than this; None: not asked
    loss_bound: float | None = None  # each adds its training loss, clipped to [0, this]; None: not asked

    @property
    def length(self) -> int:
        """Coordinates of a report: the encoded update's, and those behind them."""
        return self.encoding.dimension + 1 + (self.clip_estimate is not None) + self._loss_digits

    def encoded(
        self, update: NDArray[np.float32], *, norm: np.float32, loss: np.float32, seed: bytes, client: int
    ) -> Residues:
        """A simulated client's report (length,), residues modulo 2^bits: of its clipped update (parameters,), what that
        was long before, and its mean training loss.

        The rounding is drawn from the round's seed and the client, so that a run can be resumed to the bit; a device
        gives `secure_aggregation.encode` 32 bytes of its operating system.
        """
        private = hashlib.sha256(b"rounding " + seed + client.to_bytes(8, "little")).digest()
        behind = [1]
        if self.clip_estimate is not None:
            behind.append(int(norm <= np.float64(self.clip_estimate)))
        if self.loss_bound is not None:
            whole = whole_loss(loss, self.loss_bound)
            behind += [whole // self._base**place % self._base for place in range(self._loss_digits)]
        residues = encode(update, self.encoding, signs=self.signs, rounding=private)
        return np.concatenate([residues, np.array(behind, np.uint32)])

    @property
    def _base(self) -> int:
        return 2 * self.encoding.largest + 1

    @property
    def _loss_digits(self) -> int:
        """Digits of the largest loss."""
        if self.loss_bound is None:
            return 0
        digits, rest = 0, 2 * STEPS
        while rest:
            digits, rest = digits + 1, rest // self._base
        return digits


def shorter(norms: NDArray[np.float32], estimate: float | None) -> int | None:
    """How many norms are at most the estimate, compared in float64."""
    return None if estimate is None else int((norms <= np.float64(estimate)).sum())


def bounded_sum(losses: NDArray[np.float32], bound: float | None) -> float | None:
    """The sum of what devices send of their losses (clients,); None where nobody asks.

    A loss that is no number counts as the bound. Exactly rounded, so the order of the clients does not matter.
    """
    return None if bound is None else math.fsum((_clipped(losses, bound) - bound / 2).tolist())


def whole_loss(loss: np.float32, bound: float) -> int:
    """What a device adds to a secure sum: its clipped loss in STEPS to half the bound, from 0 to 2 * STEPS.

    Rounded toward half the bound, so that no device's number is farther from it than half the bound.
    """
    return STEPS + math.trunc(float(_clipped(np.asarray(loss), bound) - bound / 2) * (2 * STEPS / bound))


def bounded_loss(whole: int, reports: int, bound: float) -> float:
    """The `bounded_sum` of so many reports, from the sum of their whole losses."""
    return float(whole - reports * STEPS) * bound / (2 * STEPS)


def _clipped(losses: NDArray[np.float32], bound: float) -> NDArray[np.float64]:
    return np.clip(np.nan_to_num(losses.astype(np.float64), nan=bound, posinf=bound), 0.0, bound)
