"""A round of one message from each client: its public settings, and that message.

    client  -- Report -->  server  -- Deposit (one for each decryptor, kept until the set is agreed)
    server  -- Opening, Deposit of each client -->  decryptor  -- Finding of each -->  server (who leaves out what is
                                                                                      found wrong)
    server  -- Opening, Proposal -->  decryptor  -- Vote -->  server
    server  -- Agreement, Deposit of each client of the set -->  decryptor  -- KeySum -->  server

What passes between server and decryptors is in `decryptor_messages`; a decryptor that will not do as it is told
answers with a Refusal. docs/secure-aggregation-protocols.md specifies each.
"""

import hashlib
import math
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, ClassVar

import numpy as np

from tacit.errors import InputError
from tacit.secure_aggregation import wire
from tacit.secure_aggregation.discrete_gaussian import TAIL
from tacit.secure_aggregation.one_message.lattice import published
from tacit.secure_aggregation.one_message.report_check import (
    CODE_TESTS,
    TESTS,
    Challenge,
    challenge_seed,
    check_range,
    code_sums,
    key_parts,
    opened_parts,
    subtracted,
)
from tacit.secure_aggregation.one_message.slots import Slots
from tacit.secure_aggregation.residues import packed_bytes
from tacit.secure_aggregation.secrets import KEY_BYTES, SEALED_BYTES, SIGNATURE_BYTES, TAG_BYTES
from tacit.secure_aggregation.shares import PRIME, Elements, lagrange
from tacit.secure_aggregation.small_order import anybody_agrees
from tacit.secure_aggregation.wire import Bytes, Count, Digest, Index, ManyBytes, Message, Record

MOST_DECRYPTORS = 100
MOST_REPORTS = (PRIME - 1) // 2 // TAIL  # of which every sum of keys is told from its residue

PublicKey = Annotated[bytes, wire.Fixed(KEY_BYTES)]
PublicKeys = Annotated[tuple[bytes, ...], wire.Rows(wire.Fixed(KEY_BYTES))]
Signature = Annotated[bytes, wire.Fixed(SIGNATURE_BYTES)]
Tag = Annotated[bytes, wire.Fixed(TAG_BYTES)]


@dataclass(frozen=True)
class Series(Record):
    """Attempts at one round of one plan: of all their sums, decryptors open at most one.

    number: 0 for the first series, one more whenever a set was signed that did not become a sum.
    """

    plan: Digest
    round_index: Count
    number: Count

    @property
    def name(self) -> bytes:
        """32 bytes."""
        return self.digest("one message series")


