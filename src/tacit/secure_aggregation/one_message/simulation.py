"""Rounds of one message in memory, decryptors in folders, with whatever goes wrong on the way; nothing for real
vectors.

Whoever drives a real round does the same: it passes messages on, and sends them again where no answer came.
"""

import random
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tacit.errors import InputError, ProtocolError, RoundAborted
from tacit.secure_aggregation import secrets
from tacit.secure_aggregation.one_message.client import one_message_report
from tacit.secure_aggregation.one_message.decryptor import Decryptor, make_decryptor
from tacit.secure_aggregation.one_message.decryptor_messages import Deposit, Finding, KeySum, Vote
from tacit.secure_aggregation.one_message.messages import OneMessageReport, OneMessageRound
from tacit.secure_aggregation.one_message.server import OneMessageServer, smallest_parameters
from tacit.secure_aggregation.secrets import Identity, Words
from tacit.secure_aggregation.simulate import MessageFaults, Post

ATTEMPTS = 4  # to get an answer of a decryptor
DecryptorAnswer = Vote | Finding | KeySum
DecryptorLie = Callable[[int, DecryptorAnswer], DecryptorAnswer | None]  # what a decryptor says instead; None: nothing


@dataclass
class OneMessageParties:
    """Everybody in a round, and everything that chance decides; all follows from a seed, decryptors' keys included."""

    settings: OneMessageRound
    server: OneMessageServer
    identities: list[Identity]  # of the clients, and of the contributors of noise behind them
    decryptors: list[Decryptor]
    chance: random.Random

    @classmethod
    def from_settings(
        cls,
        count: int,
        folder: Path,
        *,
        dimension: int,
        largest: int,
        seed: int,
        report_goal: int = 2,
        decryptors: int = 4,
        corrupt: int = 1,
        contributors: int = 0,
        margin: int = 0,
        plan: bytes | None = None,
    ) -> "OneMessageParties":
        """`count` clients and so many contributors of noise from -margin to margin each; plan: the digest of one.

        Decryptors are in folders below `folder`, made where they are not there.
        """
        chance = random.Random(seed)
        draw = secrets.seeded(chance.randbytes(32))
        folders = [folder / f"decryptor-{index}" for index in range(decryptors)]
        for each in folders:
            make_decryptor(each, draw=draw)
        identities = [Identity(draw(secrets.KEY_BYTES)) for _ in range(count + contributors)]
        noise = tuple(each.public for each in identities[count:])
        made = [Decryptor(each, least_reports=2, always=noise) for each in folders]
        private = draw(secrets.KEY_BYTES)
        most = max(count, report_goal)
        settings = OneMessageRound(
            parameters=smallest_parameters(dimension, largest, most, contributors=contributors, margin=margin),
            dimension=dimension,
            largest=largest,
            report_goal=report_goal,
            most_reports=most,
            corrupt=corrupt,
            decryptors=tuple(each.identity for each in made),
            boxes=tuple(each.box for each in made),
            server=secrets.public_key(private),
            seed=draw(32),
            plan=draw(32) if plan is None else plan,
            round_index=0,
            series=0,
            contributors=noise,
            margin=margin,
        )
        return cls(settings, OneMessageServer(settings, private), identities, made, chance)


@dataclass
class OneMessageOutcome:
    """What came of a round, and all that the server heard."""

    included: list[int] = field(default_factory=list)  # parties in the sum, by their place
    total: Words | None = None
    aborted: RoundAborted | None = None
    named: dict[int, str] = field(default_factory=dict)  # parties that were left out, and why
    refused: list[str] = field(default_factory=list)  # why, message by message
    heard: list[bytes] = field(default_factory=list)


