"""A decryptor: it adds clients' shares of their keys for one set of clients a round, and gives that sum once.

What it promises, whatever a server sends: of all attempts of a series it signs one set of clients, of at least as many
as its own threshold and the round's report goal and with everybody in it who is to add noise, and gives the sum of its
shares of that set alone, after a quorum of decryptors has signed the same. Both answers are on disk before they are
given, so that it keeps its word after it was killed, too; what it adds up is in memory, and is added up anew then. A
message that comes again changes nothing. Its memory is one sum, the names of the set and the round's public
polynomials. Before there is a set, it says of any report whether that fits what is in its box, and keeps nothing of it.
"""

import hashlib
import os
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TypeVar, cast

import numpy as np

from tacit.errors import InputError, ProtocolError
from tacit.files import sync_folder, write_whole
from tacit.folders import folder_beside, place_of
from tacit.secure_aggregation.one_message.decryptor_messages import (
    Agreement,
    Deposit,
    Finding,
    KeySum,
    Opening,
    SetProposal,
    Vote,
    set_digest,
    signed_finding,
    signed_sum,
)
from tacit.secure_aggregation.one_message.messages import OneMessageRound, box_context, signed_report
from tacit.secure_aggregation.one_message.report_check import public_rows
from tacit.secure_aggregation.secrets import KEY_BYTES, Draw, Identity, check_signature, public_key, unsealed
from tacit.secure_aggregation.shares import PRIME, Elements, combined, elements, lagrange
from tacit.secure_aggregation.wire import Message, parsed

IDENTITY, BOX, ROUNDS = "identity", "box", "rounds"  # in its folder
NO_OTHER = "a decryptor without its keys cannot go on: make another in a new folder, for rounds to come."
Answer = TypeVar("Answer", Vote, KeySum)


@dataclass
class _Round:
    """What a decryptor knows of the round that it is in."""

    settings: OneMessageRound
    index: int  # of this decryptor
    clients: tuple[bytes, ...] = ()
    digest: bytes = b""
    waiting: set[bytes] | None = None  # clients of the agreed set whose shares are still to come
    total: Elements = field(default_factory=lambda: np.zeros(0, np.uint32))

    @cached_property
    def rows(self) -> Elements:
        """`public_rows`: 8 bytes for each number of the public polynomials."""
        slots = self.settings.slots
        return public_rows(slots.parameters, self.settings.seed, slots.polynomials)


