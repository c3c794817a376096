"""A device's part of the masked protocol: a state machine, message in, message out; it knows no socket and no clock.

It answers each step once. A message that is refused (ProtocolError) changes nothing and is answered with nothing; the
last one that was answered, come again byte for byte, gets the same bytes again.
"""

import hashlib
import os
from collections.abc import Callable, Collection
from dataclasses import dataclass

from tacit.errors import InputError, ProtocolError
from tacit.secure_aggregation import secrets, shares
from tacit.secure_aggregation.masked_messages import (
    NO_SIGNATURE,
    NO_TAG,
    Advertise,
    BoxContent,
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
from tacit.secure_aggregation.secrets import KEY_BYTES, SIGNATURE_BYTES, TAG_BYTES, Draw, Identity, KeyPair, Words
from tacit.secure_aggregation.wire import Message, parsed

STEPS: tuple[type[Message], ...] = (Keys, Boxes, Survivors, Consents)  # what a client answers, in this order


@dataclass(frozen=True, kw_only=True)
class DevicePolicy:
    """What a device asks of any round before it takes part, whatever the server thinks enough."""

    fewest: int = 2  # clients in a sum
    corruption: float = 0.0  # share of the clients that may collude with the server
    always: frozenset[bytes] = frozenset()  # identities that every sum must hold: keepers that add noise to it
    joined: frozenset[bytes] = frozenset()  # names of rounds that it has taken part in, kept through restarts


def invited(invitation: bytes, policy: DevicePolicy | None = None) -> RoundSettings:
    """The settings of the round that this invites to, so that a vector can be encoded for it.

    Raises: ProtocolError where they contradict themselves or fall below the device's policy.
    """
    return _accepted(Invitation.from_bytes(invitation), policy or DevicePolicy())


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
    if missing := policy.always - set(invitation.identities):
        raise ProtocolError(
            f"{min(missing).hex()[:16]} is not invited, and this device opens no sum without it (a keeper of noise?)."
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
        policy: DevicePolicy | None = None,
        draw: Draw = os.urandom,
    ) -> None:
        """`vector`: (dimension,) uint32, all below 2^bits; it is copied when it is masked, and then forgotten.

        Raises: ProtocolError for an invitation that no device should follow; InputError for a vector that does not fit.
        """
        opened = Invitation.from_bytes(invitation)
        policy = policy or DevicePolicy()
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
        self._always = {opened.identities.index(each) for each in policy.always}
        self._plan, self._round = self.settings.plan(), opened.round
        self.index = opened.identities.index(identity.public)
        self._neighbours = self.settings.neighbours()[self.index]
        self._vector: Words | None = vector
        self._self_seed = draw(KEY_BYTES)
        self._mask_key, self._box_key = KeyPair(draw(KEY_BYTES)), KeyPair(draw(KEY_BYTES))
        self._peers: dict[int, Advertise] = {}  # neighbours, from `Keys`
        self._held: dict[int, BoxContent] = {}  # by whose secrets they are shares of
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
        """Shares of both secrets for the neighbours that advertised."""
        peers: dict[int, Advertise] = {}
        for data in keys.advertised:
            peer = Advertise.from_bytes(data, round=self._round)
            ascending([*peers, peer.sender], self._neighbours, "those who advertised")
            public = self._roster[peer.sender]
            secrets.check_signature(public, "advertise", data[:-SIGNATURE_BYTES], peer.signature)
            peers[peer.sender] = peer
        self._must_be_enough(peers, "advertised")
        points = [peer + 1 for peer in peers]
        selves = shares.split_secret(self._self_seed, points, self._plan.threshold, self._draw)
        mask_keys = shares.split_secret(self._mask_key.private, points, self._plan.threshold, self._draw)
        boxes = []
        for peer, self_share, key_share in zip(peers.values(), selves, mask_keys, strict=True):
            between = pair(self.index, peer.sender)
            key = self._box_key.agreed(peer.box_key, "box", self._round, between)
            content = BoxContent(self_share, key_share).to_bytes()
            boxes.append(secrets.boxed(key, content, self._round + between, self._draw))
        answer = self._tagged(Shares(self._round, self.index, tuple(boxes), seen, NO_TAG))
        self._peers = peers
        return answer

    def _mask(self, boxes: Boxes, seen: bytes) -> bytes:
        """The vector under its own mask and one for each neighbour that shared, who takes away what this one adds."""
        ascending(boxes.senders, self._peers, "those who shared")
        self._must_be_enough(boxes.senders, "shared")
        if len(boxes.boxes) != len(boxes.senders) or self._vector is None:
            raise ProtocolError(f"{len(boxes.boxes)} boxes came of {len(boxes.senders)} senders.")
        masked = self._vector.copy()
        own = secrets.derived(self._self_seed, "self mask", self._round)
        pairs = (
            (mask_seed(self._mask_key, self._peers[peer].mask_key, self._round, (self.index, peer)), peer < self.index)
            for peer in boxes.senders
        )
        secrets.add_masks(masked, [(own, False), *pairs])
        masked &= (1 << self.settings.bits) - 1
        packed = pack(masked, self.settings.bits)
        answer = self._tagged(MaskedVector(self._round, self.index, seen, packed, NO_TAG))
        self._held = {
            sender: content
            for sender, box in zip(boxes.senders, boxes.boxes, strict=True)
            if (content := self._opened(sender, box))
        }
        self._sharers, self._vector = boxes.senders, None
        return answer

    def _opened(self, sender: int, box: bytes) -> BoxContent | None:
        """What is in a neighbour's box; none where it does not open, which harms nobody but that neighbour."""
        between = pair(sender, self.index)
        try:
            key = self._box_key.agreed(self._peers[sender].box_key, "box", self._round, between)
            return BoxContent.from_bytes(secrets.unboxed(key, box, self._round + between))
        except ProtocolError:
            return None

    def _consent(self, message: Survivors, seen: bytes) -> bytes:
        """A signature of who shared and who is in the sum, if that is what this device saw of it."""
        count = self.settings.clients
        sharers, survivors = (set(clients_of(bits, count)) for bits in (message.sharers, message.survivors))
        if not survivors <= sharers or self.index not in survivors:
            raise ProtocolError("the sum is said to hold a client that did not share, or not to hold this one.")
        if sharers & set(self._neighbours) != set(self._sharers):
            raise ProtocolError("other neighbours are said to have shared than those whose boxes came.")
        if missing := self._always - survivors:
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
        """Of each neighbour one share: of its own mask where it is in the sum, of its mask key where it is not."""
        _, survivors = self._survivors
        ascending(message.signers, survivors, "those who signed")
        if len(message.signers) != len(message.signatures) or len(message.signers) < self._plan.quorum:
            raise ProtocolError(
                f"{len(message.signers)} clients signed who is in the sum, of {self._plan.quorum} that must agree."
            )
        for signer, signature in zip(message.signers, message.signatures, strict=True):
            secrets.check_signature(self._roster[signer], "survivors", self._signed, signature)
        there = tuple(peer for peer in self._held if peer in survivors)
        gone = tuple(peer for peer in self._held if peer not in survivors)
        answer = Unmask(
            round=self._round,
            sender=self.index,
            survivors=there,
            self_shares=tuple(self._held[peer].self_share for peer in there),
            vanished=gone,
            key_shares=tuple(self._held[peer].key_share for peer in gone),
            tag=NO_TAG,
        )
        data = self._tagged(answer)
        self._held, self._self_seed = {}, b""
        del self._mask_key, self._box_key
        return data

    def _must_be_enough(self, peers: Collection[int], did: str) -> None:
        if len(peers) < self._plan.threshold:
            raise ProtocolError(
                f"{len(peers)} neighbours {did}; fewer than {self._plan.threshold} could not rebuild what they share."
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
