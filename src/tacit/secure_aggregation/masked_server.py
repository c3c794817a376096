"""The server's part of the masked protocol: a state machine that adds as vectors come, and opens nothing but the sum.

Messages go in one by one (`receive`); when a step has lasted long enough, which is the caller's clock, `advance` closes
it and gives what is to be sent. One sum is in memory, however many clients there are; beside it some kilobytes for
each client.
"""

import hashlib
import random
from collections.abc import Callable, Collection, Container, Iterator, Sequence

import numpy as np

from tacit.errors import InputError, ProtocolError, RoundAborted
from tacit.secure_aggregation import secrets, shares
from tacit.secure_aggregation.masked_client import mask_seed, self_commitment, tag_key
from tacit.secure_aggregation.masked_messages import (
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
    bits_of,
)
from tacit.secure_aggregation.packing import add_packed
from tacit.secure_aggregation.secrets import SIGNATURE_BYTES, TAG_BYTES, KeyPair, Words
from tacit.secure_aggregation.wire import Message, parsed

STEPS: tuple[type[Message], ...] = (Advertise, Shares, MaskedVector, Consent, Unmask)  # what it waits for, in order
TRIES = 40  # sets of shares of one secret that are tried before the round is given up


class MaskedServer:
    """One round. `advance` after each of its five steps; then `total` is the sum and `included` whose it is."""

    def __init__(self, settings: RoundSettings, identities: Sequence[bytes], private: bytes) -> None:
        """`private`: the X25519 key whose public half is in the settings, fresh for this round.

        Raises: InputError where settings and clients do not belong together.
        """
        settings.check(identities)
        self._key = KeyPair(private)
        if self._key.public != settings.server_key:
            raise InputError("the server's private key is not that of the settings; make both anew for each round.")
        self.settings, self.identities = settings, tuple(identities)
        self._plan, self._round = settings.plan(), settings.name
        self._chosen: dict[int, list[int]] = {}  # by each that advertised, of those that did
        self._near: dict[int, list[int]] = {}  # neighbours: whom it chose, who chose it, and who is everybody's
        self._step = 0
        self._sum: Words = np.zeros(settings.dimension, np.uint32)
        self._advertised: dict[int, Advertise] = {}
        self._boxed: dict[int, dict[int, bytes]] = {}  # sender -> receiver -> box, until they are passed on
        self._sharers: set[int] = set()
        self._added: set[int] = set()
        self._survivors = b""
        self._consents: dict[int, bytes] = {}
        self._unmasked: dict[int, Unmask] = {}
        self._sent: dict[int, bytes] = {}  # digest of what each client was sent in the step before

    @property
    def invitation(self) -> bytes:
        """What every invited client is sent first."""
        return Invitation(self._round, self.settings.to_bytes(), self.identities).to_bytes()

    @property
    def waiting_for(self) -> type[Message] | None:
        """The kind of message that this step takes; none when the round is over."""
        return STEPS[self._step] if self._step < len(STEPS) else None

    @property
    def included(self) -> tuple[int, ...]:
        """Clients whose vectors are in the sum."""
        return tuple(sorted(self._added))

    @property
    def total(self) -> Words:
        """The sum (dimension,) uint32 modulo 2^bits of what `included` sent. Raises: ProtocolError before the end."""
        if self._step != len(STEPS):
            raise ProtocolError("the round is not over, or was given up: there is no sum.")
        return self._sum

    def receive(self, data: bytes) -> None:
        """Takes one client's message. Raises: ProtocolError where it is refused, as if it had not come."""
        waiting = self.waiting_for
        if waiting is None:
            raise ProtocolError("the round is over.")
        message = parsed(data, [waiting], round=self._round)
        match message:
            case Advertise():
                self._advertise(message, data)
            case Shares():
                self._share(message, data)
            case MaskedVector():
                self._add(message, data)
            case Consent():
                self._consent(message)
            case Unmask():
                self._unmask(message, data)

    def advance(self) -> dict[int, bytes]:
        """Closes a step: the messages to send, by client; after the last step none, and the sum is there.

        Raises: RoundAborted, naming the cause, where too few are left or what they said does not open the sum.
        """
        closing = (self._keys, self._boxes, self._say_survivors, self._say_consents, self._open)
        if self.waiting_for is None:
            raise ProtocolError("the round is over.")
        try:
            messages = dict(closing[self._step]())
        except RoundAborted:
            self._step = len(STEPS) + 1
            self._sum = np.zeros(0, np.uint32)
            raise
        self._sent = {client: hashlib.sha256(data).digest() for client, data in messages.items()}
        self._step += 1
        return messages

    def _advertise(self, message: Advertise, data: bytes) -> None:
        sender = message.sender
        self._must_be_new(sender, range(self.settings.clients), self._advertised)
        secrets.check_signature(self.identities[sender], "advertise", data[:-SIGNATURE_BYTES], message.signature)
        for key in (message.mask_key, message.box_key):  # one with which nobody agrees would stop its neighbours
            self._key.agreed(key, "check")
        self._advertised[sender] = message

    def _keys(self) -> Iterator[tuple[int, bytes]]:
        self._must_be_enough(self._advertised, "advertised their keys")
        advertised = {client: message.to_bytes() for client, message in self._advertised.items()}
        near = {client: set(self.settings.always_near(client)) & set(advertised) for client in advertised}
        for client, message in self._advertised.items():
            chosen = [each for each in self.settings.chosen(client, message.choice) if each in advertised]
            self._chosen[client] = chosen
            near[client].update(chosen)
            for each in chosen:
                near[each].add(client)
        self._near = {client: sorted(each) for client, each in near.items()}
        for client in advertised:
            yield client, Keys(self._round, tuple(advertised[each] for each in self._near[client])).to_bytes()

    def _share(self, message: Shares, data: bytes) -> None:
        self._must_be_new(message.sender, self._sent, self._boxed)
        self._must_be_tagged(message, data)
        self._boxed[message.sender] = self._boxes_by_receiver(message, self._chosen[message.sender])

    def _boxes(self) -> Iterator[tuple[int, bytes]]:
        self._sharers, boxed, self._boxed = set(self._boxed), self._boxed, {}
        self._must_be_enough(self._sharers, "shared their secrets")
        for client in self._sharers:
            near = tuple(each for each in self._near[client] if each in self._sharers)
            boxes = tuple(boxed[each][client] for each in near if client in boxed[each])
            yield client, Boxes(self._round, near, boxes).to_bytes()

    def _boxes_by_receiver(self, message: Shares | MaskedVector, receivers: list[int]) -> dict[int, bytes]:
        if len(message.boxes) != len(receivers):
            raise ProtocolError(
                f"client {message.sender} made {len(message.boxes)} boxes for {len(receivers)} neighbours."
            )
        return dict(zip(receivers, message.boxes, strict=True))

    def _add(self, message: MaskedVector, data: bytes) -> None:
        self._must_be_new(message.sender, self._sent, self._added)
        self._must_be_tagged(message, data)
        receivers = [each for each in self._chosen[message.sender] if each in self._sharers]
        boxes = self._boxes_by_receiver(message, receivers)
        try:
            add_packed(self._sum, message.vector, self.settings.bits)
        except InputError as error:
            raise ProtocolError(f"client {message.sender} sent no vector of this round: {error}") from None
        self._boxed[message.sender] = boxes
        self._added.add(message.sender)

    def _say_survivors(self) -> Iterator[tuple[int, bytes]]:
        self._must_be_enough(self._added, "sent their vectors")
        count = self.settings.clients
        message = Survivors(self._round, bits_of(self._sharers, count), bits_of(self._added, count))
        self._survivors = message.to_bytes()
        for client in self._added:
            yield client, self._survivors

    def _consent(self, message: Consent) -> None:
        sender = message.sender
        self._must_be_new(sender, self._sent, self._consents)
        secrets.check_signature(self.identities[sender], "survivors", self._survivors, message.signature)
        self._consents[sender] = message.signature

    def _say_consents(self) -> Iterator[tuple[int, bytes]]:
        self._must_be_enough(self._consents, "agreed on who is in the sum", held=self._added)
        signers = tuple(sorted(self._consents)[: self._plan.quorum])
        signatures = tuple(self._consents[each] for each in signers)
        boxed, self._boxed = self._boxed, {}
        for client in self._consents:
            makers = tuple(each for each in self._near[client] if client in boxed.get(each, {}))
            boxes = tuple(boxed[each][client] for each in makers)
            yield client, Consents(self._round, signers, signatures, makers, boxes).to_bytes()

    def _unmask(self, message: Unmask, data: bytes) -> None:
        sender = message.sender
        self._must_be_new(sender, self._sent, self._unmasked)
        self._must_be_tagged(message, data)
        choosers = {each for each in self._near[sender] if each in self._sharers and sender in self._chosen[each]}
        ascending(message.survivors, choosers & self._added, "neighbours in the sum")
        ascending(message.vanished, choosers - self._added, "neighbours that vanished")
        if (len(message.survivors), len(message.vanished)) != (len(message.self_shares), len(message.key_shares)):
            raise ProtocolError(f"client {sender} tells another number of shares than of neighbours.")
        self._unmasked[sender] = message

    def _open(self) -> Iterator[tuple[int, bytes]]:
        """Takes all masks off the sum."""
        selves: dict[int, dict[int, bytes]] = {client: {} for client in sorted(self._added)}
        keys: dict[int, dict[int, bytes]] = {client: {} for client in sorted(self._sharers - self._added)}
        for holder, message in self._unmasked.items():
            for client, share in zip(message.survivors, message.self_shares, strict=True):
                selves[client][holder] = share
            for client, share in zip(message.vanished, message.key_shares, strict=True):
                keys[client][holder] = share
        masks = [*self._own_masks(selves), *self._pairwise_masks(keys)]
        secrets.add_masks(self._sum, masks)
        self._sum &= np.uint32((1 << self.settings.bits) - 1)
        return iter(())

    def _own_masks(self, held: dict[int, dict[int, bytes]]) -> Iterator[tuple[bytes, bool]]:
        """(seed, subtracted) of the masks that those in the sum added for themselves."""
        for client, told in held.items():
            committed = self._advertised[client].self_commitment
            seed = self._rebuilt(client, told, self_commitment, committed)
            yield secrets.derived(seed, "self mask", self._round), True

    def _pairwise_masks(self, held: dict[int, dict[int, bytes]]) -> Iterator[tuple[bytes, bool]]:
        """(seed, subtracted) of the masks that those in the sum added, or subtracted, for somebody who vanished."""
        for gone, told in held.items():
            near = [each for each in self._near[gone] if each in self._added]
            if not near:
                continue
            public = self._advertised[gone].mask_key
            key = KeyPair(self._rebuilt(gone, told, secrets.public_key, public))
            for client in near:
                seed = mask_seed(key, self._advertised[client].mask_key, self._round, (gone, client))
                yield seed, gone > client

    def _rebuilt(self, client: int, told: dict[int, bytes], of: Callable[[bytes], bytes], said: bytes) -> bytes:
        """A client's secret, whose commitment or public key (`of`) is what it said. Raises: RoundAborted.

        Where shares are wrong, other sets of them are tried: a neighbour that lies is left out sooner or later.
        """
        threshold, holders = self._plan.threshold, sorted(told)
        if len(holders) < threshold:
            raise RoundAborted(
                f"{len(holders)} neighbours told their share of a secret of client {client}'s, of {threshold} that "
                "rebuild it: too many vanished, and the sum cannot be opened."
            )
        chance = random.Random(client)  # nothing secret depends on it
        for attempt in range(TRIES):
            chosen = chance.sample(holders, threshold) if attempt else holders[:threshold]
            try:
                found = shares.rebuilt_secret([told[each] for each in chosen], [each + 1 for each in chosen])
            except ProtocolError:
                continue
            if of(found) == said:
                return found
        raise RoundAborted(
            f"shares of client {client}'s secret do not rebuild what it committed to: it, or its neighbours, lied."
        )

    def _must_be_new(self, sender: int, among: Container[int], heard: Container[int]) -> None:
        if sender not in among:
            raise ProtocolError(f"client {sender} was not asked in this step.")
        if sender in heard:
            raise ProtocolError(f"client {sender} has answered; a second answer is not looked at.")

    def _must_be_tagged(self, message: Shares | MaskedVector | Unmask, data: bytes) -> None:
        key = tag_key(self._key, self._advertised[message.sender].box_key, message)
        secrets.check_tag(key, memoryview(data)[:-TAG_BYTES], message.tag)
        if not isinstance(message, Unmask) and message.seen != self._sent[message.sender]:
            raise ProtocolError(f"client {message.sender} answers another message than it was sent.")

    def _must_be_enough(self, clients: Collection[int], did: str, *, held: Collection[int] | None = None) -> None:
        """That so many did it, and that the sum holds whom it must (where those in it are others: `held`)."""
        least = max(self.settings.fewest, self._plan.quorum)
        if len(clients) < least:
            raise RoundAborted(
                f"{len(clients)} of {self.settings.clients} clients {did}, of {least} without whom no sum is opened."
            )
        if missing := set(self.settings.always).difference(clients if held is None else held):
            raise RoundAborted(
                f"client {min(missing)}, without whom no sum is opened, is not among clients that {did}."
            )