def run_one_message_round(
    parties: OneMessageParties,
    vectors: Sequence[Words],
    *,
    faults: MessageFaults | None = None,
    leaving: Collection[int] = (),
    dead: Sequence[int] = (),
    killed: float = 0.0,
    lie: DecryptorLie | None = None,
    spoil: Callable[[int, OneMessageReport], OneMessageReport] = lambda party, report: report,
) -> OneMessageOutcome:
    """One round with a vector (dimension,) uint32 of each client, and of each contributor, its noise + margin.

    leaving: clients that vanish before they send anything. dead: decryptors that answer nothing; killed: the chance
    that a decryptor is, before a message, and starts again; lie: what decryptors answer instead; spoil: what a party
    sends instead of its report.
    """
    outcome, post = OneMessageOutcome(), Post(faults or MessageFaults(), parties.chance)
    waiting = _reports(parties, vectors, post, outcome, leaving, spoil)
    desk = _Desk(parties, post, outcome, killed, lie)
    opening = parties.server.opening().to_bytes()
    alive = [index for index in range(len(parties.decryptors)) if index not in dead]
    for index in alive:
        deposits = [each.deposits[index].to_bytes() for each in waiting.values()]
        desk.ask(index, [opening, *deposits], lambda: parties.server.checked)
    for client, why in parties.server.wrong.items():
        (party,) = [each for each in waiting if parties.identities[each].public == client]
        parties.server.leave_out(waiting.pop(party).report)
        outcome.named[party] = why
    try:
        proposal = parties.server.propose().to_bytes()
        outcome.included = sorted(waiting)
        for index in alive:
            desk.ask(index, [opening, proposal], lambda: parties.server.signed)
        agreement = parties.server.agreement().to_bytes()
        for index in alive:
            deposits = [waiting[client].deposits[index].to_bytes() for client in outcome.included]
            desk.ask(index, [opening, proposal, agreement, *deposits], lambda: parties.server.summed)
        outcome.total = parties.server.opened()
    except RoundAborted as error:
        outcome.aborted = error
    return outcome


class _Received(NamedTuple):
    """A report that was added, and what it has for each decryptor."""

    report: bytes
    deposits: tuple[Deposit, ...]


def _reports(
    parties: OneMessageParties,
    vectors: Sequence[Words],
    post: Post,
    outcome: OneMessageOutcome,
    leaving: Collection[int],
    spoil: Callable[[int, OneMessageReport], OneMessageReport],
) -> dict[int, _Received]:
    """Of each party whose report was added."""
    places = {identity.public: index for index, identity in enumerate(parties.identities)}
    draw = secrets.seeded(parties.chance.randbytes(32))
    sent = [
        spoil(place, one_message_report(parties.settings, identity, vector, draw=draw)).to_bytes()
        for place, (identity, vector) in enumerate(zip(parties.identities, vectors, strict=True))
        if place not in leaving and not post.happens(post.faults.vanishes)
    ]
    waiting: dict[int, _Received] = {}
    for data in [*post.delivered("server", sent), *post.delivered("server", [])]:
        outcome.heard.append(data)
        try:
            deposits = parties.server.receive(data)
        except ProtocolError as error:
            outcome.refused.append(str(error))
            continue
        waiting[places[deposits[0].client]] = _Received(data, deposits)
    return waiting


@dataclass
class _Desk:
    """Where server and decryptors hear of one another."""

    parties: OneMessageParties
    post: Post
    outcome: OneMessageOutcome
    killed: float
    lie: DecryptorLie | None

    def ask(self, index: int, messages: Sequence[bytes], answered: Callable[[], Collection[int]]) -> None:
        """Send a decryptor these messages in their order until the server has its answer, or for so many times."""
        for _ in range(ATTEMPTS):
            answers: list[bytes] = []
            for data in messages:
                for arrived in self.post.delivered(index, [data]):
                    answers += self._answers(index, arrived)
            for data in self.post.delivered(("server", index), answers):
                self.outcome.heard.append(data)
                try:
                    self.parties.server.answer(data)
                except ProtocolError as error:
                    self.outcome.refused.append(str(error))
            if index in answered():
                return

    def _answers(self, index: int, data: bytes) -> list[bytes]:
        decryptors = self.parties.decryptors
        if self.post.happens(self.killed):
            decryptors[index] = decryptors[index].restarted()
        try:
            answer = decryptors[index].receive(data)
        except (ProtocolError, InputError) as error:
            self.outcome.refused.append(str(error))
            return []
        if answer is not None and self.lie is not None:
            answer = self.lie(index, answer)
        return [] if answer is None else [answer.to_bytes()]
