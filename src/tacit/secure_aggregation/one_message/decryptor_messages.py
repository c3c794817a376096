"""What server and decryptors say to each other in a round of one message a client; `messages` shows the order."""

import hashlib
from dataclasses import dataclass
from typing import Annotated, ClassVar

from tacit.secure_aggregation import wire
from tacit.secure_aggregation.one_message.messages import ProtocolMessage, PublicKey, PublicKeys, Signature
from tacit.secure_aggregation.secrets import SIGNATURE_BYTES
from tacit.secure_aggregation.wire import Bytes, Digest, Index, Indices

Digests = Annotated[tuple[bytes, ...], wire.Rows(wire.Fixed(wire.DIGEST_BYTES))]
MOST_REASON = 1000  # bytes of a reason that are shown
Signatures = Annotated[tuple[bytes, ...], wire.Rows(wire.Fixed(SIGNATURE_BYTES))]


@dataclass(frozen=True)
class Opening(ProtocolMessage):
    """Server to decryptor: a round begins. settings: the bytes of a OneMessageRound."""

    kind: ClassVar[int] = 34
    settings: Bytes


@dataclass(frozen=True)
class SetProposal(ProtocolMessage):
    """Server to decryptor: the clients whose sum it asks for, by their identities, in ascending order."""

    kind: ClassVar[int] = 35
    clients: PublicKeys


@dataclass(frozen=True)
class Vote(ProtocolMessage):
    """Decryptor to server: the one set that it answers for in this round. clients: the digest of the set."""

    kind: ClassVar[int] = 36
    decryptor: Index
    clients: Digest
    signature: Signature


@dataclass(frozen=True)
class Agreement(ProtocolMessage):
    """Server to decryptor: a quorum's signatures of the set."""

    kind: ClassVar[int] = 37
    decryptors: Indices
    signatures: Signatures


@dataclass(frozen=True)
class Deposit(ProtocolMessage):
    """Server to decryptor: a client's share for this decryptor. digests: `report_digests`, which the signature is
    over; parts: the report's.
    """

    kind: ClassVar[int] = 38
    client: PublicKey
    digests: Digests
    signature: Signature
    parts: Bytes
    box: Bytes


@dataclass(frozen=True)
class KeySum(ProtocolMessage):
    """Decryptor to server: the sum of its shares of the agreed set. clients: the digest of the set."""

    kind: ClassVar[int] = 39
    decryptor: Index
    clients: Digest
    shares: Bytes
    signature: Signature


@dataclass(frozen=True)
class Refusal(ProtocolMessage):
    """Decryptor to server: why a message was not followed, as UTF-8."""

    kind: ClassVar[int] = 40
    reason: Bytes


@dataclass(frozen=True)
class Finding(ProtocolMessage):
    """Decryptor to server: whether a report fits what is in its box.

    wrong: why it does not, as UTF-8; empty where it does.
    """

    kind: ClassVar[int] = 41
    decryptor: Index
    client: PublicKey
    wrong: Bytes
    signature: Signature


@dataclass(frozen=True)
class NoiseRequest(ProtocolMessage):
    """Server to decryptor: your noise for the round, as a OneMessageReport; or with `give` 0 nothing, or a Refusal.

    plan, task: signed by the operator, as devices have them; matrix: the file that the plan names, else empty.
    """

    kind: ClassVar[int] = 42
    give: Index
    plan: Bytes
    task: Bytes
    matrix: Bytes


def reason_of(said: bytes) -> str:
    """What a decryptor says, as one line of a log: no order to a terminal, and no longer than MOST_REASON."""
    text = said[:MOST_REASON].decode(errors="replace")
    words = " ".join("".join(each if each.isprintable() else " " for each in text).split())
    return words or "it does not say why"


def signed_finding(round: bytes, client: bytes, wrong: bytes) -> bytes:
    """What a decryptor signs, with the purpose "finding"."""
    return round + client + wrong


def set_digest(round: bytes, clients: tuple[bytes, ...]) -> bytes:
    """SHA-256 of the round and a set's identities in ascending order; signed with the purpose "set"."""
    return hashlib.sha256(round + b"".join(clients)).digest()


def signed_sum(round: bytes, clients: bytes, shares: bytes) -> bytes:
    """What a decryptor signs, with the purpose "key sum"; clients: the digest of the set."""
    return round + clients + shares
