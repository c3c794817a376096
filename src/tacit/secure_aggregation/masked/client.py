"""A device's part of the masked protocol: a state machine, message in, message out; it knows no socket and no clock.

It answers each step once. A message that is refused (ProtocolError) changes nothing and is answered with nothing; the
last one that was answered, come again byte for byte, gets the same bytes again.
"""

import hashlib
import os
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from tacit.errors import InputError, ProtocolError
from tacit.secure_aggregation import secrets
from tacit.secure_aggregation.masked import secret_shares
from tacit.secure_aggregation.masked.masks import add_masks
from tacit.secure_aggregation.masked.messages import (
    NO_SIGNATURE,
    NO_TAG,
    Advertise,
    Boxes,
    Consent,
    Consents,
    Invitation,
    Keys,
    MaskedVector,
    RoundSettings,
    Shares,
    Survivors,
    Unmask,
    ascending,
    clients_of,
    pair,
)
from tacit.secure_aggregation.packing import pack
from tacit.secure_aggregation.secrets import (
    KEY_BYTES,
    SIGNATURE_BYTES,
    TAG_BYTES,
    Draw,
    Identity,
    KeyPair,
    Words,
)
from tacit.secure_aggregation.wire import Message, parsed

STEPS: tuple[type[Message], ...] = (Keys, Boxes, Survivors, Consents)  # what a client answers, in this order


@dataclass(frozen=True, kw_only=True)
class DevicePolicy:
    """What a device asks of any round before it takes part, whatever the server thinks enough.

    `fewest` and `corruption` have no default: whoever ships the device answers for them.
    """

    fewest: int  # clients in a sum
    corruption: float  # share of the clients that may collude with the server; 0: the server has no clients
    always: frozenset[bytes] = frozenset()  # identities that every sum must hold: decryptors that add noise to it
    joined: frozenset[bytes] = frozenset()  # names of rounds that it has taken part in, kept through restarts


def invited(invitation: bytes, policy: DevicePolicy) -> RoundSettings:
    """The settings of the round that this invites to, so that a vector can be encoded for it.

    Raises: ProtocolError where they contradict themselves or fall below the device's policy.
    """
    return _accepted(Invitation.from_bytes(invitation), policy)


def _accepted(invitation: Invitation, policy: DevicePolicy) -> RoundSettings:
    settings = RoundSettings.from_bytes(invitation.settings)
    try:
        settings.check(invitation.identities)
    except InputError as error:
        raise ProtocolError(f"an invitation that cannot be: {error}") from None
    if settings.name != invitation.round:
        raise ProtocolError("an invitation has another round's name than its settings.")
    if settings.name in policy.joined:
        raise ProtocolError(
            "this device has taken part in the round; a second time its signatures could be of two sets."
        )
    if settings.fewest < policy.fewest or settings.corruption < round(1000 * policy.corruption):
        raise ProtocolError(
            f"the round opens sums of {settings.fewest} and withstands {settings.corruption / 10:g}% who collude; this "
            f"device asks for {policy.fewest} and {100 * policy.corruption:g}%."
        )
    if missing := policy.always - {invitation.identities[each] for each in settings.always}:
        raise ProtocolError(
            f"the round opens sums without {min(missing).hex()[:16]}, and this device none (a decryptor of noise?)."
        )
    return settings


