"""The server's part of the masked protocol: a state machine that adds as vectors come, and opens nothing but the sum.

Messages go in one by one (`receive`); when a step has lasted long enough, which is the caller's clock, `advance` closes
it and gives what is to be sent. One sum is in memory, however many clients there are, and beside it some kilobytes for
each client. Boxes and shares, whose number is clients times neighbours, wait in a file, if the caller gives one, and
what is sent is made message by message.
"""

import hashlib
import random
from array import array
from bisect import bisect_left
from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from typing import BinaryIO, TypeAlias

import numpy as np

from tacit.aggregation import WordSum
from tacit.errors import InputError, ProtocolError, RoundAborted
from tacit.secure_aggregation import secrets
from tacit.secure_aggregation.cells import CellStore
from tacit.secure_aggregation.masked import secret_shares
from tacit.secure_aggregation.masked.client import mask_seed, self_commitment, tag_key
from tacit.secure_aggregation.masked.masks import add_masks
from tacit.secure_aggregation.masked.messages import (
    Advertise,
    Boxes,
    Consent,
    Consents,
    Invitation,
    Keys,
    MaskedVector,
    PassedOn,
    RoundSettings,
    Shares,
    Survivors,
    Unmask,
    ascending,
    bits_of,
)
from tacit.secure_aggregation.masked.secret_shares import SHARE_BYTES
from tacit.secure_aggregation.packing import add_packed
from tacit.secure_aggregation.secrets import BOX_BYTES, SIGNATURE_BYTES, TAG_BYTES, KeyPair, Words
from tacit.secure_aggregation.wire import Message, parsed

STEPS: tuple[type[Message], ...] = (Advertise, Shares, MaskedVector, Consent, Unmask)  # what it waits for, in order
Clients: TypeAlias = "array[int]"  # of their numbers, in ascending order: 4 bytes each
TRIES = 40  # sets of shares of one secret that are tried before the round is given up
BOX_LENGTH = BOX_BYTES + SHARE_BYTES


class Outbox(Mapping[int, bytes]):
    """The messages that a step sends, by client. Each is made whenever it is asked for, always the same bytes."""

    def __init__(self, clients: Collection[int], made: Callable[[int], bytes]) -> None:
        """`made`: the message of one of these clients."""
        self._clients, self._made = clients, made
        self.sent: dict[int, bytes] = {}  # SHA-256 of the messages that were asked for

    def __getitem__(self, client: int) -> bytes:
        if client not in self._clients:
            raise KeyError(client)
        data = self._made(client)
        self.sent[client] = hashlib.sha256(data).digest()
        return data

    def __contains__(self, client: object) -> bool:
        return client in self._clients

    def __iter__(self) -> Iterator[int]:
        return iter(self._clients)

    def __len__(self) -> int:
        return len(self._clients)


