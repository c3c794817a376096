"""Sums that are made of integers: how the devices of a round encode what they report, and what the server decodes.

In a simulation every client's update is encoded by the functions that a device has, the residues are added modulo 2^b
as any protocol of secure aggregation would, and the sum alone is decoded, once. Integers have no order of addition: the
sum has the same bits however many workers made it. What else a device reports (that it is there, whether its update is
short, its training loss) goes in coordinates behind the update's, so that one sum holds all that a round's server
learns. Of each round a few clients may play the whole protocol that hides the summands from a server, which gives the
same sum again; some of them may vanish on the way.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.aggregation import WordSum
from tacit.errors import InputError, RoundAborted
from tacit.privacy import Guarantee
from tacit.privacy.encoding import SIGMAS, Encoding
from tacit.privacy.encoding_choice import encoding_within
from tacit.secure_aggregation import decode
from tacit.secure_aggregation.counts import play
from tacit.secure_aggregation.masked.server import STEPS
from tacit.secure_aggregation.simulated_protocol import SimulatedProtocol
from tacit.training.randomness import seed_for
from tacit.training.report_encoding import ReportEncoding, bounded_loss
from tacit.training.report_encoding import Residues as Residues  # also asked for here

# Of the clients that a protocol is made to lose, whatever is drawn: more than vanish on average, and no more than leave
# enough for its quorum, which is above half.
LEAST_PLANNED, MOST_PLANNED = 0.1, 0.4


@dataclass(frozen=True, kw_only=True)
class SecureUpdates:
    """That a run's updates are summed as integers; by how much they may grow by it, its guarantee says."""

    sigmas: float = SIGMAS  # a rotated coordinate is clipped at so many standard deviations
    threshold: int | None = None  # no sum of fewer reports is opened; None: half the report goal, at least 2
    played: SimulatedProtocol | None = None  # the protocol, and how many clients of a round play it; None: none does
    dropout: float = 0.0  # the chance that one of them vanishes before the protocol ends
    decryptors: int = 0  # parties that each add noise to every sum, in the server's place; 0: the server adds it
    honest_decryptors: int = 1  # of them, who together add the noise that is accounted; 1: each adds all of it

    def min_reports(self, report_goal: int) -> int:
        """The threshold. Raises: InputError where no cohort of the report goal reaches it, or gives who is to play."""
        found = max(2, -(-report_goal // 2)) if self.threshold is None else self.threshold
        if not 2 <= found <= report_goal:
            raise InputError(
                f"aggregation.threshold={found} is not between 2 and rounds.report_goal={report_goal}: the sum of one "
                "report hides nothing, and one of more than come is never opened; change the one or the other."
            )
        if self.played is not None and self.played.devices > report_goal:
            raise InputError(
                f"aggregation.protocol_clients={self.played.devices} are more than rounds.report_goal={report_goal}; "
                "let as many or fewer play the protocol."
            )
        return found

    def encoding(self, parameters: int, updates: Guarantee, report_goal: int) -> Encoding:
        """That of the updates, for the clip norm of their guarantee and the inflation that it counts; without room for
        decryptors' noise.

        Raises: InputError for a guarantee that counts none, and a report goal beyond the modulus.
        """
        self.min_reports(report_goal)
        return encoding_within(
            parameters, updates.clip_norm, report_goal, inflation=updates.clip_inflation, sigmas=self.sigmas
        )


class OpenedSum(NamedTuple):
    """All that the server learns of a round's reports, beside whose they are: decoded from one sum of integers."""

    total: NDArray[np.float32]  # (parameters,) of the updates
    short_updates: int | None  # how many were no longer than the clip estimate; None: not asked
    losses: float | None  # sum of the clipped losses, each minus half the bound; None: not asked


def round_signs(key: bytes, round: int) -> bytes:
    """The public seed, 32 bytes, of a round's rotation."""
    return seed_for(key, "signs", round)


@dataclass(frozen=True, kw_only=True)
class RoundEncoding(ReportEncoding):
    """How a round's reports are encoded, and how their sum is opened; in a simulation, how some play the protocol."""

    threshold: int = 1  # no sum of fewer reports is opened
    played: SimulatedProtocol | None = None  # in a simulation: how many clients play which protocol
    dropout: float = 0.0  # and with which chance each of them vanishes before its end

    @property
    def sums(self) -> WordSum:
        """How reports are added: modulo 2^bits."""
        return WordSum(self.length, self.encoding.bits)

    def noise(self, words: Residues) -> Residues:
        """A decryptor's words (dimension,) as a report (length,): it adds nothing behind the update, where no noise
        is.
        """
        return np.concatenate([words, np.zeros(self.length - self.encoding.dimension, np.uint32)])

    def vanishing(self, seed: bytes) -> dict[int, int]:
        """Which of the clients that play vanish, by their place, and after how many messages: drawn from the seed."""
        if self.played is None or not self.dropout:
            return {}
        digest = hashlib.sha256(b"vanishing " + seed).digest()
        draw = np.random.Generator(np.random.PCG64(int.from_bytes(digest, "little")))
        gone = draw.random(self.played.devices) < self.dropout
        sent = draw.integers(len(STEPS), size=self.played.devices)
        return {int(place): int(sent[place]) for place in np.flatnonzero(gone)}

    def play(
        self, reports: Sequence[Residues], vanishing: Mapping[int, int], noise: Sequence[Residues] = ()
    ) -> tuple[Residues, NDArray[np.bool_]]:
        """(sum modulo 2^bits of these clients' reports, who of them is in it), as the whole protocol gives it.

        noise: what each decryptor sends (length,); they take part as the clients do, and nobody opens a sum without
        them. Raises: RoundAborted, naming the cause, where too few are left.
        """
        assert self.played is not None  # nobody plays else
        found = play(
            self.played.protocol,
            reports,
            bits=self.encoding.bits,
            each=2 * self.encoding.largest,
            noise=noise,
            margin=self.encoding.margin_each,
            vanishing=vanishing,
            dropout=min(max(LEAST_PLANNED, 2 * self.dropout), MOST_PLANNED),
        )
        included = np.zeros(len(reports), np.bool_)
        included[list(found.included)] = True
        return found.total, included

    def opened(self, total: Residues, reports: int) -> OpenedSum:
        """What so many reports sum up to; total: (length,) the sum of their residues, modulo 2^32 or less.

        Raises: RoundAborted for fewer reports than the threshold; InputError for more than the modulus holds, and for a
        total that no such sum can be.
        """
        if reports < self.threshold:
            raise RoundAborted(
                f"{reports} reports came, and no sum of fewer than {self.threshold} is opened (aggregation.threshold)."
            )
        within = self.sums.finish(total)
        dimension = self.encoding.dimension
        update = decode(within[:dimension], self.encoding, signs=self.signs, reports=reports)
        counted, *behind = (int(each) for each in within[dimension:])
        if counted != reports:
            raise InputError(
                f"the sum says that it is of {counted} reports, and {reports} were added; the sum was spoilt."
            )
        short = None if self.clip_estimate is None else behind.pop(0)
        if self.loss_bound is None:
            return OpenedSum(update, short, None)
        whole = sum(digit * self._base**place for place, digit in enumerate(behind))
        return OpenedSum(update, short, bounded_loss(whole, reports, self.loss_bound))

    def unopened(self) -> OpenedSum:
        """What there is where nobody has anything to report."""
        short, losses = 0 if self.clip_estimate is not None else None, 0.0 if self.loss_bound is not None else None
        return OpenedSum(np.zeros(self.encoding.parameters, np.float32), short, losses)