class MaskedClient:
    """One device in one round, once: its caller remembers `settings.name` before the first message leaves."""

    def __init__(
        self,
        invitation: bytes,
        identity: Identity,
        vector: Words,
        *,
        policy: DevicePolicy,
        draw: Draw = os.urandom,
    ) -> None:
        """`vector`: (dimension,) uint32, all below 2^bits; it is copied when it is masked, and then forgotten.

        Raises: ProtocolError for an invitation that no device should follow; InputError for a vector that does not fit.
        """
        opened = Invitation.from_bytes(invitation)
        self.settings = _accepted(opened, policy)
        if vector.dtype != "uint32" or vector.shape != (self.settings.dimension,):
            raise InputError(
                f"the vector is {vector.dtype} {vector.shape}; the round sums uint32 ({self.settings.dimension},)."
            )
        if self.settings.bits < 32 and int(vector.max()) >> self.settings.bits:
            raise InputError(
                f"the vector has a word of {int(vector.max())}; encode for this round, which sums modulo "
                f"2^{self.settings.bits}."
            )
        if identity.public not in opened.identities:
            raise InputError("this device is not among those invited; wait for an invitation of its own.")
        self._roster, self._identity, self._draw = opened.identities, identity, draw
        self._plan, self._round = self.settings.plan(), opened.round
        self.index = opened.identities.index(identity.public)
        self._vector: Words | None = vector
        self._self_seed = draw(KEY_BYTES)
        self._mask_key, self._box_key = KeyPair(draw(KEY_BYTES)), KeyPair(draw(KEY_BYTES))
        self._choice = draw(KEY_BYTES)
        self._chosen = self.settings.chosen(self.index, self._choice)
        self._peers: dict[int, Advertise] = {}  # neighbours, from `Keys`
        self._choosers: set[int] = set()  # those among them who chose this one, and share with it
        self._key_shares: dict[int, bytes] = {}  # of the mask keys of who chose it, from `Boxes`
        self._sharers: tuple[int, ...] = ()  # neighbours, from `Boxes`
        self._survivors: tuple[set[int], set[int]] = set(), set()  # clients that shared, and those in the sum
        self._signed = b""
        self._step = 0
        self._last: tuple[bytes, bytes] = b"", b""  # digest of what was answered last, and the answer

    def advertise(self) -> bytes:
        """The first message: this round's public keys, signed."""
        message = Advertise(
            round=self._round,
            sender=self.index,
            mask_key=self._mask_key.public,
            box_key=self._box_key.public,
            self_commitment=self_commitment(self._self_seed),
            choice=self._choice,
            signature=NO_SIGNATURE,
        )
        unsigned = message.to_bytes()[:-SIGNATURE_BYTES]
        return unsigned + self._identity.sign("advertise", unsigned)

    def receive(self, data: bytes) -> bytes:
        """The answer to a message of the server's. Raises: ProtocolError where it is refused, which changes nothing."""
        digest = hashlib.sha256(data).digest()
        if digest == self._last[0]:
            return self._last[1]
        due = STEPS[self._step : self._step + 1]
        message = parsed(data, due, round=self._round) if due else None
        if message is None:
            raise ProtocolError("this device has told all that it tells in a round.")
        answers: dict[type[Message], Callable[..., bytes]] = {
            Keys: self._share,
            Boxes: self._mask,
            Survivors: self._consent,
            Consents: self._unmask,
        }
        answer = answers[type(message)](message, digest)
        self._step, self._last = self._step + 1, (digest, answer)
        return answer

    def _share(self, keys: Keys, seen: bytes) -> bytes:
        """Shares of the mask key for those whom this device chose."""
        peers: dict[int, Advertise] = {}
        for data in keys.advertised:
            peer = Advertise.from_bytes(data, round=self._round)
            ascending([*peers, peer.sender], range(self.settings.clients), "those who advertised")
            public = self._roster[peer.sender]
            secrets.check_signature(public, "advertise", data[:-SIGNATURE_BYTES], peer.signature)
            peers[peer.sender] = peer
        choosers = {peer for peer in peers if self.index in self.settings.chosen(peer, peers[peer].choice)}
        if strangers := set(peers) - choosers.union(self._chosen, self.settings.always_near(self.index)):
            raise ProtocolError(f"client {min(strangers)} is no neighbour: neither has chosen the other.")
        self._must_be_enough(chosen := self._of_chosen(peers), "advertised")
        self._peers, self._choosers = peers, choosers
        boxes = self._boxed(self._mask_key.private, chosen, "key box")
        return self._tagged(Shares(self._round, self.index, boxes, seen, NO_TAG))

    def _mask(self, boxes: Boxes, seen: bytes) -> bytes:
        """The vector under its own mask and one for each neighbour that shared, who takes away what this one adds.

        Those whom it chose and has a mask with get shares of its own mask's seed, and nobody else does: so whoever
        helps to take the one mask off is one whose other mask then stays on (docs/secure-aggregation-protocols.md).
        """
        ascending(boxes.senders, self._peers, "those who shared")
        self._must_be_enough(chosen := self._of_chosen(boxes.senders), "shared")
        makers = [sender for sender in boxes.senders if sender in self._choosers]
        if len(boxes.boxes) != len(makers) or self._vector is None:
            raise ProtocolError(f"{len(boxes.boxes)} boxes came of {len(makers)} senders.")
        masked = self._vector.copy()
        own = secrets.derived(self._self_seed, "self mask", self._round)
        pairs = (
            (mask_seed(self._mask_key, self._peers[peer].mask_key, self._round, (self.index, peer)), peer < self.index)
            for peer in boxes.senders
        )
        add_masks(masked, [(own, False), *pairs])
        masked &= (1 << self.settings.bits) - 1
        packed = pack(masked, self.settings.bits)
        shared = self._boxed(self._self_seed, chosen, "self box")
        self._key_shares = self._unboxed(makers, boxes.boxes, "key box")
        self._sharers, self._vector = boxes.senders, None
        return self._tagged(MaskedVector(self._round, self.index, seen, shared, packed, NO_TAG))

    def _of_chosen(self, peers: Iterable[int]) -> list[int]:
        """Those among them whom this device chose, in ascending order."""
        return sorted(set(peers).intersection(self._chosen))

    def _boxed(self, secret: bytes, receivers: Sequence[int], purpose: str) -> tuple[bytes, ...]:
        """For each receiver a box with its share of the secret, which `threshold` of them rebuild."""
        points = [receiver + 1 for receiver in receivers]
        parts = secret_shares.split_secret(secret, points, self._plan.threshold, self._draw)
        boxes = []
        for receiver, part in zip(receivers, parts, strict=True):
            between = pair(self.index, receiver)
            key = self._box_key.agreed(self._peers[receiver].box_key, purpose, self._round, between)
            boxes.append(secrets.boxed(key, part, self._round + between, self._draw))
        return tuple(boxes)

    def _unboxed(self, senders: Sequence[int], boxes: Sequence[bytes], purpose: str) -> dict[int, bytes]:
        """The shares in the boxes that open; one that does not harms nobody but its maker."""
        found: dict[int, bytes] = {}
        for sender, box in zip(senders, boxes, strict=True):
            between = pair(sender, self.index)
            try:
                key = self._box_key.agreed(self._peers[sender].box_key, purpose, self._round, between)
                part = secrets.unboxed(key, box, self._round + between)
            except ProtocolError:
                continue
            if len(part) == secret_shares.SHARE_BYTES:
                found[sender] = part
        return found

    def _consent(self, message: Survivors, seen: bytes) -> bytes:
        """A signature of who shared and who is in the sum, if that is what this device saw of it."""
        count = self.settings.clients
        sharers, survivors = (set(clients_of(bits, count)) for bits in (message.sharers, message.survivors))
        if not survivors <= sharers or self.index not in survivors:
            raise ProtocolError("the sum is said to hold a client that did not share, or not to hold this one.")
        near = set(self._peers).union(self._chosen, self.settings.always_near(self.index))
        if sharers & near != set(self._sharers):
            raise ProtocolError("other neighbours are said to have shared than those whose boxes came.")
        if missing := set(self.settings.always) - survivors:
            raise ProtocolError(f"the sum lacks client {min(missing)}, without which this device opens none.")
        least = max(self.settings.fewest, self._plan.quorum)
        if len(survivors) < least:
            raise ProtocolError(
                f"the sum holds {len(survivors)} clients; this device opens none of fewer than {least}."
            )
        self._survivors, self._signed = (sharers, survivors), message.to_bytes()
        signature = self._identity.sign("survivors", self._signed)
        return Consent(self._round, self.index, signature).to_bytes()

    def _unmask(self, message: Consents, seen: bytes) -> bytes:
        """Of each who chose it one share: of its own mask where it is in the sum, of its mask key where it is not."""
        _, survivors = self._survivors
        ascending(message.signers, survivors, "those who signed")
        if len(message.signers) != len(message.signatures) or len(message.signers) < self._plan.quorum:
            raise ProtocolError(
                f"{len(message.signers)} clients signed who is in the sum, of {self._plan.quorum} that must agree."
            )
        for signer, signature in zip(message.signers, message.signatures, strict=True):
            secrets.check_signature(self._roster[signer], "survivors", self._signed, signature)
        ascending(message.senders, survivors & self._choosers, "those who boxed a share")
        if len(message.senders) != len(message.boxes):
            raise ProtocolError(f"{len(message.boxes)} boxes came of {len(message.senders)} senders.")
        self_shares = self._unboxed(message.senders, message.boxes, "self box")
        key_shares = {peer: part for peer, part in self._key_shares.items() if peer not in survivors}
        answer = Unmask(
            round=self._round,
            sender=self.index,
            survivors=tuple(self_shares),
            self_shares=tuple(self_shares.values()),
            vanished=tuple(key_shares),
            key_shares=tuple(key_shares.values()),
            tag=NO_TAG,
        )
        data = self._tagged(answer)
        self._key_shares, self._self_seed = {}, b""
        del self._mask_key, self._box_key
        return data

    def _must_be_enough(self, peers: Collection[int], did: str) -> None:
        if len(peers) < self._plan.threshold:
            raise ProtocolError(
                f"{len(peers)} chosen neighbours {did}; fewer than {self._plan.threshold} could not rebuild what they "
                "share."
            )

    def _tagged(self, message: Message) -> bytes:
        """The message's bytes, which end with a tag that only this device and the server can make."""
        data = message.to_bytes()[:-TAG_BYTES]
        return data + secrets.tag(tag_key(self._box_key, self.settings.server_key, message), data)


def self_commitment(seed: bytes) -> bytes:
    """What a client says of the seed of its own mask before it shares it."""
    return secrets.commitment("self mask", seed)


def mask_seed(mine: KeyPair, public: bytes, round: bytes, of: tuple[int, int]) -> bytes:
    """The seed of the mask of two clients: bound to both numbers, for who copies a key is not to copy a mask."""
    return mine.agreed(public, "mask", round, pair(min(of), max(of)))


def tag_key(mine: KeyPair, public: bytes, message: Message) -> bytes:
    """The key of one message's tag: of its round, its kind and its two parties, and so of one message ever."""
    return mine.agreed(public, "tag", message.round, message.kind.to_bytes(2, "little"))