class MaskedServer:
    """One round. `advance` after each of its five steps; then `total` is the sum and `included` whose it is."""

    def __init__(
        self, settings: RoundSettings, identities: Sequence[bytes], private: bytes, *, storage: BinaryIO | None = None
    ) -> None:
        """`private`: the X25519 key whose public half is in the settings, fresh for this round.

        `storage`: an empty file, open for reading and writing, that nobody else reads and that is gone after the round
        (`tempfile.TemporaryFile(buffering=0)`): it takes 167 bytes for each client and each that it chooses, which are
        in memory without it.

        Raises: InputError where settings and clients do not belong together.
        """
        settings.check(identities)
        self._key = KeyPair(private)
        if self._key.public != settings.server_key:
            raise InputError("the server's private key is not that of the settings; make both anew for each round.")
        self.settings, self.identities = settings, tuple(identities)
        self._plan, self._round = settings.plan(), settings.name
        self._chosen: dict[int, Clients] = {}  # by each that advertised, of those that did
        self._near: dict[int, Clients] = {}  # neighbours: whom it chose, who chose it, and who is everybody's
        self._step = 0
        self._sums = WordSum(settings.dimension, settings.bits)
        self._sum = self._sums.zero()
        self._advertised: dict[int, Advertise] = {}
        self._heard: dict[int, bytes] = {}  # the same as they came, until they are passed on
        # A row for each client, a column for each that it chose: boxes that it made for them, shares that they told.
        self._key_boxes, self._self_boxes, self._told = CellStore.side_by_side(
            storage, settings.clients, self._plan.degree, (BOX_LENGTH, BOX_LENGTH, SHARE_BYTES)
        )
        self._sharers: set[int] = set()
        self._added: set[int] = set()
        self._survivors = b""
        self._consents: dict[int, bytes] = {}
        self._unmasked: set[int] = set()
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

    def advance(self) -> Outbox:
        """Closes a step: the messages to send, by client; after the last step none, and the sum is there.

        An answer is taken of those whose message was asked for, and until the step is closed.

        Raises: RoundAborted, naming the cause, where too few are left or what they said does not open the sum.
        """
        closing = (self._keys, self._boxes, self._say_survivors, self._say_consents, self._open)
        if self.waiting_for is None:
            raise ProtocolError("the round is over.")
        try:
            messages = closing[self._step]()
        except RoundAborted:
            self._step = len(STEPS) + 1
            self._sum = np.zeros(0, np.uint32)
            raise
        self._sent = messages.sent
        self._step += 1
        return messages

    def _advertise(self, message: Advertise, data: bytes) -> None:
        sender = message.sender
        self._must_be_new(sender, range(self.settings.clients), self._advertised)
        secrets.check_signature(self.identities[sender], "advertise", data[:-SIGNATURE_BYTES], message.signature)
        for key in (message.mask_key, message.box_key):  # one with which nobody agrees would stop its neighbours
            self._key.agreed(key, "check")
        self._advertised[sender], self._heard[sender] = message, data

    def _keys(self) -> Outbox:
        self._must_be_enough(self._advertised, "advertised their keys")
        heard = self._heard
        choosers = {client: array("I") for client in heard}
        for client, message in self._advertised.items():
            chosen = (each for each in self.settings.chosen(client, message.choice) if each in heard)
            self._chosen[client] = array("I", chosen)
            for each in self._chosen[client]:
                choosers[each].append(client)
        for client, theirs in choosers.items():
            always = (each for each in self.settings.always_near(client) if each in heard)
            self._near[client] = array("I", sorted({*self._chosen[client], *theirs, *always}))

        def keys(client: int) -> bytes:
            return Keys(self._round, tuple(heard[each] for each in self._near[client])).to_bytes()

        return Outbox(self._advertised, keys)

    def _place(self, client: int, other: int) -> int:
        """The place of a client among those whom another chose, a column of its row; -1 where it did not choose it."""
        chosen = self._chosen[client]
        place = bisect_left(chosen, other)
        return place if place < len(chosen) and chosen[place] == other else -1

    def _share(self, message: Shares, data: bytes) -> None:
        self._must_be_new(message.sender, self._sent, self._sharers)
        self._must_be_tagged(message, data)
        self._key_boxes.write(message.sender, 0, self._in_row(message, self._chosen[message.sender]))
        self._sharers.add(message.sender)

    def _in_row(self, message: Shares | MaskedVector, receivers: Sequence[int]) -> list[bytes]:
        """The boxes for these receivers, each where its receiver stands among those whom the sender chose."""
        sender = message.sender
        if len(message.boxes) != len(receivers):
            raise ProtocolError(f"client {sender} made {len(message.boxes)} boxes for {len(receivers)} neighbours.")
        if any(len(box) != BOX_LENGTH for box in message.boxes):
            raise ProtocolError(f"client {sender} made a box that has not the {BOX_LENGTH} bytes of a share's.")
        boxes = dict(zip(receivers, message.boxes, strict=True))
        return [boxes.get(each, b"") for each in self._chosen[sender]]

    def _passed_on(self, boxes: CellStore, receiver: int, makers: Collection[int]) -> PassedOn:
        """Those of the makers who chose the receiver, in ascending order, and their boxes for it."""
        found = [(each, self._place(each, receiver)) for each in self._near[receiver] if each in makers]
        chose = [(each, place) for each, place in found if place >= 0]
        return PassedOn(tuple(each for each, _ in chose), tuple(boxes.read(each, place) for each, place in chose))

    def _boxes(self) -> Outbox:
        self._must_be_enough(self._sharers, "shared their secrets")
        self._heard = {}

        def boxes(client: int) -> bytes:
            near = tuple(each for each in self._near[client] if each in self._sharers)
            return Boxes(self._round, near, self._passed_on(self._key_boxes, client, self._sharers).boxes).to_bytes()

        return Outbox(self._sharers, boxes)

    def _add(self, message: MaskedVector, data: bytes) -> None:
        self._must_be_new(message.sender, self._sent, self._added)
        self._must_be_tagged(message, data)
        receivers = [each for each in self._chosen[message.sender] if each in self._sharers]
        boxes = self._in_row(message, receivers)
        try:
            add_packed(self._sum, message.vector, self.settings.bits)
        except InputError as error:
            raise ProtocolError(f"client {message.sender} sent no vector of this round: {error}") from None
        self._self_boxes.write(message.sender, 0, boxes)
        self._added.add(message.sender)

    def _say_survivors(self) -> Outbox:
        self._must_be_enough(self._added, "sent their vectors")
        count = self.settings.clients
        message = Survivors(self._round, bits_of(self._sharers, count), bits_of(self._added, count))
        self._survivors = message.to_bytes()
        return Outbox(self._added, lambda client: self._survivors)

    def _consent(self, message: Consent) -> None:
        sender = message.sender
        self._must_be_new(sender, self._sent, self._consents)
        secrets.check_signature(self.identities[sender], "survivors", self._survivors, message.signature)
        self._consents[sender] = message.signature

    def _say_consents(self) -> Outbox:
        self._must_be_enough(self._consents, "agreed on who is in the sum", held=self._added)
        signers = tuple(sorted(self._consents)[: self._plan.quorum])
        signatures = tuple(self._consents[each] for each in signers)
        same = Consents(self._round, signers, signatures, (), ()).to_bytes()[: -len(PassedOn((), ()).to_bytes())]

        def consents(client: int) -> bytes:
            return same + self._passed_on(self._self_boxes, client, self._added).to_bytes()

        return Outbox(self._consents, consents)

    def _unmask(self, message: Unmask, data: bytes) -> None:
        sender = message.sender
        self._must_be_new(sender, self._sent, self._unmasked)
        self._must_be_tagged(message, data)
        near = (each for each in self._near[sender] if each in self._sharers)
        choosers = {each: place for each in near if (place := self._place(each, sender)) >= 0}
        ascending(message.survivors, choosers.keys() & self._added, "neighbours in the sum")
        ascending(message.vanished, choosers.keys() - self._added, "neighbours that vanished")
        if (len(message.survivors), len(message.vanished)) != (len(message.self_shares), len(message.key_shares)):
            raise ProtocolError(f"client {sender} tells another number of shares than of neighbours.")
        told = zip(message.survivors + message.vanished, message.self_shares + message.key_shares, strict=True)
        for client, share in told:
            self._told.write(client, choosers[client], [share])
        self._unmasked.add(sender)

    def _open(self) -> Outbox:
        """Takes all masks off the sum."""
        add_masks(self._sum, self._masks())
        self._sum = self._sums.finish(self._sum)
        return Outbox((), lambda client: b"")

    def _masks(self) -> Iterator[tuple[bytes, bool]]:
        """(seed, subtracted) of masks: what those in the sum added for themselves, and added or subtracted for somebody
        who vanished.
        """
        for client in sorted(self._added):
            seed = self._rebuilt(client, self_commitment, self._advertised[client].self_commitment)
            yield secrets.derived(seed, "self mask", self._round), True
        for gone in sorted(self._sharers - self._added):
            near = [each for each in self._near[gone] if each in self._added]
            if not near:
                continue
            key = KeyPair(self._rebuilt(gone, secrets.public_key, self._advertised[gone].mask_key))
            for client in near:
                seed = mask_seed(key, self._advertised[client].mask_key, self._round, (gone, client))
                yield seed, gone > client

    def _rebuilt(self, client: int, of: Callable[[bytes], bytes], said: bytes) -> bytes:
        """A client's secret, whose commitment or public key (`of`) is what it said. Raises: RoundAborted.

        Where shares are wrong, other sets of them are tried: a neighbour that lies is left out sooner or later.
        """
        chosen = self._chosen[client]
        told = {each: share for each, share in zip(chosen, self._told.row(client), strict=False) if share}
        threshold, holders = self._plan.threshold, sorted(told)
        if len(holders) < threshold:
            raise RoundAborted(
                f"{len(holders)} neighbours told their share of a secret of client {client}'s, of {threshold} that "
                "rebuild it: too many vanished, and the sum cannot be opened."
            )
        chance = random.Random(client)  # nothing secret depends on it
        for attempt in range(TRIES):
            some = chance.sample(holders, threshold) if attempt else holders[:threshold]
            try:
                found = secret_shares.rebuilt_secret([told[each] for each in some], [each + 1 for each in some])
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
