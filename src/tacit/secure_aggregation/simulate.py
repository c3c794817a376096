"""Rounds in memory, with whatever goes wrong between devices and server: the same state machines as over a network.

What is drawn follows from a seed, so a round that went wrong can be run again; nothing here is for real vectors.
"""

import random
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from tacit.errors import ProtocolError, RoundAborted
from tacit.secure_aggregation import secrets
from tacit.secure_aggregation.masked.client import DevicePolicy, MaskedClient
from tacit.secure_aggregation.masked.messages import RoundSettings
from tacit.secure_aggregation.masked.server import STEPS, MaskedServer
from tacit.secure_aggregation.secrets import Identity, Words
from tacit.secure_aggregation.wire import Message

FORGED_BYTES = 40  # at the end of a message: its tag, its signature, shares
Lie = Callable[[type[Message], dict[int, bytes]], dict[int, bytes]]  # step closed, what is to be sent -> what is


@dataclass(frozen=True, kw_only=True)
class MessageFaults:
    """Chances of what may happen to each message on its way, in both directions, and to each device in each step."""

    vanishes: float = 0.0  # the device, for good
    lost: float = 0.0
    twice: float = 0.0
    delayed: float = 0.0  # until the next step
    corrupted: float = 0.0  # a byte changed, some cut off, some added
    replayed: float = 0.0  # an old message of anybody's comes again
    forged: float = 0.0  # one like it comes too, by somebody without keys


@dataclass
class Post:
    """Carries messages and does to them what `faults` allows; what arrives, arrives in any order."""

    faults: MessageFaults
    chance: random.Random
    seen: list[bytes] = field(default_factory=list)
    late: dict[object, list[bytes]] = field(default_factory=dict)

    def happens(self, probability: float) -> bool:
        return self.chance.random() < probability

    def delivered(self, to: object, sent: Sequence[bytes]) -> list[bytes]:
        """What arrives at `to` in this step, of what was sent to it now and was late before."""
        arriving = self.late.pop(to, [])
        for data in sent:
            if self.happens(self.faults.lost):
                continue
            if self.happens(self.faults.corrupted):
                arriving.append(self._corrupted(data))
                continue
            if self.happens(self.faults.delayed):
                self.late.setdefault(to, []).append(data)
                continue
            arriving += [data] * (2 if self.happens(self.faults.twice) else 1)
            if self.happens(self.faults.forged):
                arriving.append(data[:-FORGED_BYTES] + self.chance.randbytes(FORGED_BYTES))
            if self.seen and self.happens(self.faults.replayed):
                arriving.append(self.chance.choice(self.seen))
        self.seen += sent[: 1 if len(self.seen) > 50 else None]
        self.chance.shuffle(arriving)
        return arriving

    def _corrupted(self, data: bytes) -> bytes:
        changed = bytearray(data)
        what = self.chance.randrange(3)
        if what == 0:
            changed[self.chance.randrange(len(changed))] ^= self.chance.randrange(1, 256)
        elif what == 1:
            del changed[self.chance.randrange(len(changed)) :]
        else:
            changed += self.chance.randbytes(self.chance.randrange(1, 9))
        return bytes(changed)


@dataclass
class MaskedRound:
    """What came of a round, and all that an observer of the server could have kept."""

    settings: RoundSettings
    server: MaskedServer
    clients: list[MaskedClient]
    aborted: RoundAborted | None = None
    refused: list[str] = field(default_factory=list)  # why, message by message
    heard: list[bytes] = field(default_factory=list)  # all that reached the server

    @property
    def total(self) -> Words | None:
        return None if self.aborted else self.server.total


def run_masked_round(
    vectors: Sequence[Words],
    *,
    bits: int,
    seed: int,
    fewest: int = 2,
    dropout: float = 0.1,
    corruption: float = 0.1,
    always: Collection[int] = (),
    faults: MessageFaults | None = None,
    leaving: Sequence[tuple[int, type[Message]]] = (),
    lie: Lie | None = None,
) -> MaskedRound:
    """One round of the masked protocol with these vectors, each (dimension,) uint32 below 2^bits.

    `leaving`: clients that vanish before they send a message of this kind. `lie` changes what the server sends when it
    has closed a step. `always`: clients that every sum must hold. The sum of `server.included` is in `total`,
    or `aborted` says why there is none.
    Raises: InputError where the settings cannot be, as a server would.
    """
    chance = random.Random(seed)
    draw = secrets.seeded(chance.randbytes(32))
    identities = [Identity(draw(32)) for _ in vectors]
    private = draw(32)
    settings = RoundSettings.from_cohort(
        [each.public for each in identities],
        dimension=len(vectors[0]),
        bits=bits,
        most_reports=len(vectors),
        fewest=fewest,
        dropout=dropout,
        corruption=corruption,
        server_key=secrets.public_key(private),
        always=[identities[each].public for each in always],
        nonce=draw(32),
    )
    server = MaskedServer(settings, [each.public for each in identities], private)
    wanted = frozenset(identities[client].public for client in always)
    policy = DevicePolicy(fewest=fewest, corruption=corruption, always=wanted)
    clients = [
        MaskedClient(server.invitation, identity, vector, policy=policy, draw=draw)
        for identity, vector in zip(identities, vectors, strict=True)
    ]
    round_ = MaskedRound(settings, server, clients)
    _run(round_, Post(faults or MessageFaults(), chance), set(leaving), lie)
    return round_


def _run(round_: MaskedRound, post: Post, leaving: set[tuple[int, type[Message]]], lie: Lie | None) -> None:
    there = set(range(len(round_.clients)))
    answers = [round_.clients[client].advertise() for client in there if (client, STEPS[0]) not in leaving]
    for step in STEPS:
        arrived = post.delivered("server", answers)
        round_.heard += arrived
        for data in arrived:
            _taken(round_, round_.server.receive, data)
        try:
            sent = dict(round_.server.advance())
        except RoundAborted as error:
            round_.aborted = error
            return
        sent = lie(step, sent) if lie else sent
        answers = []
        for client in sorted(there):
            if post.happens(post.faults.vanishes) or (client, _next(step)) in leaving:
                there.discard(client)
                continue
            for data in post.delivered(client, [sent[client]] if client in sent else []):
                answer = _taken(round_, round_.clients[client].receive, data)
                answers += [answer] if answer else []


def _next(step: type[Message]) -> type[Message] | None:
    return dict(pairwise(STEPS)).get(step)


def _taken(round_: MaskedRound, receive: Callable[[bytes], bytes | None], data: bytes) -> bytes | None:
    try:
        return receive(data)
    except ProtocolError as error:
        round_.refused.append(str(error))
        return None