class Decryptor:
    """One decryptor, with its folder: `identity` and `box` (32 secret bytes each) and what it answered in `rounds/`.

    Whoever makes it holds the folder's lock (`files.held`). It knows one round at a time; after a restart the server
    sends everything of it again.
    """

    def __init__(
        self,
        folder: Path,
        *,
        least_reports: int,
        clients: Collection[bytes] | None = None,
        always: Collection[bytes] = (),
    ) -> None:
        """least_reports: the smallest report goal it accepts; clients: the identities that a set may hold, any if None.

        always: those that must contribute noise to every round. Raises: InputError for a folder that `make_decryptor`
        has not made, or in which a key is damaged.
        """
        self._folder, self._least, self._known, self._always = folder, least_reports, clients, always
        self._identity, self._box = Identity(_key(folder / IDENTITY)), _key(folder / BOX)
        if not (folder / ROUNDS).is_dir():
            raise InputError(
                f"'{folder}' lacks '{ROUNDS}', where it is written what this decryptor has signed: it could sign a "
                f"second "
                "set of a round; make another decryptor in a new folder."
            )
        self._round: _Round | None = None

    @property
    def identity(self) -> bytes:
        """Its Ed25519 public key."""
        return self._identity.public

    @property
    def box(self) -> bytes:
        """The X25519 public key that clients seal its shares to."""
        return public_key(self._box)

    def restarted(self) -> "Decryptor":
        """The same decryptor as another process would begin it: with what is on disk, and nothing else."""
        return Decryptor(self._folder, least_reports=self._least, clients=self._known, always=self._always)

    def receive(self, data: bytes) -> Vote | Finding | KeySum | None:
        """What it answers to a message of the server's, if anything.

        To the opening of a round it answers with its vote in another attempt of the series, where it has given one: it
        takes part in no other attempt then.
        Raises: ProtocolError or InputError with the reason why it does not; it has then changed nothing.
        """
        message = cast(
            "Opening | SetProposal | Agreement | Deposit", parsed(data, (Opening, SetProposal, Agreement, Deposit))
        )
        if isinstance(message, Opening):
            return self._opened(message)
        if self._round is None or message.round != self._round.settings.name:
            raise ProtocolError(f"round {message.round.hex()[:16]} was not opened here, or another after it.")
        if isinstance(message, SetProposal):
            return self._proposed(self._round, message)
        if isinstance(message, Agreement):
            return self._agreed(self._round, message)
        return self._deposited(self._round, message)

    def _opened(self, message: Opening) -> Vote | None:
        settings = OneMessageRound.from_bytes(message.settings)
        if settings.name != message.round:
            raise ProtocolError("these settings are not those of their round.")
        settings.check(least_reports=self._least, always=self._always)
        if (self.identity, self.box) not in zip(settings.decryptors, settings.boxes, strict=True):
            raise ProtocolError("this decryptor, with the key that its boxes are sealed to, has no part in the round.")
        given = self._kept(Vote, settings)
        if given is not None and given.round != settings.name:
            return given
        if self._round is None or self._round.settings.name != settings.name:
            self._round = _Round(settings, settings.decryptors.index(self.identity))
        return None

    def _proposed(self, now: _Round, message: SetProposal) -> Vote:
        clients, settings = message.clients, now.settings
        if list(clients) != sorted(set(clients)):
            raise ProtocolError("a set names each of its clients once, in ascending order.")
        reports = settings.reports(frozenset(clients))
        if not settings.report_goal <= reports <= settings.most_reports:
            raise ProtocolError(
                f"a set of {reports} clients is not one of {settings.report_goal} to {settings.most_reports}."
            )
        if strange := self._stranger(clients, settings):
            raise ProtocolError(f"the client {strange.hex()[:16]} is not enrolled.")
        digest = set_digest(settings.name, clients)
        vote = Vote(settings.name, now.index, digest, self._identity.sign("set", digest))
        if (given := self._kept(Vote, settings)) is None:
            self._keep(vote, settings)
        elif given.clients != digest:
            raise ProtocolError(
                "this decryptor has signed another set of this round, or of another attempt at it, and signs one alone."
            )
        now.clients, now.digest = clients, digest
        return vote

    def _stranger(self, clients: tuple[bytes, ...], settings: OneMessageRound) -> bytes | None:
        """A client that is neither enrolled nor a contributor of noise, where it matters who is."""
        if self._known is None:
            return None
        return next((each for each in clients if each not in self._known and each not in settings.contributors), None)

    def _agreed(self, now: _Round, message: Agreement) -> KeySum | None:
        settings = now.settings
        if not now.clients:
            raise ProtocolError("no set of this round was proposed.")
        if len(set(message.decryptors)) < settings.quorum or len(message.decryptors) != len(message.signatures):
            raise ProtocolError(f"fewer than {settings.quorum} decryptors have signed the set.")
        for decryptor, signature in zip(message.decryptors, message.signatures, strict=True):
            if decryptor >= len(settings.decryptors):
                raise ProtocolError(f"there is no decryptor {decryptor} in this round.")
            check_signature(settings.decryptors[decryptor], "set", now.digest, signature)
        if (given := self._kept(KeySum, settings)) is not None:
            return given
        if now.waiting is None:
            now.waiting, now.total = set(now.clients), np.zeros(settings.columns, np.uint32)
        return None

    def _deposited(self, now: _Round, message: Deposit) -> Finding | KeySum | None:
        settings, client = now.settings, message.client
        if len(message.digests) != len(settings.decryptors) + 2 or (
            hashlib.sha256(message.box).digest() != message.digests[now.index]
        ):
            raise ProtocolError(f"the box of client {client.hex()[:16]} is not the one that the client signed.")
        signed = signed_report(settings.name, client, message.digests, message.parts)
        check_signature(client, "report", signed, message.signature)
        return self._found(now, message) if now.waiting is None else self._added(now, message)

    def _found(self, now: _Round, message: Deposit) -> Finding:
        """Whether a report fits, before there is a set: it says so, and keeps nothing of it."""
        wrong = b""
        try:
            self._check(now, message)
        except ProtocolError as error:
            wrong = str(error).encode()
        signature = self._identity.sign("finding", signed_finding(message.round, message.client, wrong))
        return Finding(message.round, now.index, message.client, wrong, signature)

    def _check(self, now: _Round, message: Deposit) -> None:
        """Raises: ProtocolError where a report says something else of its key than is in this decryptor's box."""
        settings = now.settings
        checking, each = settings.parts_shape
        parts = elements(message.parts, checking * each).reshape(checking, each)
        share, masks = np.split(self._opened_box(now, message), [settings.columns])
        challenge = settings.challenge(message.client, message.digests)
        found = settings.parts(challenge, now.rows, share[None], masks[None])[0]
        if now.index < checking:
            expected = parts[now.index]
        else:
            expected = combined(lagrange(settings.points[:checking], [now.index + 1]), parts)[0]
        if not np.array_equal(found, expected):
            raise ProtocolError("its share is not one of the key that it speaks of.")

    def _added(self, now: _Round, message: Deposit) -> KeySum | None:
        settings, client, waiting = now.settings, message.client, now.waiting
        assert waiting is not None
        if client not in waiting:
            raise ProtocolError(f"the client {client.hex()[:16]} is not of the set, or its share has been added.")
        try:
            share = self._opened_box(now, message)[: settings.columns]
        except ProtocolError as error:
            raise ProtocolError(f"client {client.hex()[:16]} has spoilt the round: {error}") from None
        _add(now.total, share)
        waiting.remove(client)
        if waiting:
            return None
        shares = now.total.astype("<u4").tobytes()
        signature = self._identity.sign("key sum", signed_sum(settings.name, now.digest, shares))
        answer = KeySum(settings.name, now.index, now.digest, shares, signature)
        self._keep(answer, settings)
        now.waiting = None
        return answer

    def _opened_box(self, now: _Round, message: Deposit) -> Elements:
        """(share_elements,). Raises: ProtocolError for a box that holds something else, or is another's."""
        context = box_context(now.settings.name, message.client, now.index)
        return elements(unsealed(self._box, message.box, context), now.settings.share_elements)

    def _keep(self, answer: Vote | KeySum, settings: OneMessageRound) -> None:
        """Put an answer on disk, before anybody sees it."""
        write_whole(self._file(type(answer), settings), answer.to_bytes())

    def _kept(self, kind: type[Answer], settings: OneMessageRound) -> Answer | None:
        """What it answered in the series, whichever attempt that was."""
        file = self._file(kind, settings)
        try:
            return kind.from_bytes(file.read_bytes()) if file.exists() else None
        except ProtocolError as error:
            raise ProtocolError(
                f"'{file.name}', which says what this decryptor answered in the round, is damaged ({error}) It answers "
                "nothing more of it; begin another round."
            ) from None

    def _file(self, kind: type[Message], settings: OneMessageRound) -> Path:
        return self._folder / ROUNDS / f"{settings.attempts.name.hex()}.{kind.__name__.lower()}"


