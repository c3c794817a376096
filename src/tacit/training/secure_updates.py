"""Sums that are made of integers: how the devices of a round encode their updates, and what the server decodes.

In a simulation every client's update is encoded by the functions that a device has, the residues are added modulo 2^b
as any protocol of secure aggregation would, and the sum alone is decoded, once. Integers have no order of addition: the
sum has the same bits however many workers made it. Of each round a few clients may play the whole protocol that hides
the summands from a server, which gives the same sum again.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InputError, TrainingError
from tacit.privacy import Guarantee
from tacit.privacy.encoding import SIGMAS, Encoding
from tacit.secure_aggregation import decode, encode
from tacit.secure_aggregation.counts import FEWEST, SimulatedProtocol, masked_total, sealed_total

Residues = NDArray[np.uint32]


@dataclass(frozen=True, kw_only=True)
class SecureUpdates:
    """That a run's updates are summed as integers; by how much they may grow by it, its guarantee says."""

    sigmas: float = SIGMAS  # a rotated coordinate is clipped at so many standard deviations
    threshold: int | None = None  # no sum of fewer reports is opened; None: half the report goal, rounded up
    played: SimulatedProtocol | None = None  # the protocol, and how many clients of a round play it; None: none does

    def least(self, report_goal: int) -> int:
        """The threshold. Raises: InputError where no cohort of the report goal reaches it, or gives who is to play."""
        found = -(-report_goal // 2) if self.threshold is None else self.threshold
        if not 1 <= found <= report_goal:
            raise InputError(
                f"aggregation.threshold={found} is not between 1 and rounds.report_goal={report_goal}, so that no "
                "round's sum could be opened; lower it, or raise the report goal."
            )
        if self.played is not None and self.played.devices > report_goal:
            raise InputError(
                f"aggregation.protocol_clients={self.played.devices} are more than rounds.report_goal={report_goal}; "
                "let as many or fewer play the protocol."
            )
        return found

    def encoding(self, parameters: int, updates: Guarantee, report_goal: int) -> Encoding:
        """That of the updates, for the clip norm of their guarantee and the inflation that it counts.

        Raises: InputError for a guarantee that counts none, and a report goal beyond the modulus.
        """
        self.least(report_goal)
        return Encoding.within(
            parameters, updates.clip_norm, report_goal, inflation=updates.clip_inflation, sigmas=self.sigmas
        )


@dataclass(frozen=True, kw_only=True)
class RoundEncoding:
    """How every device of a round encodes its update: public, and the same for all."""

    encoding: Encoding  # for the clip norm in force
    signs: bytes  # the 32 bytes that the rotation's random signs follow from
    played: SimulatedProtocol | None = None  # in a simulation: how many clients play which protocol

    def encoded(self, update: NDArray[np.float32], *, seed: bytes, client: int) -> Residues:
        """A simulated client's update (parameters,) as residues (dimension,) modulo 2^bits.

        The rounding is drawn from the round's seed and the client, so that a run can be resumed to the bit; a device
        gives `secure_aggregation.encode` 32 bytes of its operating system.
        """
        private = hashlib.sha256(b"rounding " + seed + client.to_bytes(8, "little")).digest()
        return encode(update, self.encoding, signs=self.signs, rounding=private)

    def nothing(self) -> Residues:
        """The sum of no updates."""
        return np.zeros(self.encoding.dimension, np.uint32)

    def total_of(self, played: Sequence[Residues]) -> Residues:
        """The sum modulo 2^bits of clients' residues, as the whole protocol gives it, from keys to the sum.

        Raises: TrainingError for so few that nothing is hidden in their sum.
        """
        if self.played is None or len(played) < FEWEST:
            raise TrainingError(
                f"{len(played)} of the clients that play the protocol sent anything usable, and a sum of fewer than "
                f"{FEWEST} hides nothing; raise aggregation.protocol_clients, or look at why so many were dropped."
            )
        add = masked_total if self.played.protocol == "masks" else sealed_total
        return add(played, self.encoding.bits, 2 * self.encoding.largest)

    def decoded(self, total: Residues, reports: int) -> NDArray[np.float32]:
        """The sum (parameters,) of so many updates; total: (dimension,) that of their residues, modulo 2^32 or less.

        Raises: InputError for more reports than the modulus holds, and for a total that no such sum can be.
        """
        within = total & np.uint32(self.encoding.modulus - 1)  # 2^bits divides 2^32
        return decode(within, self.encoding, signs=self.signs, reports=reports)