@dataclass(frozen=True)
class OneMessageRound(Record):
    """What everybody in a round agrees on before it; its digest is the round's name in every message.

    parameters: the name of a published set; dimension, largest: of the vectors, as `Slots` takes them; report_goal: the
    fewest reports that a sum may hold, most_reports: the most; corrupt: how many decryptors may work with the server
    and learn nothing; decryptors, boxes: their Ed25519 identities, and X25519 keys that boxes are sealed to; server:
    its own X25519 key of this round; seed: public and random, of the polynomials a_j; plan, round_index, series: the
    plan's digest, the round and the number of the `Series` of attempts that this one belongs to; contributors: the
    identities of those who add noise, without whom no sum is opened and who count as no reports; margin: the largest
    magnitude of one's noise. Raises: InputError for settings that nobody can keep.
    """

    parameters: Bytes
    dimension: Count
    largest: Count
    report_goal: Count
    most_reports: Count
    corrupt: Index
    decryptors: PublicKeys
    boxes: PublicKeys
    server: PublicKey
    seed: Digest
    plan: Digest
    round_index: Count
    series: Count
    contributors: PublicKeys = ()
    margin: Count = 0

    def __post_init__(self) -> None:
        count = len(self.decryptors)
        if not 2 <= self.report_goal <= self.most_reports <= MOST_REPORTS - len(self.contributors):
            raise InputError(
                f"report_goal={self.report_goal} and most_reports={self.most_reports}: a sum holds from 2 to "
                f"{MOST_REPORTS:,} reports, noise included, and the goal is not beyond the most."
            )
        if len(set(self.decryptors)) < count or len(self.boxes) != count or len(set(self.boxes)) < count:
            raise InputError("each decryptor has one identity and one key for boxes, which no other decryptor has.")
        if not 1 <= self.corrupt < count <= MOST_DECRYPTORS:
            raise InputError(
                f"corrupt={self.corrupt} of {count} decryptors: give at least one, fewer than all, and no more than "
                f"{MOST_DECRYPTORS} decryptors."
            )
        if len(set(self.contributors)) < len(self.contributors) or len(self.contributors) > MOST_DECRYPTORS:
            raise InputError(
                f"{len(self.contributors)} contributors of noise: name each once, and no more than {MOST_DECRYPTORS}."
            )
        _ = self.slots

    @cached_property
    def slots(self) -> Slots:
        """Where coordinates lie in ciphertexts. Raises: InputError as `Slots` and `published` do."""
        known = published(self.parameters.decode(errors="replace"))
        many, margin = len(self.contributors), self.margin
        return Slots(known, self.dimension, self.largest, self.most_reports, many, margin)

    @cached_property
    def name(self) -> bytes:
        """32 bytes."""
        return self.digest("one message")

    @property
    def attempts(self) -> Series:
        """Of which a decryptor signs one set alone."""
        return Series(self.plan, self.round_index, self.series)

    @property
    def quorum(self) -> int:
        """Decryptors that must sign one set, and whose sums open it: more than half of all and of the corrupt together.

        Any two quorums share more decryptors than are corrupt, so an honest one; and that one signs one set of a round.
        """
        return (len(self.decryptors) + self.corrupt) // 2 + 1

    @property
    def packed(self) -> int:
        """Numbers of a key that one share hides: as many as a quorum's shares still give back."""
        return self.quorum - self.corrupt

    @property
    def columns(self) -> int:
        """Elements of a decryptor's share of a key: its N numbers, `packed` in each."""
        return -(-self.slots.parameters.degree // self.packed)

    @property
    def body_bytes(self) -> int:
        """Bytes of a client's ciphertexts."""
        return self.slots.polynomials * packed_bytes(self.slots.parameters.ring)

    @property
    def part_elements(self) -> int:
        """Elements that a decryptor finds for the check: one for each of `CODE_TESTS`, `packed` for each of `TESTS`."""
        return CODE_TESTS + TESTS * self.packed

    @property
    def share_elements(self) -> int:
        """Elements in a box: of the key's share, and a mask for each of `part_elements`."""
        return self.columns + self.part_elements

    @property
    def box_bytes(self) -> int:
        """Bytes of a client's box for one decryptor."""
        return SEALED_BYTES + 4 * self.share_elements

    @property
    def parts_shape(self) -> tuple[int, int]:
        """Of what a report says of its key for its check: what the first quorum of decryptors find."""
        return self.quorum, self.part_elements

    @property
    def parts_bytes(self) -> int:
        """Bytes of them."""
        return 4 * math.prod(self.parts_shape)

    @property
    def points(self) -> list[int]:
        """Where decryptors' shares lie on polynomials."""
        return [index + 1 for index in range(len(self.decryptors))]

    def parts(self, challenge: Challenge, rows: Elements, shares: Elements, masks: Elements) -> Elements:
        """(parties, part_elements): what decryptors find in their boxes; as linear as shares are, so shares again.

        rows: `public_rows`; shares: (parties, columns); masks: (parties, part_elements), as boxes hold both.
        """
        factor = check_range(self.slots.parameters).factor
        code = code_sums(challenge, shares, masks[:, :CODE_TESTS])
        key = key_parts(challenge, rows, factor, shares, self.packed)
        return np.concatenate([code, subtracted(key, masks[:, CODE_TESTS:])], axis=1)

    def key_in_tests(self, parts: Elements) -> Elements:
        """(TESTS,): what the key adds to each test, less its mask, from the parts of the first quorum."""
        weights = lagrange(self.points[: self.quorum], [PRIME - 1 - index for index in range(self.packed)])
        return opened_parts(np.ascontiguousarray(parts[:, CODE_TESTS:]), weights)

    def challenge(self, client: bytes, digests: tuple[bytes, ...]) -> Challenge:
        """What is asked of a report; digests: `report_digests`."""
        return Challenge.from_seed(
            challenge_seed(self.name, client, digests), self.slots.parameters.degree, self.columns
        )

    def reports(self, clients: Collection[bytes]) -> int:
        """How many reports a set holds: contributors of noise are none. Raises: InputError for a set without one."""
        if missing := next((each for each in self.contributors if each not in clients), None):
            raise InputError(
                f"the set lacks the contributor of noise {missing.hex()[:16]}, without whom no sum of this round is "
                "opened; wait for its report, or give the round up."
            )
        return len(clients) - len(self.contributors)

    def check(
        self,
        *,
        least_reports: int,
        decryptors: Collection[bytes] | None = None,
        always: Collection[bytes] = (),
        margin: int = 0,
        corrupt: int = 1,
        joined: Collection[bytes] = (),
    ) -> None:
        """What a client or a decryptor asks of a round before it takes part, whatever the server says.

        least_reports: the smallest report goal that it accepts; decryptors: the identities that it trusts; always:
        those whose noise it wants in every sum; margin: a contributor's own, `Encoding.margin_each`; corrupt: how many
        of the decryptors may work with the server, as far as it knows; joined: names of rounds that it has reported in,
        kept through restarts. Without `corrupt` a server asks just those few decryptors that work with it.
        Raises: InputError where the round is another.
        """
        if any(map(anybody_agrees, (self.server, *self.boxes))):
            raise InputError("a key of this round is a point of small order, with which anybody agrees.")
        if self.report_goal < least_reports:
            raise InputError(
                f"this round's report goal is {self.report_goal}, and no sum of fewer than {least_reports} reports is "
                "opened here."
            )
        if decryptors is not None and (
            strange := next((each for each in self.decryptors if each not in decryptors), None)
        ):
            raise InputError(f"this round's decryptor {strange.hex()[:16]} is none of those that are trusted here.")
        if self.corrupt < corrupt:
            raise InputError(
                f"this round is safe where {self.corrupt} of its {len(self.decryptors)} decryptors work with the "
                f"server, and "
                f"here it is to be where {corrupt} do; ask for rounds with as many, or more decryptors."
            )
        if self.name in joined:
            raise InputError(
                "this device has reported in the round: a second report would have its decryptors add shares of two "
                "keys. "
                "Send the first again, byte for byte."
            )
        if missing := next((each for each in always if each not in self.contributors), None):
            raise InputError(f"{missing.hex()[:16]}, whose noise is wanted in every sum here, does not contribute.")
        if self.margin < margin:
            raise InputError(
                f"this round's margin={self.margin:,} is below the {margin:,} that this contributor's noise takes: it "
                "would send noise only where that is small, and say so by it; ask for rounds with this margin."
            )


@dataclass(frozen=True)
class ProtocolMessage(Message):
    """Version 1 knew no contributors of noise, version 2 no series of attempts and no check of a report.

    In version 3 only the first quorum of decryptors could check a report.
    """

    version: ClassVar[int] = 5


@dataclass(frozen=True)
class OneMessageReport(ProtocolMessage):
    """Client to server: everything that a client ever sends.

    boxes: its share for each decryptor; ephemeral: its half of the key of `tag`, which is over the body;
    body_digest: the body's SHA-256; parts: elements (`parts_shape`) that the first decryptors find in their boxes, for
    the check of the report; signature: over `signed_report`; body: its ciphertexts, polynomial after polynomial,
    transformed and packed.
    """

    kind: ClassVar[int] = 33
    client: PublicKey
    boxes: ManyBytes
    ephemeral: PublicKey
    tag: Tag
    body_digest: Digest
    parts: Bytes
    signature: Signature
    body: Annotated[wire.Buffer, wire.View()]


def report_digests(boxes: tuple[bytes, ...], ephemeral: bytes, tag: bytes, body_digest: bytes) -> tuple[bytes, ...]:
    """SHA-256 of each box, of ephemeral key and tag together, and the body's: all that a challenge follows from."""
    return (*(hashlib.sha256(part).digest() for part in (*boxes, ephemeral + tag)), body_digest)


def signed_report(round: bytes, client: bytes, digests: tuple[bytes, ...], parts: bytes) -> bytes:
    """What a client signs, with the purpose "report"."""
    return round + client + b"".join(digests) + hashlib.sha256(parts).digest()


def box_context(round: bytes, client: bytes, decryptor: int) -> bytes:
    """What a box is bound to; decryptor: its place in the settings, from 0 on."""
    return round + client + decryptor.to_bytes(4, "little")
