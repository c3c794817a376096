"""The masked protocol's settings and messages: what each says, byte by byte in docs/secure-aggregation-protocols.md.

| kind | message | from, to | says |
|---|---|---|---|
| 1 | `Invitation` | server, all | the round's settings and who is invited |
| 2 | `Advertise` | client, server | its keys of this round and whom it chose for neighbours, signed |
| 3 | `Keys` | server, each | what those whom it chose, and those who chose it, advertised |
| 4 | `Shares` | client, server | for each whom it chose a box with a share of its mask key |
| 5 | `Boxes` | server, each | which neighbours shared, and the boxes made for it |
| 6 | `MaskedVector` | client, server | its vector under all its masks; a share of its own mask, boxed as before |
| 7 | `Survivors` | server, all | who shared, and whose vectors came |
| 8 | `Consent` | client, server | a signature of just that |
| 9 | `Consents` | server, each | a quorum of those signatures, and the boxes made for it |
| 10 | `Unmask` | client, server | of each who chose it one of its two shares |
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, ClassVar, Self

import numpy as np

from tacit.errors import InputError, ProtocolError
from tacit.secure_aggregation.masked.graph import GraphPlan, chosen, graph_plan
from tacit.secure_aggregation.masked.secret_shares import SHARE_BYTES
from tacit.secure_aggregation.secrets import KEY_BYTES, SIGNATURE_BYTES, TAG_BYTES
from tacit.secure_aggregation.wire import (
    Buffer,
    Bytes,
    Count,
    Digest,
    Fixed,
    Index,
    Indices,
    ManyBytes,
    Message,
    Number,
    Record,
    Rows,
    View,
)

Key = Annotated[bytes, Fixed(KEY_BYTES)]
Keyring = Annotated[tuple[bytes, ...], Rows(Fixed(KEY_BYTES))]
Signature = Annotated[bytes, Fixed(SIGNATURE_BYTES)]
Signatures = Annotated[tuple[bytes, ...], Rows(Fixed(SIGNATURE_BYTES))]
ShareRows = Annotated[tuple[bytes, ...], Rows(Fixed(SHARE_BYTES))]
Tag = Annotated[bytes, Fixed(TAG_BYTES)]
NO_TAG, NO_SIGNATURE = bytes(TAG_BYTES), bytes(SIGNATURE_BYTES)

MOST_BITS, MOST_COORDINATES = 32, 1 << 31


@dataclass(frozen=True)
class Roster(Record):
    """Who is invited: client i is the holder of the i-th identity (Ed25519)."""

    identities: Keyring


@dataclass(frozen=True)
class RoundSettings(Record):
    """All that is public of a round; its digest is the round's name, to which every key and every message is bound."""

    clients: Index
    fewest: Index  # the privacy threshold: a sum of fewer is not opened
    most_reports: Index  # that fit the modulus, as the encoding says
    dimension: Count
    bits: Annotated[int, Number(1)]  # the sum is modulo 2^bits
    dropout: Annotated[int, Number(2)]  # thousandths of the clients that may vanish,
    corruption: Annotated[int, Number(2)]  # and that may collude with the server
    roster: Digest
    server_key: Key  # X25519, of this round
    always: Indices  # clients that every sum must hold, in ascending order: everybody's neighbours
    nonce: Digest  # random: what makes the round's name new

    @classmethod
    def from_cohort(
        cls,
        identities: Sequence[bytes],
        *,
        dimension: int,
        bits: int,
        most_reports: int,
        fewest: int,
        server_key: bytes,
        nonce: bytes,
        always: Collection[bytes] = (),
        dropout: float = 0.1,
        corruption: float = 0.1,
    ) -> Self:
        """Settings for these clients; `always` are identities among them. Raises: InputError where they contradict
        one another.
        """
        if strangers := set(always) - set(identities):
            raise InputError(f"{min(strangers).hex()[:16]} is to be in every sum, and is not invited.")
        settings = cls(
            clients=len(identities),
            fewest=fewest,
            most_reports=most_reports,
            dimension=dimension,
            bits=bits,
            dropout=round(1000 * dropout),
            corruption=round(1000 * corruption),
            roster=Roster(tuple(identities)).digest("masked roster"),
            server_key=server_key,
            always=tuple(sorted(identities.index(each) for each in set(always))),
            nonce=nonce,
        )
        settings.check(identities)
        return settings

    def check(self, identities: Sequence[bytes]) -> None:
        """Raises: InputError where the settings contradict one another or are not for these clients."""
        if self.fewest < 2:
            raise InputError(
                f"fewest={self.fewest}: the sum of one is that one; set the privacy threshold to 2 at least."
            )
        if self.clients < self.fewest:
            raise InputError(
                f"{self.clients} clients are below the privacy threshold of {self.fewest}; invite more of them."
            )
        if not (1 <= self.bits <= MOST_BITS and 1 <= self.dimension <= MOST_COORDINATES):
            raise InputError(
                f"bits={self.bits}, dimension={self.dimension}: give 1 to {MOST_BITS} bits and 1 to "
                f"{MOST_COORDINATES:,} coordinates."
            )
        if self.clients > self.most_reports or self.most_reports >> self.bits:
            raise InputError(
                f"a sum modulo 2^{self.bits} of at most {self.most_reports:,} reports does not hold {self.clients:,}: "
                "encode for more reports, or invite fewer clients."
            )
        if len(set(identities)) != self.clients or Roster(tuple(identities)).digest("masked roster") != self.roster:
            raise InputError(f"the settings are for {self.clients} other clients, or a client is invited twice.")
        if self.always != tuple(sorted({*self.always} & {*range(self.clients)})):
            raise InputError("those whom every sum must hold are not clients of the round in ascending order.")
        self.plan()

    def plan(self) -> GraphPlan:
        """The graph's degree, threshold and quorum. Raises: InputError where no graph is safe."""
        return graph_plan(self.clients, dropout=self.dropout, corruption=self.corruption)

    def chosen(self, client: int, choice: bytes) -> list[int]:
        """Whom a client has chosen for neighbours by these 32 bytes."""
        return chosen(self.plan(), client, choice)

    def always_near(self, client: int) -> list[int]:
        """Whom it has for neighbours whoever chose whom: all, if every sum must hold it, or else those."""
        near = range(self.clients) if client in self.always else self.always
        return [other for other in near if other != client]

    @property
    def name(self) -> bytes:
        """The round: 32 bytes that every message of it carries."""
        return self.digest("masked round")

    def vector_bytes(self) -> int:
        """What a vector takes on the wire."""
        return -(-self.dimension * self.bits // 8)


@dataclass(frozen=True)
class Invitation(Message):
    kind: ClassVar[int] = 1
    settings: Bytes
    identities: Keyring


@dataclass(frozen=True)
class Advertise(Message):
    """Signed by the sender's identity: all bytes before the signature's 64."""

    kind: ClassVar[int] = 2
    sender: Index
    mask_key: Key  # X25519: with each neighbour's it gives the seed of a mask
    box_key: Key  # X25519: with each neighbour's the key of a box, with the server's those of tags
    self_commitment: Digest  # to the seed of the sender's own mask
    choice: Key  # 32 random bytes, from which the neighbours follow that it chose
    signature: Signature


@dataclass(frozen=True)
class Keys(Message):
    kind: ClassVar[int] = 3
    advertised: ManyBytes  # in ascending order of senders


@dataclass(frozen=True)
class Shares(Message):
    kind: ClassVar[int] = 4
    sender: Index
    boxes: ManyBytes  # of a share of its mask key, for each whom it chose in the `Keys` that it answers, in their order
    seen: Digest  # SHA-256 of the message that it answers
    tag: Tag


@dataclass(frozen=True)
class Boxes(Message):
    kind: ClassVar[int] = 5
    senders: Indices  # neighbours that shared
    boxes: ManyBytes  # of those among them who chose the receiver, in their order


@dataclass(frozen=True)
class MaskedVector(Message):
    kind: ClassVar[int] = 6
    sender: Index
    seen: Digest
    boxes: ManyBytes  # of a share of the seed of its own mask, for each whom it chose in the `Boxes` that it answers
    vector: Annotated[Buffer, View()]  # packed words of `bits` bits
    tag: Tag


@dataclass(frozen=True)
class Survivors(Message):
    kind: ClassVar[int] = 7
    sharers: Bytes  # a bit for each client, client 0 the lowest of the first byte
    survivors: Bytes


@dataclass(frozen=True)
class Consent(Message):
    """The signature, by the sender's identity, is of the bytes of the `Survivors` that it answers."""

    kind: ClassVar[int] = 8
    sender: Index
    signature: Signature


@dataclass(frozen=True)
class Consents(Message):
    kind: ClassVar[int] = 9
    signers: Indices
    signatures: Signatures
    senders: Indices  # neighbours in the sum who chose the receiver
    boxes: ManyBytes  # and their boxes, of `MaskedVector`, for it


@dataclass(frozen=True)
class PassedOn(Record):
    """The end of a `Consents`, which differs from client to client: all before it the server writes once."""

    senders: Indices
    boxes: ManyBytes


@dataclass(frozen=True)
class Unmask(Message):
    kind: ClassVar[int] = 10
    sender: Index
    survivors: Indices  # who chose it and are in the sum: shares of the seeds of their own masks
    self_shares: ShareRows
    vanished: Indices  # who chose it and are not: shares of their mask keys
    key_shares: ShareRows
    tag: Tag


def pair(sender: int, receiver: int) -> bytes:
    """8 bytes: who, to whom."""
    return sender.to_bytes(4, "little") + receiver.to_bytes(4, "little")


def ascending(indices: Sequence[int], among: Iterable[int], what: str) -> None:
    """Raises: ProtocolError unless these are ascending, so none stands there twice, and among the others."""
    if any(one >= other for one, other in pairwise(indices)) or not set(indices) <= set(among):
        raise ProtocolError(f"{what} are not in ascending order, or there are some among them that cannot be.")


def bits_of(clients: Iterable[int], count: int) -> bytes:
    """A bit for each of `count` clients, client 0 the lowest of the first byte."""
    there = np.zeros(count, np.uint8)
    there[list(clients)] = 1
    return np.packbits(there, bitorder="little").tobytes()


def clients_of(bits: bytes, count: int) -> list[int]:
    """The clients whose bits are set. Raises: ProtocolError for another number of bytes, or a bit of no client."""
    there = np.flatnonzero(np.unpackbits(np.frombuffer(bits, np.uint8), bitorder="little")).tolist()
    if len(bits) != -(-count // 8) or (there and there[-1] >= count):
        raise ProtocolError(f"{len(bits)} bytes are not a bit for each of {count} clients.")
    return [int(each) for each in there]