def make_decryptor(folder: Path, *, draw: Draw = os.urandom) -> None:
    """Two secret keys and no rounds in a new folder, for its owner alone (0700); a decryptor that is there stays.

    Raises: InputError where the folder holds something else.
    """
    if (folder / IDENTITY).exists():
        return
    if folder.is_dir() and any(folder.iterdir()):
        raise InputError(f"the folder '{folder}' is no decryptor's and not empty; give a new one.")
    folder = place_of(folder)
    with folder_beside(folder) as draft:
        (draft / ROUNDS).mkdir()
        for name in (IDENTITY, BOX):
            write_whole(draft / name, draw(KEY_BYTES))
        draft.replace(folder)
    sync_folder(folder.parent)


def _key(file: Path) -> bytes:
    """A secret key of a decryptor. Raises: InputError where the file is gone or damaged."""
    try:
        key = file.read_bytes()
    except OSError as error:
        raise InputError(f"'{file}' cannot be read ({error.strerror}); {NO_OTHER}") from None
    if len(key) != KEY_BYTES:
        raise InputError(f"'{file}' is damaged: it has {len(key)} bytes, and a key has {KEY_BYTES}; {NO_OTHER}")
    return key


def _add(total: Elements, share: Elements) -> None:
    """In place, modulo the prime."""
    total += share  # below 2^32
    np.subtract(total, np.uint32(PRIME), out=total, where=total >= PRIME)
