"""Counts through the same door as updates: votes of words and histograms, summed modulo 2^b so that nobody sees one.

Counts are whole numbers already, so nothing is rounded and nothing inflates: b is chosen so that no cell can overflow,
and the sum is the plain sum to the bit.
"""

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.aggregation import WordSum, merged
from tacit.errors import InputError, RoundAborted, of_type
from tacit.privacy.encoding import WORD
from tacit.secure_aggregation.masked.messages import MaskedVector
from tacit.secure_aggregation.masked.server import STEPS
from tacit.secure_aggregation.noise import contribution
from tacit.secure_aggregation.one_message.simulation import OneMessageParties, run_one_message_round
from tacit.secure_aggregation.simulate import run_masked_round
from tacit.secure_aggregation.simulated_protocol import FEWEST, Protocol, SimulatedProtocol

IntArray = NDArray[np.int64]
Words = NDArray[np.uint32]

DECRYPTORS = 4  # of one message, of whom one may work with the server
SENDS_VECTOR = STEPS.index(MaskedVector)  # messages of the masked protocol that a device sends before its vector


@dataclass(frozen=True, kw_only=True)
class CountEncoding:
    """Counts in `cells` cells, of which no sum exceeds `most`: the reports that there may be, times what one may add.

    Raises: InputError where no word of 32 bits holds such a sum.
    """

    cells: int
    most: int

    def __post_init__(self) -> None:
        of_type("cells", self.cells, int)
        of_type("most", self.most, int)
        if self.cells < 1 or self.most < 1:
            raise InputError(f"{self.cells} cells of at most {self.most} count nothing; give whole numbers above 0.")
        if self.bits > WORD:
            raise InputError(
                f"a cell of the sum may hold {self.most:,}, which takes {self.bits} bits, and words have {WORD}: ask "
                "fewer devices at once."
            )

    @property
    def bits(self) -> int:
        """The least b with 2^b above `most`."""
        return self.most.bit_length()

    def encode(self, counts: IntArray) -> Words:
        """One device's counts, or the sum of some, (cells,) as words. Raises: InputError for what no sum may hold."""
        whole = np.asarray(counts)
        if whole.shape != (self.cells,) or not np.issubdtype(whole.dtype, np.integer):
            raise InputError(f"counts of shape {whole.shape} in {whole.dtype} are not {self.cells} whole numbers.")
        if whole.min() < 0 or whole.max() > self.most:
            raise InputError(f"counts from {whole.min()} to {whole.max()} do not lie in 0 to {self.most}.")
        return whole.astype(np.uint32)

    def decode(self, total: Words) -> IntArray:
        """The sum of what was encoded, (cells,). Raises: InputError for a sum that nobody's counts can be."""
        if total.shape != (self.cells,) or total.dtype != np.uint32:
            raise InputError(f"a total of shape {total.shape} in {total.dtype} is not {self.cells} words of 32 bits.")
        if total.max() > self.most:
            raise InputError(
                f"a cell of the total is {total.max():,}, beyond the {self.most:,} that can be: it was spoilt."
            )
        return total.astype(np.int64)

    @property
    def sums(self) -> WordSum:
        """How words are added: modulo 2^bits."""
        return WordSum(self.cells, self.bits)


def secure_total(
    secure: SimulatedProtocol, devices: Sequence[IntArray], others: IntArray, *, most: int, each: int = 1
) -> IntArray:
    """The sum of the devices' counts, each (cells,), by the whole protocol, and of the others' summed counts (cells,).

    most: the largest that a cell of the sum can hold; each: that of one device. Equal to the plain sum, bit by bit.
    Raises: InputError as `CountEncoding`, and for a group of so few that they hide nothing.
    """
    encoding = CountEncoding(cells=others.size, most=most)
    parts = [encoding.encode(others)]
    if devices:
        if len(devices) < FEWEST:
            raise InputError(
                f"a group of {len(devices)} hides nothing in its sum; ask {FEWEST} devices or more at once."
            )
        one = CountEncoding(cells=others.size, most=min(each, most))
        words = [one.encode(counts) for counts in devices]
        parts.append(play(secure.protocol, words, bits=encoding.bits, each=each).total)
    return encoding.decode(encoding.sums.finish(merged(encoding.sums, parts)))


class Played(NamedTuple):
    """What came of a protocol that was played: what its server learns, and no more."""

    total: Words  # (cells,) modulo 2^bits, of those in it and of the noise
    included: tuple[int, ...]  # the places of the devices whose words are in it


def play(
    protocol: Protocol,
    words: Sequence[Words],
    *,
    bits: int,
    each: int,
    noise: Sequence[Words] = (),
    margin: int = 0,
    vanishing: Mapping[int, int] | None = None,
    dropout: float = 0.1,
) -> Played:
    """The sum modulo 2^bits of devices' words and of decryptors' noise by the whole protocol, from keys to the sum.

    words: of each device (cells,), whole numbers from 0 to `each`, no residues. noise: of each contributor (cells,)
    modulo 2^bits, as `NoiseDecryptor.noise` gives it; no sum without all of it is opened. margin: the largest magnitude
    of one contributor's noise, for one message: `Encoding.margin_each`.
    vanishing: the places of devices that leave, and after how many messages of the masked protocol's STEPS; one that
    sends at most SENDS_VECTOR is not in the sum. By one message it sends none then, and leaves no trace afterwards.
    dropout: the share of devices that masks are made to lose. All keys are fresh, and the sum follows from words,
    noise and places alone. Raises: InputError for noise beyond the margin, and where a slot of one message is too
    narrow for the sum; RoundAborted, naming the cause, where too few are left.
    """
    leaves = vanishing or {}
    if protocol == "masks":
        return _masks(words, noise, bits, leaves, dropout)
    return _one_message(
        words, [contribution(one, bits=bits, margin=margin) for one in noise], bits, each, margin, leaves
    )


def _masks(
    words: Sequence[Words], noise: Sequence[Words], bits: int, leaves: Mapping[int, int], dropout: float
) -> Played:
    played = run_masked_round(
        [*words, *noise],
        bits=bits,
        seed=int.from_bytes(os.urandom(16)),
        fewest=FEWEST + len(noise),
        dropout=dropout,
        leaving=[(place, STEPS[sent]) for place, sent in leaves.items()],
        always=range(len(words), len(words) + len(noise)),
    )
    if played.total is None:
        raise played.aborted or RoundAborted("the round ended without a sum.")
    return Played(played.total, tuple(place for place in played.server.included if place < len(words)))


def _one_message(
    words: Sequence[Words], noise: Sequence[Words], bits: int, each: int, margin: int, leaves: Mapping[int, int]
) -> Played:
    """With KEEPERS decryptors of shares of the devices' keys, whose own are made for it and thrown away."""
    with tempfile.TemporaryDirectory() as folder:
        parties = OneMessageParties.from_settings(
            len(words),
            Path(folder),
            dimension=words[0].size,
            largest=each,
            report_goal=FEWEST,
            decryptors=DECRYPTORS,
            seed=int.from_bytes(os.urandom(16)),
            contributors=len(noise),
            margin=margin if noise else 0,
        )
        silent = [place for place, sent in leaves.items() if sent <= SENDS_VECTOR]
        played = run_one_message_round(parties, [*words, *noise], leaving=silent)
    if played.total is None:
        raise played.aborted or RoundAborted("the round ended without a sum.")
    included = tuple(place for place in played.included if place < len(words))
    return Played(WordSum(len(played.total), bits).finish(played.total), included)
